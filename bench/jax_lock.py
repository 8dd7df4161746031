"""The lock's DCRL update as one would write it in JAX: jitted, float32, one batch reused.

What bench/race_lock.py races against. Same work as `dcrl bench train --work lock`: 3x512, batch 512, H 2048,
n 64; no sampling is timed, which favours this side. Prints steps per second.
"""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "float32")
H, N, BATCH, BITS, WIDTHS = 2048, 64, 512, 11, (512, 512, 512)


def init(key):
    sizes = (2 * BITS, *WIDTHS, 1)
    layers = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        key, k = jax.random.split(key)
        limit = (6 / (m + n)) ** 0.5
        layers.append({"w": jax.random.uniform(k, (m, n), minval=-limit, maxval=limit), "b": jnp.zeros(n),
                       "scale": jnp.ones(n), "bias": jnp.zeros(n)})
    return layers


def distance(layers, s, g):
    x = jnp.concatenate([s, g], -1)
    for p in layers[:-1]:
        x = jax.nn.gelu(x @ p["w"] + p["b"])
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(var + 1e-6) * p["scale"] + p["bias"]
    return (x @ layers[-1]["w"] + layers[-1]["b"])[:, 0]


def loss(live, ema, b):
    first = jnp.where(b["left"] <= N, b["left"], jax.lax.stop_gradient(distance(live, b["i"], b["k"])))
    second = jnp.where(b["right"] <= N, b["right"], distance(ema, b["k"], b["j"]))
    far = jnp.where(b["off"] <= N, b["off"], N + distance(ema, b["n"], b["g"]))
    return ((distance(live, b["i"], b["j"]) - first - second) ** 2).mean() + ((distance(live, b["p"], b["g"]) - far) ** 2).mean()


@jax.jit
def update(state, b):
    live, ema, m, v, t = state
    grads = jax.grad(loss)(live, ema, b)
    ema = jax.tree.map(lambda p, e: 0.005 * p + 0.995 * e, live, ema)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    c1, c2 = 1 - 0.9**t, 1 - 0.999**t
    live = jax.tree.map(lambda p, m, v: p - 3e-4 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), live, m, v)
    return live, ema, m, v, t + 1


def batch(rng):
    code = ((rng.permutation(H)[:, None] >> np.arange(BITS)) & 1).astype(np.float32)
    i, j = np.sort(rng.integers(H, size=(2, BATCH)), 0)
    p, g = np.sort(rng.integers(H, size=(2, BATCH)), 0)
    k = (i + j) // 2
    rows = {"i": i, "k": k, "j": j, "p": p, "g": g, "n": np.minimum(p + N, H - 1)}
    counts = {"left": k - i, "right": j - k, "off": g - p}
    return {n: code[r] for n, r in rows.items()} | {n: c.astype(np.float32) for n, c in counts.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    live = init(jax.random.PRNGKey(0))
    zeros = jax.tree.map(jnp.zeros_like, live)
    state = (live, live, zeros, zeros, jnp.float32(1))
    b = jax.device_put(batch(np.random.default_rng(0)))
    for _ in range(3):
        state = jax.block_until_ready(update(state, b))
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        state = update(state, b)
        steps += 1
        if steps % 8 == 0:
            jax.block_until_ready(state)
    jax.block_until_ready(state)
    print(f"{steps / (time.perf_counter() - start):.2f} steps/s")


main()
