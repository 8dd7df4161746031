"""OGBench's environments as Gymnasium environments: one at a time, and many that step together on C threads.

Names are OGBench's; importing this package registers them with Gymnasium as `dcrl/NAME`. Observations, goals, rewards and
the ends of episodes are OGBench's to the last bit where the libraries allow it; random numbers are this library's own.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from . import _lib
from ._lib import lib

_MODES = {AutoresetMode.DISABLED: 0, AutoresetMode.NEXT_STEP: 1, AutoresetMode.SAME_STEP: 2}
_RATES = {"humanoidmaze": 40, "cube": 20, "scene": 20, "puzzle": 20}  # pictures per second of the environment's time; else 10


_PICTURE = (64, 64, 3)  # an observation of a visual environment


def facts(name: str) -> _lib.Facts:
    """What an environment's name means: its full name, sizes, number of tasks, time limit."""
    found = _lib.Facts()
    _lib.check(lib.env_find(_lib.as_bytes(name), ctypes.byref(found)))
    return found


class _Copies:
    """Copies of an environment behind one handle, with arrays of theirs whose addresses are known."""

    def __init__(self, name: str, count: int, seed: int, mode: AutoresetMode, threads: int) -> None:
        self.handle = ctypes.c_void_p()
        count, threads = _lib.whole(count, "number of environments"), _lib.whole(threads, "number of threads")
        self.handle = _lib.own(lib.vec_open, _lib.as_bytes(name), count, seed, _MODES[mode], threads)
        self.lock = threading.Lock()
        sizes = lib.env_sizes(self.env(0))
        self.count, self.obs, self.goal, self.act = count, int(sizes.obs), int(sizes.goal), int(sizes.act)
        self.visual = name.startswith("visual-")
        self.actions = np.zeros((count, self.act))
        self.observations, self.last = np.zeros((count, self.obs)), np.zeros((count, self.obs))
        self.goals, self.rewards = np.zeros((count, self.goal)), np.zeros(count)
        self.successes, self.truncated, self.began = (np.zeros(count, bool) for _ in range(3))
        arrays = (self.observations, self.rewards, self.successes, self.truncated, self.began, self.last)
        self._out = _lib.StepOut(*(_lib.address(a) for a in arrays))
        self._at = _lib.address(self.actions), ctypes.byref(self._out)
        self._step = lib.vec_step

    def env(self, index: int) -> int:
        return lib.vec_env(self.handle, index)  # type: ignore[no-any-return]

    def space(self) -> gymnasium.spaces.Box:
        if self.visual:
            return gymnasium.spaces.Box(0, 255, _PICTURE, np.uint8)
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.obs,), np.float64)

    def told(self, rows: np.ndarray) -> np.ndarray:
        """A copy of observations or goals; pictures as bytes."""
        if self.visual and rows.shape[-1] == self.obs:
            return rows.astype(np.uint8).reshape(*rows.shape[:-1], *_PICTURE)
        return rows.copy()

    def action_space(self) -> gymnasium.spaces.Box:
        low, high = np.zeros(self.act, np.float32), np.zeros(self.act, np.float32)
        _lib.check(lib.env_action_range(self.env(0), _lib.address(low), _lib.address(high)))
        return gymnasium.spaces.Box(low, high, (self.act,), np.float32)

    def set_tasks(self, tasks: ArrayLike) -> None:
        wanted = np.ascontiguousarray(np.broadcast_to(np.asarray(tasks, np.int32), self.count))
        _lib.check(lib.vec_set_tasks(self.handle, _lib.address(wanted)))

    def reset(self, marked: np.ndarray | None = None) -> None:
        mask = None if marked is None else np.ascontiguousarray(marked, dtype=np.uint8)
        if mask is not None and mask.shape != (self.count,):
            raise _lib.UsageError(f"a reset_mask {mask.shape} does not fit: give ({self.count},)")
        at = None if mask is None else _lib.address(mask)
        _lib.check(lib.vec_reset(self.handle, at, _lib.address(self.observations), _lib.address(self.goals)))

    def step(self, actions: ArrayLike) -> None:
        given = np.asarray(actions)
        if given.shape != self.actions.shape:
            raise _lib.UsageError(f"actions {given.shape} do not fit: give {self.actions.shape}")
        self.actions[...] = given
        status = self._step(self.handle, self._at[0], given.dtype == np.float32, self._at[1])
        if status:
            _lib.check(status)

    def state(self, index: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes = lib.env_state_sizes(self.env(index))
        qpos, qvel, extra = np.empty(sizes.qpos), np.empty(sizes.qvel), np.empty(sizes.extra)
        _lib.check(lib.env_state(self.env(index), _lib.address(qpos), _lib.address(qvel), _lib.address(extra)))
        return qpos, qvel, extra

    def render(self, index: int, width: int, height: int) -> np.ndarray:
        rgb = np.empty((height, width, 3), np.uint8)
        _lib.check(lib.env_render(self.env(index), width, height, _lib.address(rgb)))
        return rgb

    def goal_columns(self) -> np.ndarray:
        columns = np.zeros(self.obs, np.int32)
        return columns[: lib.env_goal_columns(self.env(0), _lib.address(columns))]

    def close(self) -> None:
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            lib.vec_close(handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()


def _metadata(name: str) -> dict[str, Any]:
    return {"render_modes": ["rgb_array"], "render_fps": _RATES.get(name.removeprefix("visual-").split("-")[0], 10)}


class Env(gymnasium.Env[np.ndarray, np.ndarray]):
    """One of OGBench's environments, in any of its forms: "cube-single-v0", "antmaze-large-oraclerep-v0",
    "scene-singletask-task4-v0". Observations and goals of a visual one, "visual-cube-single-v0", are pictures (64, 64, 3) of uint8.

    reset(seed=, options={"task_id": 1 ... 5}) gives info["goal"]; without a task one is drawn. Each step's info has
    "success", and the simulator's state as "qpos", "qvel" (and "prev_qpos", "prev_qvel", of the state before; "button_states"
    where there are buttons). Actions are cut to [-1, 1]. The time limit is `gymnasium.make`'s wrapper.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, name: str, render_mode: str | None = "rgb_array", width: int = 200, height: int = 200) -> None:
        if render_mode not in (None, "rgb_array"):
            raise _lib.UsageError(f"there is no render_mode {render_mode!r}: give 'rgb_array' or None")
        self.name = facts(name).name.decode()
        self.metadata = _metadata(self.name)
        self.render_mode, self.width, self.height = render_mode, width, height
        self._copies = _Copies(name, 1, int(np.random.SeedSequence().generate_state(1)[0]), AutoresetMode.DISABLED, 1)
        self.observation_space, self.action_space = self._copies.space(), self._copies.action_space()
        self.num_tasks = int(lib.env_tasks(self._copies.env(0)))
        self.task_infos = [{"task_name": f"task{k + 1}"} for k in range(self.num_tasks)]
        self._state: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def cur_task_id(self) -> int | None:
        """Task of the running episode."""
        return int(lib.env_task(self._copies.env(0))) or None

    @property
    def goal_columns(self) -> np.ndarray:
        """Which values of an observation are the goal of the -oraclerep form."""
        return self._copies.goal_columns()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        c, options = self._copies, options or {}
        if "task_info" in options:
            raise _lib.UsageError("tasks of one's own (task_info) are not supported: give task_id")
        with c.lock:
            if seed is not None:
                _lib.check(lib.env_seed(c.env(0), seed))
            if "draws" in options:  # numbers in place of random ones, to compare with another implementation
                draws = np.ascontiguousarray(options["draws"], dtype=np.float64)
                _lib.check(lib.env_give_draws(c.env(0), draws.size, _lib.address(draws)))
            c.set_tasks(options.get("task_id") or 0)
            c.reset()
            self._state = c.state()
            return c.told(c.observations[0]), {"goal": c.told(c.goals[0]), **self._told()}

    def _told(self) -> dict[str, np.ndarray]:
        assert self._state is not None
        qpos, qvel, extra = self._state
        told = {"qpos": qpos, "qvel": qvel}
        if extra.size:
            told["button_states"] = extra.astype(np.int64)
        return told

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        c, before = self._copies, self._state
        with c.lock:
            c.step(np.asarray(action)[None])
            self._state = c.state()
            success = bool(c.successes[0])
            info: dict[str, Any] = {"success": float(success), **self._told()}
            if before is not None:
                info["prev_qpos"], info["prev_qvel"] = before[:2]
            return c.told(c.observations[0]), float(c.rewards[0]), success, False, info

    def render(self) -> np.ndarray:
        """The picture (height, width, 3) that OGBench draws, without a screen."""
        with self._copies.lock:
            return self._copies.render(0, self.width, self.height)

    def close(self) -> None:
        self._copies.close()


class VectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies of an environment that step together on threads of the library (0: one for every core).

    Copy i with seed s has the episodes of an `Env` with seed s + i, whatever the number of threads. The task of
    reset(options={"task_id": k}), a number or one for each copy, holds until the next reset; 0 or None draws one for every
    episode. Every info has "goal" and "success" of all copies, and "final_obs" with autoreset mode SAME_STEP.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        seed: int | None = None,
        threads: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        width: int = 200,
        height: int = 200,
        max_episode_steps: int | None = None,
    ) -> None:
        limit = facts(name).horizon
        if max_episode_steps not in (None, limit):  # gymnasium.make_vec says what is registered
            raise _lib.UsageError(f"the time limit of {name} is {limit} steps, not {max_episode_steps}")
        mode = AutoresetMode(autoreset_mode)
        first = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        c = self._copies = _Copies(name, num_envs, first, mode, threads)
        self.name, self.num_envs = facts(name).name.decode(), num_envs
        self.metadata = {**_metadata(self.name), "autoreset_mode": mode}
        self.render_mode, self.width, self.height = "rgb_array", width, height
        self.single_observation_space, self.single_action_space = c.space(), c.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.num_tasks = int(lib.env_tasks(c.env(0)))
        self._all = np.ones(num_envs, bool)
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._goals = c.told(c.goals)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        c, options = self._copies, options or {}
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else seed or []
        if seeds and len(seeds) != self.num_envs:
            raise _lib.UsageError(f"{len(seeds)} seeds do not fit: give one number, or {self.num_envs}")
        with c.lock:
            for i, one in enumerate(seeds):
                if one is not None:
                    _lib.check(lib.env_seed(c.env(i), int(one)))
            tasks = options.get("task_id")
            c.set_tasks(0 if tasks is None else tasks)
            c.reset(options.get("reset_mask"))
            self._goals = c.told(c.goals)
            return c.told(c.observations), {"goal": self._goals, "_goal": self._all}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        c = self._copies
        with c.lock:
            c.step(actions)
            successes = c.successes.copy()
            info: dict[str, Any] = {"success": successes, "_success": self._all, "goal": self._goals, "_goal": self._all}
            if c.began.any():
                _lib.check(lib.vec_goals(c.handle, _lib.address(c.goals)))
                info["goal"] = self._goals = c.told(c.goals)
                if self._same_step:
                    info["final_obs"], info["_final_obs"] = c.told(c.last), c.began.copy()
            return c.told(c.observations), c.rewards.copy(), successes, c.truncated.copy(), info

    def render(self) -> tuple[np.ndarray, ...]:
        """A picture of every copy."""
        with self._copies.lock:
            return tuple(self._copies.render(i, self.width, self.height) for i in range(self.num_envs))

    def close_extras(self, **_: Any) -> None:
        self._copies.close()


def list_envs() -> list[str]:
    """Names of all environments in their plain form, then of the visual ones."""
    found = _lib.Facts()
    names: list[str] = []
    while lib.env_list(len(names), ctypes.byref(found)) == 0:
        names.append(found.name.decode())
    return names


def _forms(plain: str) -> list[str]:
    stem = plain.removesuffix("-v0")
    forms = ["oraclerep", "singletask", *(f"singletask-task{k}" for k in range(1, 6))]
    return [plain, *(f"{stem}-{form}-v0" for form in forms)]


def register_envs() -> None:
    """Register all environments in all forms with Gymnasium, as dcrl/NAME."""
    for plain in list_envs():
        for name in _forms(plain):
            gymnasium.register(
                id=f"dcrl/{name}",
                entry_point="dcrl.envs:Env",
                vector_entry_point="dcrl.envs:VectorEnv",
                max_episode_steps=facts(name).horizon,
                kwargs={"name": name},
            )


def make(name: str, **more: Any) -> gymnasium.Env[np.ndarray, np.ndarray]:
    """gymnasium.make of an environment by OGBench's name, with or without the data's word in it."""
    return gymnasium.make(f"dcrl/{facts(name).name.decode()}", **more)


def make_vec(name: str, num_envs: int, **more: Any) -> VectorEnv:
    """A VectorEnv by OGBench's name."""
    return VectorEnv(name, num_envs, **more)


register_envs()
