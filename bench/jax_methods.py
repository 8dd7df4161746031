"""bc, iql, crl, qrl, hiql, sacbc, tmd and sharsa as one writes them in JAX to be fast: the peer of `dcrl bench train` on a GPU.

The data set, sampling, losses, Adam and EMA are all on the device, jitted, many steps per call with nothing read back in
between; buffers are donated. What makes it fast:

  - rows of all steps of a call are drawn and gathered at once, so a step's only reads are slices of that;
  - rows that the same weights see, and that need gradients alike, go through a network together;
  - ensembles are batched products; inputs are padded to a multiple of 16 columns, as tensor cores like them;
  - bf16: weights have a bfloat16 copy that Adam writes beside the float32 one, activations are bfloat16, and what is between
    products is computed in float32;
  - the intervals of qrl's distance are compared in pairs, eight by eight, instead of sorted: one fused kernel;
  - tmd's distances of all pairs: lengths and their gradients by matrix products, the largest excess by fused reductions that
    keep its column for the way back (by autodiff of the plain form it was 72 steps/s on an H200).

Methods are as in the essays of src/algo/, networks without LayerNorm in actors; values on random numbers, since speed does not
depend on them. Prints one JSON line. On a machine without a GPU it runs on the CPU, for instance with
`--rows 10000 --mlp 32,32 --batch 64 --inner 4 --seconds 1`.
"""
import argparse
import functools
import json
import time

import jax
import jax.numpy as jnp

GAMMA, GROUP, EPS, REP_DIM, STEPS = 0.99, 8, 0.05, 10, 25
hold = jax.lax.stop_gradient
side_by_side = lambda *x: jnp.concatenate(x, -1)
below = lambda *x: jnp.concatenate(x, -2)

# ---- networks ----


def padded(columns):
    return -(-columns // 16) * 16


@jax.custom_vjp
def head(x, w):
    """x w in float32, whose gradient goes back in the type of the weights: else its products would be float32's."""
    return jnp.matmul(x, w, preferred_element_type=jnp.float32)


def head_bwd(kept, g):
    x, w = kept
    g = g.astype(w.dtype)
    return g @ w.mT, x.mT @ g


head.defvjp(lambda x, w: (head(x, w), (x, w)), head_bwd)


def net(layers, *inputs):
    """(rows, out), or (members, rows, out) of an ensemble: Dense -> GELU -> LayerNorm if it has one, repeated; the last plain."""
    x, w = side_by_side(*inputs), layers[0]["w"]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, w.shape[-2] - x.shape[-1])]).astype(w.dtype)
    if w.ndim == 3:
        x = jnp.broadcast_to(x, (w.shape[0], *x.shape[-2:]))
    for p in layers[:-1]:
        x = (x @ p["w"]).astype(jnp.float32) + p["b"]
        x = jax.nn.gelu(x, approximate=True)
        if "scale" in p:
            mean = x.mean(-1, keepdims=True)
            var = (x * x).mean(-1, keepdims=True) - mean * mean
            x = (x - mean) * jax.lax.rsqrt(var + 1e-6) * p["scale"] + p["bias"]
        x = x.astype(w.dtype)
    return head(x, layers[-1]["w"]) + layers[-1]["b"]


def make_network(key, sizes, members, layernorm):
    lead, layers = (members,) if members > 1 else (), []
    for k, (m, n) in enumerate(zip(sizes, sizes[1:])):
        key, now = jax.random.split(key)
        limit = (6 / (m + n)) ** 0.5
        w = jax.random.uniform(now, (*lead, m, n), minval=-limit, maxval=limit)
        if k == 0:
            w = jnp.pad(w, [(0, 0)] * len(lead) + [(0, padded(m) - m), (0, 0)])
        layers.append({"w": w, "b": jnp.zeros((*lead, 1, n))})
        if layernorm and k < len(sizes) - 2:
            layers[-1] |= {"scale": jnp.ones((*lead, 1, n)), "bias": jnp.zeros((*lead, 1, n))}
    return layers


# ---- pieces of losses ----


def union_lengths(x, y):
    """Length of the union of the intervals [x_i, y_i] of each group: the ends that no other interval covers, with signs."""
    x, y = (v.reshape(*v.shape[:-1], -1, GROUP) for v in (x, y))
    number = jnp.arange(GROUP)
    inside_x = inside_y = jnp.zeros(x.shape, bool)
    for j in range(GROUP):
        xj, yj = hold(x[..., j : j + 1]), hold(y[..., j : j + 1])
        real = xj < yj
        inside_x |= real & ((xj < x) | ((xj == x) & (j < number))) & (yj >= x)
        inside_y |= real & ((yj > y) | ((yj == y) & (j > number))) & (xj <= y)
    real = x < y
    return (jnp.where(real & ~inside_y, y, 0) - jnp.where(real & ~inside_x, x, 0)).sum(-1)


def iqe(x, y, rho):
    parts, mix = union_lengths(x, y), jax.nn.sigmoid(rho)
    return mix * parts.mean(-1) + (1 - mix) * parts.max(-1)


def mrn(x, y, chunks=8):
    """Mean over chunks of the largest excess of x over y in one half and the Euclidean length of the other."""
    part, half, total = x.shape[-1] // chunks, x.shape[-1] // chunks // 2, 0
    for k in range(chunks):
        d = x[..., k * part : (k + 1) * part] - y[..., k * part : (k + 1) * part]
        total += jnp.maximum(d[..., :half], 0).max(-1) + jnp.sqrt((d[..., half:] ** 2).sum(-1) + 1e-6)
    return total / chunks


def halves(x, chunks):
    """(members, rows, columns) as the two halves of its chunks: (members, chunks, rows, columns of a half)."""
    parts = x.reshape(*x.shape[:-1], chunks, -1).swapaxes(-2, -3)
    return jnp.split(parts, 2, -1)


def all_pairs(x, y, chunks):
    """Per chunk: the largest excess and its column (-1: none), and the length by products of matrices."""
    (x_most, x_far), (y_most, y_far) = halves(x, chunks), halves(y, chunks)
    excess = x_most[..., :, None, :] - y_most[..., None, :, :]
    most, column = excess.max(-1), excess.argmax(-1).astype(jnp.int8)
    square = (x_far**2).sum(-1)[..., :, None] + (y_far**2).sum(-1)[..., None, :] - 2 * x_far @ y_far.mT
    return jnp.maximum(most, 0), jnp.where(most > 0, column, -1), jnp.sqrt(jnp.maximum(square, 0) + 1e-6)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def mrn_pairs(x, y, chunks=8):
    """mrn of every row of x with every row of y: (members, rows of x, rows of y)."""
    most, _, length = all_pairs(x, y, chunks)
    return (most + length).mean(1)


def mrn_pairs_fwd(x, y, chunks):
    most, column, length = all_pairs(x, y, chunks)
    return (most + length).mean(1), (x, y, column, length)


def mrn_pairs_bwd(chunks, kept, g):
    x, y, column, length = kept
    (x_most, x_far), (_, y_far) = halves(x, chunks), halves(y, chunks)
    g = g[:, None] / chunks
    led = jnp.where(column[..., None] == jnp.arange(x_most.shape[-1], dtype=jnp.int8), g[..., None], 0)
    w = g / length
    dx = w.sum(-1)[..., None] * x_far - w @ y_far
    dy = w.sum(-2)[..., None] * y_far - w.mT @ x_far
    join = lambda most, far: side_by_side(most, far).swapaxes(-2, -3).reshape(x.shape)
    return join(led.sum(-2), dx), join(-led.sum(-3), dy)


mrn_pairs.defvjp(mrn_pairs_fwd, mrn_pairs_bwd)


def bce(logit, target):
    return jax.nn.softplus(logit) - target * logit


def flow(net_and_inputs, taken, noise, time):
    """Flow matching: the velocity between noise and what was taken."""
    network, *inputs = net_and_inputs
    velocity = net(network, *inputs, (1 - time) * noise + time * taken, time)
    return ((velocity - (taken - noise)) ** 2).mean()


def normalise(z):
    return z * jax.lax.rsqrt((z * z).mean(-1, keepdims=True))


def clone(mean, action):
    return 0.5 * ((mean - action) ** 2).sum(-1)


def ddpgbc(mean, q, action, alpha):
    return -q.mean() / hold(jnp.abs(q).mean() + 1e-6) + alpha * clone(mean, action).mean()


def awr(mean, taken, adv, alpha):
    return (hold(jnp.minimum(jnp.exp(alpha * adv), 100)) * clone(mean, hold(taken))).mean()


# ---- methods: loss of (live, target, batch) ----


def bc(live, target, b):
    return clone(net(live["actor"], b["state"], b["goal"]), b["action"]).mean()


def iql(live, target, b, kappa=0.9, alpha=0.3):
    held, action = hold(live), b["action"]
    v = net(live["value"], b["state"], b["goal"])[:, 0]
    least = net(target["critic"], b["state"], b["goal"], action)[..., 0].min(0)
    later = net(held["value"], b["next"], b["goal"])[:, 0]
    y = jnp.where(b["there"], 0, -1 + GAMMA * later)
    q = net(live["critic"], b["state"], b["goal"], action)[..., 0]
    mean = net(live["actor"], b["state"], b["actor_goal"])
    best = net(held["critic"], b["state"], b["actor_goal"], jnp.clip(mean, -1, 1))[..., 0].min(0)
    loss_value = (jnp.where(least >= v, kappa, 1 - kappa) * (least - v) ** 2).mean()
    return loss_value + ((q - y) ** 2).sum(0).mean() + ddpgbc(mean, best, action, alpha)


def crl(live, target, b, alpha=0.1):
    held = hold(live)
    phi, psi = net(live["phi"], b["state"], b["action"]), net(live["psi"], b["goal"])
    scale, rows = phi.shape[-1] ** -0.5, phi.shape[-2]
    narrow = live["phi"][0]["w"].dtype  # the product of all pairs is the largest of this method
    f = head((phi * scale).astype(narrow), psi.astype(narrow).mT)
    own = (phi * psi).sum(-1).mean() * scale
    mean = net(live["actor"], b["state"], b["actor_goal"])
    led, goal = net(held["phi"], b["state"], jnp.clip(mean, -1, 1)), net(held["psi"], b["actor_goal"])
    best = ((led * goal).sum(-1) * scale).min(0)
    return jax.nn.softplus(f).mean() - own / rows + ddpgbc(mean, best, b["action"], alpha)


def qrl(live, target, b, alpha=0.003):
    held, action, goals = hold(live), b["action"], b["whole_goal"]
    seen = [b["state"], b["next"], goals] + ([] if "goal_value" in live else [b["actor_goal"]])
    s, after, g, *actor_goal = jnp.split(net(live["phi"], below(*seen)), len(seen))
    z = s + net(live["dynamics"], s, action)
    far, step, out, back = jnp.split(iqe(below(s, s, after, z), below(g, after, z, after), live["rho"]), 4)
    p = (jnp.maximum(step - 1, 0) ** 2).mean()
    lam = jnp.exp(live["lambda"])
    loss = (100 * jax.nn.softplus(5 - far / 100)).mean() + hold(lam) * p + lam * (EPS - hold(p)) + (out + back).mean() / 2
    mean = net(live["actor"], b["state"], b["actor_goal"])
    led = hold(s) + net(held["dynamics"], hold(s), jnp.clip(mean, -1, 1))
    if actor_goal:
        return loss + ddpgbc(mean, -iqe(led, hold(actor_goal[0]), held["rho"]), action, alpha)
    v = net(live["goal_value"], hold(s), b["goal"])[..., 0]
    best = -net(held["goal_value"], led, b["actor_goal"])[..., 0].mean(0)
    return loss + ((v - hold(far)) ** 2).mean() + ddpgbc(mean, best, action, alpha)


def hiql(live, target, b, kappa=0.7, alpha=3.0):
    held, s, after, w, low, high = hold(live), b["state"], b["next"], b["whole_waypoint"], b["low_goal"], b["high_goal"]
    phi = lambda nets, states, goals: normalise(net(nets["rep"], states, goals))
    value = lambda nets, states, seen: net(nets["value"], states, seen)[..., 0]
    z = phi(live, s, b["goal"])
    # One pass for all that is held: of the target, of the advantages of both policies, and what the high one predicts.
    states = below(after, after, s, w, s)
    others = phi(held, below(states, s), below(b["goal"], low, low, high, high, b["waypoint"]))
    rows = s.shape[0]
    part = lambda k: others[k * rows : (k + 1) * rows]
    now, later = jnp.split(value(target, below(s, after), below(hold(z), part(0))), 2, -1)
    low_to, low_from, high_to, high_from = jnp.split(value(held, states[rows:], others[rows : 5 * rows]).mean(0), 4)
    returns = lambda v: jnp.where(b["there"], 0, -1 + GAMMA * v)
    side = jnp.where(returns(later.min(0)) - now.mean(0) >= 0, kappa, 1 - kappa)
    loss_value = (side * (returns(later) - value(live, s, z)) ** 2).mean(1).sum()
    loss_low = awr(net(live["low_actor"], s, part(2)), b["action"], low_to - low_from, alpha)
    return loss_value + loss_low + awr(net(live["high_actor"], s, high), part(5), high_to - high_from, alpha)


def sacbc(live, target, b, alpha=0.3):
    held, action = hold(live), b["action"]

    def sample(actor, states, goals, noise):
        mean, log_std = jnp.split(net(actor, states, goals), 2, -1)
        log_std = jnp.clip(log_std, -5, 2)
        u = mean + jnp.exp(log_std) * noise
        change = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))  # of density, by tanh
        return jnp.tanh(u), (-0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi) - change).sum(-1)

    led, _ = sample(held["actor"], b["next"], b["goal"], b["noise"])
    later = jax.nn.sigmoid(net(target["critic"], b["next"], b["goal"], led)[..., 0]).min(0)
    y = hold(jnp.where(b["there"], 1, GAMMA * later))
    loss_critic = bce(net(live["critic"], b["state"], b["goal"], action)[..., 0], y).mean()
    taken, density = sample(live["actor"], b["state"], b["actor_goal"], b["actor_noise"])
    q = net(held["critic"], b["state"], b["actor_goal"], taken)[..., 0].mean(0)
    lam = jnp.exp(live["lambda"])
    imitation = alpha * hold(jnp.abs(q).mean()) * ((taken - action) ** 2).sum(-1).mean()
    return loss_critic + (hold(lam) * density - q).mean() + imitation + lam * (0.5 * action.shape[-1] - hold(density.mean()))


def tmd(live, target, b, alpha=0.1, zeta=0.05):
    held, action = hold(live), b["action"]
    phi = net(live["phi"], b["state"], action)
    now, goal, after = jnp.split(net(live["psi"], below(b["state"], b["whole_goal"], b["next"])), 3, -2)
    d, n = mrn_pairs(phi, goal), hold(mrn_pairs(after, goal))
    own = mrn(phi, goal)
    contrast = jax.nn.logsumexp(-d / phi.shape[-1] ** 0.5, axis=1).mean() + own.mean() / phi.shape[-1] ** 0.5
    gap = d - n
    bregman = jnp.where(gap > 3, gap, GAMMA * jnp.exp(jnp.minimum(gap, 3)) - d)
    diagonal = jnp.diagonal(bregman, axis1=1, axis2=2)
    loss = contrast + mrn(now, phi).mean() + zeta * 0.5 * (bregman.mean() + diagonal.mean())
    mean = net(live["actor"], b["state"], b["actor_goal"])
    led, toward = net(held["phi"], b["state"], jnp.clip(mean, -1, 1)), net(held["psi"], b["whole_actor_goal"])
    return loss + ddpgbc(mean, (-mrn(led, toward)).min(0), action, alpha)


def sharsa(live, target, b):
    held, s, way, goal = hold(live), b["state"], b["waypoint"], b["goal"]
    done = b["steps"] < STEPS
    later = jax.nn.sigmoid(net(held["value"], b["whole_waypoint"], goal)[:, 0])
    y = hold(jnp.where(done, GAMMA ** b["steps"].astype(jnp.float32), GAMMA**STEPS * later))
    least = jax.nn.sigmoid(net(target["critic"], s, way, goal)[..., 0]).min(0)
    loss = bce(net(live["value"], s, goal)[:, 0], hold(least)).mean()
    loss += bce(net(live["critic"], s, way, goal)[..., 0], y).mean(1).sum()
    loss += flow((live["high_actor"], s, b["actor_goal"]), b["high_waypoint"], b["high_noise"], b["high_time"])
    return loss + flow((live["low_actor"], s, b["low_goal"]), b["action"], b["noise"], b["time"])


# What each method trains: {network: (inputs, members, outputs)}, s columns of a state, g of a goal, a of an action; which have EMA.
def networks(method, s, g, a, latent):
    actor = {"actor": (s + g, 1, a)}
    if method == "bc":
        return actor, ()
    if method == "iql":
        return {"critic": (s + g + a, 2, 1), "value": (s + g, 1, 1)} | actor, ("critic",)
    if method == "crl":
        return {"phi": (s + a, 2, latent), "psi": (g, 2, latent)} | actor, ()
    if method == "qrl":
        apart = {"goal_value": (latent + g, 2, 1)} if g < s else {}
        return {"phi": (s, 1, latent), "dynamics": (latent + a, 1, latent)} | apart | actor, ()
    if method == "sacbc":
        return {"critic": (s + g + a, 2, 1), "actor": (s + g, 1, 2 * a)}, ("critic",)
    if method == "tmd":
        return {"phi": (s + a, 2, latent), "psi": (s, 2, latent)} | actor, ()
    if method == "sharsa":
        flows = {"high_actor": (s + 2 * g + 1, 1, g), "low_actor": (s + g + a + 1, 1, a)}
        return {"critic": (s + 2 * g, 2, 1), "value": (s + g, 1, 1)} | flows, ("critic",)
    low, high = (s + REP_DIM, 1, a), (s + g, 1, REP_DIM)
    return {"value": (s + REP_DIM, 2, 1), "rep": (s + g, 1, REP_DIM), "low_actor": low, "high_actor": high}, ("value",)


LOSSES = {"bc": bc, "iql": iql, "crl": crl, "qrl": qrl, "hiql": hiql, "sacbc": sacbc, "tmd": tmd, "sharsa": sharsa}
LAYERNORM_IN_ACTORS = ("sacbc", "sharsa")

# ---- sampling: all rows of a call at once ----


def draw_rows(key, method, shape, rows, length):
    """Row numbers (steps, batch) by name; trajectories have `length` rows each."""
    keys = iter(jax.random.split(key, 12))
    uniform = lambda: jax.random.uniform(next(keys), shape)
    any_row = lambda: jax.random.randint(next(keys), shape, 0, rows)
    first = jax.random.randint(next(keys), shape, 0, rows // length) * length
    at = first + jax.random.randint(next(keys), shape, 0, length - 1)
    end = first + length - 1
    ahead = lambda: at + 1 + (uniform() * (end - at)).astype(jnp.int32)
    geometric = lambda: jnp.minimum(at + 1 + jnp.floor(jnp.log1p(-uniform()) / jnp.log(GAMMA)).astype(jnp.int32), end)
    out = {"state": at, "next": at + 1}
    if method == "bc":
        return {"state": at, "goal": ahead()}
    if method == "crl":
        return {"state": at, "goal": geometric(), "actor_goal": ahead()}
    if method == "qrl":
        return out | {"goal": any_row(), "actor_goal": ahead()}
    if method == "tmd":
        return out | {"goal": geometric(), "actor_goal": ahead()}
    kind = uniform()
    out["goal"] = jnp.where(kind < 0.2, at, jnp.where(kind < 0.7, geometric(), any_row()))
    if method in ("iql", "sacbc"):
        return out | {"actor_goal": ahead()}
    if method == "sharsa":
        goal, high, last = out["goal"], ahead(), jnp.minimum(at + STEPS, end)
        way = jnp.where((goal >= at) & (goal < last), goal, last)
        return {"state": at, "goal": goal, "waypoint": way, "low_goal": last, "actor_goal": high,
                "high_waypoint": jnp.minimum(last, high)}
    high = ahead()
    return out | {"low_goal": jnp.minimum(at + STEPS, end), "high_goal": high, "waypoint": jnp.minimum(at + STEPS, high)}


def gather(data, at, goal):
    """Goals are the first `goal` columns of an observation; whole_NAME is a goal's row as a state."""
    rows = {name: data["obs"][row] for name, row in at.items()}
    batch = {name: x if name in ("state", "next") else x[..., :goal] for name, x in rows.items()}
    batch |= {"whole_" + name: x for name, x in rows.items() if name in ("goal", "waypoint", "actor_goal")}
    batch |= {"steps": at["waypoint"] - at["state"]} if "waypoint" in at else {}
    return batch | {"action": data["act"][at["state"]], "there": at["goal"] == at["state"]}


def draw_noise(key, method, batch):
    """What sacbc's samples and sharsa's flows draw beside rows."""
    keys = iter(jax.random.split(key, 4))
    normal = lambda like: jax.random.normal(next(keys), like.shape)
    time = lambda like: jax.random.uniform(next(keys), (*like.shape[:-1], 1))
    if method == "sacbc":
        return {"noise": normal(batch["action"]), "actor_noise": normal(batch["action"])}
    if method == "sharsa":
        return {"noise": normal(batch["action"]), "time": time(batch["action"]),
                "high_noise": normal(batch["high_waypoint"]), "high_time": time(batch["action"])}
    return {}


# ---- training ----


def narrowed(layers, narrow):
    """The weights that products read; vectors stay in float32."""
    return jax.tree.map_with_path(lambda path, x: x.astype(narrow) if path[-1] == jax.tree_util.DictKey("w") else x, layers)


def train_step(loss, narrow, state, batch):
    """EMA of the weights before the step, then Adam. The state holds float32 weights, and beside them what products read."""
    live, target, read, m, v, t = state
    grads = jax.grad(loss)(read["live"], read["target"], batch)
    target = {name: jax.tree.map(lambda p, e: 0.005 * p + 0.995 * e, live[name], target[name]) for name in target}
    grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    fix, size = 1 / (1 - 0.9**t), 1 / (1 - 0.999**t)
    live = jax.tree.map(lambda p, m, v: p - 3e-4 * (m * fix) / (jnp.sqrt(v * size) + 1e-8), live, m, v)
    return (live, target, {"live": narrowed(live, narrow), "target": narrowed(target, narrow)}, m, v, t + 1), None


def make_state(key, args, narrow):
    nets, averaged = networks(args.method, args.obs, args.rep or args.obs, args.act, args.latent)
    live = {}
    for name, (inputs, members, outputs) in nets.items():
        key, now = jax.random.split(key)
        layernorm = not name.endswith("actor") or args.method in LAYERNORM_IN_ACTORS
        live[name] = make_network(now, (inputs, *args.mlp, outputs), members, layernorm)
    if args.method == "sacbc":
        live |= {"lambda": jnp.float32(0)}
    if args.method == "qrl":
        live |= {"rho": jnp.float32(0), "lambda": jnp.float32(0)}
    copy = lambda tree: jax.tree.map(jnp.copy, tree)  # donated buffers may not be shared
    target = copy({name: live[name] for name in averaged})
    read = copy({"live": narrowed(live, narrow), "target": narrowed(target, narrow)})
    return live, target, read, jax.tree.map(jnp.zeros_like, live), jax.tree.map(jnp.zeros_like, live), jnp.float32(1)


def program(args):
    """(state, data, key) -> the same after `inner` steps."""
    narrow = jnp.bfloat16 if args.precision == "bf16" else jnp.float32
    step = functools.partial(train_step, LOSSES[args.method], narrow)

    @functools.partial(jax.jit, donate_argnums=(0, 2))
    def many(state, data, key):
        key, now, noise = jax.random.split(key, 3)
        at = draw_rows(now, args.method, (args.inner, args.batch), args.rows, args.length)
        batches = gather(data, at, args.rep or args.obs)
        batches |= draw_noise(noise, args.method, batches)
        return jax.lax.scan(step, state, batches, unroll=args.unroll)[0], key

    return many, make_state(jax.random.key(0), args, narrow)


def measure(many, state, data, args):
    """Steps per second. The queue is kept short, so that the clock is that of the device."""
    key = jax.random.key(1, impl="rbg")
    for _ in range(2):
        state, key = jax.block_until_ready(many(state, data, key))
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        state, key = many(state, data, key)
        calls += 1
        if calls % 4 == 0:
            jax.block_until_ready(state)
    jax.block_until_ready(state)
    seconds = time.perf_counter() - start
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(state)), "the weights are no numbers any more"
    return calls * args.inner / seconds


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", required=True, choices=LOSSES)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--precision", default="tf32", choices=["bf16", "tf32", "f32"], help="of products")
    parser.add_argument("--mlp", default=(512, 512, 512), type=lambda s: tuple(map(int, s.split(","))), help="hidden widths")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--obs", type=int, default=29, help="columns of an observation (antmaze: 29)")
    parser.add_argument("--act", type=int, default=8, help="columns of an action")
    parser.add_argument("--rep", type=int, default=0, help="columns of an observation that are a goal; 0: all")
    parser.add_argument("--latent", type=int, default=512, help="crl, qrl, tmd: columns of phi")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the data set")
    parser.add_argument("--length", type=int, default=1000, help="rows of a trajectory")
    parser.add_argument("--inner", type=int, default=100, help="steps per call")
    parser.add_argument("--unroll", type=int, default=1, help="steps per turn of the loop on the device")
    return parser.parse_args()


def main():
    args = parse()
    jax.config.update("jax_default_matmul_precision", {"bf16": "default", "tf32": "tensorfloat32", "f32": "float32"}[args.precision])
    keys = jax.random.split(jax.random.key(2))
    data = {"obs": jax.random.normal(keys[0], (args.rows, args.obs)),
            "act": jax.random.uniform(keys[1], (args.rows, args.act), minval=-1, maxval=1)}
    many, state = program(args)
    speed = measure(many, state, data, args)
    device = jax.devices()[0]
    print(json.dumps({"bench": "jax_methods", "method": args.method, "steps_per_second": round(speed, 2),
                      "precision": args.precision, "mlp": args.mlp, "batch": args.batch, "obs": args.obs, "act": args.act,
                      "rep": args.rep, "jax": jax.__version__, "device": device.device_kind}))


if __name__ == "__main__":
    main()
