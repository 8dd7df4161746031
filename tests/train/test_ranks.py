"""Several ranks of mpirun train to the bytes of one process: value and distance form, methods that share networks, compare all
rows of a batch, or train a policy through its critic. What two ranks stopped, one goes on with, and the other way round. A
rank that is killed ends the run with one line, and nothing that was saved is lost."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import STOPPED, Scratch, digests, good, newest_step, run_tests, sanitized, went_on_at, words_of  # noqa: E402

ROWS, LENGTH = 2400, 40
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
BATCH = 600  # three blocks of rows, the last not a whole one
VALUE = ["--hidden", "24,16", "--batch", BATCH, "--steps", 8, "--log-every", 5, "--save-every", 4]
LOCK = ["train", "--env", "lock-64", "--hidden", "16,16", "--batch", BATCH, "--log-every", 70, "--save-every", 50]
LONG = [*LOCK, "--steps", 300]


def launch(ranks, *words, threads=True, **more):
    """Words of a shell for that many ranks; one is a process by itself."""
    mpirun = [*MPIRUN, str(ranks)] if ranks > 1 else []
    words = [*words, "--threads", 1] if threads else words
    return subprocess.Popen(mpirun + words_of(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def end(process):
    """Exit status, standard output, and what the program (not mpirun) complained of."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, [line for line in err.splitlines() if line.startswith("dcrl: ")]


def run(ranks, *words, **more):
    code, out, told = end(launch(ranks, *words, **more))
    assert code == 0 and not told, (ranks, words, code, told)
    return out


def ranks_of(mpirun):
    with open(f"/proc/{mpirun.pid}/task/{mpirun.pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


def when_saved(process, folder):
    """Wait for a checkpoint."""
    until = time.time() + 60
    while not newest_step(folder):
        assert process.poll() is None and time.time() < until
        time.sleep(0.002)


def test_graphs():
    """Networks used twice and on few rows, ensembles, rows left out: against one process, in the same program."""
    tool = os.path.join(os.environ["BUILD"], "tests", "tool_ranks")
    for ranks in (2, 3):
        done = subprocess.run([*MPIRUN, str(ranks), tool], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout == f"{ranks} ranks: same bits\n", done


def test_same_bytes():
    rng = np.random.default_rng(3)
    with Scratch("ranks") as scratch:
        data = scratch.at("data.npz")
        np.savez(data, observations=rng.normal(size=(ROWS, 5)).astype("f4"), actions=rng.uniform(-1, 1, (ROWS, 3)).astype("f4"),
                 terminals=(np.arange(ROWS) % LENGTH == LENGTH - 1).astype("f4"))
        for ranks, agent in [(2, "dcrl"), (4, "dcrl"), (3, "tmd"), (2, "sacbc")]:
            words = ["train", "--agent", agent, "--data", data, *VALUE]
            one, many = scratch.at("one"), scratch.at("many")
            assert "trained" in run(1, *words, "--out", one)
            assert "trained" in run(ranks, *words, "--out", many)
            assert digests(one) == digests(many), (ranks, agent)
            shutil.rmtree(one)
            shutil.rmtree(many)


def test_stop_and_go_on():
    """Distance form; from 2 ranks to 1 and back."""
    with Scratch("ranks") as scratch:
        want, folder = scratch.at("want"), scratch.at("run")
        run(1, *LONG, "--out", want)
        assert "trained" in run(2, *LOCK, "--steps", 100, "--out", folder)
        for ranks, steps in [(1, 150), (2, 200)]:
            assert went_on_at(run(ranks, "train", "--resume", folder, "--steps", steps)) == steps - 50
        process = launch(2, "train", "--resume", folder, "--steps", 1000000)
        saved = newest_step(folder)
        while newest_step(folder) == saved:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGUSR1)  # which mpirun hands on
        code, _, told = end(process)
        assert code == STOPPED and len(told) == 1 and "stopped at step " in told[0], (code, told)
        stopped = int(told[0].split("stopped at step ")[1].split(";")[0])
        assert newest_step(folder) == stopped > saved
        steps = stopped + 50
        run(2, "train", "--resume", folder, "--steps", steps)
        run(1, "train", "--resume", want, "--steps", steps)
        assert digests(folder)[:2] == digests(want)[:2]


def test_killed_rank():
    with Scratch("ranks") as scratch:
        for victim in (0, 1):
            folder, want = scratch.at(f"run{victim}"), scratch.at("want")
            process = launch(2, *LOCK, "--steps", 1000000, "--out", folder)
            when_saved(process, folder)
            pids = ranks_of(process)
            numbers = [open(f"/proc/{pid}/environ").read().split("OMPI_COMM_WORLD_RANK=")[1][0] for pid in pids]
            os.kill(pids[numbers.index(str(victim))], signal.SIGKILL)
            code, _, told = end(process)
            assert code not in (0, STOPPED) and len(told) == 1 and f"rank {victim} is gone" in told[0], (victim, code, told)
            saved = newest_step(folder)
            out = run(2 - victim, "train", "--resume", folder, "--steps", saved + 30)
            assert went_on_at(out) == saved
            run(1, *LOCK, "--steps", saved + 30, "--out", want)
            assert digests(folder)[:2] == digests(want)[:2]
            shutil.rmtree(want)


def test_data_and_evaluation():
    """The files of one process: one file whose episodes are shared out as parts, and shards; the score, and its row."""
    with Scratch("ranks") as scratch:
        for name, words in [("cube-single-play", ["--episodes", 256, "--rows", 5]), ("pointmaze-medium", ["--episodes", 10, "--rows", 120, "--shards", 2])]:
            made = []
            for ranks in (1, 2):
                folder = scratch.at(f"{name}-{ranks}")
                run(ranks, "gen", name, "-o", folder + "/", *words)
                made.append({file: open(os.path.join(folder, file), "rb").read() for file in sorted(os.listdir(folder))})
            assert made[0] == made[1] and len(made[0]) == (4 if "--shards" in words else 3), (name, *made[1])
        maze, policy = scratch.at("pointmaze-medium-1", "pointmaze-medium-navigate-v0-000.npz"), scratch.at("policy")
        run(1, "train", "pointmaze-medium", "--data", maze, "--hidden", "8,8", "--batch", 32, "--steps", 5, "--out", policy)
        told = []
        for ranks in (1, 2):
            score = json.loads(run(ranks, "eval", policy, "--episodes", 1, "--json"))
            del score["seconds"]
            told.append((score, open(os.path.join(policy, "eval.csv")).read()))
            os.remove(os.path.join(policy, "eval.csv"))
        assert told[0] == told[1], told
        for size in json.loads(run(2, "bench", "allreduce", "--seconds", 0.01, "--largest", 0.1, "--json", threads=False))["sizes"]:
            assert size["seconds"] > 0


def test_refusals():
    """One line for all ranks; a rank's own trouble is told with its number."""
    with Scratch("ranks") as scratch:
        code, _, told = end(launch(2, *LONG, "--bach", 3, "--out", scratch.at("run")))
        assert code and len(told) == 1 and "--bach" in told[0], told
        code, _, told = end(launch(2, *LONG, "--agent", "dcrl,td-n", "--out", scratch.at("run")))
        assert code and len(told) == 1 and "a sweep is not split over ranks" in told[0], told
        seeds = ["sh", "-c", '"$@" --seed $OMPI_COMM_WORLD_RANK', "sh", *words_of([*LONG, "--out", scratch.at("run")])]
        done = subprocess.run([*MPIRUN, "2", *seeds], capture_output=True, text=True)
        told = [line for line in done.stderr.splitlines() if line.startswith("dcrl: ")]
        assert done.returncode and len(told) == 1 and "different commands" in told[0], done.stderr
        environment = {**os.environ, "OMPI_COMM_WORLD_SIZE": "2", "DCRL_RANKS": "off"}
        assert "trained" in good(*LOCK, "--steps", 10, "--out", scratch.at("own"), env=environment)


if __name__ == "__main__":
    if not shutil.which("mpirun") or sanitized():
        print("ranks are not tested: mpirun is not here (Open MPI), or a sanitizer would report on its library")
        sys.exit(0)
    run_tests(globals())
