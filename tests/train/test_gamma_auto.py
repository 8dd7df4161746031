"""gamma=auto: the longest ways of data whose ways are known, put together from pieces that no trajectory has whole, in one
direction only, with rests, with swinging columns beside; data whose ways cannot be told; what a run records and goes on with."""
import json
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402
from drive import Scratch, bad, call, checkpoints, good  # noqa: E402

SEED = fresh.seed()
print(f"DCRL_SEED={SEED}", flush=True)
rng = np.random.default_rng(SEED)
SMALL = ["--agent", "bc", "--set", "hidden=8", "--set", "batch=8"]
LINE = 400  # steps from one end to the other


def there_and_back(low, high, times, rest=0):
    """Walks of one step a row between two places, each of `times` ways with `rest` rows of standing at random places."""
    ways = [np.arange(low, high) + rng.uniform() for _ in range(times)]
    rows = np.concatenate([way if k % 2 == 0 else way[::-1] for k, way in enumerate(ways)])
    for _ in range(rest and 4):
        at = rng.integers(len(rows))
        rows = np.insert(rows, at, np.full(rest, rows[at]))
    return rows[:, None]


def once_around(turns):
    angle = np.arange(turns * LINE) * 2 * np.pi / LINE + rng.uniform(0, 6)
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def beside(walks, columns):
    """The same with columns that swing: 0 on average, from one step to the next anything."""
    return [np.concatenate([w, rng.uniform(-20, 20, size=(len(w), columns))], 1) for w in walks]


def write(path, walks):
    ends = np.concatenate([np.arange(len(w)) == len(w) - 1 for w in walks])
    obs = np.concatenate(walks).astype(np.float32)
    np.savez(path, observations=obs, actions=rng.uniform(-1, 1, size=(len(obs), 2)).astype(np.float32), terminals=ends)
    return path


def longest_way(scratch, name, walks, *words):
    """What dcrl says of it; None where it says that it cannot be told."""
    path, run = write(scratch.at(f"{name}.npz"), walks), scratch.at(name)
    done = call("train", *SMALL, "--data", path, "--out", run, "--gamma", "auto", "--steps", 1, *words)
    said = done.stderr
    assert done.returncode == 0, said
    found = re.search(r"gamma=auto: ([0-9.]+), the longest ways in the data have (\d+) steps", said)
    with open(os.path.join(run, "config.json")) as file:
        gamma = json.load(file)["gamma"]
    if not found:
        assert "gamma=auto: 0.99, since" in said and gamma == 0.99, said
        return None
    assert gamma == float(found[1])
    assert abs(gamma - max(0.99, 1 - 1 / int(found[2]))) <= 1e-4
    print(f"{name}: {found[2]} steps")
    return int(found[2])


def check_ways(scratch):
    whole = [there_and_back(0, LINE, 6) for _ in range(4)]
    halves = [there_and_back(0, 0.6 * LINE, 6) for _ in range(4)] + [there_and_back(0.4 * LINE, LINE, 6) for _ in range(4)]
    rests = [there_and_back(0, LINE, 6, rest=100) for _ in range(4)]
    # Of pairs on a line one in a hundred is further apart than nine tenths of it; around a circle, 99 parts of it.
    for name, walks in (("whole", whole), ("halves", halves), ("rests", rests)):
        assert 0.85 * LINE <= longest_way(scratch, name, walks) <= 0.95 * LINE
    assert 0.9 * LINE <= longest_way(scratch, "circle", [once_around(5) for _ in range(4)]) <= LINE
    wide = beside(whole, 6)
    assert 0.5 * LINE <= longest_way(scratch, "beside", wide) <= LINE
    assert 0.85 * LINE <= longest_way(scratch, "picked", wide, "--rep", "0,1") <= 0.95 * LINE
    many = [there_and_back(0, LINE, 100) for _ in range(12)]  # more rows than are looked at
    assert 0.85 * LINE <= longest_way(scratch, "many", many) <= 0.95 * LINE
    few = [there_and_back(0, LINE, 1000) for _ in range(2)]
    assert 0.85 * LINE <= longest_way(scratch, "few", few) <= 0.95 * LINE
    assert longest_way(scratch, "noise", [rng.uniform(size=(1000, 4)) for _ in range(4)]) is None
    drifts = [rng.normal(size=(1000, 20)).cumsum(0) for _ in range(4)]  # much changes, little comes again
    assert longest_way(scratch, "drifts", drifts) is None
    assert longest_way(scratch, "still", [np.zeros((50, 3)) for _ in range(3)]) is None


def check_run(scratch):
    """What is recorded is a number: a run that was given it has the same bytes, and a resume needs no more."""
    data = write(scratch.at("data.npz"), [there_and_back(0, LINE, 4)])
    agent = ["--agent", "iql", "--set", "hidden=8", "--set", "batch=8", "--data", data]
    good("train", *agent, "--out", scratch.at("auto"), "--gamma", "auto", "--steps", 20)
    with open(scratch.at("auto", "config.json")) as file:
        gamma = json.load(file)["gamma"]
    good("train", *agent, "--out", scratch.at("given"), "--gamma", gamma, "--steps", 20)
    good("train", "--resume", scratch.at("auto"), "--steps", 30)
    good("train", "--resume", scratch.at("given"), "--steps", 30)
    for a, b in zip(checkpoints(scratch.at("auto")), checkpoints(scratch.at("given")), strict=True):
        with open(a, "rb") as x, open(b, "rb") as y:
            assert x.read() == y.read()
    good("train", *agent, "--out", scratch.at("seeds"), "--gamma", "auto", "--steps", 5, "--seed", "0,1")
    for seed in ("seed-0", "seed-1"):
        with open(scratch.at("seeds", seed, "config.json")) as file:
            assert json.load(file)["gamma"] == gamma
    # The same command goes on, and with more seeds; evaluation does not ask for the number before it is known.
    said = good("train", *agent, "--out", scratch.at("auto"), "--gamma", "auto", "--steps", 40)
    assert " goes on at step 30" in said, said
    good("train", *agent, "--out", scratch.at("seeds"), "--gamma", "auto", "--steps", 5, "--seed", "0,1,2")
    env = "pointmaze-medium-navigate-v0"
    good("gen", env, "-o", scratch.at("maze.npz"), "--episodes", 2, "--rows", 101)
    good("train", "--agent", "iql", "--set", "hidden=8", "--set", "batch=8", "--data", scratch.at("maze.npz"), "--env", env, "--gamma", "auto",
         "--steps", 4, "--eval-every", 4, "--eval-episodes", 1, "--out", scratch.at("evaluated"))
    assert os.path.exists(scratch.at("evaluated", "eval.csv"))
    np.savez(scratch.at("wide.npz"), observations=np.zeros((40, 600), np.float32), actions=np.zeros((40, 2), np.float32), terminals=np.arange(40) % 20 == 19)
    wide = ["train", "--agent", "bc", "--data", scratch.at("wide.npz"), "--gamma", "auto", "--out", scratch.at("no")]
    bad(1, ["goals of at most 512 numbers, not 600", "rep"], *wide)
    bad(2, ["gamma=auto is found where a run starts"], "grad", "--agent", "bc", "--describe", "--set", "gamma=auto")
    bad(2, ["gamma must be auto, or a number between 0 and"], "train", *agent, "--out", scratch.at("no"), "--gamma", "much")
    bad(2, ["rep has column 3, obs has 1"], "train", *agent, "--out", scratch.at("no"), "--gamma", "auto", "--rep", "3,1")


with Scratch("gamma_auto") as scratch:
    check_ways(scratch)
    check_run(scratch)
