"""The same train command starts a run or goes on with it, and a run that goes on may get more steps, other data places and other logs.

Each case ends with the bytes of a run that was never stopped.
"""

import json
import os
import shutil
import signal
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, STOPPED, Scratch, await_handler, bad, digest, digests, good, newest_step, run_tests, spawn  # noqa: E402

LOGS = ["--log-every", 100, "--save-every", 100]


def train(*more):
    return good("train", *SMALL, *LOGS, *more)


def config(run):
    with open(os.path.join(run, "config.json")) as file:
        return json.load(file)


def test_same_command():
    with Scratch("go_on") as scratch:
        more = ["--steps", 100_000_000, "--save-every", 2_000]
        run = scratch.at("run")
        process = spawn("train", *SMALL, *more, "--out", run)
        await_handler(process)
        while process.poll() is None and not newest_step(run):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == STOPPED
        stopped = max(int(name[5:15]) for name in os.listdir(run) if name.startswith("step-"))
        steps = stopped + 300
        assert f"goes on at step {stopped} of {steps}" in good("train", *SMALL, "--steps", steps, "--save-every", 2_000, "--out", run)
        good("train", *SMALL, "--steps", steps, "--save-every", 2_000, "--out", scratch.at("whole"))
        assert digests(run) == digests(scratch.at("whole"))
        before = digests(run)
        assert "is done already" in good("train", *SMALL, "--steps", steps, "--out", run)
        assert digests(run) == before


def test_more_steps():
    with Scratch("go_on") as scratch:
        run, whole = scratch.at("run"), scratch.at("whole")
        train("--steps", 300, "--out", run)
        assert "goes on at step 300 of 500" in good("train", "--resume", run, "--steps", 500, "--keep", 2)
        assert config(run)["steps"] == 500 and config(run)["keep"] == 2 and os.path.exists(os.path.join(run, "DONE"))
        train("--steps", 500, "--out", whole)
        for name in ("step-0000000500.safetensors", "train.csv"):
            assert digest(os.path.join(run, name)) == digest(os.path.join(whole, name)), name
        bad(2, "stands at step 500 already, past 400", "train", "--resume", run, "--steps", 400)
        assert "is done already" in good("train", "--resume", run)
        # A step that closes no row by itself closes one where the run ended; the next row is of what follows.
        train("--steps", 250, "--out", scratch.at("odd"))
        train("--steps", 400, "--out", scratch.at("odd"))
        with open(scratch.at("odd", "train.csv")) as file:
            assert [line.split(",")[0] for line in file][1:] == ["100", "200", "250", "300", "400"]


def test_quiet():
    """--quiet says nothing, --json one object at the end."""
    with Scratch("go_on") as scratch:
        run = scratch.at("run")
        assert train("--steps", 100, "--quiet", "--out", run) == ""
        told = json.loads(train("--steps", 200, "--seed", "0", "--json", "--out", run))
        assert told["folder"] == run and told["agent"] == "dcrl" and told["runs"] == [{"folder": run, "seed": 0, "step": 200, "success": None}]
        assert told["seconds"] > 0 and told["steps_per_second"] > 0
        assert json.loads(train("--steps", 200, "--json", "--out", run))["done"]
        good("gen", "pointmaze-medium-navigate", "--episodes", 3, "-o", scratch.at("maze.npz"))
        maze = ["--env", "pointmaze-medium-navigate-v0", "--data", scratch.at("maze.npz"), "--eval-every", 10, "--set", "eval_episodes=1"]
        told = json.loads(train(*maze, "--steps", 10, "--seed", "1,2", "--json", "--out", scratch.at("seeds")))
        assert [(r["seed"], r["step"], r["success"]) for r in told["runs"]] == [(1, 10, 0), (2, 10, 0)], told


def test_fixed():
    with Scratch("go_on") as scratch:
        run = scratch.at("run")
        train("--steps", 200, "--out", run)
        before = digests(run)
        bad(2, [f"{run} holds a run with n=0, not 3", "--out"], "train", *SMALL, *LOGS, "--steps", 300, "--set", "n=3", "--out", run)
        bad(2, ["keeps its lr"], "train", "--resume", run, "--lr", 0.1)
        bad(2, ["keeps its --log-every"], "train", "--resume", run, "--log-every", 50)
        bad(2, ["holds a run with agent=dcrl, not td-n"], "train", *SMALL, *LOGS, "--agent", "td-n", "--steps", 200, "--out", run)
        bad(2, ["the CPU multiplies in fp32 or bf16"], "train", "--resume", run, "--steps", 300, "--precision", "tf32")
        assert digests(run) == before and config(run)["steps"] == 200
        stages = ["--agent", "curriculum", "--set", "delta=16", "--steps", 200, "--out", scratch.at("stages")]
        train(*stages)
        bad(2, ["the stages of curriculum"], "train", "--resume", scratch.at("stages"), "--steps", 300)


def test_seeds():
    with Scratch("go_on") as scratch:
        run = scratch.at("run")
        train("--steps", 200, "--seed", "0-1", "--out", run)
        train("--steps", 200, "--seed", "0-2", "--out", run)
        train("--steps", 200, "--seed", "2", "--out", scratch.at("alone"))
        assert digests(os.path.join(run, "seed-2")) == digests(scratch.at("alone"))
        assert "goes on at step 200 of 300 (3 seeds)" in good("train", "--resume", run, "--steps", 300)
        train("--steps", 300, "--seed", "0-2", "--out", scratch.at("whole"))
        for seed in ("seed-0", "seed-1", "seed-2"):
            assert digests(os.path.join(run, seed)) == digests(scratch.at("whole", seed))
        bad(2, ["holds another run", "--out FOLDER/NAME"], "train", *SMALL, "--steps", 300, "--out", scratch.at())
        assert not os.path.exists(scratch.at("config.json"))
        bad(2, ["holds runs of seeds (3)"], "train", *SMALL, "--steps", 300, "--out", run)


def test_moved_seeds():
    """So does a folder of seeds: it goes on with more steps, and with more seeds."""
    with Scratch("go_on") as scratch:
        os.makedirs(scratch.at("here", "runs"))
        good("gen", "pointmaze-medium-navigate", "--episodes", 4, "-o", scratch.at("here", "maze.npz"))
        maze = lambda place, seeds: ["--data", scratch.at(place, "maze.npz"), "--seed", seeds, "--out", scratch.at(place, "runs", "a")]
        train(*maze("here", "0-1"), "--steps", 100)
        shutil.move(scratch.at("here"), scratch.at("there"))
        run = scratch.at("there", "runs", "a")
        assert "goes on at step 100 of 200 (2 seeds)" in good("train", "--resume", run, "--steps", 200)
        train(*maze("there", "0-2"), "--steps", 300)
        for seed in range(3):
            assert config(os.path.join(run, f"seed-{seed}"))["data"] == os.path.realpath(scratch.at("there", "maze.npz"))
        os.makedirs(scratch.at("here", "runs"))
        shutil.copy(scratch.at("there", "maze.npz"), scratch.at("here", "maze.npz"))
        train(*maze("here", "0-2"), "--steps", 300)
        for name in ("step-0000000300.safetensors", "train.csv"):
            for seed in ("seed-0", "seed-1", "seed-2"):
                assert digest(os.path.join(run, seed, name)) == digest(scratch.at("here", "runs", "a", seed, name)), (seed, name)


def test_moved():
    """A run and its data that are moved together find each other; other data does not pass."""
    with Scratch("go_on") as scratch:
        os.makedirs(scratch.at("here", "runs"))
        good("gen", "pointmaze-medium-navigate", "--episodes", 4, "-o", scratch.at("here", "maze.npz"))
        maze = ["--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", scratch.at("here", "maze.npz")]
        train(*maze, "--steps", 100, "--out", scratch.at("here", "runs", "a"))
        assert config(scratch.at("here", "runs", "a"))["data_from_run"] == "../../maze.npz"
        shutil.move(scratch.at("here"), scratch.at("there"))
        run = scratch.at("there", "runs", "a")
        assert "goes on at step 100 of 200" in good("train", "--resume", run, "--steps", 200)
        assert config(run)["data"] == os.path.realpath(scratch.at("there", "maze.npz"))
        shutil.move(scratch.at("there", "maze.npz"), scratch.at("elsewhere.npz"))
        bad(1, ["is not at", "maze.npz any more", "(--data PATH)"], "train", "--resume", run, "--steps", 300)
        good("train", "--resume", run, "--steps", 300, "--data", scratch.at("elsewhere.npz"))
        good("gen", "pointmaze-medium-navigate", "--episodes", 4, "--seed", 1, "-o", scratch.at("other.npz"))
        bad(1, ["has changed"], "train", "--resume", run, "--steps", 400, "--data", scratch.at("other.npz"))
        assert config(run)["steps"] == 300 and np.isfinite(config(run)["gamma"])


if __name__ == "__main__":
    run_tests(globals())
