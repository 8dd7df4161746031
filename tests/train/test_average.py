"""average=on: training is the same to the bit, checkpoints have an EMA of every weight, and the policy acts by it."""

import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, checkpoints, good, run_tests  # noqa: E402

TAU = 0.1
SMALL = ["--env", "pointmaze-medium-navigate-v0", "--hidden", "12,8", "--batch", 16, "--threads", 1, "--tau", TAU]
STEPS = 6


def data(scratch):
    path = scratch.at("maze.npz")
    if not os.path.exists(path):
        good("gen", "pointmaze-medium-navigate", "--episodes", 4, "--rows", 30, "-o", path)
    return path


def train(scratch, name, *more):
    run = scratch.at(name)
    good("train", *SMALL, "--data", data(scratch), "--steps", STEPS, "--save-every", 1, "--keep", 0, "--out", run, *more)
    return [load_file(path) for path in checkpoints(run)]


def test_weights():
    """EMA of the weights before each step, as targets have it."""
    with Scratch("average") as scratch:
        for agent in ("dcrl", "hiql", "bc"):
            plain = train(scratch, agent, "--agent", agent)
            steps = train(scratch, agent + "-average", "--agent", agent, "--average=on")
            live = [k for k in steps[0] if f"target_{k}" in steps[0]]
            assert any("actor" in k for k in live), sorted(steps[0])
            for before, after in zip(steps, steps[1:]):
                for k in live:
                    want = before[f"target_{k}"] + TAU * (before[k] - before[f"target_{k}"])
                    assert np.allclose(after[f"target_{k}"], want, rtol=1e-5, atol=1e-7), (agent, k)
            for one, other in zip(plain, steps):
                assert all(np.array_equal(one[k], other[k]) for k in one), agent


def policy(run, step, path):
    good("export", run, "--step", step, "-o", path)
    with open(path) as file:
        return file.read().split("*/", 1)[1]  # all but the comment that tells the step


def test_acting():
    """With tau 0 the average stays where training began, and what acts is the average."""
    with Scratch("average") as scratch:
        for name, average in (("live", "off"), ("average", "on")):
            train(scratch, name, "--tau", 0, f"--average={average}")
        first, last = (policy(scratch.at("average"), step, scratch.at("policy.c")) for step in (1, STEPS))
        assert first == last
        first, last = (policy(scratch.at("live"), step, scratch.at("policy.c")) for step in (1, STEPS))
        assert first != last


def test_resume():
    with Scratch("average") as scratch:
        train(scratch, "run")
        bad(2, ["average"], "train", "--resume", scratch.at("run"), "--average=on")


if __name__ == "__main__":
    run_tests(globals())
