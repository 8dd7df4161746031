"""CALVIN (table D): the file of Shi et al. as a data set, and the paper's evaluation in a `calvin_env` of one's own.

    python -m dcrl.calvin calvin.gz calvin.npz
    dcrl train --data calvin.npz ...

    from dcrl import Policy, calvin                 # env: calvin_env's PlayTableSimEnv, or a subclass
    print(calvin.evaluate(Policy("runs/calvin"), env, "calvin.npz"))

The file (`calvin.gz` of SkiMo) is a gzipped pickle: a list of dicts with obs (T, 39), actions (T, 7) and dones (T). Of an
observation the first 21 numbers are seen: 15 of the robot, then slide, drawer, button, switch, bulb, LED; blocks are not. The
goal is the data's first observation with everything on the table done. Nothing of CALVIN is in this package, and no score of
it has been measured with this package.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ._lib import InputError

SEEN, ACTIONS, STEPS = 21, 7, 360
# Name, where an observation shows it, by how much it must have grown since the reset: in the order of the paper's task.
SUBTASKS = (("open_drawer", 16, 0.12), ("turn_on_lightbulb", 19, 0.5), ("move_slider_left", 15, 0.15), ("turn_on_led", 20, 0.5))
DONE = (0.25, 0.15, 0.0, 0.088, 1.0, 1.0)  # slide, drawer, button, switch, bulb, LED of the goal


class Actor(Protocol):
    def act(self, observations: ArrayLike, goals: ArrayLike) -> np.ndarray: ...


# ---- the file ----

class _Kind:
    """Stands for numpy.dtype: the type of numbers or flags, and nothing else that a dtype can say."""

    def __init__(self, name: str = "", *_: Any) -> None:
        if name not in ("f4", "f8", "i1", "i4", "i8", "u1", "b1"):
            raise InputError(f"it holds an array of type {name!r}, which is no number: take a file of SkiMo's layout")
        self.name = name

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", "|", "="):
            raise InputError(f"its numbers have the order of bytes {state[1]!r}: take a file of SkiMo's layout")


class _Array:
    """Stands for numpy.ndarray: a shape, and bytes for it."""

    def __init__(self, *_: Any) -> None:
        self.numbers = np.zeros(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, in_columns, content = state
        self.fill(content, kind, shape, "F" if in_columns else "C")

    def fill(self, content: bytes, kind: _Kind, shape: tuple[int, ...], order: Any) -> None:
        self.numbers = np.frombuffer(content, kind.name).reshape(shape, order=order)


def _from_bytes(content: bytes, kind: _Kind, shape: tuple[int, ...], order: str, *_: Any) -> _Array:
    made = _Array()
    made.fill(content, kind, shape, order)
    return made


def _encode(text: str, _: str) -> bytes:
    return text.encode("latin1")


_ALLOWED = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.numeric", "_frombuffer"): _from_bytes,
    ("_codecs", "encode"): _encode,
}


class _Arrays(pickle.Unpickler):
    """A pickle of numpy arrays in dicts and lists. Any other pickle may be a program, and is refused; numpy itself believes
    what a pickle says of types, so stand-ins are filled."""

    def find_class(self, module: str, name: str) -> Any:
        named = module.replace("numpy.core", "numpy._core", 1), name
        if named not in _ALLOWED:
            raise InputError(f"it holds {module}.{name}, which is no array: take a file of SkiMo's layout")
        return _ALLOWED[named]


def _load(path: str) -> list[dict[str, np.ndarray]]:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            loaded = _Arrays(file).load()
    except InputError as error:
        raise InputError(f"{path} cannot be taken: {error}") from None
    except Exception as error:  # whatever a damaged pickle makes of itself
        raise InputError(f"{path} is no pickle of arrays ({error}): take calvin.gz as it is") from None
    names = ("obs", "actions", "dones")
    if not isinstance(loaded, list) or not all(isinstance(t, dict) and all(isinstance(t.get(n), _Array) for n in names) for t in loaded):
        raise InputError(f"{path} is no list of dicts with arrays obs, actions and dones: take calvin.gz as it is")
    return [{name: t[name].numbers for name in names} for t in loaded]


def _trajectory(place: str, t: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Observations and actions, a row each; None for what the paper's code leaves out, too."""
    obs, actions = np.asarray(t["obs"], np.float32), np.asarray(t["actions"], np.float32)
    if obs.ndim != 2 or obs.shape[1] < SEEN or actions.ndim != 2 or actions.shape[1] != ACTIONS:
        raise InputError(f"{place} has obs {obs.shape} and actions {actions.shape}: (T, 21 or more) and (T, 7) are needed")
    if len(obs) < t["dones"].size:
        return None
    rows = min(len(obs), len(actions) + 1)
    if rows < 2:
        return None
    padded = np.concatenate([actions, np.zeros((1, ACTIONS), np.float32)])[:rows]  # of the last row: see docs/formats.md, terminals
    return obs[:rows, :SEEN], np.clip(padded, -1, 1)


def convert(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> dict[str, int]:
    """Write the file of Shi et al. as an `.npz` in OGBench's layout; says how many trajectories and rows it has, and how many
    trajectories were left out because they have fewer observations than steps."""
    loaded = _load(os.fspath(path))
    kept = [k for k in (_trajectory(f"trajectory {i} of {os.fspath(path)}", t) for i, t in enumerate(loaded)) if k is not None]
    if not kept:
        raise InputError(f"{os.fspath(path)} has no trajectory of two rows or more")
    terminals = np.concatenate([np.arange(len(obs)) == len(obs) - 1 for obs, _ in kept])
    observations, actions = (np.concatenate(column) for column in zip(*kept))
    np.savez_compressed(out, observations=observations, actions=actions, terminals=terminals)
    return {"trajectories": len(kept), "rows": len(terminals), "left_out": len(loaded) - len(kept)}


# ---- evaluation ----


@dataclasses.dataclass(frozen=True)
class Result:
    """What an evaluation came to."""

    score: float
    """Mean percentage of the four subtasks: the paper's number."""
    subtasks: dict[str, float]
    """The fraction of episodes that did each."""
    episodes: int


def goal_of(start: ArrayLike) -> np.ndarray:
    """The goal: an observation, the data's first, with everything on the table done."""
    goal = np.array(start, np.float32)[:SEEN]
    goal[15:] = DONE
    return goal


def _seen(observation: Any) -> np.ndarray:
    """What a policy sees of calvin_env's dict, or of an array."""
    if isinstance(observation, dict):
        observation = np.concatenate([np.asarray(observation["robot_obs"]), np.asarray(observation["scene_obs"])])
    seen = np.asarray(observation, np.float32)
    if seen.ndim != 1 or len(seen) < SEEN:
        raise InputError(f"an observation of {seen.shape} is not CALVIN's: it begins with 15 numbers of the robot and 6 of the table")
    return seen[:SEEN]


class _Episode:
    """Which subtasks are done, against the state at reset."""

    def __init__(self, start: np.ndarray, in_order: bool) -> None:
        self.start, self.in_order, self.done = start, in_order, [False] * len(SUBTASKS)

    def look(self, now: np.ndarray) -> None:
        holds = [bool(now[at] - self.start[at] > more) for _, at, more in SUBTASKS]
        if not self.in_order:
            self.done = [d or h for d, h in zip(self.done, holds)]
        elif not all(self.done):  # one at most in a step
            following = self.done.index(False)
            self.done[following] = holds[following]


def evaluate(
    policy: Actor, env: Any, start: ArrayLike | str | os.PathLike[str], episodes: int = 50, steps: int = STEPS, in_order: bool = True
) -> Result:
    """Play episodes in a calvin_env (reset() and step(action) as its PlayTableSimEnv has them; dicts or arrays) and count the
    paper's four subtasks: drawer, bulb, slider, LED, only in this order unless in_order is False. An episode ends after 360
    steps or when all are done. start: the data's first observation, or the file that convert wrote.
    """
    if isinstance(start, (str, os.PathLike)):
        with np.load(start) as file:
            goal = goal_of(file["observations"][0])
    else:
        goal = goal_of(start)
    played = []
    for _ in range(episodes):
        first = env.reset()
        now = _seen(first[0] if isinstance(first, tuple) else first)
        episode = _Episode(now, in_order)
        for _ in range(steps):
            action = np.array(policy.act(now, goal), np.float64)
            action[-1] = 1.0 if action[-1] >= 0 else -1.0  # the gripper knows open and closed
            now = _seen(env.step(action)[0])
            episode.look(now)
            if all(episode.done):
                break
        played.append(episode.done)
    each = np.mean(played, axis=0)
    return Result(float(100 * each.mean()), {name: float(f) for (name, _, _), f in zip(SUBTASKS, each)}, episodes)


def main(words: Sequence[str]) -> int:
    if len(words) != 2:
        print("usage: python -m dcrl.calvin calvin.gz calvin.npz", file=sys.stderr)
        return 2
    try:
        told = convert(*words)
    except (InputError, OSError) as error:
        print(f"dcrl.calvin: {error}", file=sys.stderr)
        return 1
    print(f"wrote {words[1]}: {told['trajectories']} trajectories, {told['rows']} rows; {told['left_out']} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
