"""Methods on pictures against JAX: the equations of their own parity tests, with encoders before their networks.

An encoder is OGBench's impala_small, written with lax.conv_general_dilated (SAME, bias) and lax.reduce_window (3 x 3, stride
2, SAME): three stages of 16, 32 and 32 channels, relu, Dense 512, GELU. Every whole observation in a network's input goes
through one of its own, which all members share, and which a network with a target has an EMA copy of; or all of them, as one
picture of six channels, go through one (CONCAT: test_picture_concat_parity.py). Losses, all gradients
and twenty Adam steps are compared as in parity.py. Pictures are painted of few colours in blocks, so that convolutions give
equal numbers side by side and pools have ties, whose gradient JAX gives to the first place in row-major order.
"""
import dataclasses

import parity
import jax
import numpy as np
import jax.numpy as jnp
from jax import lax
from parity import ACT, GAMMA, Method, flow, flow_draws, hold, near

SHAPE = (8, 9, 3)
CELLS, OUT = int(np.prod(SHAPE)), 512
CHANNELS = (16, 32, 32)
CONCAT = False
parity.OBS, parity.UPDATES, parity.SIZES = CELLS, 20, [(5, (12, 8)), (8, (16,))]


def conv(x, p):
    w = p["w"][0].reshape(3, 3, x.shape[-1], -1)
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"][0]


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def encode(p, x):
    for s in range(len(CHANNELS)):
        first, second, third = (p[f"conv{3 * s + k}"] for k in range(3))
        x = pool(conv(x, first))
        x = x + conv(jax.nn.relu(conv(jax.nn.relu(x), second)), third)
    x = jax.nn.relu(x).reshape(len(x), -1)
    return jax.nn.gelu(x @ p["dense"]["w"][0] + p["dense"]["b"][0], approximate=True)


# A rounding that moves a number over a relu's corner, or makes another place of a window the largest, shows in all later steps.
# (Seen: moved 4e-3, where rounded numbers move JAX as far; targets and gradients 1.1e-5.)
LIMITS = {"grad": 5e-5, "target": 1e-4, "path": 1e-3, "moved": 2e-2, "policy_path": 1e-3, "policy_moved": 2e-2}

# ---- networks with encoders, where parity.py has lists of layers ----

plain_net, plain_draw, plain_batch = parity.net, parity.draw_network, parity.draw_batch


def net(p, *inputs, relu=False):
    if isinstance(p, list):
        return plain_net(p, *inputs, relu=relu)
    pictures, rest = ([x for x in inputs if (x.shape[-1] == CELLS) == seen] for seen in (True, False))
    pictures = [x.reshape(-1, *SHAPE) for x in pictures]
    if CONCAT:
        pictures = [jnp.concatenate(pictures, -1)]
    return plain_net(p["mlp"], *(encode(e, x) for e, x in zip(p["encoders"], pictures, strict=True)), *rest, relu=relu)


def draw_encoder(rng, pictures):
    sizes, into = {}, pictures * SHAPE[2]
    for s, out in enumerate(CHANNELS):
        for k in range(3):
            sizes[f"conv{3 * s + k}"], into = (9 * into, out), out
    left = [-(-n // 8) for n in SHAPE[:2]]
    sizes["dense"] = (left[0] * left[1] * into, OUT)
    return {k: {"w": rng.normal(0, (m / 2) ** -0.5, (1, m, n)), "b": rng.normal(0, 0.1, (1, n))} for k, (m, n) in sizes.items()}


def draw_network(rng, sizes, members, layernorm):
    pictures, rest = divmod(sizes[0], CELLS)
    seen = [pictures] if CONCAT and pictures else [1] * pictures  # by each encoder
    layers = plain_draw(rng, (len(seen) * OUT + rest, *sizes[1:]), members, layernorm)
    return {"mlp": layers, "encoders": [draw_encoder(rng, n) for n in seen]} if seen else layers


def named(nets, prefix=""):
    found = {}
    for name, p in nets.items():
        layers = {f"{k}": v for k, v in enumerate(p if isinstance(p, list) else p["mlp"])}
        for i, e in enumerate([] if isinstance(p, list) else p["encoders"]):
            layers |= {f"encoder{i}/{k}": v for k, v in e.items()}
        found |= {f"{prefix}{name}/{layer}/{part}": np.asarray(v) for layer, parts in layers.items() for part, v in parts.items()}
    return found


def paint(rng, rows):
    """Blocks of 2 x 3 places, of four shades in each channel, and a few single places of any shade."""
    few = rng.integers(0, 4, (rows, SHAPE[0] // 2, SHAPE[1] // 3, SHAPE[2])) * 60
    x = few.repeat(2, 1).repeat(3, 2)
    dots = rng.random(x.shape) < 0.05
    return (np.where(dots, rng.integers(0, 256, x.shape), x) / 255).reshape(rows, CELLS)


def draw_batch(rng, m, o, rows):
    b = plain_batch(rng, m, o, rows)
    return {k: np.float32(paint(rng, len(v))) if v.ndim == 2 and v.shape[1] == CELLS else v for k, v in b.items()}


parity.net, parity.draw_network, parity.named, parity.draw_batch = net, draw_network, named, draw_batch
import test_bc_parity  # noqa: E402
import test_crl_parity  # noqa: E402
import test_hiql_parity  # noqa: E402


# ---- dcrl, whose own test has another form ----


def dcrl_losses(live, target, b, o):
    q = lambda p, s, g, a: net(p, b[s], b[g], b[a + "_action"])[..., 0]
    bce = lambda logit, t: -(jax.nn.log_sigmoid(logit) * t + jax.nn.log_sigmoid(-logit) * (1 - t))
    child = lambda steps, logit: jnp.where(steps <= 1, GAMMA**steps, jax.nn.sigmoid(logit))
    critic, bar = live["critic"], target["critic"]
    first = child(b["first_steps"], q(critic, "segment_start", "segment_split", "segment_start"))
    second = child(b["second_steps"], q(bar, "segment_split", "segment_end", "segment_split"))
    segment = bce(q(critic, "segment_start", "segment_end", "segment_start"), hold(first * second)).mean()
    far = GAMMA ** b["later_steps"] * jax.nn.sigmoid(q(bar, "later", "goal", "later"))
    t = hold(jnp.where((b["goal_steps"] >= 0) & (b["goal_steps"] <= 5), GAMMA ** b["goal_steps"], far))
    logit = q(critic, "state", "goal", "state")
    side = jnp.where(t >= hold(jax.nn.sigmoid(logit)), 0.7, 0.3)
    return {"loss_dc": (segment, 1), "loss_prop": ((side * bce(logit, t)).mean(), 1), "value_mean": (jax.nn.sigmoid(logit).mean(), 0),
            "loss_flow": (flow(live, b, o, to=b["actor_state_action"], state="actor_state"), 1)}


def dcrl_counts(rng, o, rows):
    counts = {"first_steps": (0, 4), "second_steps": (1, 4), "later_steps": (1, 6), "goal_steps": (-1, 12)}
    return flow_draws(rng, rows) | {k: rng.integers(*v, rows) for k, v in counts.items()}


DCRL = Method("dcrl", dcrl_losses,
              ("segment_start", "segment_split", "segment_end", "state", "later", "goal", "actor_state", "actor_goal"),
              lambda o: {"critic": (2 * CELLS + ACT, 2, 1), "actor": (2 * CELLS + ACT + 1, 1, ACT)},
              lambda o: "n=5 policy=rejection", kinds=({"policy": "rejection"},), goals=({},), ema=("critic",),
              acted=("segment_start", "segment_split", "state", "later", "actor_state"), extra=dcrl_counts)


def by_hand():
    """Of equal numbers the first has the gradient, and an even size is padded behind."""
    d = jax.grad(lambda x: (pool(x) * jnp.arange(1.0, 5).reshape(1, 2, 2, 1)).sum())(jnp.zeros((1, 4, 4, 1)))[0, ..., 0]
    near(d, [[1, 0, 2, 0], [0] * 4, [3, 0, 4, 0], [0] * 4])


def on_pictures(m, **change):
    own = m.sets
    fusion = " fusion=concat" if CONCAT else ""
    return dataclasses.replace(m, sets=lambda o: f"{own(o)} picture={','.join(map(str, SHAPE))}{fusion}", by_hand=by_hand, limits=LIMITS, **change)


SEPARATE = [on_pictures(test_bc_parity.METHOD, kinds=test_bc_parity.METHOD.kinds[:2], goals=({}, {"rep": (1, 3)})),
            on_pictures(test_hiql_parity.METHOD, kinds=test_hiql_parity.METHOD.kinds[:1], goals=({},)),
            on_pictures(test_crl_parity.METHOD, kinds=test_crl_parity.METHOD.kinds[:1], goals=({}, {"rep": (1, 3), "layernorm": True})),
            on_pictures(DCRL)]


def main(methods):
    failed = 0
    for method in methods:
        try:
            parity.main(method)
        except SystemExit as done:
            failed += done.code
    raise SystemExit(failed)


if __name__ == "__main__":
    main(SEPARATE)
