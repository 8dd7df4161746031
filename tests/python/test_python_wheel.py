"""`pip install .` from nothing: a wheel built without a network, unpacked elsewhere, and used without build folder and deps/.

It is compiled without optimisation, which is all the same for what is looked at here. Types are those of the wheel, too.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from package import CACHE, SIMULATES, SOURCE

USE = """
import sys, numpy as np, dcrl
where = sys.argv[1]
assert dcrl.__file__.startswith(where) and dcrl.program().startswith(where), (dcrl.__file__, dcrl.program())
n = np.arange(64)
data = dcrl.Dataset.from_arrays(np.stack([n % 16, n // 16], 1).astype("f4"), np.ones((64, 2)), n % 16 == 15)
policy = dcrl.train(where + "/run", data, agent="dcrl", n=4, steps=2, batch=16, hidden=(16, 16), threads=1)
print(policy.act([0, 0], [1, 1]), dcrl.version())
if sys.argv[2] == "simulates":
    env = dcrl.make("cube-single-play-v0")
    observation, info = env.reset(seed=0, options=dict(task_id=1))
    env.step(env.action_space.sample())
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if "libmujoco" in line}
    assert libraries and all(path.startswith(where) for path in libraries), libraries
"""


def run(*words, code=0, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def build(folder):
    settings = {"build-dir": folder / "build", "cmake.build-type": "Debug", "cmake.define.DCRL_CUDA": "OFF", "cmake.define.DEPS": CACHE["DEPS"]}
    words = [f"--config-settings={key}={value}" for key, value in settings.items()]
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, *words, SOURCE)
    wheel, = folder.glob("dcrl-*.whl")
    assert "-py3-none-linux_" in wheel.name, wheel
    return wheel


def check_content(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in ("dcrl/py.typed", "dcrl/bin/dcrl", "dcrl/lib/libdcrl.so", "dcrl/share/doc/dcrl/LICENSE"):
        assert name in names, (name, sorted(names)[:30])
    if SIMULATES:
        licences = {"LICENSE.mujoco", "LICENSES_THIRD_PARTY.mujoco.md", "LICENSE.ogbench"}
        assert licences <= {name.rpartition("/")[2] for name in names}
        assert any(name.startswith("dcrl/lib/dcrl/libmujoco.so") for name in names)
        assert any(name.startswith("dcrl/share/dcrl/ogbench/") for name in names)
    assert not any(name.endswith((".h", ".cmake", ".pc", ".pyc", ".1", ".bash", ".fish")) for name in names)
    assert sum(name.startswith("dcrl/lib/libdcrl") for name in names) == 1


def check_use(tree, folder):
    """Where nothing else is known of us; a description that is missing there is missing."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("DCRL") and key != "BUILD"}
    env.update(PYTHONPATH=str(tree), MUJOCO_GL="disable")
    words = [sys.executable, "-W", "ignore", "-c", USE, tree, "simulates" if SIMULATES else "stays"]
    print("  " + run(*words, cwd=folder, env=env).strip())
    assert "usage: dcrl" in run(sys.executable, "-m", "dcrl", "train", "--help", cwd=folder, env=env)
    if SIMULATES:
        robot = tree / "dcrl/share/dcrl/ogbench/locomaze/assets/point.xml"
        robot.rename(robot.with_suffix(".away"))
        ask = "import dcrl; dcrl.make('pointmaze-medium-v0')"
        assert str(robot.name) in run(sys.executable, "-W", "ignore", "-c", ask, cwd=folder, env=env, code=1)


def main():
    if not importlib.util.find_spec("scikit_build_core"):
        print("skipped: there is no scikit-build-core")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        check_content(wheel)
        run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder / "tree", wheel)
        check_use(folder / "tree", folder)


main()
