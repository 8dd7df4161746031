"""A file that OGBench's Python environment wrote, from its arrays to a trained run: every row is read as it was
written, and a few steps of every method on it have finite losses.
"""

import json
import os
import random
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "env")]
from drive import Scratch, digests, good, run_tests  # noqa: E402
from test_maze_gen import episode  # noqa: E402
from test_maze_parity import make  # noqa: E402

EPISODES, LENGTH = 6, 201
NAMES = ["observations", "actions", "qpos", "qvel"]


def write(path):
    """Episodes of the Python package, saved with numpy as its own scripts do."""
    env = make("pointmaze-medium")
    np.random.seed(random.randrange(1 << 32))
    played = [episode(env, "stitch")[0] for _ in range(EPISODES)]
    arrays = {name: np.concatenate([e[k] for e in played]) for k, name in enumerate(NAMES)}
    arrays["terminals"] = np.arange(EPISODES * LENGTH) % LENGTH == LENGTH - 1
    np.savez_compressed(path, **arrays)
    return arrays


def read_column(store, name, width):
    parts = sorted(f for f in os.listdir(store) if f.startswith(name + "-"))
    return np.concatenate([np.fromfile(os.path.join(store, f), np.float32) for f in parts]).reshape(-1, width)


def check_rows(scratch, arrays):
    info = json.loads(good("data", "info", scratch.at("own.npz"), "--json"))
    assert (info["rows"], info["trajectories"]) == (EPISODES * LENGTH, EPISODES), info
    good("data", "convert", scratch.at("own.npz"), scratch.at("store"), "--rows-per-shard", 1024)
    assert json.loads(good("data", "info", scratch.at("store"), "--json"))["hash"] == info["hash"]
    for ours, theirs in [("obs", "observations"), ("qpos", "qpos"), ("qvel", "qvel")]:
        assert np.array_equal(read_column(scratch.at("store"), ours, 2), arrays[theirs]), theirs
    limit = np.float32(1 - 1e-5)
    assert np.array_equal(read_column(scratch.at("store"), "act", 2), np.clip(arrays["actions"], -limit, limit))


def check_run(scratch, agent, data):
    run = scratch.at(f"{agent}-{data}")
    good("train", "pointmaze-medium", "--agent", agent, "--data", scratch.at(data), "--hidden", "32,32", "--batch", 64, "--steps", 60,
         "--log-every", 20, "--out", run)
    rows = np.genfromtxt(os.path.join(run, "train.csv"), delimiter=",", names=True)
    assert len(rows) == 3 and rows["step"][-1] == 60
    values = np.array(rows.tolist())
    assert np.isfinite(values).all() and (rows["grad_norm"] > 0).all(), values
    return digests(run)


def test_python_data():
    with Scratch("ogbench") as scratch:
        check_rows(scratch, write(scratch.at("own.npz")))
        for agent in ["dcrl", "curriculum", "trl", "trl-n", "td-n", "td", "mc"]:
            assert check_run(scratch, agent, "own.npz") == check_run(scratch, agent, "store")


if __name__ == "__main__":
    run_tests({"test_python_data": test_python_data})
