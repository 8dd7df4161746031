"""Evaluation by the benchmark's protocol, 5 tasks x 15 episodes of pointmaze-large: `dcrl eval` beside OGBench's own loop.

    DCRL=build/dcrl .venv/bin/python bench/race_eval.py [RUN] [--turns N] [--episodes N] [--threads T]

Both act with the same weights. The reference is what a user of OGBench runs: its gymnasium environment, one at a time, and
the policy as a jitted JAX function on the CPU, asked step by step. Starts and goals are drawn by each side's own numbers, so
the steps of both are counted and times are also given for 1000 steps. Without RUN, a policy of 3 x 512 is trained for 300
steps first: it moves, and hits walls, which is where simulation costs most. Wall times are the best over the turns.
One JSON line comes out.
"""

import argparse
import glob
import json
import os
import resource
import subprocess
import tempfile
import time

os.environ.setdefault("MUJOCO_GL", "disable")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import ogbench  # noqa: E402
from safetensors import safe_open  # noqa: E402

DCRL = os.environ.get("DCRL", "build/dcrl")
ENV = "pointmaze-large-navigate-oraclerep-v0"


def call(*words):
    return subprocess.run([DCRL, *map(str, words)], check=True, capture_output=True, text=True).stdout


def make_run(folder):
    data, run = os.path.join(folder, "data.npz"), os.path.join(folder, "run")
    call("gen", "pointmaze-large-navigate", "-o", data, "--episodes", 200)
    call("train", "--env", ENV, "--data", data, "--batch", 256, "--steps", 300, "--out", run)
    return run


def read_actor(run):
    """Layers of the newest checkpoint's policy: [w, b, scale, bias], the last one [w, b]."""
    newest = max(glob.glob(os.path.join(run, "step-*.safetensors")))
    layers = []
    with safe_open(newest, "numpy") as f:
        while f"actor/{len(layers)}/w" in f.keys():
            parts = [f"actor/{len(layers)}/{part}" for part in ("w", "b", "scale", "bias")]
            layers.append([jnp.asarray(f.get_tensor(p)[0]) for p in parts if p in f.keys()])
    return layers


@jax.jit
def policy(layers, observation, goal):
    x = jnp.concatenate([observation, goal])[None]
    for w, b, scale, bias in layers[:-1]:
        x = jax.nn.gelu(x @ w + b)
        x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale + bias
    w, b = layers[-1]
    return jnp.clip((x @ w + b)[0], -1, 1)


def their_eval(env, layers, episodes):
    """(wall seconds, steps, success) of the reference's loop."""
    steps, successes, start = 0, 0, time.perf_counter()
    for task in range(1, 6):
        for _ in range(episodes):
            observation, info = env.reset(options=dict(task_id=task))
            goal, done = info["goal"], False
            while not done:
                action = np.array(policy(layers, observation.astype(np.float32), goal.astype(np.float32)))
                observation, _, terminated, truncated, info = env.step(action)
                done = terminated or truncated
                steps += 1
            successes += info["success"]
    return time.perf_counter() - start, steps, successes / (5 * episodes)


def our_eval(run, episodes, threads, horizon):
    start = time.perf_counter()
    told = json.loads(call("eval", run, "--episodes", episodes, "--threads", threads, "--json"))
    wall, count = time.perf_counter() - start, 5 * episodes
    won = round(told["overall_success"] * count)
    return wall, won * (told["mean_steps"] or 0) + (count - won) * horizon, told["overall_success"]


def cpu_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def race(run, turns, episodes, threads):
    env = ogbench.make_env_and_datasets(ENV, env_only=True)
    layers, horizon = read_actor(run), env.spec.max_episode_steps
    policy(layers, jnp.zeros(2), jnp.zeros(2)).block_until_ready()  # compiling is not part of it
    ours, theirs, cpu = [], [], [0.0, 0.0]
    for _ in range(turns):
        for side, who in enumerate((resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)):
            before = cpu_seconds(who)
            (theirs if side else ours).append(their_eval(env, layers, episodes) if side else our_eval(run, episodes, threads, horizon))
            cpu[side] += (cpu_seconds(who) - before) / turns
    a, b = min(ours), min(theirs)
    return dict(
        bench="race_eval", env=ENV, episodes=5 * episodes, threads=threads,
        dcrl_seconds=round(a[0], 3), ogbench_seconds=round(b[0], 3), ratio=round(b[0] / a[0], 2),
        dcrl_steps=round(a[1]), ogbench_steps=b[1], ratio_by_step=round(b[0] / b[1] / (a[0] / a[1]), 2),
        dcrl_cpu_seconds=round(cpu[0], 3), ogbench_cpu_seconds=round(cpu[1], 3),
        dcrl_success=round(a[2], 3), ogbench_success=round(b[2], 3),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run", nargs="?")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = args.run or make_run(folder)
        print(json.dumps(race(run, args.turns, args.episodes, args.threads)))


if __name__ == "__main__":
    main()
