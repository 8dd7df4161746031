"""What training reads of a data set: the action of a trajectory's last row, and the place of a robot that was teleported.

N-step targets that reach the end of a trajectory bootstrap from its last row, whose action led nowhere; with last_action=off
they stop one step before, and no weight depends on those actions. Goals of teleport mazes as positions (-oraclerep) come from
`qpos`, as OGBench's do (relabel_utils.add_oracle_reps): an observation is the one before the teleport.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, checkpoints, good, run_tests  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

SIZES = ["--hidden", "16,16", "--batch", 64, "--steps", 12, "--threads", 1]


def weights(run):
    return {k: v for k, v in load_file(checkpoints(run)[-1]).items() if k not in ("log", "sampler")}


def same(a, b):
    assert a.keys() == b.keys()
    return all(np.array_equal(a[k], b[k]) for k in a)


def short_trajectories(rng):
    n = 400
    return {"observations": rng.normal(size=(n, 4)).astype("f4"), "actions": rng.uniform(-1, 1, (n, 2)).astype("f4"),
            "terminals": np.arange(n) % 8 == 7}


def test_last_action():
    with Scratch("ends") as scratch:
        rows = short_trajectories(np.random.default_rng(3))
        np.savez(scratch.at("a.npz"), **rows)
        rows["actions"][rows["terminals"]] *= -1
        np.savez(scratch.at("b.npz"), **rows)
        for agent in ("td-n", "trl-n", "dcrl", "curriculum"):
            for last in ("on", "off"):
                runs = [scratch.at(f"{agent}-{last}-{name}") for name in "ab"]
                for run, name in zip(runs, "ab"):
                    good("train", "--data", scratch.at(name + ".npz"), "--agent", agent, *SIZES, "--set", "n=5", "--set",
                         f"last_action={last}", "--out", run)
                assert same(*map(weights, runs)) == (last == "off"), (agent, last)


def test_sampled_rows():
    """The rows themselves: never the last one, else the same."""
    with Scratch("ends") as scratch:
        np.savez(scratch.at("a.npz"), **short_trajectories(np.random.default_rng(3)))
        drawn = {}
        for last in ("on", "off"):
            text = good("sample", "--data", scratch.at("a.npz"), "--agent", "td-n", "--count", 1000, "--set", "n=5", "--set",
                        f"last_action={last}")
            names, *lines = text.splitlines()
            table = np.array([line.split(",") for line in lines], float)
            drawn[last] = dict(zip(names.split(","), table.T))
        on, off = drawn["on"], drawn["off"]
        assert np.array_equal(on["state"], off["state"]) and np.array_equal(on["goal"], off["goal"])
        end = on["later"] % 8 == 7
        assert end.any() and not (off["later"] % 8 == 7).any()
        assert np.array_equal(off["later"], on["later"] - end) and np.array_equal(off["later_steps"], on["later_steps"] - end)


def test_teleport():
    """Goals that training takes are OGBench's, also on rows where a teleport came between."""
    from ogbench.relabel_utils import add_oracle_reps
    with Scratch("goals") as scratch:
        path, env = scratch.at("tele.npz"), "pointmaze-teleport-navigate-oraclerep-v0"
        good("gen", "pointmaze-teleport-navigate", "-o", path, "--episodes", 20)
        with np.load(path) as file:
            rows = {k: file[k] for k in file}
        add_oracle_reps("pointmaze-teleport-v0", None, rows)
        wanted = rows.pop("oracle_reps")
        moved = np.abs(wanted - rows["observations"][:, :2]).max(1) > 1
        print(f"  {moved.sum()} of {len(moved)} rows differ, by up to {np.abs(wanted - rows['observations'][:, :2]).max():.0f}")
        assert 0 < moved.sum() < 100
        words = ["train", "--env", env, "--agent", "td-n", *SIZES, "--data"]
        good(*words, path, "--out", scratch.at("run"))
        with open(scratch.at("run", "config.json")) as file:
            config = json.load(file)
        assert config["goal_column"] == "qpos" and config["rep"] == [0, 2], config
        # The same from an array of OGBench's goals themselves, and not the same from observations.
        np.savez(scratch.at("named.npz"), **rows, oracle_reps=wanted)
        good(*words, scratch.at("named.npz"), "--goal-column", "oracle_reps", "--set", "rep=0,2", "--out", scratch.at("named"))
        assert same(weights(scratch.at("run")), weights(scratch.at("named")))
        many = ["--steps", 60, "--batch", 1024]
        for name, more in (("qpos", []), ("obs", ["--goal-column", "obs", "--set", "rep=0,2"])):
            good(*words, path, *more, *many, "--out", scratch.at(name))
        assert not same(weights(scratch.at("qpos")), weights(scratch.at("obs")))
        # Other mazes stay as they are.
        good("gen", "pointmaze-medium-navigate", "-o", scratch.at("m.npz"), "--episodes", 2)
        good("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", *SIZES, "--data", scratch.at("m.npz"), "--out", scratch.at("m"))
        with open(scratch.at("m", "config.json")) as file:
            assert json.load(file)["goal_column"] == "obs"
        del rows["qpos"]
        np.savez(scratch.at("bare.npz"), **rows)
        bad(1, ["no array qpos", "--goal-column obs"], *words, scratch.at("bare.npz"), "--out", scratch.at("bare"))


if __name__ == "__main__":
    run_tests(globals())
