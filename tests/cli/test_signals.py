"""What ends a run from outside: a terminal that is closed, a limit on time, a data file that is shortened under it. Nothing that was saved is lost."""
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drive

MANY = 1_000_000_000  # steps: more than are ever made


def start(run, *words, **more):
    words = drive.words_of(["train", *drive.SMALL, "--steps", MANY, "--save-every", 50, "--out", run, *words])
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def await_checkpoint(process, run):
    while not drive.checkpoints(run):
        assert process.poll() is None, process.communicate()


def check_saved(process, run):
    told = process.communicate(timeout=120)[1]
    line = drive.check_error(process.returncode, told, 75, ["stopped at step"], run)
    assert f"step {drive.newest_step(run)};" in line, (line, drive.checkpoints(run))


def test_hangup_saves():
    with drive.Scratch("hangup") as scratch:
        run = scratch.at("run")
        process = start(run)
        await_checkpoint(process, run)
        process.send_signal(signal.SIGHUP)
        check_saved(process, run)


def test_nohup_goes_on():
    with drive.Scratch("nohup") as scratch:
        run = scratch.at("run")
        process = start(run, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        await_checkpoint(process, run)
        process.send_signal(signal.SIGHUP)
        before = drive.newest_step(run)
        while drive.newest_step(run) < before + 200:
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGTERM)
        check_saved(process, run)


def test_time_limit_saves():
    with drive.Scratch("time") as scratch:
        run = scratch.at("run")
        process = start(run)
        await_checkpoint(process, run)  # how long a start takes is the machine's affair
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (1, 600))
        check_saved(process, run)


def test_shortened_store():
    with drive.Scratch("store") as scratch:
        run, store = scratch.at("run"), scratch.at("store")
        drive.good("gen", "lock-512", "-o", scratch.at("lock.npz"))
        drive.good("data", "convert", scratch.at("lock.npz"), store)
        process = start(run, "--data", store, "--env", "lock-512")
        await_checkpoint(process, run)
        for file in Path(store).iterdir():
            if file.suffix != ".json":
                os.truncate(file, 0)
        told = process.communicate(timeout=120)[1]
        line = drive.check_error(process.returncode, told, 1, ["was shortened", store, "--resume"], run)
        assert "/store/" in line, line
        drive.bad(1, store, "train", "--resume", run)  # until it is restored
        drive.good("data", "convert", scratch.at("lock.npz"), scratch.at("again"))
        for file in Path(scratch.at("again")).iterdir():
            os.replace(file, Path(store) / file.name)
        process = drive.spawn("train", "--resume", run)
        drive.await_handler(process)
        process.send_signal(signal.SIGTERM)
        check_saved(process, run)


drive.run_tests(globals())
