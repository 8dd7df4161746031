"""Environment steps per second: `dcrl bench env` beside the Python package on the same machine, in turns.

    DCRL=build/dcrl .venv/bin/python bench/race_env.py [ENV...]

Both play random actions in episodes of 200 steps on one core. One JSON line comes out, medians over the turns.
"""

import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import ogbench  # noqa: E402, F401

NAMES = ["pointmaze-medium-v0", "antmaze-medium-v0", "humanoidmaze-medium-v0", "antsoccer-arena-v0"]
TURNS, SECONDS, EPISODE = 3, 2.0, 200


def python_speed(env, rng):
    steps, spent = 0, 0.0
    while spent < SECONDS / 2:
        env.reset(options=dict(task_id=steps // EPISODE % 5 + 1))
        actions = rng.uniform(-1, 1, (EPISODE, *env.action_space.shape)).astype(np.float32)
        start = time.perf_counter()
        for action in actions:
            env.step(action)
        spent += time.perf_counter() - start
        steps += EPISODE
    return steps / spent


def our_speed(name):
    words = [os.environ.get("DCRL", "build/dcrl"), "bench", "env", name, "--seconds", str(SECONDS), "--threads", "1", "--json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["steps_per_second"]


def main():
    rng, out = np.random.default_rng(0), []
    for name in sys.argv[1:] or NAMES:
        env = gymnasium.make(name)
        theirs, ours = zip(*[(python_speed(env, rng), our_speed(name)) for _ in range(TURNS)])
        a, b = statistics.median(ours), statistics.median(theirs)
        out.append(dict(name=name, dcrl=round(a), python=round(b), ratio=round(a / b, 2)))
    print(json.dumps(dict(bench="race_env", unit="steps per second, one core", envs=out)))


if __name__ == "__main__":
    main()
