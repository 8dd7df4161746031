"""Training: runs in folders, with callbacks."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Mapping

from . import _lib
from ._lib import lib
from .data import Dataset
from .policy import Policy, Score

RowFn = Callable[[dict[str, float]], Any]
ScoreFn = Callable[[int, Score], Any]


def _text(value: object) -> bytes:
    """An option as the command line has it."""
    if isinstance(value, bool):
        return b"on" if value else b"off"
    if isinstance(value, (list, tuple)):
        return b",".join(_text(v) for v in value)
    return _lib.as_bytes(repr(value) if isinstance(value, float) else str(value))


class Run:
    """A run: an agent, its data, and a folder with its checkpoints and logs.

    Options are those of `dcrl train --help` and `dcrl list agents`, by their names: Run("runs/a", data, agent="dcrl",
    steps=100_000, hidden=(256, 256), alpha=0.3). Data is a `Dataset` or the path of a file, which is then recorded; without, the
    environment makes its own (env="lock-512"). A preset (`dcrl list presets`) sets options first.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        data: Dataset | str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        preset: str | None = None,
        **options: object,
    ) -> None:
        self._handle = ctypes.c_void_p()
        if isinstance(data, (str, os.PathLike)):
            options["data"], data = os.fspath(data), None
        self.folder, self._data = os.fspath(folder), data
        self._handle = _lib.own(lib.run_new, _lib.as_bytes(preset) if preset else None, _lib.as_bytes(agent) if agent else None)
        for key, value in options.items():
            _lib.check(lib.run_set(self._handle, _lib.as_bytes(key), _text(value)))
        _lib.check(lib.run_start(self._handle, data._handle if data is not None else None, _lib.as_bytes(self.folder)))

    @classmethod
    def resume(cls, folder: str | os.PathLike[str], data: Dataset | None = None, threads: int = 0) -> Run:
        """Go on with a run folder from its newest checkpoint, on the same data; threads 0 takes all cores."""
        new = cls.__new__(cls)
        new._handle = ctypes.c_void_p()
        new.folder, new._data = os.fspath(folder), data
        new._handle = _lib.own(lib.run_resume, data._handle if data is not None else None, _lib.as_bytes(new.folder), _lib.whole(threads, "number of threads"))
        return new

    def train(self, callback: RowFn | None = None, on_score: ScoreFn | None = None) -> bool:
        """Train to the last step. True when it is done, False when a callback stopped it; then it may be called again.

        callback(row) is told every row of train.csv: "step", "seconds", "rate" (updates per second) and the metrics, means
        since the row before. on_score(step, score) is told evaluations (option eval_every). What returns a true value
        saves and stops the run. So do Ctrl-C and an exception, which are raised afterwards.
        """

        def row(_: Any, c: Any) -> int:
            r = c.contents
            told = {"step": r.step, "seconds": r.seconds, "rate": r.rate}
            told.update((r.names[i].decode(), r.values[i]) for i in range(r.count))
            return listening.call(callback, told)

        def score(_: Any, step: int, c: Any) -> int:
            return listening.call(on_score, step, Score._of(c.contents))

        listening = _lib.Listening(self.stop)
        on_row = _lib.ROW(row) if callback else _lib.ROW()
        each_score = _lib.SCORE(score) if on_score else _lib.SCORE()
        progress = _lib.PROGRESS(lambda *_: listening.call(None))  # lets Python hand out Ctrl-C
        with listening:
            _lib.check(lib.run_on_row(self._handle, on_row, None))
            _lib.check(lib.run_on_score(self._handle, each_score, None))
            try:
                _lib.check(lib.run_train(self._handle, progress, None))
            except _lib.Interrupted:
                return False
            finally:
                lib.run_on_row(self._handle, _lib.ROW(), None)
                lib.run_on_score(self._handle, _lib.SCORE(), None)
        return True

    def stop(self) -> None:
        """Ask it to save and stop, from any thread."""
        lib.run_stop(self._handle)

    @property
    def step(self) -> int:
        """Updates done so far."""
        return int(lib.run_step(self._handle))

    def policy(self, step: int | None = None, threads: int = 1) -> Policy:
        """The policy of its newest checkpoint, or that of a step."""
        return Policy(self.folder, step, threads)

    def close(self) -> None:
        """Free it now instead of with its last reference; the folder stays."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            lib.run_free(handle)
        self._data = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __repr__(self) -> str:
        return f"<dcrl.Run: {self.folder}, step {self.step}>"


def train(
    folder: str | os.PathLike[str],
    data: Dataset | str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    agent: str | None = None,
    preset: str | None = None,
    callback: RowFn | None = None,
    on_score: ScoreFn | None = None,
    **options: object,
) -> Policy:
    """Train a new run to its end, or until a callback stops it, and open its policy.

    Data may also be a mapping of arrays "observations", "actions" and "terminals" (see Dataset.from_arrays).
    """
    if isinstance(data, Mapping) and not isinstance(data, Dataset):
        data = Dataset.from_arrays(data["observations"], data["actions"], data["terminals"])
    with Run(folder, data, agent=agent, preset=preset, **options) as run:
        run.train(callback, on_score)
        return run.policy()
