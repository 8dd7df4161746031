"""Steps per second of dcrl's vector environment beside OGBench's environments under Gymnasium's own, one JSON line each.

    python bench/vec_envs.py [NAME...]      with the package, ogbench and gymnasium installed

Eight copies, random actions, episodes as they end. All are measured in turns, the best of several, because other work on the
machine takes from each. Where it is busy, steps per second of processor time still compare.
"""

import json
import os
import sys
import time

os.environ.setdefault("MUJOCO_GL", "disable")
import gymnasium
import numpy as np
import ogbench  # noqa: F401  registers its environments

import dcrl

COPIES, SECONDS, TURNS = 8, 1.0, 2


def processor_seconds():
    """Of this process and its children, which are still alive."""
    total, tick = 0, os.sysconf("SC_CLK_TCK")
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        processes = [os.getpid(), *file.read().split()]
    for process in processes:
        with open(f"/proc/{process}/stat") as file:
            total += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return total / tick


def rate(env):
    """Steps of all copies together per second, and per second of a processor."""
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(50)]
    env.step(actions[0])
    steps, start, before = 0, time.perf_counter(), processor_seconds()
    while time.perf_counter() - start < SECONDS:
        env.step(actions[steps % len(actions)])
        steps += 1
    return COPIES * steps / (time.perf_counter() - start), COPIES * steps / max(processor_seconds() - before, 0.01)


def measure(name):
    kinds = {
        "dcrl": dcrl.make_vec(name, COPIES, seed=0),
        "sync": gymnasium.make_vec(name, COPIES, vectorization_mode="sync"),
        "async": gymnasium.make_vec(name, COPIES, vectorization_mode="async"),
    }
    best = {kind: (0.0, 0.0) for kind in kinds}
    for env in kinds.values():
        env.reset(seed=0)
    for _ in range(TURNS):
        for kind, env in kinds.items():
            best[kind] = tuple(map(max, best[kind], rate(env)))
    for env in kinds.values():
        env.close()
    return best


def main(names):
    for name in names:
        told, best = {"env": name, "copies": COPIES}, measure(name)
        for k, what in enumerate(("steps/s", "steps/core-s")):
            values = {kind: pair[k] for kind, pair in best.items()}
            times = values["dcrl"] / max(values["sync"], values["async"])
            told[what] = {**{kind: round(value) for kind, value in values.items()}, "times": round(times, 2)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(sys.argv[1:] or ["pointmaze-medium-v0", "antmaze-medium-v0", "cube-single-v0"])
