"""NaN and Inf stop a run at once, with their source named and the last checkpoint intact.

The data is noise but for a single state of huge numbers in 20,000, which training meets after some steps.
How huge decides where floating point gives up first: in a gradient, or in the forward pass already.
"""

import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, checkpoints, newest_step, run_tests  # noqa: E402

ROWS, LENGTH, PLACE = 20_000, 50, 777
FLAGS = ["--agent", "dcrl", "--hidden", "16,16", "--batch", 32, "--steps", 3000, "--log-every", 7, "--save-every", 10,
         "--threads", 1, "--set", "n=8"]


def write_data(path, huge, place):
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((ROWS, 3), dtype=np.float32)
    observations[place] = huge
    terminals = np.zeros(ROWS, np.float32)
    terminals[LENGTH - 1 :: LENGTH] = 1
    np.savez(path, observations=observations, actions=np.zeros((ROWS, 1), np.float32), terminals=terminals)
    return path


def check_finite(path):
    for name, values in load_file(path).items():
        assert np.all(np.isfinite(values)), (path, name)


def meet(huge, text):
    with Scratch("nan") as scratch:
        data, run = write_data(scratch.at("data.npz"), huge, PLACE), scratch.at("run")
        line = bad(1, ["NaN or Inf in the " + text, " at step ", " is intact", "lower lr"],
                   "train", "--data", data, *FLAGS, "--out", run)
        print("  ", line)
        step = int(line.split(" at step ")[1].split()[0])
        saved = newest_step(run)
        assert saved == (step - 1) // 10 * 10 > 0
        assert f"({checkpoints(run)[-1]} is intact)" in line
        for path in checkpoints(run):
            check_finite(path)
        # Going on meets the same number again: the checkpoint is good, the data is not.
        assert bad(1, "NaN or Inf", "train", "--resume", run) == line


def test_gradient():
    meet(1e24, "gradient of critic/")


def test_forward():
    meet(3e38, "value of critic/0")


def test_at_once():
    with Scratch("nan") as scratch:
        data = write_data(scratch.at("data.npz"), 3e38, slice(None))
        bad(1, ["NaN or Inf in the value of", " at step 1 ", "no checkpoint had been written"],
            "train", "--data", data, *FLAGS, "--out", scratch.at("run"))
        assert not checkpoints(scratch.at("run"))


if __name__ == "__main__":
    run_tests(globals())
