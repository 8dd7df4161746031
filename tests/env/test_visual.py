"""The visual environments beside those of the Python package `ogbench`: models with their colours, and what is observed after
resets and steps, goals too, on states, actions and draws that are new in every run.

Our renderer's pictures are near those of OpenGL (tests/env/test_render.py says how near). That a picture shows the moment which
the package shows, kinematics of a physics step before where nothing refreshes them, is tested with things that move fast.
"""

import gc
import os
import random
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, call, good  # noqa: E402

TABLES = ["cube-single", "cube-double", "cube-triple", "cube-quadruple", "scene", "puzzle-3x3", "puzzle-4x4", "puzzle-4x5", "puzzle-4x6"]
MAZES = ["antmaze-medium", "antmaze-large", "antmaze-giant", "antmaze-teleport"]
HUMANS = ["humanoidmaze-medium", "humanoidmaze-large", "humanoidmaze-giant"]
SHAPE = (64, 64, 3)


def find_gl():
    """The first kind that draws here."""
    with Scratch("visual") as scratch:
        for kind in "egl", "osmesa":
            if call("render", "antmaze-medium-v0", "--gl", kind, "-o", scratch.at("a.png")).returncode == 0:
                return kind
    return None


GL = find_gl()
os.environ["MUJOCO_GL"] = GL or "disable"
import gymnasium  # noqa: E402
import mujoco  # noqa: E402
import ogbench  # noqa: E402, F401
from parity import generator, padded, replay, same_fields  # noqa: E402
from tables import Recorder, run_plain  # noqa: E402

made = {}


def make(name):
    if name not in made:
        made[name] = gymnasium.make(f"visual-{name}-v0").unwrapped
    return made[name]


def needs_gl(test):
    def skipped():
        print(f"{test.__name__}: skipped, there is no OpenGL here (tools/setup.sh test installs OSMesa)")

    return test if GL else skipped


def off(ours, frame):
    assert ours.shape[-1] == np.prod(SHAPE) and frame.shape == SHAPE and frame.dtype == np.uint8
    return np.abs(ours.reshape(SHAPE) - frame)


def near(ours, frame, what):
    difference = off(ours, frame)
    mean, share = difference.mean(), (difference <= 8).mean()
    assert mean < 1.5 and share > 0.98, (what, mean, share)
    return mean, share


def played(env, task, steps, rng):
    """A reset and some steps: what was observed, the goal, actions and draws."""
    with Recorder(env) as draws:
        ob, info = env.reset(options=dict(task_id=task))
        actions = rng.uniform(-1, 1, (steps, *env.action_space.shape))
        obs = [ob, *(env.step(a)[0] for a in actions)]
    return obs, info["goal"], actions, draws.values


def compare(scratch, name):
    env, rng, seen = make(name), generator(), []
    task = random.randint(1, 5)
    obs, goal, actions, draws = played(env, task, 2, rng)
    ours = replay(scratch, f"visual-{name}", tasks=np.array([task]), actions=actions[None], draws=padded([draws]))
    assert ours["goal"].shape == (1, 12288) and ours["obs"].shape == (1, 3, 12288)
    seen.append(near(ours["goal"][0], goal, (name, task, "goal")))
    seen += [near(a, b, (name, task)) for a, b in zip(ours["obs"][0], obs)]
    mean, share = np.mean(seen, 0)
    print(f"  {name}: mean difference {mean:.2f}, values within 8 {share:.2%}, of {len(seen)} pictures")
    return seen


@needs_gl
def test_observations_and_goals():
    with Scratch("visual") as scratch:
        seen = [compare(scratch, name) for name in ("cube-single", random.choice(["scene", *TABLES[5:7]]), random.choice(MAZES))]
        mean, share = np.mean(np.concatenate(seen), 0)
        assert mean < 1 and share > 0.99, (mean, share)


def fast_state(env, rng):
    """A cube that flies past the gripper, within the invisible walls, or an ant that whirls."""
    env.reset(options=dict(task_id=1))
    qpos, qvel = env.data.qpos.copy(), env.data.qvel.copy()
    if len(qpos) == 15:
        qvel[3:6] = rng.choice([-12, 12], 3)
        return qpos, qvel
    side = rng.choice([-1, 1])
    hand = env.data.site_xpos[env._pinch_site_id][0]
    qpos[14:21] = 0.3 if hand > 0.425 else 0.55, -0.15 * side, 0.08, 1, 0, 0, 0
    qvel[14:20] = 0, 6 * side, 1, 0, 0, 0
    return qpos, qvel


@needs_gl
def test_moments():
    with Scratch("visual") as scratch:
        for name in "cube-single", "antmaze-medium":
            env, rng = make(name), generator()
            qpos, qvel = fast_state(env, rng)
            env.set_state(qpos, qvel)
            action = rng.uniform(-0.1, 0.1, env.action_space.shape)
            shown = env.step(action)[0].astype(int)
            mujoco.mj_forward(env.model, env.data)
            fresh = env.render().astype(int)
            ours = replay(scratch, f"visual-{name}", qpos=qpos[None], qvel=qvel[None], actions=action[None, None])["obs"][0, 1].reshape(SHAPE)
            moved = np.abs(shown - fresh) > 20  # where the two moments differ
            assert moved.sum() > 5, (name, moved.sum())
            here, there = np.abs(ours - shown)[moved].mean(), np.abs(ours - fresh)[moved].mean()
            print(f"  {name}: in {moved.sum()} values that differ, off by {here:.1f}, from the moment after by {there:.1f}")
            assert here < there / 2, (name, here, there)


def test_models():
    """With all colours, lights and textures; compiled anew, because a reset of the Python side changes colours."""
    with Scratch("models") as scratch:
        for name in random.choice(TABLES), random.choice(MAZES + HUMANS):
            env = make(name)
            if name in TABLES:
                env.compile_model_and_data()
            good("env", "model", f"visual-{name}", "--out", scratch.at("model.mjb"))
            ours = mujoco.MjModel.from_binary_path(scratch.at("model.mjb"))
            named = lambda field: field.startswith("name") or field == "nnames" or field.endswith("_pathadr")
            assert same_fields(ours, env.model, name, named if name in TABLES else lambda field: False) > 300
            assert np.array_equal(ours.tex_data, env.model.tex_data) and np.array_equal(ours.mat_rgba, env.model.mat_rgba)


if __name__ == "__main__":
    run_plain(globals())
    made.clear()
    gc.collect()  # while OpenGL is still there
