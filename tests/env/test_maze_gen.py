"""Generated pointmaze data against OGBench: whole episodes with recorded draws, its loader, and the statistics.

The reference generator below is written from the description of OGBench's own; all it does goes through the Python
package's environment. Its random numbers are recorded and given to `dcrl gen --draws`, which must write the same rows.
"""

import json
import os
import random
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
import numpy as np  # noqa: E402
import ogbench  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, digest, good, run_tests  # noqa: E402
from parity import length  # noqa: E402
from test_maze_parity import Recorder, make, padded  # noqa: E402

ROWS = {"navigate": 1001, "stitch": 201}


def free_cells(maze):
    return [(int(i), int(j)) for i, j in np.argwhere(maze == 0)]


def is_hallway(maze, cell):
    i, j = cell
    up, down, left, right = maze[i - 1, j], maze[i + 1, j], maze[i, j - 1], maze[i, j + 1]
    return (up, down, left, right) in [(0, 0, 1, 1), (1, 1, 0, 0)]


def distant(maze, cell, steps):
    found, order, distance = [], [cell], {cell: 0}
    for i, j in order:
        for near in [(i - 1, j), (i, j - 1), (i + 1, j), (i, j + 1)]:
            if maze[near] == 0 and near not in distance:
                distance[near] = distance[(i, j)] + 1
                order.append(near)
                found += [near] if distance[near] == steps else []
    return found


def action_of(env, draws):
    target, _ = env.get_oracle_subgoal(env.get_xy(), env.cur_goal_xy)
    way = target - env.get_xy()
    noise = np.random.standard_normal(2)
    draws.values.extend(noise)
    return np.clip(way / (length(way) + 1e-6) + 0.5 * noise, -1, 1)


def episode(env, kind):
    """Rows of one episode and the draws that it took."""
    maze = env.maze_map
    cells = free_cells(maze)
    corners = [c for c in cells if not is_hallway(maze, c)]
    rows = []
    with Recorder(env) as draws:
        start = cells[np.random.randint(len(cells))]
        goals = corners if kind == "navigate" else distant(maze, start, 4)
        goal = goals[np.random.randint(len(goals))] if goals else start
        ob, _ = env.reset(options=dict(task_info=dict(init_ij=start, goal_ij=goal)))
        for _ in range(ROWS[kind]):
            action = action_of(env, draws)
            after, _, _, _, info = env.step(action)
            if info["success"] and kind == "navigate":
                env.set_goal(corners[np.random.randint(len(corners))])
            rows.append((ob, action, info["prev_qpos"], info["prev_qvel"]))
            ob = after
    return [np.array(column, dtype=np.float32) for column in zip(*rows)], draws.values


def check_episodes(scratch, maze, kind, count):
    env = make(f"pointmaze-{maze}")
    np.random.seed(random.randrange(1 << 32))
    played, draws = zip(*[episode(env, kind) for _ in range(count)])
    np.savez(scratch.at("draws.npz"), draws=padded(draws))
    good("gen", f"pointmaze-{maze}", "--type", kind, "--episodes", count, "--draws", scratch.at("draws.npz"), "-o", scratch.at("e.npz"))
    ours = np.load(scratch.at("e.npz"))
    for name, theirs in zip(["observations", "actions", "qpos", "qvel"], zip(*played)):
        theirs = np.concatenate(theirs)
        assert ours[name].dtype == np.float32 and np.array_equal(ours[name], theirs), (maze, kind, name)
    ends = np.flatnonzero(ours["terminals"])
    assert ours["terminals"].dtype == bool and np.array_equal(ends, np.arange(1, count + 1) * ROWS[kind] - 1)


def test_episodes_are_equal():
    with Scratch("gen") as scratch:
        for maze in ["medium", "large", "teleport"]:
            check_episodes(scratch, maze, "navigate", 2)
        for maze in ["giant", "teleport"]:
            check_episodes(scratch, maze, "stitch", 8)


def test_loader_and_threads():
    """The same bytes for any number of threads, other bytes for another seed; OGBench's loader takes the files."""
    with Scratch("loader") as scratch:
        for threads, seed in [(1, 3), (2, 3), (5, 3), (2, 4)]:
            good("gen", "pointmaze-teleport-stitch-v0", "--episodes", 150, "--threads", threads, "--seed", seed, "-o", scratch.at(f"{threads}-{seed}"))
        names = ["pointmaze-teleport-stitch-v0.npz", "pointmaze-teleport-stitch-v0-val.npz"]
        for name in names:
            digests = [digest(scratch.at(folder, name)) for folder in ["1-3", "2-3", "5-3", "2-4"]]
            assert digests[0] == digests[1] == digests[2] != digests[3]
        for form in ["", "oraclerep-", "singletask-"]:
            path = scratch.at("1-3", names[0])
            env, train, val = ogbench.make_env_and_datasets(f"pointmaze-teleport-stitch-{form}v0", dataset_path=path)
            assert train["observations"].shape == (150 * 200, 2) and val["actions"].shape == (15 * 200, 2)
            assert train["terminals"].sum() == 150 and np.all(np.abs(train["actions"]) <= 1)
            assert env.observation_space.shape == (2,)


def test_told():
    """--json tells the files, --quiet nothing."""
    with Scratch("told") as scratch:
        words = ["gen", "pointmaze-medium-navigate", "--episodes", 20, "--rows", 30, "-o", scratch.at("set.npz")]
        told = json.loads(good(*words, "--json"))
        files = [dict(path=scratch.at("set.npz"), episodes=20, rows=600, validation=False, made=True),
                 dict(path=scratch.at("set-val.npz"), episodes=2, rows=60, validation=True, made=True)]
        assert told == dict(env="pointmaze-medium-v0", files=files), told
        assert good(*words, "--quiet") == ""
        shards = [*words[:-1], scratch.at("parts/"), "--shards", 2]
        assert [f["made"] for f in json.loads(good(*shards, "--json"))["files"]] == [True] * 4
        told = json.loads(good(*shards, "--json"))["files"]
        assert [f["made"] for f in told] == [False] * 4 and sum(f["rows"] for f in told) == 660
        assert "nothing to do" in good(*shards) and good(*shards, "--quiet") == ""
        lock = json.loads(good("gen", "lock-16", "-o", scratch.at("lock.npz"), "--json"))
        assert lock["files"] == [dict(path=scratch.at("lock.npz"), episodes=1, rows=16, validation=False, made=True)], lock


def test_statistics():
    """Our own draws against the Python generator's: starts over all cells, noise, how often goals change."""
    with Scratch("statistics") as scratch:
        good("gen", "pointmaze-medium", "--episodes", 400, "--seed", random.randrange(1 << 30), "-o", scratch.at("m.npz"))
        data = np.load(scratch.at("m.npz"))
        env = make("pointmaze-medium")
        starts = data["observations"].reshape(400, 1001, 2)[:, 0]
        counts = np.zeros(env.maze_map.shape)
        for xy in starts:
            counts[env.xy_to_ij(xy)] += 1
        free = counts[env.maze_map == 0]
        assert free.sum() == 400 and free.min() > 0 and free.std() < 3 * np.sqrt(free.mean()), free
        velocity = np.linalg.norm(np.diff(data["observations"].reshape(400, 1001, 2), axis=1), axis=2)
        assert 0.15 < velocity.mean() < 0.25 and velocity.max() < 0.5, (velocity.mean(), velocity.max())
        assert np.all(np.abs(data["actions"]) <= 1) and 0.2 < (np.abs(data["actions"]) == 1).mean() < 0.5


def test_other_robots():
    with Scratch("others") as scratch:
        out = ["-o", scratch.at("x.npz")]
        bad(2, "explore", "gen", "pointmaze-medium-explore-v0", *out)
        bad(2, "different things", "gen", "pointmaze-medium-stitch-v0", "--type", "navigate", *out)
        bad(2, "did you mean 'pointmaze-giant'?", "gen", "pointmaze-giaant", *out)
        assert os.listdir(scratch.path) == []
        # What OGBench publishes for them has this layout.
        for obs, act, nq, nv in [(29, 8, 15, 14), (69, 21, 28, 27), (42, 8, 22, 20)]:
            sizes = dict(observations=obs, actions=act, qpos=nq, qvel=nv)
            arrays = {k: np.random.uniform(-1, 1, (404, n)).astype(np.float32) for k, n in sizes.items()}
            np.savez_compressed(scratch.at("own.npz"), terminals=np.arange(404) % 101 == 100, **arrays)
            assert '"trajectories": 4' in good("data", "info", scratch.at("own.npz"), "--json")


if __name__ == "__main__":
    run_tests({k: v for k, v in globals().items() if not k.startswith("test_maze")})
