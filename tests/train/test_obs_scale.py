"""Scaled observations and observations of bytes: training on raw data with obs_scale=on gives the weights that training on
data scaled beforehand gives, and the policy that acts on raw observations does what the other does on scaled ones. The
scale stands in the checkpoint, so a policy needs nothing else. Bytes are seen as 0 to 1 without being asked for."""
import ctypes
import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402
from drive import Scratch, bad, checkpoints, good  # noqa: E402

TRAJECTORIES, STATES, OBS, ACT = 12, 40, 5, 2
SETTINGS = [("dcrl", []), ("dcrl", ["rep=1,2"]), ("dcrl", ["rep=0,1,3,2", "policy=rejection", "samples=4"]),
            ("hiql", ["rep=1,2"]), ("bc", []), ("sharsa", ["rep=0,1,3,2", "samples=4"]), ("por", []),
            ("hbc", []), ("hbc", ["rep=1,2", "actors=flow"])]
SEED = fresh.seed()
print(f"DCRL_SEED={SEED}", flush=True)
rng = np.random.default_rng(SEED)
LIBRARY = os.path.join(os.environ["BUILD"], "libdcrl.so")
with open(LIBRARY, "rb") as file:  # under a sanitizer it cannot be loaded into Python: policies do not act then
    content = file.read()
sanitized = b"__asan_init" in content or b"__tsan_init" in content
lib = None if sanitized else ctypes.CDLL(LIBRARY)
if lib:
    lib.dcrl_message.restype = ctypes.c_char_p


def write(path, obs, act):
    ends = np.zeros(len(obs), bool)
    ends[STATES - 1 :: STATES] = True
    np.savez(path, observations=obs, actions=act, terminals=ends)


def train(scratch, name, data, agent, sets):
    out = scratch.at(name)
    words = [w for s in [*sets, "hidden=16,12", "batch=32", "n=5"] if s != "n=5" or agent == "dcrl" for w in ("--set", s)]
    good("train", "--agent", agent, "--data", data, "--steps", 30, "--out", out, *words)
    return out


def columns(sets, width):
    for s in sets:
        if s.startswith("rep="):
            v = [int(x) for x in s[4:].split(",")]
            first, count, step, times = v if len(v) == 4 else (*v, 0, 1)
            return [first + t * step + k for t in range(times) for k in range(count)]
    return list(range(width))


def act(run, obs, goals, actions):
    p = ctypes.c_void_p()
    status = lib.dcrl_policy_open(ctypes.byref(p), run.encode(), 1)
    assert status == 0, lib.dcrl_message()
    out = np.zeros((len(obs), actions), np.float32)
    obs, goals = np.ascontiguousarray(obs), np.ascontiguousarray(goals)
    pointer = lambda x: x.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    assert lib.dcrl_policy_act(p, len(obs), pointer(obs), pointer(goals), pointer(out)) == 0
    lib.dcrl_policy_close(p)
    return out


def same_weights(a, b):
    a, b = (load_file(checkpoints(run)[-1]) for run in (a, b))
    names = [n for n in b if not n.startswith("scale/")]
    assert len(names) > 10
    for name in names:
        assert np.array_equal(a[name], b[name]), name
    return a


def check_floats(scratch, number, agent, sets):
    rows = TRAJECTORIES * STATES
    obs = (rng.normal(size=(rows, OBS)) * [1, 30, 0.01, 5, 1] + [0, 100, 3, -7, 0]).astype(np.float32)
    obs[:, 4] = 2.5  # does not vary
    actions = rng.uniform(-1, 1, size=(rows, ACT)).astype(np.float32)
    write(scratch.at("raw.npz"), obs, actions)
    raw = train(scratch, f"raw-{number}", scratch.at("raw.npz"), agent, [*sets, "obs_scale=on"])
    state = load_file(checkpoints(raw)[-1])
    mean, rate = state["scale/obs_mean"], state["scale/obs_rate"]
    wide = obs.astype(np.float64)
    assert np.allclose(mean, wide.mean(0), rtol=1e-6) and rate[4] == 1
    assert np.allclose(rate[:4], 1 / wide.std(0)[:4], rtol=1e-5)
    scaled = (obs - mean) * rate
    write(scratch.at("scaled.npz"), scaled, actions)
    plain = train(scratch, f"plain-{number}", scratch.at("scaled.npz"), agent, [*sets, "obs_scale=off"])
    same_weights(raw, plain)
    pick = columns(sets, OBS)
    assert not lib or np.array_equal(act(raw, obs[:50], obs[50:100][:, pick], ACT), act(plain, scaled[:50], scaled[50:100][:, pick], ACT))


def check_bytes(scratch):
    rows = TRAJECTORIES * STATES
    pictures = rng.integers(0, 256, size=(rows, 3, 2, 1), dtype=np.uint8)
    actions = rng.uniform(-1, 1, size=(rows, ACT)).astype(np.float32)
    write(scratch.at("bytes.npz"), pictures, actions)
    write(scratch.at("floats.npz"), pictures.reshape(rows, -1).astype(np.float32) * np.float32(1 / 255), actions)
    a = train(scratch, "bytes", scratch.at("bytes.npz"), "dcrl", [])
    b = train(scratch, "floats", scratch.at("floats.npz"), "dcrl", [])
    same_weights(a, b)
    off = train(scratch, "off", scratch.at("bytes.npz"), "dcrl", ["obs_scale=off"])
    assert "scale/obs_mean" not in load_file(checkpoints(off)[-1])


def check_population(scratch):
    """Members share what they can; goals that are the columns of an observation in another order have scales of their own."""
    rows = TRAJECTORIES * STATES
    write(scratch.at("order.npz"), (rng.normal(size=(rows, 3)) * [1, 30, 0.01]).astype(np.float32), rng.uniform(-1, 1, size=(rows, ACT)).astype(np.float32))
    words = ["--set", "rep=2,1,0,1,0,2,1,1", "--set", "obs_scale=on", "--set", "hidden=8,8", "--set", "batch=16", "--set", "log_every=5"]
    for seeds, out in (("0,1", "both"), ("1", "alone")):
        good("train", "--agent", "iql", "--data", scratch.at("order.npz"), "--steps", 20, "--seed", seeds, "--out", scratch.at(out), *words)
    with open(scratch.at("both", "seed-1", "train.csv")) as both, open(scratch.at("alone", "train.csv")) as alone:
        assert both.read() == alone.read()


with Scratch("obs_scale") as scratch:
    for number, (agent, sets) in enumerate(SETTINGS):
        check_floats(scratch, number, agent, sets)
    check_bytes(scratch)
    check_population(scratch)
    bad(2, ["obs_scale=on", "leave obs_scale out"], "grad", "--agent", "iql", "--describe", "--set", "obs_scale=on")
print(f"{len(SETTINGS)} settings scaled, bytes as 0 to 1")
