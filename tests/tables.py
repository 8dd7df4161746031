"""What comparisons with the Python package's tables share: environments, plain arithmetic, recorded draws, and its data
collection as a loop (which the package itself does not contain)."""

import math
import warnings

import gymnasium
import mujoco
import numpy as np
from ogbench.manipspace.controllers.diff_ik import DiffIKController
from ogbench.manipspace.lie import se3, so3
from ogbench.manipspace.oracles.markov.button_markov import ButtonMarkovOracle
from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle
from ogbench.manipspace.oracles.markov.drawer_markov import DrawerMarkovOracle
from ogbench.manipspace.oracles.markov.window_markov import WindowMarkovOracle
from ogbench.manipspace.oracles.plan.button_plan import ButtonPlanOracle
from ogbench.manipspace.oracles.plan.cube_plan import CubePlanOracle
from ogbench.manipspace.oracles.plan.drawer_plan import DrawerPlanOracle
from ogbench.manipspace.oracles.plan.window_plan import WindowPlanOracle

from drive import run_tests

NAMES = [f"cube-{n}" for n in ["single", "double", "triple", "quadruple", "octuple"]] + ["scene"]
NAMES += [f"puzzle-{n}" for n in ["3x3", "4x4", "4x5", "4x6"]]
AIMS = ["", "cube", "button", "drawer", "window"]


def plain_solve(h, b):
    """Gauss with row exchanges, one rounding after the other."""
    n = len(b)
    for c in range(n):
        top = max(range(c, n), key=lambda r: (abs(h[r][c]), -r))
        h[c], h[top], b[c], b[top] = h[top], h[c], b[top], b[c]
        for r in range(c + 1, n):
            factor = h[r][c] / h[c][c]
            for k in range(c, n):
                h[r][k] -= factor * h[c][k]
            b[r] -= factor * b[c]
    for r in reversed(range(n)):
        for k in range(r + 1, n):
            b[r] -= h[r][k] * b[k]
        b[r] /= h[r][r]
    return b


def plain_update(ik):
    """The reference's damped least squares, summed in order."""
    jac, n = ik._jac.tolist(), len(ik._jac)
    h = [[float(ik._damping[r, c]) for c in range(n)] for r in range(n)]
    for r in range(n):
        for c in range(n):
            for k in range(n):
                h[r][c] += jac[r][k] * jac[c][k]
    y, x = plain_solve(h, ik._err.ravel().tolist()), [0.0] * n
    for c in range(n):
        for r in range(n):
            x[c] += jac[r][c] * y[r]
    return np.array(x)


def plain_yaw(rotation):
    """The reference squares by pow(), which is not always the nearest number."""
    w, x, y, z = rotation.wxyz.tolist()
    return np.float64(math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def plain_norm(x, *words, **named):
    """The reference's goes through BLAS, which fuses products and sums."""
    if words or named or np.ndim(x) != 1:
        return norm(x, *words, **named)
    total = 0.0
    for v in np.asarray(x, float).tolist():
        total += v * v
    return np.float64(math.sqrt(total))


norm = np.linalg.norm


class Product(np.ndarray):
    """A matrix that multiplies vectors sum by sum."""

    def __matmul__(self, other):
        a, b = np.asarray(self), np.asarray(other)
        if a.ndim == 2 and b.ndim == 1:
            return np.array([plain_sum(row, b) for row in a.tolist()])
        return (a @ b).view(Product)


def plain_sum(a, b):
    total = 0.0
    for x, y in zip(a, b.tolist()):
        total += x * y
    return total


class Plain:
    """The reference with the C library's rounding where numpy's own is another."""

    def __getattr__(self, name):  # numpy, as lie sees it
        if name == "arctan2":
            return math.atan2
        if name == "eye":
            return lambda *words, **named: np.eye(*words, **named).view(Product)
        return getattr(math if name in ("sin", "cos") else np, name)

    def __enter__(self):
        self.before = DiffIKController._solve, so3.SO3.compute_yaw_radians
        DiffIKController._solve, so3.SO3.compute_yaw_radians = plain_update, plain_yaw
        so3.np = se3.np = self
        np.linalg.norm = plain_norm

    def __exit__(self, *_):
        DiffIKController._solve, so3.SO3.compute_yaw_radians = self.before
        so3.np = se3.np = np
        np.linalg.norm = norm


def code_of(permutation):
    """A permutation as numbers below n, n - 1, ... 2: which of those left comes next."""
    left, code = sorted(permutation), []
    for p in permutation[:-1]:
        code.append(left.index(p))
        left.remove(p)
    return code


def middle_of(values, choice, p):
    """A number in [0, 1) that a choice by weights turns into the same one."""
    k = list(values).index(choice)
    return (np.cumsum(p)[k] + np.cumsum(p)[k] - p[k]) / 2


class Recorder:
    """Everything random that the Python package draws while this is active, in order."""

    def __init__(self, env):
        self.env, self.values = env.unwrapped, []

    def keep(self, function, shape=np.ravel):
        def kept(*words, **named):
            value = function(*words, **named)
            self.values.extend(float(x) for x in shape(value))
            return value

        return kept

    def choose(self, values, p=None):
        choice = self.before[0].choice(values, p=p)
        listed = range(values) if np.ndim(values) == 0 else list(values)
        self.values.append(float(middle_of(listed, choice, p) if p is not None else list(listed).index(choice)))
        return choice

    def normal(self, loc, scale, size=None):  # as the C side asks: of deviation 1
        z = self.before[3](size=size)
        self.values.extend(np.ravel(z).tolist())
        return loc + np.asarray(scale) * z

    def __enter__(self):
        env = self.env
        self.before = env.np_random, gymnasium.spaces.Box.sample, np.random.uniform, np.random.standard_normal
        self.legacy = np.random.uniform, np.random.rand, np.random.normal
        source = type("Source", (), {})()
        source.uniform = self.keep(self.before[0].uniform)
        source.standard_normal = self.keep(self.before[0].standard_normal)  # of mazes
        source.permutation = self.keep(self.before[0].permutation, code_of)
        source.choice = self.choose
        env._np_random = source
        gymnasium.spaces.Box.sample = self.keep(self.before[1])
        np.random.uniform, np.random.rand = self.keep(self.legacy[0]), self.keep(self.legacy[1])
        np.random.normal = self.normal
        return self

    def __exit__(self, *_):
        self.env._np_random, gymnasium.spaces.Box.sample = self.before[:2]
        np.random.uniform, np.random.rand, np.random.normal = self.legacy


# ---- data collection ----

STACK = {"single": (0, 0), "double": (0, 0.25), "triple": (0.05, 0.35), "quadruple": (0.1, 0.5), "octuple": (0, 0.35)}


def make_collector(name, rows):
    env = gymnasium.make(f"{name}-v0", terminate_at_goal=False, mode="data_collection", max_episode_steps=rows)
    env.reset()
    return env


def oracles_of(name, env, kind):
    if kind == "play":
        closed = ButtonPlanOracle(env=env, noise=0.1, noise_smoothing=0.5, gripper_always_closed="puzzle" in name)
        kinds = dict(cube=CubePlanOracle, drawer=DrawerPlanOracle, window=WindowPlanOracle)
        return dict(button=closed, **{k: c(env=env, noise=0.1, noise_smoothing=0.5) for k, c in kinds.items()})
    closed = ButtonMarkovOracle(env=env, min_norm=0.4, gripper_always_closed="puzzle" in name)
    kinds = dict(cube=CubeMarkovOracle, drawer=DrawerMarkovOracle, window=WindowMarkovOracle)
    return dict(button=closed, **{k: c(env=env, min_norm=0.4) for k, c in kinds.items()})


def aim_of(env):
    return AIMS.index({"cube": "cube", "button": "button"}.get(env._target_task, env._target_task))


def forget(env):
    """Every episode as the first one of a run: nothing is left of what an earlier one wanted."""
    if hasattr(env, "_target_button_states"):
        env._target_button = 0
        env._target_button_states = np.zeros(env._num_buttons, int)
    if hasattr(env, "_target_drawer_pos"):
        env._target_drawer_pos = env._target_window_pos = 0.0
        env._model.site("drawer_handle_center_target").pos[1] = 0.0
        env._model.site("window_handle_center_target").pos[0] = 0.0


def collect_once(name, env, kind, agents):
    """Rows of an episode, as the published data was made: lists by column, and whether the cube was always in sight."""
    table = env.unwrapped
    forget(table)
    ob, info = env.reset()
    stack = next((s for word, s in STACK.items() if word in name), (0.5, 0.5))
    p_stack = np.random.uniform(*stack) if stack[0] < stack[1] else stack[0]
    shaking = np.random.uniform(0, 0.1) if kind == "noisy" else 0
    p_random = {"play": 0, "noisy": 0.2 if "puzzle" in name else 0.1}[kind]
    agent = agents[info["privileged/target_task"]]
    agent.reset(ob, info)
    rows, healthy, done = [], True, False
    while not done:
        aim = aim_of(table)
        if np.random.rand() < p_random:
            action = env.action_space.sample()
        else:
            action = np.array(agent.select_action(ob, info))
            if kind == "noisy":
                action = action + np.random.normal(0, [shaking] * 3 + [shaking * 3, shaking * 10], action.shape)
        action = np.clip(action, -1, 1)
        next_ob, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        ended, success = agent.done, bool(info["success"])
        if agent.done:
            agent_ob, agent_info = table.set_new_target(p_stack=p_stack)
            agent = agents[agent_info["privileged/target_task"]]
            agent.reset(agent_ob, agent_info)
        buttons = info.get("prev_button_states", np.zeros(0, int))
        rows.append((ob, action, done, info["prev_qpos"], info["prev_qvel"], buttons, aim, success, ended))
        if name == "scene":
            _, y, z = info["qpos"][14:17]
            healthy = healthy and y < 0.29 and not (y <= -0.3 and (z < 0.06 or z > 0.08))
        ob = next_ob
    keys = ["observations", "actions", "terminals", "qpos", "qvel", "button_states", "aim", "success", "ended"]
    return {k: np.array(c) for k, c in zip(keys, zip(*rows))}, healthy


def collect(name, env, kind):
    agents = oracles_of(name, env, kind)
    while True:
        rows, healthy = collect_once(name, env, kind, agents)
        if healthy:
            return rows


plain = Plain()


def run_plain(names):
    """Run a script's tests with the package's arithmetic made plain."""
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    warnings.filterwarnings("ignore")
    assert mujoco.__version__ == "3.3.7", "the reference must be the library that dcrl is linked with"
    with plain:
        run_tests(names)
