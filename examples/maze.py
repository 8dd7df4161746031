"""From nothing to a policy that finds its way through a maze, in Python: data, training, distances, episodes.

    pip install .            # in a checkout, after `make`
    python examples/maze.py  # a few minutes on two cores
"""

import sys

import numpy as np

import dcrl

NAME = "pointmaze-medium-navigate-oraclerep-v0"
folder = sys.argv[1] if len(sys.argv) > 1 else "runs/maze-py"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000

# As with OGBench: the environment, and data that is made on first use (in ~/.dcrl/data).
env, train, _ = dcrl.make_env_and_datasets(NAME, compact_dataset=True)
data = dcrl.Dataset.from_arrays(train["observations"], train["actions"], train["valids"] == 0)
print(data)

policy = dcrl.train(
    folder, data, agent="dcrl", env=NAME, callback=lambda row: print(f"step {row['step']:6.0f}, loss {row['loss_dc']:.4f}"),
    steps=steps, hidden=(128, 128, 128), batch=256, alpha=0.3, log_every=max(1, steps // 10),
)  # fmt: skip
print(policy, policy.evaluate(episodes=5))

# One episode of each of eight copies, which step together; the policy acts for all of them at once.
envs = dcrl.make_vec(NAME, 8)
observations, info = envs.reset(seed=0, options={"task_id": 3})
print("predicted steps:", policy.distance(observations, info["goal"]).round())
there = np.zeros(8, bool)
for _ in range(env.spec.max_episode_steps):
    observations, _, reached, _, info = envs.step(policy.act(observations, info["goal"]))
    there |= reached
    if there.all():
        break
print(f"{there.sum()} of 8 reached the goal")
