"""Data of visual environments: made, drawn from states, read by the Python package, trained on and played with."""

import json
import os
import random
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
import numpy as np  # noqa: E402
from ogbench.utils import load_dataset  # noqa: E402
from PIL import Image  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, digest, good, run_tests, sanitized  # noqa: E402
from parity import replay  # noqa: E402

SMALL = ["--hidden", "8,8", "--batch", 4, "--steps", 2, "--threads", 2]


def read(path):
    with np.load(path) as file:
        return dict(file)


def same_states(a, b):
    return set(a) == set(b) and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a if k != "observations")


def test_made():
    """By any number of threads, in one go or from parts; states are those of the plain set."""
    with Scratch("made") as scratch:
        words = ["--episodes", 40, "--rows", 3, "--seed", random.randrange(1000)]
        for threads in 1, 3:
            good("gen", "visual-antmaze-medium-navigate", *words, "--threads", threads, "-o", scratch.at(f"{threads}.npz"))
        good("gen", "antmaze-medium-navigate", *words, "-o", scratch.at("states.npz"))
        one, states = read(scratch.at("1.npz")), read(scratch.at("states.npz"))
        assert digest(scratch.at("1.npz")) == digest(scratch.at("3.npz")) and digest(scratch.at("1-val.npz")) == digest(scratch.at("3-val.npz"))
        assert one["observations"].shape == (120, 64, 64, 3) and one["observations"].dtype == np.uint8 and same_states(one, states)
        assert len(np.unique(one["observations"][::3].reshape(40, -1), axis=0)) == 40  # no start is like another
        loaded = load_dataset(scratch.at("1.npz"), ob_dtype=np.uint8)
        assert loaded["observations"].shape == loaded["next_observations"].shape == (80, 64, 64, 3)
        assert np.array_equal(loaded["next_observations"][0], one["observations"][1])
        bad(1, "another set was begun", "gen", "antmaze-medium-navigate", *words, "-o", scratch.at("1.npz"))


def test_drawn():
    """Pictures of a scene are those of its states; only the rounding of a file lies between."""
    with Scratch("drawn") as scratch:
        words = ["--episodes", 10, "--rows", 4, "--seed", random.randrange(1000)]
        good("gen", "visual-scene-play", *words, "-o", scratch.at("visual.npz"))
        good("gen", "scene-play", *words, "-o", scratch.at("states.npz"))
        for threads, name in (1, "scene"), (2, "visual-scene-play-v0"):
            good("data", "draw", scratch.at("states.npz"), name, "--threads", threads, "-o", scratch.at(f"{threads}.npz"))
        assert digest(scratch.at("1.npz")) == digest(scratch.at("2.npz"))
        played, drawn, states = (read(scratch.at(f"{k}.npz")) for k in ("visual", "1", "states"))
        assert same_states(played, drawn) and same_states(drawn, states)
        off = np.abs(played["observations"].astype(int) - drawn["observations"])
        assert drawn["observations"].dtype == np.uint8 and off.mean() < 0.05 and (off == 0).mean() > 0.995, (off.mean(), (off == 0).mean())


def test_start():
    """A state that has just been put is drawn alike as an observation, from bodies, and by render, from joints."""
    with Scratch("start") as scratch:
        state = dict(qpos=np.r_[random.uniform(0, 8), 0, 0.6, 1, 0, 0, 0, np.random.uniform(-1, 1, 8)][None], qvel=np.zeros((1, 14)))
        obs = replay(scratch, "visual-antmaze-large", actions=np.zeros((1, 0, 8)), **state)["obs"][0, 0].reshape(64, 64, 3)
        np.savez(scratch.at("state.npz"), qpos=state["qpos"])
        good("render", "visual-antmaze-large", "--states", scratch.at("state.npz"), "--width", 64, "--height", 64, "-o", scratch.at("a.png"))
        with Image.open(scratch.at("a.png")) as image:
            assert np.array_equal(np.asarray(image.convert("RGB")), obs)


def test_trained():
    if sanitized():
        return print("test_trained: skipped, convolutions take minutes with a sanitizer")
    with Scratch("trained") as scratch:
        good("gen", "visual-cube-single-play", "--episodes", 10, "--rows", 4, "-o", scratch.at("cube.npz"))
        run = ["train", "--data", scratch.at("cube.npz"), "--agent", "bc", *SMALL, "--set", "crop=0.5", "--out"]
        good(*run, scratch.at("run"), "--env", "visual-cube-single-play-v0")
        played = json.loads(good("eval", scratch.at("run"), "--episodes", 1, "--threads", 2, "--json"))
        assert played["episodes"] == 5 and played["env"].startswith("visual-cube-single") and 0 <= played["overall_success"] <= 1, played
        good("render", scratch.at("run"), "--task", 2, "--at", 3, "--episodes", 1, "--width", 64, "--height", 64, "-o", scratch.at("a.png"))
        bad(1, ["have 12288 columns, cube-single-v0 has 28"], *run, scratch.at("no"), "--env", "cube-single-play-v0")
        bad(1, ["no part of a picture", "-oraclerep"], *run, scratch.at("no"), "--env", "visual-cube-single-play-oraclerep-v0")


def test_numbers_for_goals():
    """In mazes goals may be places, beside observations that are pictures."""
    with Scratch("numbers") as scratch:
        good("gen", "visual-antmaze-medium-navigate", "--episodes", 10, "--rows", 5, "-o", scratch.at("ant.npz"))
        good("train", "--data", scratch.at("ant.npz"), "--agent", "bc", *SMALL, "--env", "visual-antmaze-medium-navigate-oraclerep-v0", "--out", scratch.at("run"))
        with open(scratch.at("run", "config.json")) as file:
            config = json.load(file)
        assert config["goal_column"] == "qpos" and config["rep"] == [0, 2], config
        out = replay(scratch, "visual-antmaze-medium-oraclerep", tasks=np.array([3]), actions=np.zeros((1, 1, 8)))
        assert np.array_equal(out["goal"], out["goal_xy"]) and out["obs"].shape == (1, 2, 12288)
        bad(1, ["no maps", "a picture"], "map", scratch.at("run"))


def test_wrong_files():
    with Scratch("wrong") as scratch:
        draw = ["data", "draw", scratch.at("in.npz")]
        out = ["-o", scratch.at("out.npz")]
        state = dict(qpos=np.zeros((3, 15), "f4"), qvel=np.zeros((3, 14), "f4"), actions=np.zeros((3, 8), "f4"), terminals=np.array([0, 0, 1], bool))
        np.savez(scratch.at("in.npz"), **state)
        bad(2, ["pointmaze-medium-v0 has no visual form", "dcrl list envs"], *draw, "pointmaze-medium", *out)
        bad(2, ["unknown environment", "visual-cube-octuple"], *draw, "visual-cube-octuple", *out)
        bad(2, "did you mean 'visual-antmaze-giant'", *draw, "visual-antmase-giant", *out)
        bad(1, ["no array 'button_states'", "in.npz"], *draw, "puzzle-3x3", *out)
        bad(1, ["'qpos' has another shape", "(21) or (rows, 21)"], *draw, "cube-single", *out)
        bad(2, "a file and an environment", *draw, *out)
        bad(1, "none.npz", "data", "draw", scratch.at("none.npz"), "antmaze-medium", *out)
        for change, text in [(dict(qpos=np.full((3, 15), np.nan)), "not finite"), (dict(names=np.array(["a"])), "names"),
                             (dict(actions=np.zeros((2, 8), "f4")), "'actions' has not 3 rows"), (dict([("n" * 201, np.zeros(3))]), "the name 'nnn"),
                             ({f"a{k}": np.zeros(3) for k in range(60)}, "more than 63 arrays")]:
            np.savez(scratch.at("in.npz"), **state | change)
            bad(1, text, *draw, "antmaze-medium", *out)
        del state["qpos"]
        np.savez(scratch.at("in.npz"), **state)
        bad(1, "no array 'qpos'", *draw, "antmaze-medium", *out)
        assert sorted(os.listdir(scratch.path)) == ["in.npz"], os.listdir(scratch.path)


if __name__ == "__main__":
    run_tests(globals())
