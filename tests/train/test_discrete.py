"""Discrete actions: whole numbers in a file are choices, shown to the networks as one column each.

The number of actions is read off the data; a file and a store of it train to the same bytes; data that cannot be choices gets one
clear line. That a softmax policy learns is seen on a lock, whose data always takes the answer.
"""

import csv
import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, digests, good, run_tests  # noqa: E402

ROWS = 200
rng = np.random.default_rng(0)
TRAIN = ["train", "--hidden", "16,8", "--batch", 32, "--steps", 30]


def write(path, actions):
    np.savez(path, observations=rng.normal(size=(ROWS, 3)).astype("f4"), actions=actions,
             terminals=(np.arange(ROWS) % 50 == 49).astype("f4"))
    return path


def test_file_and_store():
    with Scratch("discrete") as scratch:
        data = write(scratch.at("data.npz"), np.arange(ROWS, dtype="i4") % 5)
        good(*TRAIN, "--data", data, "--threads", 1, "--out", scratch.at("file"))
        good("data", "convert", data, scratch.at("stored"))
        good(*TRAIN, "--data", scratch.at("stored"), "--threads", 2, "--out", scratch.at("store"))
        assert digests(scratch.at("file")) == digests(scratch.at("store"))
        weights = load_file(scratch.at("file", "step-0000000030.safetensors"))
        assert weights["critic/0/w"].shape == (2, 3 + 3 + 5, 16) and weights["actor/2/w"].shape == (1, 8, 5)
        # As real numbers, the same actions are one column.
        data = write(scratch.at("real.npz"), np.linspace(-1, 1, ROWS, dtype="f4"))
        good(*TRAIN, "--data", data, "--out", scratch.at("real"))
        assert load_file(scratch.at("real", "step-0000000030.safetensors"))["critic/0/w"].shape == (2, 3 + 3 + 1, 16)


def test_refused():
    with Scratch("discrete") as scratch:
        some = np.arange(ROWS) % 5
        for actions, text in ((some - 1, "impossible discrete action (row 0, -1)"), (some + 252, "(row 4, 256)"),
                              (np.stack([some, some], 1), "discrete actions of 2 numbers")):
            bad(1, text, *TRAIN, "--data", write(scratch.at("data.npz"), actions), "--out", scratch.at("run"))
        data = write(scratch.at("data.npz"), some)
        bad(1, ["rejection needs real-valued", "5 discrete"], *TRAIN, "--data", data, "--set", "policy=rejection", "--out", scratch.at("run"))
        assert not os.path.exists(scratch.at("run"))


def test_learns():
    with Scratch("discrete") as scratch:
        good("train", "--env", "lock-32", "--set", "form=value", "--set", "alpha=10", "--hidden", "32,32", "--batch", 128, "--lr", 1e-3,
             "--steps", 600, "--log-every", 100, "--out", scratch.at("run"))
        with open(scratch.at("run", "train.csv")) as file:
            rows = [float(row["loss_bc"]) for row in csv.DictReader(file)]
        print("  -log pi(answer):", rows)
        assert 0.3 < rows[0] < 0.8 and rows[-1] < 0.1, rows  # from a toss of a coin, log 2, to the answers


if __name__ == "__main__":
    run_tests(globals())
