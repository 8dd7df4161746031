"""Statistics of a data set of walkers beside those of the published ones, with bands that its experts must keep. Run by hand:

    build/dcrl gen antmaze-medium-stitch --episodes 500 -o data/ --trace trace.npz
    .venv/bin/python tests/env/walker_stats.py data/antmaze-medium-stitch-v0.npz [--trace trace.npz] [--json]

The robot follows from the widths of the arrays, the set from the name of the file. Published figures were measured by others on
antmaze-medium-stitch, antmaze-giant-navigate and humanoidmaze-medium-stitch; what nobody told has no figure. A band has two sides:
a robot that is faster or never falls makes other data, too. `--trace` (of the same command) tells of goals. The exit status is 1
if a figure lies outside of its band.
"""

import argparse
import json
import os
import sys

import numpy as np

ROBOTS = {29: "ant", 42: "soccer", 69: "humanoid"}
SAMPLE = 40000  # rows from which the time until the robot is away is counted
AWAY = [2, 4, 8, 10]
STEP = [5, 25, 50, 75, 95, 99]
HEIGHT = [1, 5, 10, 25, 50, 75, 95]

PUBLISHED = {
    ("ant", "medium-stitch"): {
        "xy step": 0.131, **dict(zip([f"xy step {q} %" for q in STEP], [0.027, 0.086, 0.132, 0.175, 0.229, 0.263])),
        "torso z": 0.553, **dict(zip([f"torso z {q} %" for q in HEIGHT], [0.257, 0.426, 0.455, 0.5, 0.552, 0.606, 0.698])),
        "action change": 1.84, "action change 50 %": 1.77, "steps to 2 m": 15, "steps to 2 m 10 %": 11, "steps to 4 m": 31,
        "steps to 4 m 10 %": 24, "steps to 8 m": 66, "steps to 8 m 10 %": 53, "steps to 10 m": 83, "steps to 10 m 10 %": 69,
        "never 2 m": 0.5, "never 8 m": 0.76,
    },
    ("ant", "giant-navigate"): {"torso z": 0.494, "torso z deviation": 0.142, "tilt": 0.574, "on its back": 0.2, "speed (rms)": 1.45},
    ("humanoid", "medium-stitch"): {
        "xy step": 0.0478, **dict(zip([f"xy step {q} %" for q in STEP], [0.008, 0.029, 0.048, 0.066, 0.088, 0.099])),
        "torso z": 0.946, **dict(zip([f"torso z {q} %" for q in HEIGHT], [0.158, 0.264, 0.386, 0.668, 1.117, 1.205, 1.271])),
        "action change": 2.22, "action change 50 %": 2.17, "steps to 2 m": 43, "steps to 2 m 10 %": 26, "steps to 4 m": 85,
        "steps to 4 m 10 %": 53, "steps to 8 m": 180, "steps to 8 m 10 %": 117, "steps to 10 m": 225, "steps to 10 m 10 %": 152,
        "never 2 m": 0.17, "never 8 m": 0.61,
    },
}  # fmt: skip

BANDS = {
    ("ant", "medium-stitch"): {
        "xy step": (0.11, 0.16), "torso z 50 %": (0.50, 0.60), "steps to 8 m": (50, 75), "steps to 8 m 10 %": (40, 60),
    },
    ("ant", "medium-navigate"): {"goals an episode": (4, 9), "episodes without goal": (0, 0.05)},
    ("ant", "giant-navigate"): {"tilt": (0.45, 0.85), "on its back": (0.05, 0.3), "episodes without goal": (0, 0.05)},
    ("humanoid", "medium-stitch"): {
        "xy step": (0.040, 0.060), "torso z 25 %": (0.60, 0.95), "torso z 50 %": (1.05, 1.20), "steps to 8 m": (130, 200),
        "steps to 8 m 10 %": (90, 130),
    },
    ("humanoid", "medium-navigate"): {"goals an episode": (2.5, 6.5), "episodes without goal": (0, 0.05)},
}  # fmt: skip


def episodes_of(data):
    ends = np.flatnonzero(data["terminals"]) + 1
    return list(zip([0, *ends[:-1]], ends))


def put_quantiles(out, name, values, shares):
    for q in shares:
        out[f"{name} {q} %"] = np.percentile(values, q)


def put_motion(out, data, episodes):
    inside = np.ones(len(data["terminals"]), dtype=bool)
    inside[[end - 1 for _, end in episodes]] = False
    inside = inside[:-1]
    step = np.linalg.norm(np.diff(data["qpos"][:, :2], axis=0), axis=1)[inside]
    out["xy step"] = step.mean()
    put_quantiles(out, "xy step", step, STEP)
    change = np.linalg.norm(np.diff(data["actions"], axis=0), axis=1)[inside]
    out["action change"] = change.mean()
    put_quantiles(out, "action change", change, [50])
    out["speed (rms)"] = np.sqrt((data["qvel"][:, :2] ** 2).sum(axis=1).mean())


def put_posture(out, data):
    z, quat = data["qpos"][:, 2], data["qpos"][:, 3:7].astype(float)
    out["torso z"], out["torso z deviation"] = z.mean(), z.std()
    put_quantiles(out, "torso z", z, HEIGHT)
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    up = 1 - 2 * (quat[:, 1] ** 2 + quat[:, 2] ** 2)  # the torso's z axis on the world's
    out["tilt"], out["on its back"] = up.mean(), (up < 0).mean()


def put_away(out, data, episodes):
    """Steps until the robot is so far from where it was, from rows taken evenly; those that never get there do not count."""
    xy, rows = data["qpos"][:, :2], len(data["terminals"])
    found = {d: [] for d in AWAY}
    end_of = np.repeat([end for _, end in episodes], [end - start for start, end in episodes])
    for row in range(0, rows, max(1, rows // SAMPLE)):
        far = ((xy[row : end_of[row]] - xy[row]) ** 2).sum(axis=1)
        for d in AWAY:
            there = far >= d * d
            found[d].append(np.argmax(there) if there.any() else -1)
    for d in AWAY:
        steps = np.array(found[d])
        if (steps > 0).any():
            out[f"steps to {d} m"], out[f"steps to {d} m 10 %"] = np.percentile(steps[steps > 0], [50, 10])
        if d in (2, 8):
            out[f"never {d} m"] = (steps < 0).mean()


def cells_of(data):
    return ((data["qpos"][:, :2] + 6) / 4).astype(int)


def put_cells(out, data, episodes):
    """How long a robot is in a cell that it enters and leaves."""
    cells, stays = cells_of(data), []
    for start, end in episodes:
        moves = np.flatnonzero((np.diff(cells[start:end], axis=0) != 0).any(axis=1))
        stays.extend(np.diff(moves))
    if stays:
        out["steps in a cell 50 %"], out["steps in a cell 90 %"] = np.percentile(stays, [50, 90])


def put_aims(out, data, trace):
    for number, name in enumerate(["to the goal", "to the ball", "dribbling", "on a detour"]):
        out[f"share {name}"] = (trace["aim"] == number).mean()


def put_goals(out, data, trace, episodes):
    ended, cells, waits = trace["ended"].astype(bool), cells_of(data), []
    goals = [ended[start:end].sum() for start, end in episodes]
    for start, end in episodes:
        for row in start + np.flatnonzero(ended[start:end]):
            here = (cells[start : row + 1] == cells[row]).all(axis=1)
            waits.append(np.argmin(here[::-1]) if not here.all() else len(here))
    out["goals an episode"], out["episodes without goal"] = np.mean(goals), np.mean(np.equal(goals, 0))
    if waits and data["observations"].shape[1] != 42:  # a ball's goal is not the ant's
        out["steps in a goal's cell 50 %"] = np.median(waits)


def measure(data, trace=None, navigate=True):
    """Figures by name, in the order in which they are shown."""
    out, episodes = {}, episodes_of(data)
    if trace is not None and len(trace["ended"]) != len(data["terminals"]):
        sys.exit("the trace is of another set")
    put_motion(out, data, episodes)
    put_posture(out, data)
    put_away(out, data, episodes)
    put_cells(out, data, episodes)
    if trace is not None and navigate:
        put_goals(out, data, trace, episodes)
    if trace is not None and data["observations"].shape[1] == 42:
        put_aims(out, data, trace)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--trace")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    data = dict(np.load(words.file))
    trace = dict(np.load(words.trace)) if words.trace else None
    robot = ROBOTS.get(data["observations"].shape[1]) or sys.exit("not a set of ants or humanoids")
    name = os.path.basename(words.file).removesuffix(".npz").removesuffix("-val").split("-v0")[0]
    key = robot, "-".join(name.split("-")[1:3])
    figures, published, bands = measure(data, trace, "navigate" in name), PUBLISHED.get(key, {}), BANDS.get(key, {})
    missed = [k for k, (low, high) in bands.items() if k in figures and not low <= figures[k] <= high]
    if words.json:
        print(json.dumps({"set": name, "robot": robot, "figures": {k: float(v) for k, v in figures.items()}, "missed": missed}))
        return 1 if missed else 0
    print(f"{name}: {len(episodes_of(data))} episodes, {len(data['terminals'])} rows\n")
    print("| | ours | published | band | |\n|---|---|---|---|---|")
    for k, value in figures.items():
        low, high = bands.get(k, (None, None))
        band = f"{low:g} ... {high:g}" if k in bands else ""
        told = f"{published[k]:g}" if k in published else ""
        print(f"| {k} | {value:.4g} | {told} | {band} | {'' if k not in bands else 'outside' if k in missed else 'inside'} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
