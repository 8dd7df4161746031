"""Generated data of walkers against OGBench: whole episodes with recorded draws and made-up experts, its loader, errors.

The reference generators are written from the description of OGBench's own; all they do goes through the Python package's
environments, and the expert is evaluated by numpy. Their random numbers are recorded and given to `dcrl gen --draws`, which
must write the same rows. To meet what a flailing robot meets seldom, some goals lie where it starts, and starts farther from the
centres of cells than in real sets.
"""

import os
import random
import sys

os.environ.setdefault("MUJOCO_GL", "disable")
import numpy as np  # noqa: E402
import ogbench  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, digest, good, run_tests  # noqa: E402
from parity import length  # noqa: E402
from experts import Expert, made_up  # noqa: E402
from test_maze_gen import distant, free_cells, is_hallway  # noqa: E402
from test_maze_parity import Recorder, make, padded  # noqa: E402
from walker_stats import measure  # noqa: E402

ROWS = {"antmaze": 250, "humanoidmaze": 150, "antsoccer": 330}
NOISE = {"navigate": 0.2, "stitch": 0.2, "explore": 1.0}
WALKER = {"antmaze": "ant", "humanoidmaze": "humanoid", "antsoccer": "ant"}
WIDE = 1.8  # starts and goals lie this much farther from a cell's centre
met = {}  # how often something came up


def count(what):
    met[what] = met.get(what, 0) + 1


class Noise:
    """numpy's uniform numbers while active: `given` ones first, then its own times WIDE; and its lengths of vectors as ours.
    Whoever records numbers must begin inside."""

    def __init__(self, given=()):
        self.given = list(given)

    def number(self, *words, **named):
        return self.given.pop(0) if self.given else WIDE * self.before(*words, **named)

    def __enter__(self):
        self.before, self.norm = np.random.uniform, np.linalg.norm
        np.random.uniform = self.number
        np.linalg.norm = lambda x, **named: self.norm(x, **named) if named or np.ndim(x) > 1 else length(x)

    def __exit__(self, *_):
        np.random.uniform, np.linalg.norm = self.before, self.norm


def toward(way):
    return way / (length(way) + 1e-6)


def shaken(action, kind, draws):
    noise = np.random.standard_normal(len(action))
    draws.values.extend(noise)
    return np.clip(action + NOISE[kind] * noise, -1, 1)


# ---- antmaze, humanoidmaze ----


def direction(env, kind, row, old, draws):
    if kind != "explore":
        subgoal, _ = env.get_oracle_subgoal(env.get_xy(), env.cur_goal_xy)
        count("at the goal's cell" if env.xy_to_ij(env.get_xy()) == env.xy_to_ij(env.cur_goal_xy) else "on the way")
        return toward(subgoal - env.get_xy())
    if row % 10:
        return old
    numbers = np.random.randn(2)
    draws.values.extend(numbers)
    return toward(numbers)


def choose(draws, index):
    """An index that was chosen by this script, as if numpy had drawn it."""
    draws.values.append(float(index))
    return index


def walker_episode(env, kind, expert, rows, there):
    """`there`: the first goal lies where the robot starts."""
    maze = env.maze_map
    cells = free_cells(maze)
    corners = [c for c in cells if not is_hallway(maze, c)]
    table, way = [], None
    with Noise([0.1, 0.2, 0.3, 0.1] if there else []), Recorder(env) as draws:
        start = random.choice(corners if there else cells)
        choose(draws, cells.index(start))
        goals = distant(maze, start, 4) if kind == "stitch" else corners
        goal = start
        if goals:
            goal = start if there else random.choice(goals)
            choose(draws, goals.index(goal))
        ob, _ = env.reset(options=dict(task_info=dict(init_ij=start, goal_ij=goal)))
        for row in range(rows):
            way = direction(env, kind, row, way, draws)
            seen = np.concatenate([env.get_ob(ob_type="states")[2:], way])
            action = shaken(expert.act(seen), kind, draws)
            after, _, _, _, info = env.step(action)
            if info["success"] and kind == "navigate":
                count("goal reached")
                env.set_goal(corners[np.random.randint(len(corners))])
            table.append((ob, action, info["prev_qpos"], info["prev_qvel"]))
            ob = after
    return [np.array(column, dtype=np.float32) for column in zip(*table)], draws.values


# ---- antsoccer ----


class Soccer:
    def __init__(self, env, arena, kind, walker, dribbler):
        self.env, self.arena, self.kind, self.walker, self.dribbler = env, arena, kind, walker, dribbler
        self.cells, self.aside, self.trail = free_cells(env.maze_map), None, []

    def stop(self, start, aim):
        return np.array(aim) if self.arena else np.array(self.env.get_oracle_subgoal(start, aim)[0])

    def walk(self, ob, aim):
        count("walk")
        way = toward(self.stop(ob[:2], aim) - ob[:2])
        return self.walker.act(np.concatenate([ob[2:15], ob[22:36], way]))

    def dribble(self, ob):
        count("dribble")
        ball, goal = ob[15:17], np.array(self.env.cur_goal_xy)
        to = self.stop(ball, goal)
        far = np.linalg.norm(goal - ball)
        if self.arena and far > 10:
            count("goal cut")
            to = ball + 10 * (goal - ball) / far
        return self.dribbler.act(np.concatenate([ob[2:15], ob[17:42], ball - ob[:2], to - ball]))

    def action(self, ob):
        if self.kind == "stitch":
            return self.dribble(ob) if self.mode else self.walk(ob, self.env.cur_goal_xy)
        if self.aside is not None:
            count("detour")
            return self.walk(ob, self.aside)
        far = np.linalg.norm(ob[:2] - ob[15:17]) > 2
        return self.walk(ob, ob[15:17]) if far else self.dribble(ob)

    def any_cell(self):
        return self.cells[np.random.randint(len(self.cells))]

    def look_around(self, row, after, success):
        if self.aside is not None and np.linalg.norm(self.aside - after[:2]) <= 0.5:
            count("detour done")
            self.aside = None
        if success:
            count("ball at goal")
            self.env.set_goal(self.any_cell())
        recent = np.array(self.trail[-150:])
        if row > 150 and self.aside is None and np.linalg.norm(recent - after[:2], axis=1).max() <= 2:
            self.aside = np.array(self.env.ij_to_xy(self.any_cell()))

    def play(self, rows, number):
        """Of the first episode ball and goal lie beside the ant, whatever their cells; of stitch it walks, of the second it dribbles."""
        table, self.mode = [], number % 2
        cells = random.sample(range(len(self.cells)), 3)
        agent, ball, goal = (self.cells[k] for k in cells)
        beside = [np.subtract(self.env.ij_to_xy(agent), self.env.ij_to_xy(cell)) for cell in [ball, goal]]
        beside = [0, 0, *(beside[0] + [1.2, 0.3]), *(beside[1] + [1.3, 0.3])]
        with Noise(beside if self.kind == "navigate" and number == 0 else []), Recorder(self.env) as draws:
            if self.kind == "stitch":
                choose(draws, self.mode)
                ball = agent if self.mode else ball
            for k, cell in enumerate(cells):  # as indices among those that are left
                choose(draws, cell - sum(c < cell for c in cells[:k]))
            info = dict(agent_init_ij=agent, ball_init_ij=ball, goal_ij=goal)
            ob, _ = self.env.reset(options=dict(task_info=info))
            for row in range(rows):
                action = shaken(self.action(ob), self.kind, draws)
                after, _, _, _, info = self.env.step(action)
                if self.kind == "navigate":
                    self.look_around(row, after, info["success"])
                self.trail.append(ob[:2])
                table.append((ob, action, info["prev_qpos"], info["prev_qvel"]))
                ob = after
        return [np.array(column, dtype=np.float32) for column in zip(*table)], draws.values


# ---- comparing ----


def compare(scratch, name, kind, played, draws, words):
    rows = len(played[0][0])
    np.savez(scratch.at("draws.npz"), draws=padded(draws))
    good("gen", name, "--type", kind, "--episodes", len(played), "--rows", rows, "--draws", scratch.at("draws.npz"), "-o", scratch.at("e.npz"), *words)
    ours = dict(np.load(scratch.at("e.npz")))
    os.remove(scratch.at("e.npz"))
    largest = 0
    for array, theirs in zip(["observations", "actions", "qpos", "qvel"], zip(*played)):
        theirs = np.concatenate(theirs)
        assert ours[array].dtype == np.float32 and ours[array].shape == theirs.shape, (name, kind, array)
        largest = max(largest, (np.abs(ours[array] - theirs) / np.maximum(np.abs(theirs), 1)).max())
    print(f"{name}-{kind}: {len(played)} episodes of {rows} rows, largest difference {largest:.2g}")
    assert largest <= (1e-6 if name.startswith("humanoid") else 0), (name, kind, largest)
    assert np.array_equal(np.flatnonzero(ours["terminals"]), np.arange(1, len(played) + 1) * rows - 1)


def test_walkers_are_equal():
    with Scratch("walkers") as scratch:
        for family, sets in {
            "antmaze": [("medium", "navigate"), ("teleport", "navigate"), ("giant", "stitch"), ("large", "explore")],
            "humanoidmaze": [("medium", "navigate"), ("large", "stitch")],
        }.items():
            for maze, kind in sets:
                path = made_up(WALKER[family], random.randrange(1 << 30), scratch.at("x.safetensors"))
                env = make(f"{family}-{maze}")
                played, draws = zip(*[walker_episode(env, kind, Expert(path), ROWS[family], kind == "navigate" and k == 0) for k in range(3)])
                compare(scratch, f"{family}-{maze}", kind, played, draws, ["--expert", path])
        print(met)
        assert {"goal reached", "at the goal's cell", "on the way"} <= set(met), met


def test_soccer_is_equal():
    with Scratch("soccer") as scratch:
        for maze in ["arena", "medium"]:
            for kind in ["navigate", "stitch"]:
                walker = made_up("ant", random.randrange(1 << 30), scratch.at("w.safetensors"))
                dribbler = made_up("antball", random.randrange(1 << 30), scratch.at("d.safetensors"))
                rows = ROWS["antsoccer"] if kind == "navigate" else 120
                players = [Soccer(make(f"antsoccer-{maze}"), maze == "arena", kind, Expert(walker), Expert(dribbler)) for _ in range(3)]
                episodes = [player.play(rows, k) for k, player in enumerate(players)]
                compare(scratch, f"antsoccer-{maze}", kind, *zip(*episodes), ["--expert", walker, "--ball-expert", dribbler])
        print(met)
        assert {"walk", "dribble", "detour", "ball at goal"} <= set(met), met


# ---- statistics ----


def test_statistics_of_a_case_by_hand():
    """An ant that goes 0.1 a row along x for two episodes of 101 rows, the second of them on its back."""
    qpos = np.zeros((202, 15), dtype=np.float32)
    qpos[:, 0], qpos[:, 2], qpos[:101, 3], qpos[101:, 4] = np.tile(np.arange(101) / 10, 2), 0.5, 1, 1
    data = dict(observations=np.zeros((202, 29)), qpos=qpos, qvel=np.ones((202, 14)), actions=np.zeros((202, 8)), terminals=np.arange(202) % 101 == 100)
    told = measure(data, dict(ended=np.arange(202) == 60, aim=np.zeros(202)))
    want = {"xy step": 0.1, "xy step 99 %": 0.1, "torso z 50 %": 0.5, "tilt": 0, "on its back": 0.5, "steps to 2 m": 20, "never 8 m": 79.5 / 101}
    want |= {"action change": 0, "steps in a cell 50 %": 40, "goals an episode": 0.5, "episodes without goal": 0.5, "steps in a goal's cell 50 %": 1}
    for name, value in want.items():
        assert abs(told[name] - value) < (0.51 if name.startswith("steps to") else 0.01), (name, told[name], value)


# ---- files ----


def test_loader_and_threads():
    """The same bytes for any number of threads; the experts are part of the set; OGBench's loader takes the files."""
    with Scratch("loader") as scratch:
        path = made_up("ant", 5, scratch.at("ant.safetensors"))
        words = ["gen", "antmaze-teleport-stitch-v0", "--episodes", 10, "--rows", 101, "--expert", path]
        for threads, seed in [(1, 3), (2, 3), (5, 3), (2, 4)]:
            good(*words, "--threads", threads, "--seed", seed, "-o", scratch.at(f"{threads}-{seed}"))
        names = ["antmaze-teleport-stitch-v0.npz", "antmaze-teleport-stitch-v0-val.npz"]
        for name in names:
            digests = [digest(scratch.at(folder, name)) for folder in ["1-3", "2-3", "5-3", "2-4"]]
            assert digests[0] == digests[1] == digests[2] != digests[3]
        assert "nothing to do" in good(*words, "--seed", 3, "-o", scratch.at("1-3"))
        facts = open(scratch.at("1-3", "antmaze-teleport-stitch-v0.gen.json")).read()
        other = made_up("ant", 6, scratch.at("other.safetensors"))
        assert '"experts": {"ant": "' in facts
        bad(1, "another set was begun", *words[:-1], other, "--seed", 3, "-o", scratch.at("1-3"))
        for form in ["", "oraclerep-", "singletask-"]:
            env, train, val = ogbench.make_env_and_datasets(f"antmaze-teleport-stitch-{form}v0", dataset_path=scratch.at("1-3", names[0]))
            assert train["observations"].shape == (10 * 100, 29) and val["actions"].shape == (100, 8)
            assert train["terminals"].sum() == 10 and np.all(np.abs(train["actions"]) <= 1)


def test_sizes():
    """OGBench's numbers of rows, one episode of each set."""
    with Scratch("sizes") as scratch:
        sets = {
            "antmaze-medium-navigate": (1001, 1), "antmaze-giant-navigate": (2001, 1), "antmaze-large-explore": (501, 1),
            "humanoidmaze-large-navigate": (2001, 1), "humanoidmaze-giant-stitch": (401, 1), "antsoccer-medium-stitch": (501, 2),
        }  # fmt: skip
        experts = {robot: made_up(robot, 2, scratch.at(f"{robot}.safetensors")) for robot in ["ant", "antball", "humanoid"]}
        for name, (rows, count) in sets.items():
            words = ["--expert", experts["humanoid" if name.startswith("h") else "ant"]]
            words += ["--ball-expert", experts["antball"]] if count == 2 else []
            told = good("gen", f"{name}-v0", "--episodes", 1, "-o", scratch.at("d/"), *words)
            assert f"1 episodes of {rows} rows" in told, told


def test_errors():
    with Scratch("errors") as scratch:
        out = ["-o", scratch.at("x.npz")]
        ant, ball = made_up("ant", 2, scratch.at("a.safetensors")), made_up("antball", 2, scratch.at("b.safetensors"))
        bad(1, ["of the humanoid", ant], "gen", "humanoidmaze-medium-stitch-v0", "--expert", ant, *out)
        bad(1, ["of the antball", "of the ant "], "gen", "antsoccer-arena-navigate-v0", "--expert", ant, "--ball-expert", ant, *out)
        bad(2, ["no such expert", ball], "gen", "antmaze-large-navigate-v0", "--expert", ant, "--ball-expert", ball, *out)
        bad(2, ["no such expert", ant], "gen", "pointmaze-large-navigate-v0", "--expert", ant, *out)
        bad(1, "No such file", "gen", "antmaze-large-navigate-v0", "--expert", scratch.at("none"), *out)
        bad(1, "safetensors", "gen", "antmaze-large-navigate-v0", "--expert", __file__, *out)
        bad(2, ["explore", "--type navigate|stitch"], "gen", "humanoidmaze-medium-explore-v0", "--expert", ant, *out)
        bad(2, "antmaze-medium-navigate-100m", "gen", "antmaze-medium-navigate-100m-v0", *out)
        told = good("gen", "humanoidmaze-giant-navigate-100m-v0", "--episodes", 2, "--shards", 2, "--rows", 5, "-o", scratch.at("large/"),
                    "--expert", made_up("humanoid", 3, scratch.at("h.safetensors")))  # fmt: skip
        assert "large/humanoidmaze-giant-navigate-100m-v0-001.npz" in told, told


if __name__ == "__main__":
    run_tests({k: v for k, v in globals().items() if not k.startswith("test_maze")})
