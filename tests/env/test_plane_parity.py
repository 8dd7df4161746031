"""The open plane against the Python package's online environments, step by step from recorded draws: what a policy
sees, rewards, ends and cuts. Actions are new in every run; some of them throw the ant off its feet.
"""

import os
import subprocess
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium.envs.mujoco import MujocoEnv  # noqa: E402
from ogbench.online_locomotion import ant, ant_ball, humanoid, wrappers  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, run_tests  # noqa: E402
from parity import generator, length  # noqa: E402

TOOL = os.path.join(os.environ.get("BUILD", "build"), "tests", "tool_plane")
MujocoEnv.render = lambda self: None  # antball draws itself when it is made, and there is no display
SIGHT = 1e-12  # of the humanoid, whose limbs numpy computes through BLAS: last bits
# Rewards are sums of the same few numbers in another order.
REWARD = 1e-12


class Viewer:
    class cam:
        lookat = np.zeros(3)
        distance = elevation = 0.0


def make(robot):
    """As OGBench's training script makes them (impls/utils/env_utils.py)."""
    if robot == "antball":
        make_ball = type("Ball", (ant_ball.AntBallEnv,), {"mujoco_renderer": property(lambda self: type("R", (), {"viewer": Viewer})(), lambda self, v: None)})
        return gymnasium.wrappers.TimeLimit(make_ball(), 200)
    kind, limit, every, wrap = {
        "ant": (ant.AntEnv, 1000, 100, wrappers.GymXYWrapper),
        "humanoid": (humanoid.HumanoidEnv, 1000, 200, wrappers.DMCHumanoidXYWrapper),
    }[robot]
    return wrap(gymnasium.wrappers.TimeLimit(kind(), limit), resample_interval=every)


class Recorder:
    """What resets and commands draw, in order."""

    def __init__(self, env):
        self.env, self.values = env.unwrapped, []

    def keep(self, function):
        def kept(*words, **named):
            value = function(*words, **named)
            self.values.extend(np.ravel(value).astype(float))
            return value

        return kept

    def __enter__(self):
        self.before, self.norm = (np.random.uniform, np.random.randn, self.env.np_random), np.linalg.norm
        # of a quaternion, whose last bit decides where the humanoid lies after some hundred steps
        np.linalg.norm = lambda x, *words, **named: length(x) if np.shape(x) == (4,) else self.norm(x, *words, **named)
        np.random.uniform, np.random.randn = map(self.keep, self.before[:2])
        source = type("Source", (), {})()
        source.uniform = self.keep(self.before[2].uniform)
        source.standard_normal = self.keep(self.before[2].standard_normal)
        self.env._np_random = source
        return self

    def __exit__(self, *_):
        np.random.uniform, np.random.randn = self.before[:2]
        np.linalg.norm = self.norm
        self.env._np_random = self.before[2]


def theirs(env, actions):
    seen, rewards, ended, cut = [], [], [], []
    with Recorder(env) as draws:
        ob, _ = env.reset()
        for action in actions:
            after, reward, end, late, _ = env.step(action)
            seen.append([ob, after])
            rewards.append(reward)
            ended.append(end)
            cut.append(late and not end)
            ob = env.reset()[0] if end or late else after
    return dict(seen=np.array(seen), reward=np.array(rewards), ended=np.array(ended), cut=np.array(cut)), np.array(draws.values)


def ours(scratch, robot, actions, draws):
    given, made = scratch.at("in.npz"), scratch.at("out.npz")
    np.savez(given, actions=actions, draws=draws)
    done = subprocess.run([TOOL, robot, given, made], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(np.load(made))


def compare(robot, steps, horizon_ends, exact, wild):
    """wild: one action is held for so long, with full force."""
    env, rng = make(robot), generator()
    actions = rng.uniform(-1, 1, (steps, env.action_space.shape[0]))
    if wild:
        actions[: steps // 2] = np.sign(np.repeat(actions[: steps // 2 : wild], wild, axis=0))[: steps // 2]
    want, draws = theirs(env, actions)
    with Scratch("plane") as scratch:
        got = ours(scratch, robot, actions, draws)
    if horizon_ends:  # their time limit is told apart from the rules by the training script (env_utils.py), not here
        want["ended"], want["cut"] = want["ended"] | want["cut"], want["cut"] & False
    seen, reward = (np.abs(got[k] - want[k]).max() for k in ("seen", "reward"))
    print(f"{robot}: {steps} steps, {int(want['ended'].sum())} ended, {int(want['cut'].sum())} cut; seen off by {seen:.1e}, rewards {reward:.1e}")
    assert seen <= (0 if exact else SIGHT) and reward <= REWARD
    assert np.abs(got["linear"] - got["reward"]).max() <= REWARD
    assert np.array_equal(got["ended"], want["ended"]) and np.array_equal(got["cut"], want["cut"])
    return want


def test_ant():
    assert compare("ant", 2300, False, True, 25)["cut"].any()


def test_antball():
    want = compare("antball", 900, True, True, 10)
    assert want["ended"].sum() >= 4


def test_humanoid():
    compare("humanoid", 1100, False, False, 0)


if __name__ == "__main__":
    run_tests(globals())
