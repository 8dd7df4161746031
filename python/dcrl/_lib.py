"""The C library behind this package: finding and loading it, its functions, and its errors as exceptions.

`include/dcrl/*.h` says what each function does. Arrays go over as addresses, so nothing is copied on the way.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import threading
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from types import TracebackType
from typing import Any, Callable

import numpy as np

_HERE = pathlib.Path(__file__).resolve().parent
_CHECKOUT = _HERE.parent.parent / "build"  # of a package that is used where it is developed


def _find(variable: str, installed: str, built: str) -> str:
    named = os.environ.get(variable)
    if named:
        return named
    for path in (_HERE / installed, _CHECKOUT / built):
        if path.exists():
            return str(path)
    raise ImportError(f"{installed} is not beside {_HERE}: install the package with pip, or set {variable}")


# ---- errors ----


class Error(Exception):
    """What the library refused to do, in its words: what (value): what to do."""


class UsageError(Error, ValueError):
    """Something was asked for that does not exist."""


class InputError(Error, ValueError):
    """A file or value is malformed."""


class FileError(Error, OSError):
    """The system refused a read, write, sync or rename."""


class OutOfMemory(Error, MemoryError):
    """An allocation failed."""


class NotFiniteError(Error, ArithmeticError):
    """NaN or Inf in training or simulation."""


class Interrupted(Error):
    """A run or an evaluation was asked to stop; a run's state was saved."""


class Unsupported(Error, NotImplementedError):
    """This build or machine cannot do it."""


_ERRORS = {1: UsageError, 2: InputError, 3: FileError, 4: OutOfMemory, 5: NotFiniteError, 6: Interrupted, 7: Unsupported}


def check(status: int) -> None:
    """Raise what a status means, with the message of the call that returned it."""
    if status:
        raise _ERRORS.get(status, Error)(message())


# ---- structs ----


class Sizes(Structure):
    _fields_ = [("obs", c_int), ("goal", c_int), ("act", c_int)]


class Column(Structure):
    _fields_ = [("name", c_char_p), ("values", c_void_p), ("bytes", c_void_p), ("shape", POINTER(c_int64)), ("ndim", c_int), ("width", c_int)]


class CScore(Structure):
    _fields_ = [("episodes", c_int), ("task", c_double * 5), ("overall", c_double), ("deviation", c_double), ("mean_steps", c_double)]


class Row(Structure):
    _fields_ = [
        ("step", c_int64),
        ("seconds", c_double),
        ("rate", c_double),
        ("count", c_int),
        ("names", POINTER(c_char_p)),
        ("values", POINTER(c_double)),
    ]


class Facts(Structure):
    _fields_ = [("name", c_char * 64), ("sizes", Sizes), ("tasks", c_int), ("horizon", c_int)]


class StateSizes(Structure):
    _fields_ = [("qpos", c_int), ("qvel", c_int), ("extra", c_int)]


class StepOut(Structure):
    _fields_ = [(name, c_void_p) for name in ("observations", "rewards", "successes", "truncated", "began", "last_observations")]


PROGRESS = CFUNCTYPE(c_int, c_void_p, c_void_p)
ROW = CFUNCTYPE(c_int, c_void_p, POINTER(Row))
SCORE = CFUNCTYPE(c_int, c_void_p, c_int64, POINTER(CScore))
EVAL = CFUNCTYPE(c_int, c_void_p, c_int64, c_int64)

# ---- functions: name, what it returns, what it takes. "p" is any pointer ----

_P, _I, _L, _U, _S = c_void_p, c_int, c_int64, c_uint64, c_char_p
PROTOTYPES: list[tuple[str, Any, list[Any]]] = [
    ("message", _S, []),
    ("version", _S, []),
    ("dataset_open", _I, [_P, _S]),
    ("dataset_make", _I, [_P, _L, _I, _I, _P, _P, _P]),
    ("dataset_borrow", _I, [_P, _L, _I, _I, _P, _P, _P]),
    ("dataset_rows", _L, [_P]),
    ("dataset_trajectories", _L, [_P]),
    ("dataset_starts", _P, [_P]),
    ("dataset_columns", _I, [_P]),
    ("dataset_column", _I, [_P, _I, _P]),
    ("dataset_choices", _I, [_P]),
    ("dataset_close", None, [_P]),
    ("run_new", _I, [_P, _S, _S]),
    ("run_set", _I, [_P, _S, _S]),
    ("run_start", _I, [_P, _P, _S]),
    ("run_resume", _I, [_P, _P, _S, _I]),
    ("run_train", _I, [_P, PROGRESS, _P]),
    ("run_on_row", _I, [_P, ROW, _P]),
    ("run_on_score", _I, [_P, SCORE, _P]),
    ("run_stop", None, [_P]),
    ("run_step", _L, [_P]),
    ("run_free", None, [_P]),
    ("policy_open", _I, [_P, _S, _I]),
    ("policy_open_step", _I, [_P, _S, _L, _I]),
    ("policy_step", _L, [_P]),
    ("policy_sizes", Sizes, [_P]),
    ("policy_env", _S, [_P]),
    ("policy_act", _I, [_P, _I, _P, _P, _P]),
    ("policy_distance", _I, [_P, _I, _P, _P, _P, _P]),
    ("policy_choices", _I, [_P]),
    ("policy_action_range", _I, [_P, _P, _P]),
    ("policy_evaluate", _I, [_P, _S, _I, _U, EVAL, _P, _P]),
    ("policy_close", None, [_P]),
    ("env_find", _I, [_S, _P]),
    ("env_list", _I, [_I, _P]),
    ("env_open", _I, [_P, _S, _U]),
    ("env_sizes", Sizes, [_P]),
    ("env_choices", _I, [_P]),
    ("env_action_range", _I, [_P, _P, _P]),
    ("env_tasks", _I, [_P]),
    ("env_task", _I, [_P]),
    ("env_horizon", _I, [_P]),
    ("env_goal_columns", _I, [_P, _P]),
    ("env_seed", _I, [_P, _U]),
    ("env_give_draws", _I, [_P, _L, _P]),
    ("env_reset", _I, [_P, _I, _P, _P]),
    ("env_step", _I, [_P, _P, _P, _P]),
    ("env_state_sizes", StateSizes, [_P]),
    ("env_state", _I, [_P, _P, _P, _P]),
    ("env_render", _I, [_P, _I, _I, _P]),
    ("env_close", None, [_P]),
    ("vec_open", _I, [_P, _S, _I, _U, _I, _I]),
    ("vec_count", _I, [_P]),
    ("vec_env", _P, [_P, _I]),
    ("vec_set_tasks", _I, [_P, _P]),
    ("vec_reset", _I, [_P, _P, _P, _P]),
    ("vec_step", _I, [_P, _P, _I, _P]),
    ("vec_goals", _I, [_P, _P]),
    ("vec_close", None, [_P]),
]


class _Library:
    """The library's functions, without their dcrl_."""

    def __init__(self, path: str) -> None:
        loaded = ctypes.CDLL(path)
        for name, returns, takes in PROTOTYPES:
            function = getattr(loaded, "dcrl_" + name)
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: everything else is an error
        raise AttributeError(name)


lib = _Library(_find("DCRL_LIBRARY", "lib/libdcrl.so", "libdcrl.so"))


def program() -> str:
    """Path of the program `dcrl` that belongs to the library."""
    return _find("DCRL_PROGRAM", "bin/dcrl", "dcrl")


def version() -> str:
    """Version, commit and compiler of the library."""
    return str(lib.version().decode())


def message() -> str:
    """The last error of this thread."""
    return str(lib.message().decode(errors="replace"))


# ---- arrays ----


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def as_bytes(path: str | os.PathLike[str]) -> bytes:
    """A path or a name; C would take it up to its first NUL."""
    text = os.fsencode(path)
    if b"\0" in text:
        raise UsageError(f"a name with a NUL ({path!r}): give it without")
    return text


def whole(value: Any, name: str) -> int:
    """A number that C's int holds, which ctypes would cut to that."""
    number = int(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise UsageError(f"impossible {name} ({number}): give a smaller number")
    return number


class _Lent:
    """Memory of the library as an array: it is read-only, and keeps its owner alive."""

    def __init__(self, owner: object, at: int, shape: tuple[int, ...], kind: str) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (at, True), "shape": shape, "typestr": kind, "version": 3}


def lent(owner: object, at: int, shape: tuple[int, ...], kind: str) -> np.ndarray:
    return np.asarray(_Lent(owner, at, shape, kind))


def own(handle_maker: Callable[..., int], *words: Any) -> c_void_p:
    """The handle that an opening function writes."""
    handle = c_void_p()
    check(handle_maker(ctypes.byref(handle), *words))
    return handle


# ---- callbacks ----


class Listening:
    """While C calls back: exceptions of Python functions and Ctrl-C stop what is under way, and are raised afterwards.

    Python hands out a signal when its own code runs, which may be outside of any `try` of a callback. So Ctrl-C becomes a
    wish to stop for as long as this is entered, and KeyboardInterrupt when it is left.
    """

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        self._stop, self.interrupted = stop, False
        self._error: BaseException | None = None
        self._before: Any = None

    def call(self, function: Callable[..., Any] | None, *words: Any) -> int:
        """What a callback returns: not 0 to stop."""
        if self._error is None and function is not None:
            try:
                if function(*words):
                    return 1
            except BaseException as error:
                self._error = error
        return int(self.interrupted or self._error is not None)

    def _interrupt(self, *_: Any) -> None:
        self.interrupted = True
        self._stop()

    def __enter__(self) -> Listening:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._error is not None:
            raise self._error.with_traceback(self._error.__traceback__) from None
        if self.interrupted:
            raise KeyboardInterrupt from error
