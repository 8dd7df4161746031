"""What training refuses before its first step, each with one line that says what to do, and what a run that goes on keeps."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, good, run_tests  # noqa: E402

SMALL = ["--hidden", "8", "--batch", 8, "--steps", 4, "--threads", 1]
MAZE = ["train", *SMALL, "--env", "pointmaze-medium-navigate", "--agent", "td-n", "--set", "n=2"]


def prepare(scratch):
    for name, seed in (("maze", 1), ("other", 2)):
        good("gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 12, "--seed", seed, "-o", scratch.at(name + ".npz"), "--threads", 1)
    os.remove(scratch.at("other-val.npz"))
    return scratch.at("maze.npz")


def test_evaluation_of_what_cannot_be_played():
    with Scratch("refusals") as scratch:
        data, out = prepare(scratch), scratch.at("run")
        bad(2, ["lock-16", "--eval-every"], "train", *SMALL, "--env", "lock-16", "--set", "n=2", "--eval-every", 2, "--out", out)
        bad(2, ["no policy", "--eval-every"], *MAZE, "--data", data, "--set", "policy=none", "--eval-every", 2, "--out", out)
        bad(1, ["maze.npz", "columns", "antmaze-medium"], "train", *SMALL, "--env", "antmaze-medium-navigate", "--data", data, "--eval-every", 2, "--out", out)
        assert not os.path.exists(out)


def test_representations():
    with Scratch("refusals") as scratch:
        data = prepare(scratch)
        for value, text in (("0", "rep=0,2"), ("0,1,2", "rep=0,2"), ("0,3", "rep"), ("0,300", "rep")):
            bad(2, text, *MAZE, "--data", data, "--set", f"rep={value}", "--out", scratch.at("run"))


def test_going_on_with_other_data():
    with Scratch("refusals") as scratch:
        data, run = prepare(scratch), scratch.at("run")
        good(*MAZE, "--data", data, "--out", run)
        bad(1, ["has changed", "restore"], "train", "--resume", run, "--steps", 6, "--data", scratch.at("other.npz"))
        bad(2, ["held-out", "maze-val.npz"], "train", "--resume", run, "--steps", 6, "--val", "off")
        good(*MAZE, "--data", data, "--val", "off", "--out", scratch.at("without"))
        bad(2, ["held-out", "off"], "train", "--resume", scratch.at("without"), "--steps", 6, "--val", scratch.at("maze-val.npz"))
        # Run and data move together; what lies beside the data goes with it.
        os.mkdir(scratch.at("elsewhere"))
        for name in ("run", "maze.npz", "maze-val.npz"):
            shutil.move(scratch.at(name), scratch.at("elsewhere", name))
        assert "trained td-n to step 6" in good("train", "--resume", scratch.at("elsewhere", "run"), "--steps", 6)


if __name__ == "__main__":
    run_tests(globals())
