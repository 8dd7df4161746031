"""Inside a run or data folder no symbolic link is followed and no pipe opened; a wait for a lock ends on a signal.

Every file of a run folder is replaced by a link to a private file, by a link to nothing and by a pipe. Then each command that
reads or writes there must end soon, with its result or with one line, and the private file must be what it was and appear
nowhere. The same for the parts of gen and for stores. Only what -o names may be a link.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, STOPPED, Scratch, await_handler, bad, call, checkpoints, complaints, good, newest_step, paused, run_tests  # noqa: E402
from drive import spawn, state_of  # noqa: E402

ENV = "pointmaze-medium-navigate-oraclerep-v0"
SECRET = "step,overall_success\n1,0.5\nTOP-SECRET\n"
NAMES = ["config.json", "train.csv", "timing.csv", "eval.csv", "step-0000000010.safetensors", "step-0000000020.safetensors",
         "map-task1.svg", "map-x.svg", "result.json", "DONE"]


def link(path, private):
    os.symlink(private, path)


def dangle(path, _):
    os.symlink(path + ".nothing", path)


def pipe(path, _):
    os.mkfifo(path)


def commands(run, page):
    return [("report", run, "-o", page), ("train", "--resume", run), ("eval", run, "--episodes", 1), ("map", run, "--task", 1, "--episodes", 1),
            ("report", run, "-o", page)]


def check_private(private):
    with open(private) as file:
        assert file.read() == SECRET


def run_one(words, private, page):
    done = call(*words)  # with its time limit: what waits for a pipe fails here
    assert done.returncode in (0, 1) and "TOP-SECRET" not in done.stdout + done.stderr, (words, done)
    if done.returncode:
        told = [line for line in complaints(done.stderr) if "warning" not in line]
        assert len(told) == 1 and told[0].startswith("dcrl: "), (words, done)
    check_private(private)
    if os.path.exists(page):
        with open(page) as file:
            assert "TOP-SECRET" not in file.read(), words
        os.remove(page)
    return done.returncode


def test_run_folder(scratch):
    private, page, run = scratch.at("private"), scratch.at("page.html"), scratch.at("copy")
    with open(private, "w") as file:
        file.write(SECRET)
    for place in (link, dangle, pipe):
        for name in NAMES:
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(scratch.at("run"), run)
            for gone in ("DONE", name):
                if os.path.lexists(os.path.join(run, gone)):
                    os.remove(os.path.join(run, gone))
            place(os.path.join(run, name), private)
            codes = [run_one(words, private, page) for words in commands(run, page)]
            assert not os.path.exists(os.path.join(run, name) + ".nothing"), name
            # A newest checkpoint that is none costs no training: the one before is gone on from.
            if name.startswith("step-"):
                assert codes[1] == 0 and not os.path.islink(checkpoints(run)[-1]), (place, codes)
            if name == "map-task1.svg":
                assert codes[3] == codes[4] == 0 and not os.path.islink(os.path.join(run, name)), (place, codes)


def has_links(run):
    return any(os.path.islink(os.path.join(run, name)) for name in os.listdir(run))


def test_saving_replaces_links(scratch):
    """A link in the place of a checkpoint that is still to come does not end the training."""
    run, private = scratch.at("ahead"), scratch.at("private2")
    with open(private, "w") as file:
        file.write(SECRET)
    shutil.copytree(scratch.at("run"), run)
    process = spawn("train", "--resume", run, "--steps", 10**9)
    await_handler(process)
    while newest_step(run) == 20 or not paused(process):
        assert process.poll() is None, process.communicate()
    link(os.path.join(run, f"step-{newest_step(run) + 20:010d}.safetensors"), private)
    process.send_signal(signal.SIGCONT)
    while has_links(run):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == STOPPED, process.communicate()
    check_private(private)
    assert not has_links(run) and newest_step(run) > 20


def test_given_links(scratch):
    """-o may be a link: it stays, and the file that it names is replaced."""
    target, given = scratch.at("target.html"), scratch.at("given.html")
    with open(target, "w") as file:
        file.write("old")
    os.symlink(target, given)
    good("report", scratch.at("run"), "-o", given)
    with open(target) as file:
        assert os.path.islink(given) and "<html" in file.read()


def test_sweeps(scratch):
    """Neither the page of a sweep nor a folder of one of its runs, nor that of a seed, is a link that is followed."""
    private = scratch.at("private")
    small = ["train", *SMALL, "--steps", 4, "--jobs", 1]
    for place in (link, dangle, pipe):
        out = scratch.at(f"sweep-{place.__name__}")
        os.mkdir(out)
        place(os.path.join(out, "report.html"), private)
        good(*small, "--set", "n=2,4", "--out", out)
        check_private(private)
        with open(os.path.join(out, "report.html")) as file:
            assert "</html>" in file.read() and not os.path.islink(file.name)
    elsewhere = scratch.at("elsewhere")
    os.mkdir(elsewhere)
    lock = ["lock", "--agent", "dcrl", "--horizon", 16, "--n", 4, "--hidden", "8,8", "--steps", 4]
    for inner, words in (("n=2", [*small, "--set", "n=2,4"]), ("seed-1", [*small[:-2], "--seed", "0-1"]), ("dcrl-H16-s0", lock)):
        out = scratch.at("of-" + inner)
        os.mkdir(out)
        os.symlink(elsewhere, os.path.join(out, inner))
        bad(1, ["symbolic link", inner], *words, "--out", out)
        assert not os.listdir(elsewhere)


def test_stores(scratch):
    store, private = scratch.at("store"), scratch.at("private")
    good("data", "convert", scratch.at("data.npz"), store)
    for name in sorted(os.listdir(store)):
        path, kept = os.path.join(store, name), os.path.join(scratch.at(name) + ".kept")
        os.rename(path, kept)
        for place in (link, pipe):
            place(path, kept)
            bad(1, name, "data", "info", store)
            os.remove(path)
        os.rename(kept, path)
    good("data", "info", store)
    check_private(private)


def test_parts_of_gen(scratch):
    """A part that is a link is neither read nor written through; the set is whole."""
    out, private = scratch.at("cube.npz"), scratch.at("private")
    words = ("gen", "cube-single-play", "-o", out, "--episodes", 10)
    good(*words)
    with open(out, "rb") as file:
        want = file.read()
    assert os.path.exists(scratch.at("cube-val.npz"))
    os.remove(out)
    part = out + ".part-0000"
    for place in (pipe, link):
        place(part, private)
        bad(1, part, *words)
        os.remove(part)
    dangle(out + ".part-0001", private)  # of no batch
    good(*words)
    check_private(private)
    with open(out, "rb") as file:
        assert file.read() == want


def fresh_private(scratch):
    """A folder that nobody may touch."""
    private = scratch.at("diary")
    shutil.rmtree(private, ignore_errors=True)
    os.mkdir(private)
    with open(os.path.join(private, "page"), "w") as file:
        file.write(SECRET)
    return private


def check_diary(private):
    assert os.listdir(private) == ["page"]
    check_private(os.path.join(private, "page"))


def test_gen_in_a_folder(scratch):
    """Names that gen makes up, in a folder or beside the one that was written out, are no links and no pipes."""
    private, words = fresh_private(scratch), ["gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 8, "-o"]
    for place in (link, pipe):
        for k, (name, out) in enumerate([("pointmaze-medium-navigate-v0.npz", ""), ("pointmaze-medium-navigate-v0-val.npz", ""), ("x-val.npz", "x.npz")]):
            folder = scratch.at(f"gen-{place.__name__}-{k}")
            os.mkdir(folder)
            place(os.path.join(folder, name), os.path.join(private, "page"))
            bad(1, ["lies where a file belongs", name], *words, os.path.join(folder, out))
            check_diary(private)


PAPER = {"steps": 4, "seeds": 1, "batch": 8, "hidden": [8, 8], "evaluations": 1, "episodes": 1, "data": 40, "rows": 11,
         "instead": {"humanoidmaze-giant": "pointmaze-medium"}, "only": {"strategies": {"methods": ["dcrl"]}}}


def test_paper(scratch):
    """Nothing in the folder of a paper is a link that is written through, or whose folder is cleared."""
    with open(scratch.at("scales.json"), "w") as file:
        json.dump({"small": PAPER, "shards": {**PAPER, "data": 110000}}, file)
    out, data = scratch.at("paper"), "data/pointmaze-medium-navigate-v0-40x11"
    words = ["paper", "run", "strategies", "--scales", scratch.at("scales.json"), "--threads", 1, "--out", out, "--scale"]
    for name, scale, *more in (("data", "small"), (data + ".npz", "small"), (data + "-val.npz", "small"), ("runs", "small"), ("runs/pointmaze-medium", "small"),
                               ("runs/pointmaze-medium/dcrl", "small"), ("slurm", "small", "--slurm"),
                               ("data/pointmaze-medium-navigate-v0-110000x11", "shards"), ("data/pointmaze-medium-navigate-v0-110000x11.part", "shards")):
        private = fresh_private(scratch)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(os.path.dirname(os.path.join(out, name)))
        os.symlink(os.path.join(private, "page") if name.endswith(".npz") else private, os.path.join(out, name))
        bad(1, ["symbolic link", name], *words, scale, *more)
        check_diary(private)
    shutil.rmtree(out)
    os.makedirs(os.path.join(out, "slurm"))
    os.symlink(os.path.join(private, "page"), os.path.join(out, "slurm", "data.sh"))
    good(*words, "small", "--slurm")
    check_diary(private)
    shutil.rmtree(out)
    os.makedirs(os.path.join(out, "data"))
    os.mkfifo(os.path.join(out, data + ".npz"))
    bad(1, ["pipe", data], *words, "small")


def test_pipe_that_nobody_reads(scratch):
    """-o may be a pipe; waiting for who reads it ends on a signal."""
    out = scratch.at("pipe.npz")
    os.mkfifo(out)
    process = spawn("gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 8, "-o", out)
    await_handler(process)
    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=20)
    assert process.returncode == STOPPED and told[1].startswith("dcrl: stopped"), told
    assert good("report", scratch.at("run"), "--format", "svg", "-o", "/dev/stdout").startswith("<svg")
    target = scratch.at("through.svg")
    with open(target, "wb") as file:  # and with a reader it is written whole
        os.mkfifo(scratch.at("pipe.svg"))
        reader = subprocess.Popen(["cat", scratch.at("pipe.svg")], stdout=file)
        good("report", scratch.at("run"), "-o", scratch.at("pipe.svg"))
        assert reader.wait(timeout=20) == 0
    good("report", scratch.at("run"), "-o", scratch.at("plain.svg"))
    with open(target, "rb") as one, open(scratch.at("plain.svg"), "rb") as two:
        assert one.read() == two.read() != b""


def await_sleep(process, name):
    """Until the process has slept with a file open 30 times in a row that it was looked at: it waits for the lock on it. (A process that only
    waits for its turn on a busy machine does not sleep.)"""
    files, seen = f"/proc/{process.pid}/fd", 0
    while process.poll() is None and seen < 30:
        try:
            held = any(os.readlink(f"{files}/{number}").endswith("/" + name) for number in os.listdir(files))
            seen = seen + 1 if held and state_of(process) == "S" else seen if held else 0
        except FileNotFoundError:  # closed meanwhile
            seen = 0
        time.sleep(0.01)


def test_waiting_for_a_lock(scratch):
    for number in (signal.SIGTERM, signal.SIGINT):
        with open(os.path.join(scratch.at("run"), "config.json")) as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            process = spawn("eval", scratch.at("run"), "--episodes", 1)
            await_handler(process)
            await_sleep(process, "config.json")
            assert process.poll() is None
            process.send_signal(number)
            try:
                out, err = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            assert process.returncode == STOPPED and "held the lock" in err and err.count("\n") == 1, err
            assert "overall" in out  # what was played is shown
    good("eval", scratch.at("run"), "--episodes", 1)


def prepare(scratch):
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 20)
    good("train", *SMALL[2:], "--env", ENV, "--data", scratch.at("data.npz"), "--steps", 20, "--save-every", 10, "--log-every", 5, "--out",
         scratch.at("run"))
    good("eval", scratch.at("run"), "--episodes", 1)


if __name__ == "__main__":
    with Scratch("links") as folder:
        prepare(folder)
        run_tests({name: (lambda test=test: test(folder)) for name, test in globals().items() if name.startswith("test_")})
