"""dcrl on pictures as one writes it in JAX to be fast: the peer of `dcrl bench train --work pictures` on a GPU.

What stands in jax_methods.py about speed holds here, too; pictures stay bytes on the device until a step reads its rows,
convolutions are bfloat16, NHWC, and pictures that the same weights see, and that need gradients alike, are encoded together.
Networks are those of docs/agents.md, Pictures: an encoder of the state and one of the goal, separately for critic (shared by its
two members, with target copies) and policy (a flow). Segments are drawn one by one, in place of trees: that costs the same. Prints
one JSON line; `--rows 200 --batch 2 --mlp 16,16 --inner 1 --seconds 1` runs on a CPU.
"""
import argparse
import functools
import json

import jax
import jax.numpy as jnp

from jax_methods import GAMMA, bce, flow, hold, make_network, measure, narrowed, net, train_step

SIDE, CODE, N, KAPPA, ACT = 64, 512, 25, 0.7, 5
STAGES = (16, 32, 32)
STATES, GOALS, TAKEN = ("state", "segment"), ("goal", "end"), ("action", "segment_action")

# ---- encoders ----


def convolve(x, p):
    y = jax.lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["b"].astype(x.dtype)


def encode(layers, pictures):
    """(rows, CODE) of bytes (rows, 64, 64, 3)."""
    x = pictures.astype(layers[0]["w"].dtype) / 255
    for s in range(len(STAGES)):
        wide, first, second = layers[3 * s : 3 * s + 3]
        x = jax.lax.reduce_window(convolve(x, wide), -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        x = x + convolve(jax.nn.relu(convolve(jax.nn.relu(x), first)), second)
    x = jax.nn.relu(x).reshape(len(x), -1) @ layers[-1]["w"]
    return jax.nn.gelu(x + layers[-1]["b"].astype(x.dtype), approximate=True)


def make_encoder(key):
    layers, channels = [], 3
    for d in STAGES:
        for c in (channels, d, d):
            key, now = jax.random.split(key)
            limit = (6 / (9 * (c + d))) ** 0.5
            layers.append({"w": jax.random.uniform(now, (3, 3, c, d), minval=-limit, maxval=limit), "b": jnp.zeros(d)})
        channels = d
    flat = (SIDE // 8) ** 2 * channels
    limit = (6 / (flat + CODE)) ** 0.5
    return layers + [{"w": jax.random.uniform(key, (flat, CODE), minval=-limit, maxval=limit), "b": jnp.zeros(CODE)}]


# ---- the loss ----


def all_of(batch, names):
    return jnp.concatenate([batch[name] for name in names])


def loss(live, target, batch):
    rows = len(batch["state"])
    taken, halves = all_of(batch, TAKEN), lambda x: jnp.split(x, 2, -2)
    codes = encode(live["critic_state"], all_of(batch, STATES))
    ends = encode(live["critic_goal"], all_of(batch, GOALS))
    q, q_segment = halves(net(live["critic"], codes, taken, ends))
    # What targets need, without gradient: the first child by live weights, the others by target weights.
    first = net(live["critic"], hold(codes[rows:]), batch["segment_action"], encode(live["critic_goal"], batch["middle"]))
    later = encode(target["critic_state"], all_of(batch, ("ahead", "middle")))
    bar, second = halves(net(target["critic"], later, all_of(batch, ("ahead_action", "middle_action")),
                             encode(target["critic_goal"], all_of(batch, GOALS))))
    toward = hold(GAMMA**N * jax.nn.sigmoid(bar))
    weight = jnp.where(toward >= jax.nn.sigmoid(hold(q)), KAPPA, 1 - KAPPA)
    segment = hold(jax.nn.sigmoid(first) * jax.nn.sigmoid(second))
    total = (weight * bce(q, toward)).mean() + bce(q_segment, segment).mean()
    seen = encode(live["actor_state"], batch["state"]), encode(live["actor_goal"], batch["goal"])
    return total + flow((live["actor"], *seen), batch["action"], batch["noise"], batch["time"])


# ---- rows, training ----


def draw_rows(key, shape, rows, length):
    """Row numbers by name; trajectories have `length` rows each."""
    keys = iter(jax.random.split(key, 6))
    within = lambda most: jax.random.randint(next(keys), shape, 0, most)
    start = within(rows // length) * length
    at, ends = start + within(length - N), jnp.sort(jnp.stack([within(length), within(length)]), 0)
    i, j = start + ends[0], start + ends[1]
    return {"state": at, "ahead": at + N, "goal": within(rows), "segment": i, "middle": (i + j) // 2, "end": j}


def read_rows(data, at, noise):
    batch = {name: data["obs"][row] for name, row in at.items()}
    for name, row in (("action", "state"), ("ahead_action", "ahead"), ("segment_action", "segment"), ("middle_action", "middle")):
        batch[name] = data["act"][at[row]]
    keys = jax.random.split(noise)
    return batch | {"noise": jax.random.normal(keys[0], batch["action"].shape), "time": jax.random.uniform(keys[1], (len(batch["action"]), 1))}


def make_state(args, narrow):
    keys = iter(jax.random.split(jax.random.key(0), 6))
    live = {name: make_encoder(next(keys)) for name in ("critic_state", "critic_goal", "actor_state", "actor_goal")}
    live["critic"] = make_network(next(keys), (2 * CODE + ACT, *args.mlp, 1), 2, True)
    live["actor"] = make_network(next(keys), (2 * CODE + ACT + 1, *args.mlp, ACT), 1, True)
    copy = lambda tree: jax.tree.map(jnp.copy, tree)  # donated buffers may not be shared
    target = copy({name: live[name] for name in ("critic_state", "critic_goal", "critic")})
    read = copy({"live": narrowed(live, narrow), "target": narrowed(target, narrow)})
    return live, target, read, jax.tree.map(jnp.zeros_like, live), jax.tree.map(jnp.zeros_like, live), jnp.float32(1)


def program(args):
    narrow = jnp.bfloat16 if args.precision == "bf16" else jnp.float32

    @functools.partial(jax.jit, donate_argnums=(0, 2))
    def many(state, data, key):
        key, now, noise = jax.random.split(key, 3)
        at = draw_rows(now, (args.inner, args.batch), args.rows, args.length)
        step = lambda state, x: train_step(loss, narrow, state, read_rows(data, *x))
        return jax.lax.scan(step, state, (at, jax.random.split(noise, args.inner)))[0], key

    return many, make_state(args, narrow)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--precision", default="bf16", choices=["bf16", "tf32", "f32"], help="of products")
    parser.add_argument("--mlp", default=(512, 512, 512), type=lambda s: tuple(map(int, s.split(","))), help="hidden widths")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rows", type=int, default=20_000, help="of the data set")
    parser.add_argument("--length", type=int, default=100, help="rows of a trajectory")
    parser.add_argument("--inner", type=int, default=50, help="steps per call")
    args = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", {"bf16": "default", "tf32": "tensorfloat32", "f32": "float32"}[args.precision])
    keys = jax.random.split(jax.random.key(2))
    data = {"obs": jax.random.randint(keys[0], (args.rows, SIDE, SIDE, 3), 0, 256, dtype=jnp.uint8),
            "act": jax.random.uniform(keys[1], (args.rows, ACT), minval=-1, maxval=1)}
    many, state = program(args)
    speed = measure(many, state, data, args)
    print(json.dumps({"bench": "jax_pictures", "steps_per_second": round(speed, 2), "precision": args.precision, "mlp": args.mlp,
                      "batch": args.batch, "jax": jax.__version__, "device": jax.devices()[0].device_kind}))


if __name__ == "__main__":
    main()
