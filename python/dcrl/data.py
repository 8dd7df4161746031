"""Data sets: trajectories from a file or from arrays, with columns that are looked at without a copy."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from . import _lib
from ._lib import lib

_NAMES = {"obs": "observations", "act": "actions"}  # inside, outside


class Dataset(Mapping[str, np.ndarray]):
    """Trajectories to learn from: a mapping from names of columns to read-only arrays of all rows.

    `Dataset(path)` reads an OGBench `.npz` file or a store folder. `Dataset.from_arrays` takes arrays. The columns
    "observations" and "actions" are always there, others as the file has them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._handle = ctypes.c_void_p()
        self._kept: object = None
        self._handle = _lib.own(lib.dataset_open, _lib.as_bytes(path))
        self._columns = self._look()

    @classmethod
    def from_arrays(cls, observations: ArrayLike, actions: ArrayLike, terminals: ArrayLike) -> Dataset:
        """Trajectories of arrays: observations (rows, obs), actions (rows, act), and terminals (rows), not 0 at the last row of
        each trajectory, whose action only n-step targets that reach the end read (last_action=off: none does).
        Runs take actions within [-1, 1], others with the option act_scale.

        Observations that are float32 and contiguous are not copied, and must not be changed afterwards.
        """
        obs, act = (np.ascontiguousarray(a, dtype=np.float32) for a in (observations, actions))
        ends = np.ascontiguousarray(np.asarray(terminals) != 0, dtype=np.uint8)
        if obs.ndim != 2 or act.ndim != 2 or ends.ndim != 1 or not len(obs) == len(act) == len(ends):
            raise _lib.UsageError(
                f"observations {obs.shape}, actions {act.shape} and terminals {ends.shape} do not fit together: "
                "give (rows, obs), (rows, act) and (rows)"
            )
        new = cls.__new__(cls)
        new._handle = ctypes.c_void_p()
        new._kept = obs
        new._handle = _lib.own(
            lib.dataset_borrow, len(obs), obs.shape[1], act.shape[1], _lib.address(obs), _lib.address(act), _lib.address(ends)
        )
        new._columns = new._look()
        return new

    def _look(self) -> dict[str, tuple[int, tuple[int, ...], str]]:
        columns: dict[str, tuple[int, tuple[int, ...], str]] = {}
        rows = self.rows
        for index in range(lib.dataset_columns(self._handle)):
            c = _lib.Column()
            _lib.check(lib.dataset_column(self._handle, index, ctypes.byref(c)))
            shape = tuple(c.shape[d] for d in range(c.ndim)) or (c.width,)
            name = c.name.decode()
            columns[_NAMES.get(name, name)] = (c.values or c.bytes, (rows, *shape), "<f4" if c.values else "|u1")
        return columns

    def __getitem__(self, name: str) -> np.ndarray:
        at, shape, kind = self._columns[name]
        return _lib.lent(self, at, shape, kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Rows of all trajectories together."""
        return int(lib.dataset_rows(self._handle))

    @property
    def starts(self) -> np.ndarray:
        """First row of each trajectory, and behind them the number of rows."""
        count = lib.dataset_trajectories(self._handle) + 1
        return _lib.lent(self, lib.dataset_starts(self._handle), (count,), "<i8")

    @property
    def choices(self) -> int:
        """Number of discrete actions; 0: actions are real numbers."""
        return int(lib.dataset_choices(self._handle))

    def __repr__(self) -> str:
        return f"<dcrl.Dataset: {self.rows} rows, {len(self.starts) - 1} trajectories, {', '.join(self)}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.dataset_close(self._handle)
