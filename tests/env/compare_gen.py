"""Statistics of generated data of tables: ours beside that of the Python package, with its own draws. Run by hand:

    DCRL=build/dcrl .venv/bin/python tests/env/compare_gen.py --python 20 --c 60 [ENV-play|ENV-noisy ...]

For every set a row of Markdown: how often an oracle's aim was reached when the oracle ended (by kind of aim), the return of
an episode (steps in which the aim was reached), and the largest Kolmogorov-Smirnov distance over columns of positions and
of actions. Rows of an episode depend on each other, so a distance is judged by chance itself: as many of our own episodes as
Python has are taken at random and compared with the rest, and the 95th percentile of that stands in brackets.
"""

import argparse
import os
import random
import subprocess
import sys
import time
import warnings

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch  # noqa: E402
from tables import AIMS, NAMES, collect, make_collector  # noqa: E402

ROWS, THIN, DRAWS = 1001, 7, 200


def from_python(name, kind, count):
    env = make_collector(name, ROWS)
    return [collect(name, env, kind) for _ in range(count)]


def from_c(name, kind, count):
    with Scratch("compare", disk=True) as scratch:
        words = ["gen", f"{name}-{kind}", "--episodes", count, "--shards", 1, "--seed", random.randrange(1 << 30)]
        words += ["-o", scratch.at("x.npz"), "--trace", scratch.at("t.npz")]
        subprocess.run([DCRL, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = {**np.load(scratch.at("t.npz")), **np.load(scratch.at("x.npz"))}
    return [{k: v[e * ROWS : (e + 1) * ROWS] for k, v in data.items()} for e in range(count)]


def positions(episode, name):
    """Place of the gripper, and of cubes, drawer and window."""
    cubes = {"cube-single": 1, "cube-double": 2, "cube-triple": 3, "cube-quadruple": 4, "cube-octuple": 8, "scene": 1}.get(name, 0)
    columns = [12, 13, 14, 17] + [19 + 9 * c + k for c in range(cubes) for k in range(3)] + ([36, 38] if name == "scene" else [])
    return episode["observations"][::THIN, columns].astype(np.float32)  # both sides: a cube at rest is one number


def distance(a, b):
    """Kolmogorov and Smirnov's, the largest over columns."""
    worst = 0.0
    for x, y in zip(a.T, b.T):
        both = np.sort(np.concatenate([x, y]))
        p = np.searchsorted(np.sort(x), both, side="right") / len(x)
        q = np.searchsorted(np.sort(y), both, side="right") / len(y)
        worst = max(worst, np.abs(p - q).max())
    return worst


def judged(theirs, ours):
    """Distance of the two, and what chance alone makes of as many episodes."""
    n, rng, chance = len(theirs), np.random.default_rng(), []
    for _ in range(DRAWS):
        order = rng.permutation(len(ours))
        chance.append(distance(np.concatenate([ours[k] for k in order[:n]]), np.concatenate([ours[k] for k in order[n:]])))
    return f"{distance(np.concatenate(theirs), np.concatenate(ours)):.3f} ({np.percentile(chance, 95):.3f})"


def rates(episodes):
    out = {}
    for k, aim in enumerate(AIMS):
        met = np.concatenate([e["success"][e["ended"] & (e["aim"] == k)] for e in episodes])
        if met.size:
            out[aim] = (met.mean(), met.size)
    return out


def compare(name, kind, args):
    start = time.time()
    theirs, middle = from_python(name, kind, args.python), time.time()
    ours = from_c(name, kind, args.c)
    a, b = rates(ours), rates(theirs)
    met = "; ".join(f"{k} {100 * a[k][0]:.1f} of {a[k][1]} / {100 * b[k][0]:.1f} of {b[k][1]}" for k in sorted(a.keys() & b.keys()))
    totals = [np.array([e["success"].sum() for e in side]) for side in (ours, theirs)]
    told = " / ".join(f"{t.mean():.0f} +- {t.std() / np.sqrt(len(t)):.0f}" for t in totals)
    near = [judged([f(e) for e in theirs], [f(e) for e in ours]) for f in (lambda e: positions(e, name), lambda e: e["actions"][::THIN].astype(np.float32))]
    print(f"| {name}-{kind} | {met} | {told} | {near[0]} | {near[1]} |", flush=True)
    print(f"  {len(theirs)} episodes of Python in {middle - start:.0f} s, {len(ours)} of C in {time.time() - middle:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=int, default=20)
    parser.add_argument("--c", type=int, default=60)
    parser.add_argument("sets", nargs="*", default=[f"{n}-{k}" for n in NAMES for k in ("play", "noisy")])
    args = parser.parse_args()
    print("| set | aim reached, %: C / Python | return: C / Python | KS of positions (chance) | KS of actions (chance) |\n|---|---|---|---|---|")
    for full in args.sets:
        compare(*full.rsplit("-", 1), args)
