"""dcrl sample --agent: the rows of every method, by name. What each rule promises is checked from its name alone on rows of
trajectories of many lengths, and no method is left out."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, good  # noqa: E402

LENGTHS = [30, 2, 101, 57, 9, 64]  # states of each trajectory
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
ROWS, COUNT, N = int(STARTS[-1]), 20_000, 7


def ends(rows):
    return STARTS[np.searchsorted(STARTS, rows, side="right")] - 1


def table(path, agent, *sets):
    text = good("sample", "--data", path, "--agent", agent, "--count", COUNT, *[w for s in sets for w in ("--set", s)])
    head, *lines = text.splitlines()
    values = np.array([line.split(",") for line in lines], dtype=np.int64)
    assert len(values) == COUNT
    return dict(zip(head.split(","), values.T))


def steps(start, goal):
    """Steps to a goal that lies at or after a row in its trajectory, else -1."""
    return np.where((goal >= start) & (goal <= ends(start)), goal - start, -1)


def after(row, count):
    return np.minimum(row + count, ends(row))


def check(t, k, random):
    for name, column in t.items():
        if not name.endswith("_steps") and name != "step":
            assert ((column >= 0) & (column < ROWS)).all(), name
    for name in ("state", "actor_state", "step_start"):  # each has an action
        assert name not in t or (t[name] < ends(t[name])).all(), name
    if "segment_start" in t:
        i, m, j = t["segment_start"], t["segment_split"], t["segment_end"]
        assert (i <= m).all() and (m < j).all() and (j <= ends(i)).all() and ((i < m) | (j - i == 1)).all()
        assert (t["first_steps"] == m - i).all() and (t["second_steps"] == j - m).all()
    if "later" in t:
        assert (t["later"] == after(t["state"], k)).all() and (t["later_steps"] == t["later"] - t["state"]).all()
    if "next" in t:
        assert (t["next"] == t["state"] + 1).all()
    if "goal_steps" in t:
        assert (t["goal_steps"] == steps(t["state"], t["goal"])).all()
        assert min(np.mean(t["goal_steps"] == 0), np.mean(t["goal_steps"] > 0)) > 0.05
        assert np.mean(t["goal_steps"] < 0) > 0.05 or not random
    if "between" in t:
        assert (steps(t["state"], t["between"]) >= 0).all()
        assert (np.where(t["goal_steps"] > 1, (t["between"] > t["state"]) & (t["between"] < t["goal"]), t["between"] == t["state"])).all()
    vias = [column for name, column in t.items() if name.startswith("via")]
    for number, column in enumerate(vias):  # each has an action, and is no other's copy
        assert (column < ends(column)).all() and all(np.mean(column == other) < 0.02 for other in vias[:number])
    for state, goal in (("actor_state", "actor_goal"), ("state", "actor_goal"), ("state", "high_goal")):
        if goal in t and state in t and not (state == "state" and "actor_state" in t):
            assert (steps(t[state], t[goal]) > 0).all(), goal
    if "subgoal" in t:
        ahead = steps(t["state"], t["goal"])
        assert (t["subgoal"] == np.where(ahead >= 0, np.minimum(t["state"] + k, t["goal"]), after(t["state"], k))).all()
        assert (t["subgoal_steps"] == t["subgoal"] - t["state"]).all()
    if "low_goal" in t:
        assert (t["low_goal"] == after(t["state"], k)).all()
        ahead = steps(t["state"], t["high_goal"])
        assert (t["waypoint"] == np.where(ahead >= 0, np.minimum(t["state"] + k, t["high_goal"]), after(t["state"], k))).all()


with Scratch("sample_agent") as scratch:
    path = scratch.at("data.npz")
    terminals = np.zeros(ROWS, np.float32)
    terminals[STARTS[1:] - 1] = 1
    rng = np.random.default_rng(0)
    np.savez(path, observations=rng.standard_normal((ROWS, 3), dtype=np.float32), actions=rng.uniform(-1, 1, (ROWS, 2)).astype(np.float32), terminals=terminals)
    agents = {a["name"]: {o["name"]: o for o in a["options"]} for a in json.loads(good("list", "agents", "--json"))["agents"]}
    for agent, options in agents.items():
        own = [f"{name}={N}" for name in ("n", "subgoal_steps") if name in options]
        own += ["actor_random=0"] if "actor_random" in options else []
        random = float(options.get("goal_random", {}).get("default", 1)) > 0
        check(table(path, agent, *own), 1 if agent == "td" else N, random)
    a, b = (table(path, "hiql", "subgoal_steps=7", *more) for more in ([], ["actor_random=1"]))
    assert (a["state"] == b["state"]).all() and (steps(b["state"], b["high_goal"]) < 0).mean() > 0.5
    assert len([name for name in table(path, "tdp", "candidates=3") if name.startswith("via")]) == 3
    t = table(path, "coe", "goal_next=0.9", "goal_future=0", "goal_current=0.1")
    assert (t["goal_steps"] <= 1).all() and 0.88 < (t["goal_steps"] == 1).mean() < 0.92
    bad(2, "did you mean 'hiql'", "sample", "--data", path, "--agent", "hiq")
    print(f"{len(agents)} methods")
