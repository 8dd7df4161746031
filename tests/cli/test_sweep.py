"""A train command with several values of an option is a sweep: a run of each combination, equal to the run of its own command, that the
same command goes on with; and a folder of seeds stands for a run where one is needed."""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, STOPPED, Scratch, await_handler, bad, call, digests, good, newest_step, run_tests, spawn  # noqa: E402

LOCK = SMALL[:-2]  # threads are the sweep's own


def test_combinations():
    with Scratch("sweep") as scratch:
        out = scratch.at("out")
        words = ["train", *LOCK, "--steps", 300, "--agent", "dcrl,td-n", "--set", "n=4,8", "--set", "hidden=16,8"]
        assert "4 runs" in good(*words, "--seed", "0-1", "--out", out)
        for agent in ("dcrl", "td-n"):
            for n in (4, 8):
                alone = scratch.at(f"{agent}{n}")
                good("train", *SMALL, "--steps", 300, "--agent", agent, "--set", f"n={n}", "--set", "hidden=16,8", "--seed", 1, "--out", alone)
                assert digests(os.path.join(out, f"agent={agent},n={n}", "seed-1")) == digests(alone)
        with open(os.path.join(out, "report.html")) as file:
            page = file.read()
        assert "td-n" in page and "lock-64" in page
        before = digests(os.path.join(out, "agent=dcrl,n=4", "seed-0"))
        assert "trained 4 runs" in good(*words, "--seed", "0-1", "--out", out)
        assert good(*words, "--seed", "0-1", "--out", out, "--quiet") == ""
        told = json.loads(good(*words, "--seed", "0-1", "--out", out, "--json"))
        assert told["folder"] == out and len(told["runs"]) == 4 and all(os.path.isdir(run) for run in told["runs"])
        assert os.path.isfile(os.path.join(out, told["report"]))
        assert digests(os.path.join(out, "agent=dcrl,n=4", "seed-0")) == before


def test_stop():
    with Scratch("sweep") as scratch:
        out = scratch.at("out")
        words = ["train", *LOCK, "--set", "n=4,8,16", "--jobs", 2, "--out", out]
        process = spawn(*words, "--steps", 10_000_000, "--save-every", 1000)
        await_handler(process)
        while not all(newest_step(os.path.join(out, f"n={n}")) for n in (4, 8)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode == STOPPED and "0 of 3 runs are done" in err and err.count("\n") == 1, err
        assert not os.path.exists(os.path.join(out, "n=16"))
        steps = 1 + max(int(name[5:15]) for n in (4, 8) for name in os.listdir(os.path.join(out, f"n={n}")) if name.startswith("step-"))
        good(*words, "--steps", steps, "--save-every", 1000)
        good("train", *SMALL, "--set", "n=8", "--steps", steps, "--save-every", 1000, "--out", scratch.at("alone"))
        newest = f"step-{steps:010d}.safetensors"
        with open(os.path.join(out, "n=8", newest), "rb") as a, open(scratch.at("alone", newest), "rb") as b:
            assert a.read() == b.read()


def test_refused():
    with Scratch("sweep") as scratch:
        out = scratch.at("out")
        for texts, more in (("unknown agent 'zz'", ["--agent", "dcrl,zz"]), (["n must be", "(x)"], ["--set", "n=4,x"]), ("is empty", ["--set", "n=4,"]),
                            (["the same", "n=4"], ["--set", "n=4,4"]), ("no preset", ["nope", "pointmaze-medium"])):
            if more[0] == "nope":
                bad(2, "nope", "train", *more, "--out", out)
            else:
                bad(2, texts, "train", *LOCK, "--steps", 10, *more, "--out", out)
            assert not os.path.exists(out)
        bad(2, "--out DIR", "train", *LOCK, "--set", "n=4,8")
        good("train", *SMALL, "--steps", 10, "--out", out)
        bad(2, "holds a run already", "train", *LOCK, "--steps", 10, "--set", "n=4,8", "--out", out)
        # One run that fails does not take the others with it, and its log is named.
        mixed = scratch.at("mixed")
        good("gen", "pointmaze-medium-navigate", "--episodes", 3, "-o", scratch.at("pointmaze-medium-navigate-v0.npz"))
        words = ["train", "--env", "pointmaze-medium-navigate-v0,pointmaze-large-navigate-v0", "--data", scratch.at("{env}.npz"), "--hidden", "16,16",
                 "--batch", 32, "--steps", 20, "--out", mixed]
        bad(1, ["1 of 2 runs failed", "env=pointmaze-large-navigate-v0.log"], *words)
        assert os.path.exists(os.path.join(mixed, "env=pointmaze-medium-navigate-v0", "DONE"))
        good("gen", "pointmaze-large-navigate", "--episodes", 3, "-o", scratch.at("pointmaze-large-navigate-v0.npz"))
        assert "trained 2 runs" in good(*words)


def test_folder_of_seeds():
    """eval plays all, map and render the least."""
    with Scratch("sweep") as scratch:
        run, data = scratch.at("run"), scratch.at("maze.npz")
        good("gen", "pointmaze-medium-navigate", "--episodes", 3, "-o", data)
        good("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", data, "--hidden", "16,16", "--batch", 32, "--steps", 20, "--seed", "3,5", "--out", run)
        told = good("eval", run, "--episodes", 1)
        assert "seed-3 at step 20" in told and "seed-5 at step 20" in told
        done = call("map", run, "--episodes", 1, "--task", 1)
        assert done.returncode == 0 and "that of seed 3 is taken" in done.stderr, done
        assert os.path.exists(os.path.join(run, "seed-3", "map-task1.svg")), os.listdir(run)


if __name__ == "__main__":
    run_tests(globals())
