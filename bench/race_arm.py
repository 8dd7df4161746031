"""Tables with an arm, steps per second of processor time: `bench_arm` beside the Python package on the same machine, in turns.

    BUILD=build .venv/bin/python bench/race_arm.py [ENV...]

Both play random actions from resets to the five tasks, 40 steps each, on one core. Processor time does not see what else runs on the
machine; the best of the turns counts on each side. One JSON line comes out.
"""

import json
import os
import subprocess
import sys
import time

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import ogbench  # noqa: E402, F401

NAMES = ["cube-single-v0", "cube-octuple-v0", "scene-v0", "puzzle-3x3-v0", "puzzle-4x6-v0"]
TURNS, EPISODES, STEPS = 3, 5, 40
PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "bench", "bench_arm")


def python_speed(env):
    rng, spent = np.random.default_rng(0), 0.0
    for task in range(1, EPISODES + 1):
        env.reset(seed=task, options=dict(task_id=task))
        actions = rng.uniform(-1, 1, (STEPS, *env.action_space.shape)).astype(np.float32)
        start = time.process_time()
        for action in actions:
            env.step(action)
        spent += time.process_time() - start
    return EPISODES * STEPS / spent


def our_speed(name):
    out = subprocess.run([PROGRAM, name], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["envs"][0]["steps_per_second_cpu"]


def main():
    out = []
    for name in sys.argv[1:] or NAMES:
        env = gymnasium.make(name).unwrapped
        theirs, ours = zip(*[(python_speed(env), our_speed(name)) for _ in range(TURNS)])
        out.append(dict(name=name, dcrl=max(ours), python=round(max(theirs)), ratio=round(max(ours) / max(theirs), 2)))
    print(json.dumps(dict(bench="race_arm", unit="steps per second of processor time, one core", envs=out)))


if __name__ == "__main__":
    main()
