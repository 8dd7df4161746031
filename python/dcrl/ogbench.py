"""OGBench's entry points on this library's environments: `from dcrl import make_env_and_datasets` in place of
`from ogbench import make_env_and_datasets`.

Nothing is downloaded. Data comes from a path, or from a folder where it is made once, as `dcrl gen` makes it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import Any

import gymnasium
import numpy as np

from . import _lib
from .envs import Env, facts, make

DEFAULT_DATASET_DIR = "~/.dcrl/data"
_STATE = ("qpos", "qvel", "button_states")
_KINDS = {"navigate", "stitch", "explore", "play", "noisy"}

Arrays = dict[str, np.ndarray]


def _read(path: str, names: list[str]) -> Arrays:
    with np.load(path) as file:
        return {name: file[name] for name in names if name in file}


def _shape(whole: Arrays, compact: bool) -> Arrays:
    """Whole trajectories, a row per state, as transitions.

    Compact: all rows stay, and valids says which have a next row of their own. Else: the last row of each trajectory goes, and
    next_observations are a column. In both the row before a trajectory's last is terminal.
    """
    last = whole["terminals"].astype(bool)
    before_last = np.append(last[1:], True)
    if compact:
        return {**whole, "terminals": (last | before_last).astype(np.float32), "valids": (~last).astype(np.float32)}
    kept = {name: values[~last] for name, values in whole.items()}
    follows = np.append(False, ~last[:-1])
    return {**kept, "terminals": before_last[~last].astype(np.float32), "next_observations": whole["observations"][follows]}


def load_dataset(
    dataset_path: str, ob_dtype: Any = np.float32, action_dtype: Any = np.float32, compact_dataset: bool = False, add_info: bool = False
) -> Arrays:
    """The arrays of a file as OGBench's function of that name gives them: observations, actions, terminals, and
    next_observations, or valids in a compact data set; with add_info also qpos, qvel and button_states."""
    arrays = _read(dataset_path, ["observations", "actions", "terminals", *(_STATE if add_info else ())])
    types = {"observations": ob_dtype, "actions": action_dtype, "terminals": np.float32}
    return _shape({name: values.astype(types.get(name, values.dtype), copy=False) for name, values in arrays.items()}, compact_dataset)


def _run(*words: str) -> None:
    """Call the program; what it says goes to standard error, and its last line is the exception's."""
    process = subprocess.Popen([_lib.program(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    last = ""
    assert process.stderr is not None
    for line in process.stderr:
        last = line.rstrip()
        if not last.startswith("dcrl: "):
            print(last, file=sys.stderr, flush=True)
    if process.wait():
        raise _lib.Error(last.removeprefix("dcrl: "))


def _find_data(name: str, folder: str) -> tuple[str, str]:
    """The two files of a data set in a folder, made if they are not there."""
    folder = os.path.expanduser(folder)
    train = os.path.join(folder, f"{name}.npz")
    val = os.path.join(folder, f"{name}-val.npz")
    if not (os.path.exists(train) and os.path.exists(val)):
        os.makedirs(folder, exist_ok=True)
        print(f"making {name} in {folder}", file=sys.stderr, flush=True)
        _run("gen", name, "-o", folder + os.sep)
    return train, val


def _rewards(path: str, env_name: str, compact: bool) -> Arrays:
    """Rewards and masks of a single task for the rows that _shape keeps."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "rewards.npz")
        _run("data", "rewards", path, env_name, "-o", out)
        told = _read(out, ["rewards", "masks"])
    if not compact:
        last = _read(path, ["terminals"])["terminals"].astype(bool)
        told = {name: values[~last] for name, values in told.items()}
    return {name: values.astype(np.float32) for name, values in told.items()}


def make_env_and_datasets(
    dataset_name: str,
    dataset_dir: str = DEFAULT_DATASET_DIR,
    dataset_path: str | None = None,
    compact_dataset: bool = False,
    env_only: bool = False,
    dataset_only: bool = False,
    cur_env: gymnasium.Env[Any, Any] | None = None,
    add_info: bool = False,
    **env_kwargs: Any,
) -> Any:
    """OGBench's function of that name: (env, train, val), the environment alone, or the two data sets alone.

    dataset_name is OGBench's ("antmaze-large-navigate-oraclerep-v0"). Without a dataset_path the data lies in dataset_dir, and
    is made there if it does not, with OGBench's numbers of episodes. Single-task names add rewards and masks, oraclerep names
    oracle_reps.
    """
    words = dataset_name.split("-")
    visual = words[0] == "visual"
    env_name = facts(dataset_name).name.decode()
    env = cur_env if dataset_only else make(dataset_name, **env_kwargs)
    if env_only:
        return env
    if not _KINDS & set(words):
        raise _lib.UsageError(f"{dataset_name} names no data: add one of {', '.join(sorted(_KINDS))}")
    if visual and "oraclerep" in words:
        raise _lib.UsageError(f"there are no oracle_reps of {dataset_name}: they are no columns of pictures")
    if dataset_path is None:
        plain = "-".join(w for w in words if w not in ("oraclerep", "singletask") and not re.fullmatch(r"task\d", w))
        paths = _find_data(plain, dataset_dir)
    else:
        paths = dataset_path, dataset_path.replace(".npz", "-val.npz")
    sets = []
    for path in paths:
        data = load_dataset(path, np.uint8 if visual else np.float32, compact_dataset=compact_dataset, add_info=add_info)
        if "singletask" in words:
            data.update(_rewards(path, env_name, compact_dataset))
        if "oraclerep" in words:
            columns: np.ndarray = (env.unwrapped if env is not None else Env(env_name)).goal_columns  # type: ignore[union-attr]
            data["oracle_reps"] = data["observations"][:, columns]
        sets.append(data)
    return tuple(sets) if dataset_only else (env, *sets)
