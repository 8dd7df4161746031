"""Exported policies act as the run does: the C file, compiled by itself as C99 without a warning, and the ONNX model under onnxruntime, give the
actions of dcrl_policy_act for every kind of policy (means, squashed means, flows with one and with many candidates, two levels), with scaled
observations, goal representations, actions in units of their own, and pictures."""

import ctypes
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, good, run_tests  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

TRAJECTORIES, STATES, OBS, ACT, ROWS = 10, 30, 5, 2, 40
RNG = np.random.default_rng(5)
LIBRARY = os.path.join(os.environ["BUILD"], "libdcrl.so")
with open(LIBRARY, "rb") as file:
    content = file.read()
SANITIZED = b"__asan_init" in content or b"__tsan_init" in content  # it cannot be loaded into Python then
POLICIES = {  # agent, options, candidates
    "mean": ("bc", [], 0),
    "mean without LayerNorm": ("iql", ["obs_scale=on", "rep=1,2"], 0),
    "mean with LayerNorm": ("dcrl", ["rep=0,1,3,2", "act_scale=auto"], 0),
    "squashed": ("sacbc", ["obs_scale=on", "act_scale=-4,4"], 0),
    "candidates": ("dcrl", ["policy=rejection", "samples=5", "flow_steps=4", "rep=1,2", "obs_scale=on"], 5),
    "one sample": ("fbc", ["flow_steps=3", "act_scale=auto"], 1),
    "subgoal": ("hiql", ["rep=1,2"], 0),
    "subgoal of many": ("sharsa", ["rep=0,1,3,2", "samples=3", "flow_steps=3"], 3),
}
SHAPE = (18, 17, 3)
PICTURES = {
    "two encoders": ("bc", ["actor_gain=3"], 0),
    "one encoder": ("bc", ["actor_gain=3", "fusion=concat"], 0),
    "a picture and numbers": ("bc", ["actor_gain=3", "rep=0,2"], 0),
    "candidates from pictures": ("dcrl", ["policy=rejection", "samples=3", "flow_steps=2", "fusion=concat"], 3),
    "subgoal from pictures": ("hiql", ["rep_dim=4", "actor_gain=3"], 0),
}

WRAPPER = """
#include "policy.c"
static policy_memory memory;
void act(int n, const float *obs, const float *goal, float *action) {
    for (int i = 0; i < n; i++)
        policy_act(&memory, obs + i * POLICY_OBSERVATION, goal + i * POLICY_GOAL, (uint64_t)i, action + i * POLICY_ACTION);
}
"""
NORMALS = "void normals(int n, uint64_t moment, uint32_t first, float *out) { for (int i = 0; i < n; i++) out[i] = dc_draw_normal(0, 24, moment, first + (uint32_t)i); }\n"


def pointer(x):
    assert x.dtype == np.float32 and x.flags.c_contiguous
    return x.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


def write_data(path, reach):
    rows = TRAJECTORIES * STATES
    obs = (RNG.normal(size=(rows, OBS)) * [1, 3, 0.5, 2, 1] + [0, 10, 3, -7, 0]).astype(np.float32)
    actions = (RNG.uniform(-1, 1, size=(rows, ACT)) * reach).astype(np.float32)
    np.savez(path, observations=obs, actions=actions, terminals=np.arange(rows) % STATES == STATES - 1)
    return obs


def by_library(run, obs, goals):
    lib = ctypes.CDLL(LIBRARY)
    lib.dcrl_message.restype = ctypes.c_char_p
    policy, out = ctypes.c_void_p(), np.zeros((len(obs), ACT), np.float32)
    assert lib.dcrl_policy_open(ctypes.byref(policy), run.encode(), 1) == 0, lib.dcrl_message()
    assert lib.dcrl_policy_act(policy, len(obs), pointer(obs), pointer(goals), pointer(out)) == 0
    lib.dcrl_policy_close(policy)
    return out


def compiled(folder, noise):
    """The exported file by itself, and with a caller around it as a library."""
    strict = ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*strict, "-c", "policy.c", "-o", "policy.o"], cwd=folder, check=True)
    with open(os.path.join(folder, "wrapper.c"), "w") as file:
        file.write(WRAPPER + (NORMALS if noise else ""))
    subprocess.run([*strict, "-shared", "-fPIC", "wrapper.c", "-o", "policy.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(os.path.join(folder, "policy.so"))


def by_onnx(path, library, obs, goals):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs, first = {}, 0
    for value in session.get_inputs():
        if value.name.startswith("noise"):
            inputs[value.name] = np.zeros((len(obs), value.shape[1]), np.float32)
            for row in range(len(obs)):
                library.normals(value.shape[1], ctypes.c_uint64(row), first, pointer(inputs[value.name][row]))
            first += value.shape[1]
    inputs |= {k: v for k, v in {"observation": obs, "goal": goals}.items() if k in {i.name for i in session.get_inputs()}}
    return session.run(["action"], inputs)[0]


def goal_columns(sets):
    for s in sets:
        if s.startswith("rep="):
            v = [int(x) for x in s[4:].split(",")]
            first, count, step, times = v if len(v) == 4 else (*v, 0, 1)
            return [first + t * step + k for t in range(times) for k in range(count)]
    return list(range(OBS))


def check_policy(folder, name, policy, obs, goals, *, size=1, most=1, training):
    """Actions in C and ONNX against the library's: obs, goals are rows to act in, size the unit of an action, most the largest."""
    agent, sets, candidates = policy
    run = os.path.join(folder, "run")
    words = [w for s in sets for w in ("--set", s)]
    good("train", "--agent", agent, "--data", os.path.join(folder, "data.npz"), "--out", run, *words, *training)
    assert f"wrote {folder}/policy.c: {agent} at step" in good("export", run, "-o", os.path.join(folder, "policy.c"))
    good("export", run, "-o", os.path.join(folder, "policy.onnx"))
    library = compiled(folder, candidates)
    mine = np.zeros((len(obs), ACT), np.float32)
    library.act(len(obs), pointer(obs), pointer(goals), pointer(mine))
    assert np.abs(mine).max() <= most and mine.std(0).min() > 1e-3, (name, mine.std(0))
    want = mine if SANITIZED else by_library(run, obs, goals)
    # Another candidate may win where two are worth the same to the last bits.
    near = (np.abs(mine - want).max(1) < 1e-4 * size).mean()
    assert near == 1 if candidates < 2 else near > 0.9, (name, near, np.abs(mine - want).max())
    if onnxruntime:
        theirs = by_onnx(os.path.join(folder, "policy.onnx"), library, obs, goals)
        near = (np.abs(theirs - mine).max(1) < 1e-4 * size).mean()
        assert near == 1 if candidates < 2 else near > 0.9, (name, near, np.abs(theirs - mine).max())
    print(f"  {name} ({agent}): {'C and ONNX' if onnxruntime else 'C'}")


def test_policies():
    with Scratch("export") as scratch:
        for name, policy in POLICIES.items():
            folder = scratch.at(name.replace(" ", "-"))
            os.makedirs(folder)
            scaled = any(s.startswith("act_scale") for s in policy[1])
            size = 3.5 if scaled else 1
            obs = write_data(os.path.join(folder, "data.npz"), size)[:ROWS]
            goals = np.ascontiguousarray(obs[::-1][:, goal_columns(policy[1])])
            check_policy(folder, name, policy, obs, goals, size=size, most=4 if scaled else 1,
                         training=["--steps", 200, "--lr", 0.01, "--hidden", "16,12", "--batch", 32])


def test_pictures():
    """Encoders of pictures of an even and an odd side, one for each picture and one for both."""
    with Scratch("export") as scratch:
        for name, policy in PICTURES.items():
            folder = scratch.at(name.replace(" ", "-"))
            os.makedirs(folder)
            pictures = RNG.integers(0, 256, (40, *SHAPE)).astype(np.uint8)
            np.savez(os.path.join(folder, "data.npz"), observations=pictures, terminals=np.arange(40) % 20 == 19,
                     actions=RNG.uniform(-1, 1, (40, ACT)).astype(np.float32))
            obs = pictures[:12].reshape(12, -1).astype(np.float32)
            goals = np.ascontiguousarray(obs[::-1][:, :2] if "rep=0,2" in policy[1] else obs[::-1])
            check_policy(folder, name, policy, obs, goals, training=["--steps", 2, "--hidden", "16,12", "--batch", 4])


def test_name_in_a_comment():
    """The name of an environment, which a checkpoint says, cannot get out of the comment that it stands in."""
    with Scratch("export") as scratch:
        data, run = scratch.at("data.npz"), scratch.at("run")
        write_data(data, 1)
        good("train", "--agent", "bc", "--env", "*/ int stranger; /* ??/\n", "--data", data, "--steps", 2, "--hidden", "8,8", "--batch", 8, "--out", run)
        good("export", run, "-o", scratch.at("policy.c"))
        compiled(scratch.path, False)
        with open(scratch.at("policy.c")) as file:
            head, _, rest = file.read().partition("*/")
        assert "stranger" in head and "stranger" not in rest


def test_refused():
    with Scratch("export") as scratch:
        data, run = scratch.at("data.npz"), scratch.at("run")
        write_data(data, 1)
        good("train", "--agent", "dcrl", "--data", data, "--steps", 5, "--set", "hidden=8,8", "--set", "batch=16", "--set", "policy=none", "--out", run)
        bad(1, "the run has no policy", "export", run, "-o", scratch.at("x.c"))
        bad(2, [".c or .onnx", "x.txt"], "export", run, "-o", scratch.at("x.txt"))
        bad(2, "one run is needed", "export", "-o", scratch.at("x.c"))
        bad(1, "nowhere", "export", scratch.at("nowhere"), "-o", scratch.at("x.c"))
        assert not os.path.exists(scratch.at("x.c"))


if __name__ == "__main__":
    run_tests(globals())
