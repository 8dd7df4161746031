"""Policies: what a run learned, ready to act, to say how far a goal is, and to be evaluated."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
from typing import Any, Callable

import numpy as np
from numpy.typing import ArrayLike

from . import _lib
from ._lib import lib


@dataclasses.dataclass(frozen=True)
class Score:
    """What an evaluation came to."""

    overall: float
    """Mean over tasks of the fraction of episodes that reach the goal."""
    tasks: tuple[float, ...]
    """The fraction for each task."""
    deviation: float
    """Standard deviation over tasks."""
    mean_steps: float
    """Steps of episodes that reach the goal; 0 if none does."""
    episodes: int
    """Episodes of each task."""

    @classmethod
    def _of(cls, c: _lib.CScore) -> Score:
        return cls(c.overall, tuple(c.task), c.deviation, c.mean_steps, c.episodes)


class Policy:
    """The policy of a run folder (its newest checkpoint, or that of `step`), or of a checkpoint file.

    threads 1 is best for few rows, 0 takes all cores. Calls from several threads take turns.
    """

    def __init__(self, path: str | os.PathLike[str], step: int | None = None, threads: int = 1) -> None:
        self._handle = ctypes.c_void_p()
        self._handle = _lib.own(lib.policy_open_step, _lib.as_bytes(path), -1 if step is None else step, _lib.whole(threads, "number of threads"))
        sizes = lib.policy_sizes(self._handle)
        self.obs_size, self.goal_size, self.act_size = int(sizes.obs), int(sizes.goal), int(sizes.act)
        self._lock = threading.RLock()  # a callback of evaluate may ask for actions
        # One row goes through arrays whose addresses are known.
        self._obs, self._goal, self._action = (np.zeros(n, np.float32) for n in (self.obs_size, self.goal_size, self.act_size))
        self._obs_shape, self._goal_shape = self._obs.shape, self._goal.shape
        self._at = [_lib.address(a) for a in (self._obs, self._goal, self._action)]
        self._act = lib.policy_act

    @property
    def env(self) -> str:
        """Name of the environment that it was trained for; empty if there was none."""
        return str(lib.policy_env(self._handle).decode())

    @property
    def step(self) -> int:
        """Updates after which it was saved."""
        return int(lib.policy_step(self._handle))

    @property
    def action_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest value of each number of an action: -1 and 1, or what the run's act_scale says; the values of
        discrete actions have none (infinite)."""
        low, high = np.zeros(self.act_size, np.float32), np.zeros(self.act_size, np.float32)
        _lib.check(lib.policy_action_range(self._handle, _lib.address(low), _lib.address(high)))
        return low, high

    @property
    def choices(self) -> int:
        """Number of discrete actions that it chooses from; 0: its actions are real numbers. See `choose`."""
        return int(lib.policy_choices(self._handle))

    def act(self, observations: ArrayLike, goals: ArrayLike) -> np.ndarray:
        """Actions within action_range: (act) for an observation (obs) and a goal (goal), or (n, act) for (n, obs) and (n, goal) or (goal)."""
        obs, goal = np.asarray(observations), np.asarray(goals)
        if obs.shape == self._obs_shape and goal.shape == self._goal_shape:
            with self._lock:
                self._obs[...] = obs
                self._goal[...] = goal
                status = self._act(self._handle, 1, *self._at)
                if status:
                    _lib.check(status)
                return self._action.copy()
        rows, o, g = self._rows(obs, goal)
        actions = np.empty((rows, self.act_size), np.float32)
        with self._lock:
            _lib.check(self._act(self._handle, rows, _lib.address(o), _lib.address(g), _lib.address(actions)))
        return actions

    def choose(self, observations: ArrayLike, goals: ArrayLike) -> Any:
        """The discrete action to take, or (n) of them: the one with the largest of the values that `act` gives for each."""
        if not self.choices:
            raise _lib.UsageError("its actions are real numbers: call act")
        return np.argmax(self.act(observations, goals), axis=-1)

    def distance(self, observations: ArrayLike, goals: ArrayLike, actions: ArrayLike | None = None) -> Any:
        """Steps that the run's value predicts from observations to goals after actions, by default the policy's own: a number
        for one row, (n) for many. Discrete actions are whole numbers. Raises Unsupported for an agent that learns no value."""
        obs, goal = np.asarray(observations), np.asarray(goals)
        rows, o, g = self._rows(obs, goal)
        steps, a = np.empty(rows, np.float32), None
        if actions is not None:
            a = self._actions(np.asarray(actions), rows)
        with self._lock:
            at = None if a is None else _lib.address(a)
            _lib.check(lib.policy_distance(self._handle, rows, _lib.address(o), _lib.address(g), at, _lib.address(steps)))
        return float(steps[0]) if obs.ndim == 1 and goal.ndim == 1 else steps

    def _actions(self, given: np.ndarray, rows: int) -> np.ndarray:
        """Actions (rows, act): given so, for all rows, or as whole numbers."""
        if self.choices and given.dtype.kind in "iu":
            if given.size and not 0 <= given.min() <= given.max() < self.choices:
                raise _lib.UsageError(f"there is no such action ({given.min()} to {given.max()}): give 0 to {self.choices - 1}")
            given = np.eye(self.choices, dtype=np.float32)[given]
        try:
            return np.ascontiguousarray(np.broadcast_to(given, (rows, self.act_size)), dtype=np.float32)
        except ValueError:
            raise _lib.UsageError(f"actions {given.shape} do not fit: give ({rows}, {self.act_size})") from None

    def _rows(self, obs: np.ndarray, goal: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        if obs.shape[-1:] != self._obs_shape or goal.shape[-1:] != self._goal_shape or obs.ndim > 2 or goal.ndim > 2:
            raise _lib.UsageError(
                f"observations {obs.shape} and goals {goal.shape} do not fit the policy: "
                f"give (n, {self.obs_size}) and (n, {self.goal_size}), or one of each"
            )
        rows = max(1 if a.ndim == 1 else len(a) for a in (obs, goal)) if obs.ndim == 1 or goal.ndim == 1 else len(obs)
        try:
            obs, goal = (np.broadcast_to(a, (rows, a.shape[-1])) for a in (obs, goal))
        except ValueError:
            raise _lib.UsageError(f"{len(obs)} observations and {len(goal)} goals: give as many of each") from None
        return rows, np.ascontiguousarray(obs, dtype=np.float32), np.ascontiguousarray(goal, dtype=np.float32)

    def evaluate(
        self, env: str | None = None, episodes: int = 15, seed: int = 0, progress: Callable[[int, int], Any] | None = None
    ) -> Score:
        """Play every task of an environment, by default the one it was trained for, as `dcrl eval` does: the same score.

        progress(done, all) is told the steps that are played; a true value ends it with Interrupted.
        """
        got, listening, plays = _lib.CScore(), _lib.Listening(), _lib.whole(episodes, "number of episodes")
        tell = _lib.EVAL(lambda _, done, total: listening.call(progress, done, total))
        with listening, self._lock:
            _lib.check(
                lib.policy_evaluate(self._handle, _lib.as_bytes(env) if env else None, plays, int(seed), tell, None, ctypes.byref(got))
            )
        return Score._of(got)

    def close(self) -> None:
        """Free it now instead of with its last reference."""
        with self._lock:
            handle, self._handle = self._handle, ctypes.c_void_p()
            if handle:
                lib.policy_close(handle)

    def __enter__(self) -> Policy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __repr__(self) -> str:
        return f"<dcrl.Policy: {self.obs_size} + {self.goal_size} -> {self.act_size}, step {self.step}, {self.env or 'no environment'}>"
