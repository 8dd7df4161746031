"""Data of the tables with a robot arm, from our generator and from the Python package's environments and oracles.

Whole episodes: the draws that the reference makes are recorded, new ones in every run, and given to `dcrl gen`, which must
then write the same rows: states before rounding, observations, actions, states of buttons, aims, successes, ends of oracles.
The reference computes with plain arithmetic here (`tables.Plain`), since contacts of the gripper magnify a last place.
Then files: OGBench's loader, equal bytes for any number of threads, shards that go on after a stop or a kill.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
import ogbench  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch, bad, good, run_tests  # noqa: E402
from parity import error, padded  # noqa: E402
from tables import AIMS, NAMES, Plain, Recorder, collect, make_collector  # noqa: E402

ROWS = 300
ROUNDED = 1e-12
KINDS = ["play", "noisy"]


def in_python(name, kind, rows=ROWS):
    env = make_collector(name, rows)
    with Recorder(env) as draws:
        data = collect(name, env, kind)
    return data, draws.values


def in_c(scratch, name, kind, draws, rows=ROWS):
    np.savez(scratch.at("draws.npz"), draws=padded(draws))
    good("gen", f"{name}-{kind}", "--episodes", len(draws), "--rows", rows, "--draws", scratch.at("draws.npz"), "-o",
         scratch.at("gen.npz"), "--trace", scratch.at("trace.npz"))
    with np.load(scratch.at("gen.npz")) as data, np.load(scratch.at("trace.npz")) as trace:
        return dict(data), {**trace}


def differences(data, trace, theirs):
    """Largest differences of what was computed; what was decided must be equal."""
    for key in ["aim", "success", "ended"]:
        assert np.array_equal(trace[key], theirs[key]), (key, np.flatnonzero(trace[key] != theirs[key])[:5])
    if theirs["button_states"].size:
        assert np.array_equal(data["button_states"], theirs["button_states"])
    assert np.array_equal(data["terminals"], theirs["terminals"])
    floats = {k: error(data[k], theirs[k].astype(np.float32)) for k in ["observations", "actions", "qvel"]}
    return error(trace["qpos"], theirs["qpos"]), floats


def check_episode(scratch, name, kind):
    theirs, draws = in_python(name, kind)
    data, trace = in_c(scratch, name, kind, [draws])
    state, floats = differences(data, trace, theirs)
    toggled = int(np.abs(np.diff(theirs["button_states"], axis=0)).sum()) if theirs["button_states"].size else 0
    aims = " ".join(f"{a} {int((theirs['aim'][theirs['ended']] == k).sum())}" for k, a in enumerate(AIMS) if (theirs["aim"][theirs["ended"]] == k).any())
    print(f"  {name:15s} {kind:6s} {len(draws):5d} draws  ended: {aims:42s} toggled {toggled:3d}  qpos {state:.1e}  "
          f"float32: obs {floats['observations']:.1e}, act {floats['actions']:.1e}, qvel {floats['qvel']:.1e}")
    assert state <= 1e-8, (name, kind, state)
    assert floats["actions"] <= 1e-6 and floats["observations"] <= 1e-5, (name, kind, floats)
    return state


def test_episodes():
    with Scratch("episodes") as scratch:
        for name in NAMES:
            for kind in KINDS:
                check_episode(scratch, name, kind)


if __name__ == "__main__":
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    warnings.filterwarnings("ignore")
    assert mujoco.__version__ == "3.3.7", "the reference must be the library that dcrl is linked with"
    plain = Plain()
    plain.__enter__()
    run_tests(globals())
