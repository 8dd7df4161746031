"""CALVIN's file and evaluation, on a file and an environment of the same shape: neither the data nor the simulator is here.

The file has what was seen of SkiMo's: float32, 39 columns, a trajectory with too few observations. The environment is a table
whose drawer, bulb, slider and LED move with the first four numbers of an action; scripts that do so in this and that order say
what must be counted.
"""

import gzip
import pathlib
import pickle
import random
import subprocess
import sys

from package import SOURCE

import numpy as np

import dcrl
from dcrl import calvin
from drive import Scratch, good, run_tests


def trajectories(rng):
    """As SkiMo writes them; the third is cut, the fourth has an observation more than actions."""
    made = []
    for obs, actions in ((40, 40), (25, 25), (10, 12), (31, 30)):
        made.append(
            dict(
                obs=rng.normal(size=(obs, 39)).astype(np.float32),
                actions=rng.uniform(-1.5, 1.5, (actions, 7)).astype(np.float32),
                dones=np.arange(actions) == actions - 1,
            )
        )
    return made


def refused(text, call, *words):
    try:
        call(*words)
    except dcrl.InputError as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(text)


def test_file():
    rng = np.random.default_rng(0)
    made = trajectories(rng)
    with Scratch("calvin") as scratch:
        for protocol in (2, 4, 5):
            for opened in (gzip.open, open):
                with opened(scratch.at("calvin.gz"), "wb") as file:
                    pickle.dump(made, file, protocol)
                told = calvin.convert(scratch.at("calvin.gz"), scratch.at("calvin.npz"))
                assert told == dict(trajectories=3, rows=40 + 25 + 31, left_out=1), told
        data = dcrl.Dataset(scratch.at("calvin.npz"))
        assert data["observations"].shape == (96, 21) and data["actions"].shape == (96, 7)
        assert np.array_equal(data["observations"][40:65], made[1]["obs"][:, :21])
        assert np.array_equal(data.starts, [0, 40, 65, 96])
        assert np.abs(data["actions"][65:95] - np.clip(made[3]["actions"], -1, 1)).max() < 2e-5
        assert "96" in good("data", "info", scratch.at("calvin.npz"))
        words = [sys.executable, "-W", "ignore", "-m", "dcrl.calvin", scratch.at("calvin.gz"), scratch.at("again.npz")]
        done = subprocess.run(words, cwd=SOURCE / "python", capture_output=True, text=True)
        assert done.returncode == 0 and "3 trajectories, 96 rows; 1 left out" in done.stdout, done
        done = subprocess.run([*words[:-2], scratch.at("none.gz"), "x"], cwd=SOURCE / "python", capture_output=True, text=True)
        assert done.returncode == 1 and "none.gz" in done.stderr, done
        policy = dcrl.train(scratch.at("run"), scratch.at("calvin.npz"), agent="dcrl", n=4, steps=3, batch=16, hidden=(16, 16), threads=1)
        assert (policy.obs_size, policy.goal_size, policy.act_size) == (21, 21, 7)
        table = Table()
        result = calvin.evaluate(policy, table, pathlib.Path(scratch.at("calvin.npz")), episodes=2, steps=5)
        assert result.episodes == 2 and table.resets == 2 and table.steps == 5 and 0 <= result.score <= 100


class Program:
    def __reduce__(self):
        return print, ("a pickle ran",)


def test_hostile_files():
    with Scratch("hostile") as scratch:

        def write(value):
            with gzip.open(scratch.at("a.gz"), "wb") as file:
                pickle.dump(value, file)
            return scratch.at("a.gz")

        def convert(value):
            calvin.convert(write(value), scratch.at("a.npz"))

        refused("builtins.print", convert, [Program()])
        refused("list of dicts", convert, {"obs": 1})
        refused("list of dicts", convert, [{"obs": np.zeros((3, 39))}])
        refused("(3, 20)", convert, [dict(obs=np.zeros((3, 20)), actions=np.zeros((3, 7)), dones=np.zeros(3))])
        refused("(3, 6)", convert, [dict(obs=np.zeros((3, 39)), actions=np.zeros((3, 6)), dones=np.zeros(3))])
        refused("no trajectory", convert, [])
        with open(write(trajectories(np.random.default_rng(0))), "r+b") as file:
            file.truncate(2000)
        refused("no pickle", calvin.convert, scratch.at("a.gz"), scratch.at("a.npz"))


class Pointers:
    """A type whose numbers numpy would take for addresses of objects."""

    def __reduce__(self):
        return np.dtype, ("V8", False, True), (3, "|", None, ("f0",), {"f0": (np.dtype("O"), 0)}, 8, 1, 0)


class Array:
    def __init__(self, *words):
        self.words = words

    def __reduce__(self):
        return np.ndarray, self.words


def test_hostile_pickles():
    """Whatever a pickle says of types and shapes, it is refused in words, without the memory that it claims."""
    rest = dict(actions=np.zeros((3, 7)), dones=np.zeros(3))
    pickles = [pickle.dumps([dict(obs=obs, **rest)]) for obs in (
        Array((3, 39), Pointers(), b"A" * 8 * 3 * 39), Array((1 << 30, 39), np.dtype("f8")), [["a"] * 39] * 3, np.zeros((3, 39), object), np.zeros((3, 39), ">f4"))]
    pickles += [pickle.dumps([dict(obs=np.zeros((3, 39)), actions=np.zeros((3, 7)), dones=5)])]
    whole = pickle.dumps([dict(obs=np.zeros((3, 39), np.float32), **rest)], 5)
    with Scratch("hostile") as scratch:
        for text in pickles:
            with open(scratch.at("a.gz"), "wb") as file:
                file.write(text)
            refused("a.gz", calvin.convert, scratch.at("a.gz"), scratch.at("a.npz"))
        for packed in (whole, gzip.compress(whole)):
            for _ in range(1000):
                damaged = bytearray(packed)
                for _ in range(random.randint(1, 3)):
                    damaged[random.randrange(len(damaged))] = random.randrange(256)
                with open(scratch.at("a.gz"), "wb") as file:
                    file.write(damaged[: random.randrange(len(damaged)) if random.random() < 0.2 else len(damaged)])
                try:
                    calvin.convert(scratch.at("a.gz"), scratch.at("a.npz"))
                except dcrl.InputError:
                    pass


class Table:
    """39 numbers; of an action the first four move slide, drawer, bulb and LED."""

    def __init__(self, flat=False):
        self.flat, self.resets, self.steps, self.grips = flat, 0, 0, set()

    def look(self):
        if self.flat:
            return np.concatenate([self.robot, self.scene])
        return {"rgb_obs": {}, "robot_obs": self.robot.copy(), "scene_obs": self.scene.copy()}

    def reset(self):
        self.robot, self.scene = np.zeros(15), np.zeros(24)
        self.scene[:2] = 0.02, 0.01  # where things rest is not quite 0
        self.resets += 1
        self.steps = 0
        return self.look()

    def step(self, action):
        assert action.shape == (7,) and abs(action[6]) == 1
        self.grips.add(action[6])
        self.scene[:2] += 0.05 * action[:2]
        self.scene[4:6] = np.clip(self.scene[4:6] + np.round(action[2:4]), 0, 1)
        self.steps += 1
        return self.look(), 0, False, {}


class Script:
    """Does one thing after the other, and looks at its goal."""

    def __init__(self, order):
        self.order, self.t = order, 0

    def act(self, observation, goal):
        assert observation.shape == goal.shape == (21,)
        assert np.allclose(goal[15:], [0.25, 0.15, 0, 0.088, 1, 1]) and np.allclose(goal[:15], 7)
        if observation[15] < 0.03 and observation[16] < 0.02 and not observation[19:].any():
            self.t = 0  # a new episode
        action = np.zeros(7, np.float32)
        action[["slide", "drawer", "bulb", "led"].index(self.order[min(self.t // 5, len(self.order) - 1)])] = 1
        action[6] = -0.2 if self.t % 2 else 0.0
        self.t += 1
        return action


def test_evaluation():
    start = np.full(21, 7.0)
    for flat in (False, True):
        for order, in_order, want in [
            (["drawer", "bulb", "slide", "led"], True, [1, 1, 1, 1]),
            (["drawer", "slide", "bulb", "led"], True, [1, 1, 1, 1]),  # the slider stays where it was moved to
            (["drawer", "slide", "led"], True, [1, 0, 0, 0]),
            (["drawer", "slide", "led"], False, [1, 0, 1, 1]),
            (["bulb", "led"], True, [0, 0, 0, 0]),
            (["bulb", "led"], False, [0, 1, 0, 1]),
        ]:
            table = Table(flat)
            result = calvin.evaluate(Script(order), table, start, episodes=3, in_order=in_order)
            assert list(result.subtasks.values()) == want and result.score == 25 * sum(want), (order, in_order, result)
            assert list(result.subtasks) == ["open_drawer", "turn_on_lightbulb", "move_slider_left", "turn_on_led"]
            assert table.resets == 3 and table.grips == {-1, 1}
            assert (table.steps < 30) if all(want) else (table.steps == 360), (order, table.steps)
    refused("not CALVIN's", calvin.evaluate, Script(["led"]), type("Short", (), {"reset": lambda self: np.zeros(20)})(), start)


run_tests(globals())
