"""The mazes against the Python package `ogbench`, on states, actions and draws that are new in every run.

Models: every array and option of the compiled model. Steps: one from injected states, and free runs of 200. Resets:
the random numbers that the Python package drew are recorded and handed to `dcrl env replay`. A table of the largest
errors stands at the end.
"""

import os
import random
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
import ogbench  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, good, run_tests  # noqa: E402
from parity import error, generator, padded, replay, same_fields  # noqa: E402

FAMILIES = {
    "pointmaze": ["medium", "large", "giant", "teleport"],
    "antmaze": ["medium", "large", "giant", "teleport"],
    "humanoidmaze": ["medium", "large", "giant"],
    "antsoccer": ["arena", "medium"],
}
MARKS = [1, 10, 50, 200]  # steps of a free run at which errors are told
# The library and its inputs are the same on both sides, so states are equal to the bit. What numpy computes through
# BLAS (limbs of the humanoid, the length of its random quaternion) is equal where BLAS uses fused multiply-add, and
# may differ in the last place elsewhere; a reset of the humanoid runs on from such a number for 40 steps.
EXACT, ROUNDED, GROWN = 0.0, 1e-14, 1e-6
MAZES = [f"{family}-{maze}" for family, mazes in FAMILIES.items() for maze in mazes]
table = []


def make(name, form=""):
    """OGBench's own environment of a form: "", "oraclerep" or "singletask-taskK"."""
    words = [name, "navigate", *([form] if form else []), "v0"]
    return ogbench.make_env_and_datasets("-".join(words), env_only=True).unwrapped


class Recorder:
    """Everything random that the Python package draws while this is active, in order."""

    def __init__(self, env):
        self.env, self.values = env, []

    def keep(self, function):
        def kept(*words, **named):
            value = function(*words, **named)
            self.values.extend(np.ravel(value).astype(float))
            return value

        return kept

    def __enter__(self):
        self.before = np.random.uniform, np.random.randint, self.env.np_random
        np.random.uniform, np.random.randint = map(self.keep, self.before[:2])
        source = type("Source", (), {})()
        source.uniform = self.keep(self.before[2].uniform)
        source.standard_normal = self.keep(self.before[2].standard_normal)
        self.env._np_random = source
        self.env.action_space.sample = self.keep(type(self.env.action_space).sample.__get__(self.env.action_space))
        return self

    def __exit__(self, *_):
        np.random.uniform, np.random.randint = self.before[:2]
        self.env._np_random = self.before[2]
        del self.env.action_space.sample


def play(env, qpos, qvel, goal, actions):
    """One start in Python, each array with a row for the start and one per step; and the draws of its teleports."""
    mujoco.mj_resetData(env.model, env.data)
    env.set_state(qpos, qvel)
    env.cur_goal_xy = np.array(goal)
    return run_on(env, actions)


def run_on(env, actions):
    rows = [(env.data.qpos.copy(), env.data.qvel.copy(), env.get_ob(), None, None)]
    with Recorder(env) as draws:
        for action in actions:
            ob, reward, _, _, info = env.step(action)
            rows.append((env.data.qpos.copy(), env.data.qvel.copy(), ob, info["success"] == 1.0, reward))
    return [np.array(column[1:] if column[0] is None else column) for column in zip(*rows)], draws.values


def broke_down(env):
    """Did the physics since the last reset meet NaN, or numbers too large?"""
    kinds = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
    return any(env.data.warning[int(kind)].number for kind in kinds)


def states(env, count, rng):
    """States as they occur: a reset, then a few random steps, anywhere in the free cells."""
    cells = np.argwhere(env.maze_map == 0)
    for _ in range(count):
        env.reset(options=dict(task_id=int(rng.integers(1, 6))))
        for _ in range(rng.integers(0, 20)):
            env.step(rng.uniform(-1, 1, env.action_space.shape))
        cell = cells[rng.integers(len(cells))]
        # The point may well start inside of a wall's reach: contacts are what needs comparing.
        env.set_xy(np.array(env.ij_to_xy(cell)) + rng.uniform(-1.9, 1.9, 2))
        yield env.data.qpos.copy(), env.data.qvel.copy()


def goals_near(env, qpos, rng):
    ball = qpos[-7:-5] if len(qpos) == 22 else qpos[:2]
    return ball + rng.uniform(-1, 1, 2) * (2.0 if len(qpos) == 2 else 0.6)


def compare(scratch, name, form, starts, steps, dtype=np.float64):
    """Largest errors of qpos, qvel, obs at the marks, and how many steps succeeded."""
    env, rng = make(name, form), generator()
    qpos, qvel = map(np.array, zip(*states(env, starts, rng)))
    goal = np.array([goals_near(env, q, rng) for q in qpos])
    actions = rng.uniform(-1.2, 1.2, (starts, steps, *env.action_space.shape)).astype(dtype)
    # Every other run keeps to one direction for a while, or a point would never get far.
    actions[::2] = np.repeat(actions[::2, ::25], 25, axis=1)[:, :steps]
    played, draws = [], []
    for i in range(starts):
        one, drawn = play(env, qpos[i], qvel[i], goal[i], actions[i])
        while broke_down(env):  # a body deep inside of a wall: MuJoCo itself begins anew then
            qpos[i], qvel[i] = next(states(env, 1, rng))
            goal[i] = goals_near(env, qpos[i], rng)
            one, drawn = play(env, qpos[i], qvel[i], goal[i], actions[i])
        played.append(one)
        draws.append(drawn)
    theirs = [np.array(column) for column in zip(*played)]
    full = f"{name}-{form}-v0" if form else f"{name}-v0"
    ours = replay(scratch, full, qpos=qpos, qvel=qvel, goal_xy=goal, actions=actions, draws=padded(draws))
    assert np.array_equal(ours["success"][:, 1:], theirs[3]), (name, form)
    assert np.array_equal(ours["reward"][:, 1:], theirs[4]), (name, form)
    assert ours["success"].dtype == bool and ours["qpos"].dtype == np.float64
    marks = [m for m in MARKS if m <= steps]
    return {
        m: [error(ours[key][:, : m + 1], column[:, : m + 1]) for key, column in zip(["qpos", "qvel", "obs"], theirs)] for m in marks
    }, theirs[3]


def tell(name, what, errors, allowed):
    table.append((name, what, errors))
    worst = dict(zip(["qpos", "qvel", "obs"], errors))
    assert all(e <= a for e, a in zip(errors, allowed)), (name, what, worst)


def test_models():
    with Scratch("models") as scratch:
        for name in MAZES:
            good("env", "model", name, "--out", scratch.at("model.mjb"))
            ours, theirs = mujoco.MjModel.from_binary_path(scratch.at("model.mjb")), make(name).model
            seen = same_fields(ours, theirs, name)
            assert seen > 300, seen
            assert same_fields(ours.opt, theirs.opt, name) > 20
            assert same_fields(ours.stat, theirs.stat, name) >= 4
            print(f"  {name}: {seen} arrays and sizes equal, {ours.ngeom} geoms")


def rounded(name):
    return [EXACT, EXACT, ROUNDED if name.startswith("humanoid") else EXACT]


def test_one_step():
    with Scratch("one") as scratch:
        for name in MAZES:
            errors, success = compare(scratch, name, "", 40, 1)
            tell(name, "one step", errors[1], rounded(name))
            assert 0 < success.sum() < success.size, (name, success.sum())


def test_free_runs():
    with Scratch("free") as scratch:
        for name in MAZES:
            starts = 12 if name.startswith("point") else 3
            errors, _ = compare(scratch, name, "", starts, MARKS[-1])
            for mark, error_of in errors.items():
                tell(name, f"{mark} steps", error_of, rounded(name))


def test_float_actions():
    """The point multiplies in the action's own type."""
    with Scratch("floats") as scratch:
        name = f"pointmaze-{random.choice(FAMILIES['pointmaze'])}"
        errors, _ = compare(scratch, name, "", 12, 50, np.float32)
        tell(name, "50 steps, float32", errors[50], [EXACT] * 3)


def test_single_task():
    with Scratch("single") as scratch:
        name = f"pointmaze-{random.choice(FAMILIES['pointmaze'])}"
        task = random.randint(1, 5)
        errors, success = compare(scratch, name, f"singletask-task{task}", 30, 10)
        tell(name, "10 steps, single-task", errors[10], [EXACT] * 3)
        assert 0 < success.sum() < success.size


def reset_in_python(env, task, steps, rng):
    with Recorder(env) as draws:
        _, info = env.reset(options=dict(task_id=task))
    goal = np.array(info["goal"])
    actions = rng.uniform(-1, 1, (steps, *env.action_space.shape))
    rows, more = run_on(env, actions)
    return goal, np.array(env.cur_goal_xy), actions, rows, draws.values + more


def check_resets(scratch, name, form):
    env, rng, tasks = make(name, form), generator(), range(1, 6)
    if form.startswith("single"):
        tasks = [int(form[-1])] * 3
    goal, xy, actions, played, draws = zip(*[reset_in_python(env, task, 5, rng) for task in tasks])
    full = f"{name}-{form}-v0" if form else name
    ours = replay(scratch, full, tasks=np.array(tasks), actions=np.array(actions), draws=padded(draws))
    theirs = [np.array(column) for column in zip(*played)]
    errors = [error(ours[key], column) for key, column in zip(["qpos", "qvel", "obs"], theirs)]
    human = name.startswith("human")
    tell(name, f"reset {form}", errors, [GROWN] * 3 if human else [EXACT] * 3)
    assert error(ours["goal_xy"], xy) == 0, name
    assert ours["goal"].shape == np.array(goal).shape
    tell(name, f"goal {form}", [0, 0, error(ours["goal"], goal)], [EXACT, EXACT, GROWN if human else EXACT])


def test_resets():
    with Scratch("resets") as scratch:
        for name in MAZES:
            check_resets(scratch, name, "")
        for family in FAMILIES:
            check_resets(scratch, f"{family}-medium", "oraclerep")
            check_resets(scratch, f"{family}-medium", f"singletask-task{random.randint(1, 5)}")


def test_threads_and_seeds():
    """Resets by our own draws: equal for any number of threads, other with another seed, and spread as they should."""
    with Scratch("threads") as scratch:
        count = 200
        np.savez(scratch.at("in.npz"), tasks=np.arange(count) % 5 + 1, actions=np.zeros((count, 3, 2)))
        outs = []
        for threads, seed in [(1, 5), (2, 5), (7, 5), (2, 6)]:
            words = ["--in", scratch.at("in.npz"), "--out", scratch.at("out.npz"), "--threads", threads, "--seed", seed]
            good("env", "replay", "pointmaze-teleport", *words)
            with open(scratch.at("out.npz"), "rb") as file:
                outs.append(file.read())
            start = np.load(scratch.at("out.npz"))["qpos"][:, 0]
        assert outs[0] == outs[1] == outs[2] != outs[3]
        env = make("pointmaze-teleport")
        noise = start - np.array([env.task_infos[k % 5]["init_xy"] for k in range(count)])
        assert np.all(np.abs(noise) <= 1) and np.all(np.abs(noise.mean(0)) < 0.25) and np.all(np.abs(noise.std(0) - 0.577) < 0.12)


def test_broken_input():
    """What MuJoCo would print, log or die of comes back as one line, and no MUJOCO_LOG.TXT is left behind."""
    with Scratch("broken") as scratch:
        here = dict(cwd=scratch.path)
        state = dict(qpos=np.zeros((2, 15)), qvel=np.zeros((2, 14)), actions=np.zeros((2, 4, 8)))
        words = ["env", "replay", "antmaze-medium", "--in", "in.npz", "--out", "out.npz"]
        for change, texts in [
            (dict(qpos=np.full((2, 15), np.nan)), ["simulation", "state"]),
            (dict(qvel=np.full((2, 14), 1e300)), ["simulation", "state"]),
            (dict(actions=np.full((2, 4, 8), np.nan)), ["simulation", "actions"]),
            (dict(qpos=np.zeros((2, 16))), ["qpos has shape (2,16)", "15"]),
            (dict(qpos=np.zeros((3, 15))), ["qpos has shape (3,15)", "in.npz"]),
            (dict(actions=np.zeros((2, 4))), ["actions has shape (2,4)", "3 dimensions"]),
            (dict(actions=np.zeros((0, 4, 8))), ["no start"]),
            (dict(tasks=np.array([1, 2])), ["either qpos and qvel or tasks"]),
            (dict(target=np.zeros((2, 2))), ["antmaze-medium-v0", "'target'", "'goal_xy'", "in.npz"]),
            (dict(button_states=np.zeros((2, 2))), ["antmaze-medium-v0", "'button_states'", "in.npz"]),
        ]:
            np.savez(scratch.at("in.npz"), **{**state, **change})
            bad(1, texts, *words, **here)
        for task in 6, 0, 1.5, np.nan:
            np.savez(scratch.at("in.npz"), tasks=np.array([1, task]), actions=state["actions"])
            bad(1, [f"tasks[1] is {task:g}", "1 to 5", "in.npz"], *words, **here)
        np.savez(scratch.at("in.npz"), tasks=np.array([1, 2]), **{k: state[k] for k in ("qpos", "actions")})
        bad(1, "either qpos and qvel or tasks", *words, **here)
        np.savez(scratch.at("in.npz"), tasks=np.array([1, 2]), actions=state["actions"], draws=np.zeros((2, 9)))
        bad(1, ["draws", "has 9"], *words, **here)
        bad(1, ["locomaze/assets/ant.xml", "DCRL_OGBENCH"], *words, env={**os.environ, "DCRL_OGBENCH": "/nowhere"}, **here)
        bad(2, "did you mean 'antmaze-medium'?", "env", "replay", "antmase-medium", "--in", "in.npz", "--out", "out.npz", **here)
        assert os.listdir(scratch.path) == ["in.npz"], os.listdir(scratch.path)


def test_table():
    print(f"  {'environment':22s} {'what':26s} {'qpos':>9s} {'qvel':>9s} {'obs':>9s}")
    for name, what, errors in table:
        print(f"  {name:22s} {what:26s} " + " ".join(f"{e:9.1e}" for e in errors))


if __name__ == "__main__":
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    assert mujoco.__version__ == "3.3.7", "the reference must be the library that dcrl is linked with"
    run_tests(globals())
