"""Actions in units of their own: training on raw actions with act_scale gives the weights that training on actions scaled
beforehand gives, and the policy answers in the data's units. Without act_scale such data is refused, with the remedy.
The ranges stand in the checkpoint and in config.json, so that a policy needs nothing else; a resume gives the same bytes.
Columns of very different scale are told with the remedy, too."""
import ctypes
import json
import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, checkpoints, digests, good, run_tests  # noqa: E402

ROWS, OBS, ACT = 480, 5, 3
SETTINGS = [("dcrl", []), ("dcrl", ["policy=rejection", "samples=4"]), ("td", []), ("iql", []), ("sacbc", []), ("crl", []), ("qrl", []),
            ("hiql", []), ("bc", []), ("fbc", [])]
LIBRARY = os.path.join(os.environ["BUILD"], "libdcrl.so")
with open(LIBRARY, "rb") as file:  # under a sanitizer it cannot be loaded into Python: policies do not act then
    content = file.read()
lib = None if b"__asan_init" in content or b"__tsan_init" in content else ctypes.CDLL(LIBRARY)
if lib:
    lib.dcrl_message.restype = ctypes.c_char_p
rng = np.random.default_rng(5)
OBSERVATIONS = rng.normal(size=(ROWS, OBS)).astype(np.float32)
RADIANS = (rng.uniform(-1, 1, size=(ROWS, ACT)) * [3.1, 0.2, 7] + [0, 4, -1]).astype(np.float32)


def write(path, act, obs=OBSERVATIONS):
    np.savez(path, observations=obs, actions=act, terminals=np.arange(len(obs)) % 40 == 39)
    return path


def train(s, name, data, agent, sets, *words):
    more = [w for one in ["hidden=16,12", "batch=32", *sets] for w in ("--set", one)]
    good("train", "--agent", agent, "--data", data, "--steps", 30, "--out", s.at(name), *words, *more)
    return s.at(name)


def act(run, rows):
    p = ctypes.c_void_p()
    assert lib.dcrl_policy_open(ctypes.byref(p), run.encode(), 1) == 0, lib.dcrl_message()
    out = np.zeros((rows, ACT), np.float32)
    obs, goals = (np.ascontiguousarray(OBSERVATIONS[k : k + rows]) for k in (0, 100))
    pointer = lambda x: x.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    low, high = (np.zeros(ACT, np.float32) for _ in range(2))
    assert lib.dcrl_policy_action_range(p, pointer(low), pointer(high)) == 0
    assert lib.dcrl_policy_act(p, rows, pointer(obs), pointer(goals), pointer(out)) == 0
    lib.dcrl_policy_close(p)
    return out, low, high


def ranges(low, high):
    low, high = np.float64(low), np.float64(high)
    return np.float32((low + high) / 2), np.float32((1 - 1e-5) / ((high - low) / 2))


def test_equal_to_scaled_beforehand():
    with Scratch("act_scale") as s:
        raw = write(s.at("raw.npz"), RADIANS)
        for number, (agent, sets) in enumerate(SETTINGS):
            given = number % 2 == 0
            low, high = (np.float32([-9] * ACT), np.float32([8.5] * ACT)) if given else (RADIANS.min(0), RADIANS.max(0))
            mean, rate = ranges(low, high)
            scaled = write(s.at("scaled.npz"), ((RADIANS - mean) * rate).astype(np.float32))
            a = train(s, f"raw-{number}", raw, agent, sets, "--act-scale", "-9,8.5" if given else "auto")
            b = train(s, f"scaled-{number}", scaled, agent, sets)
            one, two = (load_file(checkpoints(run)[-1]) for run in (a, b))
            assert np.array_equal(one["scale/act_low"], low) and np.array_equal(one["scale/act_high"], high)
            for name in two:  # the ends of a range may differ in their last bit from those that were clipped
                assert np.allclose(one[name], two[name], rtol=0 if given else 1e-4, atol=0 if given else 1e-5), (agent, name)
            config = json.load(open(os.path.join(a, "config.json")))
            assert np.array_equal(np.float32(config["act_low"]), low) and config["act_scale"] == ("-9,8.5" if given else "auto")
            assert "act_low" not in json.load(open(os.path.join(b, "config.json")))
            if lib:
                (mine, least, most), (other, one, two) = act(a, 60), act(b, 60)
                assert np.array_equal(least, low) and np.array_equal(most, high) and (one == -1).all() and (two == 1).all()
                assert (mine >= low).all() and (mine <= high).all()
                assert np.allclose(mine, np.clip(mean + other.astype(np.float64) / rate, low, high), atol=1e-5 if given else 1e-2), agent
        # Resumed and on a store: the same bytes.
        good("data", "convert", raw, s.at("store"))
        train(s, "stored", s.at("store"), "dcrl", [], "--act-scale", "auto", "--save-every", 10)
        a = train(s, "again", raw, "dcrl", [], "--act-scale", "auto", "--save-every", 10)
        assert digests(a) == digests(s.at("stored"))
        os.remove(checkpoints(a)[-1])
        os.remove(os.path.join(a, "DONE"))
        good("train", "--resume", a)
        assert digests(a) == digests(s.at("stored"))


def test_constant_column():
    """What does not vary is 0 to the networks and its value to the robot."""
    with Scratch("act_scale") as s:
        still = RADIANS.copy()
        still[:, 1] = 2.5
        run = train(s, "run", write(s.at("still.npz"), still), "bc", [], "--act-scale", "auto")
        if lib:
            assert (act(run, 50)[0][:, 1] == 2.5).all()


def test_refused():
    with Scratch("act_scale") as s:
        raw = write(s.at("raw.npz"), RADIANS)
        words = ["train", "--data", raw, "--steps", 2, "--hidden", 8, "--out", s.at("run")]
        line = bad(1, ["--act-scale auto", "--act-scale LOW,HIGH", "not within [-1, 1]"], *words)
        assert f"{RADIANS.min():.4g}" in line and f"{RADIANS.max():.4g}" in line, line
        bad(1, ["action 0 of the data lies between", "act_scale is -3,3", "wider"], *words, "--act-scale", "-3,3")
        for wrong in "1,-1", "1", "a,b", "1,1", "-1,", ",", "nan,1", "0,1e99", "-1,1,2", "":
            bad(2, ["--act-scale must be off, auto or LOW,HIGH"], *words, f"--act-scale={wrong}")
        bad(1, ["impossible range of action 0"], *words, "--act-scale=-3.4028234e38,3.4028234e38")  # a little more than 1 of it is no float
        choices = write(s.at("choices.npz"), np.arange(ROWS) % 4)
        bad(2, ["discrete actions are not scaled"], "train", "--data", choices, "--steps", 2, "--out", s.at("run"), "--act-scale", "auto")
        assert not os.path.exists(s.at("run"))
        bad(2, "scale the actions of the batch", "grad", "--agent", "bc", "--describe", "--set", "act_scale=auto")
        good("train", "--data", write(s.at("unit.npz"), np.float32(RADIANS / 100)), "--steps", 2, "--hidden", 8, "--out", s.at("run"))


def test_uneven_columns():
    with Scratch("act_scale") as s:
        obs = OBSERVATIONS * np.float32([1, 1, 1, 2000, 1])
        data = write(s.at("wide.npz"), np.float32(RADIANS / 100), obs)
        words = ["train", "--data", data, "--steps", 2, "--hidden", 8, "--out"]
        told = call(*words, s.at("a")).stderr
        assert "columns of very different scale: observation 3" in told and "--obs-scale on" in told, told
        for number, choice in enumerate(("on", "off")):
            assert call(*words, s.at(f"b{number}"), "--obs-scale", choice).stderr == ""
        assert "very different scale" in good("data", "info", data) and json.loads(good("data", "info", data, "--json"))["wants_obs_scale"]


if __name__ == "__main__":
    run_tests(globals())
