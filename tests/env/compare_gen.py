"""Statistics of generated data of tables: ours beside that of the Python package, with its own draws. Run by hand:

    DCRL=build/dcrl .venv/bin/python tests/env/compare_gen.py FOLDER --python 100 --c 100 [ENV-play|ENV-noisy ...]

Episodes are kept in FOLDER in parts, and only those that are not there yet are made: a run that was stopped goes on, a larger
number adds to a smaller one, and several processes with the same words share the work. `--python 0 --c 0` makes nothing.

For every set that is there a row of Markdown: how often an oracle's aim was reached when the oracle ended (by kind of aim), the
return of an episode (steps in which the aim was reached), and the largest Kolmogorov-Smirnov distance over columns of positions
and of actions. Rows of an episode depend on each other, so everything is judged by exchanging whole episodes: p is the share of
random divisions of all episodes, ours and Python's, into two such groups that differ at least as much as the true ones do.
"""

import argparse
import fcntl
import glob
import os
import random
import subprocess
import sys
import time
import warnings

os.environ.setdefault("MUJOCO_GL", "disable")
os.environ.setdefault("OMP_NUM_THREADS", "1")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch  # noqa: E402
from tables import AIMS, NAMES, collect, make_collector  # noqa: E402

ROWS, THIN, PART, DRAWS = 1001, 7, 10, 2000
SIDES = ["c", "python"]
LOCKED = ["drawer", "window"]  # each by a button of a scene
CUBES = {"cube-single": 1, "cube-double": 2, "cube-triple": 3, "cube-quadruple": 4, "cube-octuple": 8, "scene": 1}


# ---- episodes ----


def from_python(name, kind):
    env = make_collector(name, ROWS)
    return [collect(name, env, kind) for _ in range(PART)]


def from_c(name, kind):
    with Scratch("compare", disk=True) as scratch:
        words = ["gen", f"{name}-{kind}", "--episodes", PART, "--shards", 1, "--seed", random.randrange(1 << 30)]
        words += ["--threads", 1, "-o", scratch.at("x.npz"), "--trace", scratch.at("t.npz")]
        subprocess.run([DCRL, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = {**np.load(scratch.at("t.npz")), **np.load(scratch.at("x.npz"))}
    return [{k: v[e * ROWS : (e + 1) * ROWS] for k, v in data.items()} for e in range(PART)]


def positions(episode, name):
    """Place of the gripper, and of cubes, drawer and window."""
    columns = [12, 13, 14, 17] + [19 + 9 * c + k for c in range(CUBES.get(name, 0)) for k in range(3)]
    return episode["observations"][::THIN, columns + ([36, 38] if name == "scene" else [])]


def columns_of(episode, name):
    """What is kept; in float32 on both sides, so that a cube at rest is one number."""
    kept = {k: episode[k].astype(np.uint8) for k in ("aim", "success", "ended", "button_states") if k in episode}
    near = {"positions": positions(episode, name), "actions": episode["actions"][::THIN]}
    return {**kept, **{k: v.astype(np.float32) for k, v in near.items()}}


def make_part(path, full, side):
    name, kind = full.rsplit("-", 1)
    start = time.time()
    episodes = [columns_of(e, name) for e in {"c": from_c, "python": from_python}[side](name, kind)]
    with open(path + ".new", "wb") as file:
        np.savez_compressed(file, **{k: np.stack([e[k] for e in episodes]) for k in episodes[0]})
    os.replace(path + ".new", path)
    print(f"{os.path.basename(path)}: {time.time() - start:.0f} s", file=sys.stderr, flush=True)


def make_missing(full, side, count, folder):
    """Parts that are not there and that no other process is making."""
    for k in range(count // PART):
        path = os.path.join(folder, f"{full}.{side}.{k:03d}.npz")
        with open(path + ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if not os.path.exists(path):
                make_part(path, full, side)


def load(full, side, folder):
    """Columns of all episodes that are there, (episodes, rows, ...), or nothing."""
    parts = [dict(np.load(p)) for p in sorted(glob.glob(os.path.join(glob.escape(folder), f"{full}.{side}.*.npz")))]
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]} if parts else None


# ---- what they differ in: functions of shares, (episodes), positive on one side and negative on the other ----


def of_rates(met, ended):
    """Of reached aims among ended ones; rounded, so that the number of ended ones does not decide between equal failures."""

    def rate(chosen):
        return met[chosen].sum() / max(ended[chosen].sum(), 1)

    return lambda share: round(abs(rate(share > 0) - rate(share < 0)), 4)


def of_means(values):
    return lambda share: abs(values @ share)


def of_columns(values):
    """Kolmogorov and Smirnov's distance, the largest over columns of (episodes, rows, columns)."""
    episodes, rows, columns = values.shape
    sorted_by = []
    for column in values.reshape(-1, columns).T:
        order = np.argsort(column)
        last = np.append(np.flatnonzero(np.diff(column[order])), len(order) - 1)  # of equal numbers
        sorted_by.append((order // rows, last))
    return lambda share: max(np.abs(np.cumsum(share[e])[last]).max() for e, last in sorted_by) / rows


def judged(differ, n, m):
    """The difference of the first n episodes from the m others, the 95th percentile of chance, and p."""
    rng, share = np.random.default_rng(0), np.repeat([1 / n, -1 / m], [n, m])
    seen, chance = differ(share), np.array([differ(rng.permutation(share)) for _ in range(DRAWS)])
    return seen, np.percentile(chance, 95), (1 + np.sum(chance >= seen - 1e-12)) / (1 + DRAWS)


# ---- the table ----


def kinds_of(columns):
    """Aims by kind: a word, and rows in which an oracle ended; of what a button locks, also those that it did not."""
    for k, aim in enumerate(AIMS):
        rows = (columns["ended"] > 0) & (columns["aim"] == k)
        yield aim, rows
        if aim in LOCKED and rows.any():
            yield f"{aim} if unlocked", rows & (columns["button_states"][:, :, LOCKED.index(aim)] > 0)


def told_rates(sides, all_p):
    n, m, told = len(sides[0]["aim"]), len(sides[1]["aim"]), []
    columns = {k: np.concatenate([s[k] for s in sides]) for k in ("aim", "success", "ended", "button_states") if k in sides[0]}
    for aim, rows in kinds_of(columns):
        ended, met = rows.sum(1), (rows & (columns["success"] > 0)).sum(1)
        if ended[:n].sum() and ended[n:].sum():
            p = judged(of_rates(met, ended), n, m)[2]
            all_p[aim] = p
            parts = [f"{100 * met[s].sum() / ended[s].sum():.1f} of {ended[s].sum()}" for s in (slice(n), slice(n, None))]
            told.append(f"{aim} {' / '.join(parts)}, p {p:.2g}")
    return "; ".join(told)


def told_returns(sides, all_p):
    totals = [s["success"].sum(1, dtype=float) for s in sides]
    all_p["return"] = p = judged(of_means(np.concatenate(totals)), *map(len, totals))[2]
    return " / ".join(f"{t.mean():.0f} +- {t.std(ddof=1) / np.sqrt(len(t)):.0f}" for t in totals) + f", p {p:.2g}"


def told_distance(sides, key, all_p):
    values = [s[key] for s in sides]
    seen, chance, all_p[key] = judged(of_columns(np.concatenate(values)), *map(len, values))
    return f"{seen:.3f} ({chance:.3f}), p {all_p[key]:.2g}"


def tell(full, sides):
    """Print a row; returns what p was, by what was compared."""
    all_p = {}
    counts = " / ".join(str(len(s["aim"])) for s in sides)
    words = [full, counts, told_rates(sides, all_p), told_returns(sides, all_p)]
    words += [told_distance(sides, k, all_p) for k in ("positions", "actions")]
    print(f"| {' | '.join(words)} |", flush=True)
    return {f"{full} {k}": p for k, p in all_p.items()}


def main(args):
    os.makedirs(args.folder, exist_ok=True)
    for full in args.sets:
        make_missing(full, "python", args.python, args.folder)
        make_missing(full, "c", args.c, args.folder)
    print("| set | episodes: C / Python | aim reached, %: C / Python | return: C / Python | KS of positions (chance) | KS of actions (chance) |")
    print("|---|---|---|---|---|---|")
    all_p = {}
    for full in args.sets:
        sides = [load(full, side, args.folder) for side in SIDES]
        if all(sides):
            all_p.update(tell(full, sides))
    low = sorted((p, k) for k, p in all_p.items() if p < 0.05)
    print(f"\n{len(all_p)} comparisons, {len(low)} with p < 0.05: {'; '.join(f'{k} {p:.2g}' for p, k in low)}")


if __name__ == "__main__":
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--python", type=int, default=100)
    parser.add_argument("--c", type=int, default=100)
    parser.add_argument("sets", nargs="*", default=[f"{n}-{k}" for k in ("play", "noisy") for n in NAMES])
    main(parser.parse_intermixed_args())
