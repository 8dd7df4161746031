"""The Python package's environments beside OGBench's own, with the random numbers that the package ogbench drew.

An evaluation as OGBench's public code does it (reset to a task, actions from observation and goal, cut to [-1, 1], until done)
runs on both: same observations, rewards, ends, lengths and successes, to the bit in mazes. The vector environment is compared
with Gymnasium's SyncVectorEnv over single ones, and `make_env_and_datasets` with OGBench's on the same files.
"""

import os
import subprocess
import sys
import warnings

os.environ.setdefault("MUJOCO_GL", "disable")
from package import SIMULATES, SOURCE

if not SIMULATES:
    print("skipped: this build cannot simulate")
    sys.exit(0)

import gymnasium
import numpy as np
import ogbench
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import dcrl
from dcrl.envs import Env
from drive import Scratch, good, run_tests
from tables import Plain, Recorder

warnings.filterwarnings("ignore", module="gymnasium")


class Recording(gymnasium.Wrapper):
    """OGBench's environment, which keeps what its resets draw."""

    def __init__(self, env):
        super().__init__(env)
        self.draws = []

    def reset(self, **words):
        with Recorder(self.env) as recorder:
            told = self.env.reset(**words)
        self.draws.append(list(recorder.values))
        return told


class Replaying(gymnasium.Wrapper):
    """Ours, reset by those numbers."""

    def __init__(self, env, draws):
        super().__init__(env)
        self.draws = list(draws)

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options={**(options or {}), "draws": self.draws.pop(0)})


def evaluate(actor, env, task, episodes):
    """Every transition of episodes of a task."""
    told = []
    for _ in range(episodes):
        observation, info = env.reset(options=dict(task_id=task, render_goal=False))
        goal, done = info.get("goal"), False
        while not done:
            action = np.clip(actor(observation, goal), -1, 1)
            observation, reward, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            told.append((observation, goal, action, reward, terminated, truncated, float(info["success"])))
    return [np.array(column, dtype=float) for column in zip(*told)]


def wanderer(seed):
    """Towards the goal's place, and away from it for a while: some get there."""
    rng = np.random.default_rng(seed)
    drift, left = None, 0

    def act(observation, goal):
        nonlocal drift, left
        if left == 0:
            drift, left = rng.normal(size=2), int(rng.integers(10, 60))
        left -= 1
        way = np.asarray(goal)[:2] - observation[:2]
        return way / np.linalg.norm(way) + drift

    return act


def noise(size, seed, dtype):
    rng = np.random.default_rng(seed)
    return lambda observation, goal: rng.uniform(-1, 1, size).astype(dtype)


def picker():
    """A hand that carries the cube of cube-single to its place, by what it sees (docs/envs.md says what stands where)."""
    centre, t = np.array([0.425, 0, 0]), 0

    def act(observation, goal):
        nonlocal t
        hand, cube, place = (np.asarray(p)[:3] / 10 + centre for p in (observation[12:15], observation[19:22], goal[-3:]))
        above = np.array([0, 0, 0.1])
        plan = [(cube + above, -1, 20), (cube, -1, 12), (cube, 1, 8), (hand + [0, 0, 0.05], 1, 6), (place + above, 1, 25), (place, 1, 12)]
        step = t
        t += 1
        for to, grip, duration in plan:
            if step < duration:
                return np.append((to - hand) / 0.05, [0, grip])
            step -= duration
        return np.array([0, 0, 0.5, 0, -1])

    return act


def compare(name, form, task, actors, episodes, rounding=0.0):
    words = [*name.split("-"), "play" if name.startswith("cube") else "navigate", *([form] if form else []), "v0"]
    full = "-".join(words)
    theirs = Recording(ogbench.make_env_and_datasets(full, env_only=True))
    a = evaluate(actors(), theirs, task, episodes)
    ours = Replaying(dcrl.make_env_and_datasets(full, env_only=True), theirs.draws)
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.observation_space == theirs.observation_space, (ours.observation_space, theirs.observation_space)
    assert ours.action_space.shape == theirs.action_space.shape and ours.action_space.dtype == np.float32
    b = evaluate(actors(), ours, task, episodes)
    assert len(a[0]) == len(b[0]), (full, len(a[0]), len(b[0]))
    for what, x, y in zip(("observation", "goal", "action", "reward", "terminated", "truncated", "success"), a, b):
        off = np.abs(x - y).max()
        assert off <= (rounding if what in ("observation", "goal") else 0), (full, what, off)
    print(f"  {full}, task {task}: {episodes} episodes, {len(a[0])} steps, {int(a[4].sum())} reach the goal: equal")
    return int(a[4].sum())


def test_evaluation_points():
    reached = 0
    for form in ("", "oraclerep"):
        for task in (3, 5):
            reached += compare("pointmaze-medium", form, task, lambda: wanderer(task), 4)
    reached += compare("pointmaze-medium", "singletask-task3", None, lambda: wanderer(0), 4)
    assert reached > 0


def test_evaluation_ants():
    for dtype in (np.float64, np.float32):
        compare("antmaze-medium", "", 2, lambda: noise(8, 1, dtype), 1)


def test_evaluation_arm():
    """With the reference's inverse kinematics rounded as ours (see test_manip_parity.py)."""
    with Plain():
        compare("cube-single", "", 4, lambda: noise(5, 3, np.float32), 1, 1e-12)
        reached = sum(compare("cube-single", "oraclerep", task, picker, 1, 1e-12) for task in (1, 2, 3, 5))
    assert reached > 0


def test_pictures():
    shape = (64, 64, 3)
    env = dcrl.make("visual-antmaze-medium-navigate-v0")
    check_env(env.unwrapped, skip_render_check=True)
    ob, info = env.reset(seed=3, options=dict(task_id=2))
    assert ob.shape == info["goal"].shape == shape and ob.dtype == info["goal"].dtype == np.uint8 and ob.std() > 5 and not np.array_equal(ob, info["goal"])
    after = env.step(env.action_space.sample())[0]
    assert env.observation_space.contains(after) and not np.array_equal(ob, after) and env.unwrapped.goal_columns.size == 0
    many = dcrl.make_vec("visual-antmaze-medium-v0", 2, threads=2)
    obs, infos = many.reset(seed=[9, 3], options=dict(task_id=2))
    assert obs.shape == (2, *shape) and np.array_equal(obs[1], ob) and np.array_equal(infos["goal"][1], info["goal"])
    assert many.step(many.action_space.sample())[0].dtype == np.uint8
    numbers = dcrl.make("visual-antmaze-medium-oraclerep-v0").reset(seed=3, options=dict(task_id=2))
    assert np.array_equal(numbers[0], ob) and numbers[1]["goal"].shape == (2,)
    assert "visual-scene-v0" in dcrl.list_envs()


def test_gymnasium_rules():
    for name in ("pointmaze-teleport-v0", "cube-single-oraclerep-v0", "antsoccer-arena-singletask-v0"):
        check_env(Env(name), skip_render_check=True)
    env = dcrl.make("scene-play-v0")
    _, info = env.reset(seed=1, options=dict(task_id=4))
    assert env.unwrapped.cur_task_id == 4 and info["button_states"].shape == (2,) and info["qpos"].shape == (25,)
    before = info["qpos"]
    info = env.step(env.action_space.sample())[4]
    assert np.array_equal(info["prev_qpos"], before) and not np.array_equal(info["qpos"], before)
    assert gymnasium.make("dcrl/cube-double-v0").unwrapped.name == "cube-double-v0"
    assert "humanoidmaze-giant-v0" in dcrl.list_envs()
    for call, text in [(lambda: dcrl.make("antmaze-larg"), "antmaze-large"), (lambda: env.reset(options=dict(task_id=6)), "6 of 5")]:
        try:
            call()
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    fresh = Env("pointmaze-medium-v0")
    try:
        fresh.step(np.zeros(2))
    except dcrl.UsageError as error:
        assert "no episode" in str(error)
    else:
        raise AssertionError("a step before the first reset")


def same_infos(ours, theirs, keys):
    for key in keys:
        assert (key in theirs) == (key in ours), (key, ours, theirs)
        if key in theirs:
            there = theirs["_" + key]
            assert np.array_equal(np.asarray(ours[key], float)[there], np.stack(theirs[key][there]).astype(float)), key


def test_vector():
    """As Gymnasium's own over single environments, in every mode: the same seeds, the same everything."""
    copies, name = 3, "pointmaze-medium-v0"
    rng = np.random.default_rng(4)
    for mode in AutoresetMode:
        ours = dcrl.make_vec(name, copies, threads=2, autoreset_mode=mode)
        theirs = SyncVectorEnv([lambda: dcrl.make(name)] * copies, autoreset_mode=mode)
        assert ours.single_observation_space == theirs.single_observation_space and ours.action_space == theirs.action_space
        assert ours.metadata["autoreset_mode"] == mode
        a, b = ours.reset(seed=7), theirs.reset(seed=7)
        assert np.array_equal(a[0], b[0])
        same_infos(a[1], b[1], ["goal"])
        begun = 0
        for t in range(1100):
            actions = rng.uniform(-1, 1, (copies, 2)).astype(np.float32)
            a, b = ours.step(actions), theirs.step(actions)
            for k in range(4):
                assert np.array_equal(a[k], b[k]), (mode, t, k)
            if mode == AutoresetMode.SAME_STEP:
                same_infos(a[4], b[4], ["final_obs"])
            done = a[2] | a[3]
            begun += int(done.sum())
            if mode == AutoresetMode.DISABLED and done.any():
                a, b = (env.reset(options=dict(reset_mask=done.copy())) for env in (ours, theirs))
                assert np.array_equal(a[0], b[0])
        assert begun >= copies
        ours.close()
        theirs.close()


def test_vector_tasks():
    """Copies have tasks of their own; seeds, not threads, decide their episodes; float32 actions are computed with as such."""
    runs = []
    for threads in (1, 2):
        env = dcrl.make_vec("cube-single-play-oraclerep-v0", 5, threads=threads)
        rows = [env.reset(seed=[3, 1, 4, 1, 5], options=dict(task_id=[1, 2, 3, 2, 5]))[0]]
        rng = np.random.default_rng(0)
        rows += [env.step(rng.uniform(-1, 1, (5, 5)).astype(np.float32))[0] for _ in range(20)]
        runs.append(np.array(rows))
        one = Env("cube-single-oraclerep-v0")
        first, info = one.reset(seed=4, options=dict(task_id=3))
        assert np.array_equal(first, rows[0][2])
        env.close()
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0][0, 1], runs[0][0, 3])


def test_vector_refuses():
    """What does not fit the arrays behind it, or an int of C."""
    env = dcrl.make_vec("pointmaze-medium-v0", 3)
    calls = [lambda n=n: env.reset(options=dict(reset_mask=np.ones(n, bool))) for n in (0, 1, 2, 7)]
    calls += [lambda: dcrl.make_vec("pointmaze-medium-v0", 2**32 + 2), lambda: dcrl.make_vec("pointmaze-medium-v0", 2, threads=2**32 + 1)]
    calls += [lambda: dcrl.make("pointmaze-medium-v0\0giant"), lambda: env.step(np.full((2, 2), 0.5))]
    for call in calls:
        try:
            call()
        except dcrl.UsageError:
            pass
        else:
            raise AssertionError
    observations, _ = env.reset(options=dict(reset_mask=np.array([True, True, True])))
    assert observations.shape == (3, 2)
    env.close()


def test_made_by_gymnasium():
    """By id: one that steps on threads here, and copies in processes of their own."""
    seen = []
    for mode in ("vector_entry_point", "async"):
        env = gymnasium.make_vec("dcrl/pointmaze-medium-v0", 3, vectorization_mode=mode)
        assert isinstance(env.unwrapped, dcrl.VectorEnv) == (mode == "vector_entry_point")
        env.reset(seed=5)
        seen.append(env.step(np.full((3, 2), 0.5, np.float32))[0])
        env.close()
    assert np.array_equal(*seen)
    limited = gymnasium.wrappers.vector.RecordEpisodeStatistics(dcrl.make_vec("cube-single-v0", 2))
    limited.reset(seed=0)
    for _ in range(201):
        limited.step(np.zeros((2, 5), np.float32))
    assert list(limited.length_queue) == [200, 200]


def test_pictures():
    """Two environments that draw in turns give the pictures that each gives alone."""
    envs = [dcrl.make(name, width=64, height=48) for name in ("pointmaze-medium-v0", "cube-single-v0")]
    try:
        alone = []
        for env in envs:
            env.reset(seed=0, options=dict(task_id=1))
            alone.append(env.render())
    except dcrl.Unsupported as error:
        print(f"  skipped: {error}")
        return
    for env, picture in zip(envs, alone):
        assert picture.shape == (48, 64, 3) and picture.dtype == np.uint8 and picture.std() > 5
        assert np.array_equal(env.render(), picture)
    vec = dcrl.make_vec("pointmaze-medium-v0", 2, width=64, height=48)
    vec.reset(seed=0, options=dict(task_id=1))
    assert np.array_equal(vec.render()[0], alone[0])


def test_datasets():
    """The arrays that OGBench's function gives for the same files, in every form."""
    with Scratch("datasets") as scratch:
        for name, kind, rows in [("pointmaze-medium", "navigate", 40), ("scene", "play", 30), ("cube-double", "play", 30)]:
            path = scratch.at(f"{name}-{kind}-v0.npz")
            good("gen", f"{name}-{kind}-v0", "-o", path, "--episodes", 10, "--rows", rows)
            for form in ("", "oraclerep-", "singletask-task2-"):
                full = f"{name}-{kind}-{form}v0"
                for more in (dict(), dict(compact_dataset=True, add_info=True)):
                    theirs = ogbench.make_env_and_datasets(full, dataset_path=path, **more)[1:]
                    ours = dcrl.make_env_and_datasets(full, dataset_path=path, **more)
                    assert ours[0].unwrapped.name == f"{name}-{form}v0"
                    for a, b in zip(ours[1:], theirs, strict=True):
                        assert set(a) == set(b), (full, set(a) ^ set(b))
                        for key in a:
                            assert a[key].dtype == b[key].dtype and a[key].shape == b[key].shape, (full, key, a[key].dtype, b[key].dtype)
                            assert np.abs(a[key] - b[key]).max() <= (1e-5 if key == "oracle_reps" else 0), (full, key)
        # Found in a folder, and told when it cannot be made there.
        sets = dcrl.make_env_and_datasets("scene-play-v0", dataset_dir=scratch.path, dataset_only=True)
        assert len(sets) == 2 and len(sets[0]["observations"]) == 10 * 29
        try:
            dcrl.make_env_and_datasets("pointmaze-medium-explore-v0", dataset_dir=scratch.path)
        except dcrl.Error as error:
            assert "there is no explore data" in str(error), error
        else:
            raise AssertionError("data was made that there is none of")


def test_example():
    """The example of the documentation, on little data and for few steps."""
    with Scratch("example") as scratch:
        data = scratch.at(".dcrl", "data")
        os.makedirs(data)
        good("gen", "pointmaze-medium-navigate-v0", "-o", data + os.sep, "--episodes", 20)
        env = {**os.environ, "HOME": scratch.path, "PYTHONPATH": str(SOURCE / "python")}
        words = [sys.executable, "-W", "ignore", SOURCE / "examples/maze.py", scratch.at("run"), "20"]
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "20020 rows, 20 trajectories" in done.stdout and "step     20" in done.stdout and "of 8 reached the goal" in done.stdout, done.stdout


run_tests(globals())
