"""bc, iql, crl, qrl and hiql against JAX: losses, all gradients and a hundred updates, on fresh weights and batches each run.

The JAX side is written from the equations alone, in float64 and in the plainest way: one network call per term, no stacking
of rows, autodiff for everything (an IQE sorts its intervals' ends and differentiates through that). It is anchored by numbers
worked out by hand (`check_by_hand`). `dcrl grad` gets the same weights and batch in float32. Every method runs with whole
observations as goals and with three columns of them, without LayerNorm in its actors (the default) and with it, and with
every kind of policy.

Measures: a loss relative to its value plus 0.1, at the first batch and along the hundred Adam steps ("path"); a gradient
tensor by norm relative to its norm; after the steps, each network's change relative to the norm of that change ("moved"), and
each target tensor relative to its norm. No tensor is left out. A draw that exceeds a limit is told, and two more draws of
that case must both keep it: rounding may put a row on the other side of a kink, but what is wrong is wrong on any rows.
DCRL_SEED repeats a run, DCRL_TOL=0 prints all figures and fails nothing.

The last check: every agent that `dcrl list agents` names has a parity case, here or in one of the two older files.
"""
import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Callable

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # compiling is most of the time
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

DCRL = os.environ.get("DCRL", "build/dcrl")
UPDATES = 100
OBS, ACT, LATENT, REP_DIM = 6, 3, 16, 5  # columns of an observation, an action, phi of crl and qrl, phi of hiql
GAMMA, ALPHA, KAPPA, EPS, GROUP = 0.97, 0.4, 0.8, 0.05, 8
SIZES = [(64, (24, 40)), (33, (20,)), (100, (32, 24, 16))]  # rows of a batch, hidden widths

LIMITS = {"loss": 1e-5, "grad": 1e-5, "target": 1e-5, "path": 1e-4, "moved": 1e-4, "policy_path": 1e-4, "policy_moved": 1e-4}
# Where a gradient jumps, a row that does so one step earlier in float32 shows in all later steps: with ddpgbc, where a mean
# leaves +-1 or the lesser critic changes; with qrl, where the ends of two intervals meet or another group is the longest.
# (Seen of these same losses in float32: 2e-3 and 2e-2; of all others 4e-5.)
KINKS = {"ddpgbc": {"policy_path": 1e-2, "policy_moved": 5e-2}, "qrl": {"path": 1e-2, "moved": 1e-1}}


@dataclasses.dataclass(frozen=True)
class Case:
    method: str
    rep: tuple = ()          # first column and count of what stands for a goal; (): the whole observation
    layernorm: bool = False  # in the actors
    policy: str = "ddpgbc"   # how the policy is extracted; a choice of iql's
    discrete: bool = False   # bc, iql
    goal_rep: bool = True    # hiql: phi([s | g]) in place of g
    spread: float = 1        # qrl: factor on phi, so that distances are near the 1 of a step, or near the 500 of its softplus

    @property
    def goal_width(self):
        return self.rep[1] if self.rep else OBS

    def goal(self, row):
        return row[:, self.rep[0] : sum(self.rep)] if self.rep else row

    @property
    def limits(self):
        return LIMITS | KINKS.get(self.policy, {}) | KINKS.get(self.method, {})

    def __str__(self):
        told = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        return " ".join(f"{k}={v}" for k, v in told.items())


# ---- what losses are made of ----

hold = jax.lax.stop_gradient


def net(layers, *inputs):
    """(members, rows, out) of inputs side by side: Dense -> GELU (tanh) -> LayerNorm (1e-6) if it has one, repeated;
    the last Dense plain."""
    x = jnp.concatenate(inputs, -1)
    x = jnp.broadcast_to(x, (layers[0]["w"].shape[0], *x.shape))
    for k, p in enumerate(layers):
        x = jnp.einsum("eri,eio->ero", x, p["w"]) + p["b"][:, None]
        if k == len(layers) - 1:
            return x
        x = jax.nn.gelu(x, approximate=True)
        if "scale" in p:
            mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
            x = (x - mean) / jnp.sqrt(var + 1e-6) * p["scale"][:, None] + p["bias"][:, None]


def number(layers):
    return layers[0]["b"][0, 0]


def components(x, y):
    """Length of the union of the intervals [x_i, y_i], x_i < y_i, of each group of GROUP columns: (rows, groups)."""
    x, y = (v.reshape(*v.shape[:-1], -1, GROUP) for v in (x, y))
    ends = jnp.sort(jnp.concatenate([x, y], -1), -1)
    middle = hold((ends[..., 1:] + ends[..., :-1]) / 2)[..., None]
    covered = ((x[..., None, :] < middle) & (middle < y[..., None, :])).any(-1)
    return ((ends[..., 1:] - ends[..., :-1]) * covered).sum(-1)


def iqe(x, y, rho):
    parts, mix = components(x, y), jax.nn.sigmoid(rho)
    return mix * parts.mean(-1) + (1 - mix) * parts.max(-1)


def normalise(z):
    """Rows to length sqrt(columns)."""
    return z * jnp.sqrt(z.shape[-1] / (z**2).sum(-1, keepdims=True))


def return_target(later, goal_steps, gamma=GAMMA):
    """-1 a step, and the end where the goal is the state itself."""
    return hold(jnp.where(goal_steps == 0, 0.0, -1 + gamma * later))


# ---- losses that numbers worked out by hand anchor ----


def pairs(phi, psi):
    """f_e(i, j) = phi_e(i) . psi_e(j) / sqrt(latent)"""
    return jnp.einsum("eik,ejk->eij", phi, psi) / np.sqrt(phi.shape[-1])


def contrast(f):
    """Binary cross-entropy of f (members, rows, rows) against [i == j], mean over all."""
    same = jnp.eye(f.shape[1])
    return -(same * jax.nn.log_sigmoid(f) + (1 - same) * jax.nn.log_sigmoid(-f)).mean()


def push_apart(d):
    return (100 * jax.nn.softplus(5 - d / 100)).mean()


def excess(d):
    return (jnp.maximum(d - 1, 0) ** 2).mean()


def multiplier_loss(log_lambda, p):
    return jnp.exp(log_lambda) * (EPS - hold(p))


def hierarchy_value(v, now, later, goal_steps, kappa, gamma=GAMMA):
    """v, and target values of s and s', (members, rows): each member has its own target, but a row's side is the same for all."""
    adv = return_target(later.min(0), goal_steps, gamma) - now.mean(0)
    side = hold(jnp.where(adv >= 0, kappa, 1 - kappa))
    return (side * (return_target(later, goal_steps, gamma) - v) ** 2).mean(1).sum(0)


# ---- policies ----


def clone(out, b, o):
    """-log pi of the data's actions, less its constant: Gaussian of unit variance, or softmax."""
    if o.discrete:
        return -(b["state_action"] * jax.nn.log_softmax(out)).sum(-1).mean()
    return 0.5 * ((out - b["state_action"]) ** 2).sum(-1).mean()


def ddpgbc(live, b, o, value):
    """value(action): (rows), by held weights. Terms of the policy as (value, weight)."""
    out = net(live["actor"], b["state"], o.goal(b["actor_goal"]))[0]
    if o.discrete:
        every = [value(jnp.broadcast_to(jnp.eye(ACT)[k], out.shape)) for k in range(ACT)]
        q = (jax.nn.softmax(out) * jnp.stack(every, -1)).sum(-1)
    else:
        q = value(jnp.clip(out, -1, 1))
    pull = -q.mean() / hold(jnp.abs(q).mean() + 1e-6)
    return {"loss_q": (pull, 1), "loss_bc": (clone(out, b, o), ALPHA)}


def awr(mean, taken, adv, alpha):
    weight = hold(jnp.minimum(jnp.exp(alpha * adv), 100))
    return (weight * 0.5 * ((mean - hold(taken)) ** 2).sum(-1)).mean()


def flow(live, b, o):
    t, velocity = b["time"][:, None], b["state_action"] - b["noise"]
    x = (1 - t) * b["noise"] + t * b["state_action"]
    v = net(live["actor"], b["state"], o.goal(b["actor_goal"]), x, t)[0]
    return ((v - velocity) ** 2).mean()


# ---- the methods: terms of the loss as {name: (value, weight)}; weight 0 is only reported ----


def bc(live, target, b, o):
    return {"loss_bc": (clone(net(live["actor"], b["state"], o.goal(b["goal"]))[0], b, o), 1)}


def iql(live, target, b, o):
    q = lambda nets, goal, action: net(nets["critic"], b["state"], o.goal(b[goal]), action)[..., 0]
    value = lambda nets, row, goal: net(nets["value"], b[row], o.goal(b[goal]))[0, :, 0]
    action, v = b["state_action"], value(live, "state", "goal")
    least = hold(q(target, "goal", action).min(0))
    side = hold(jnp.where(least >= v, KAPPA, 1 - KAPPA))
    y = return_target(value(live, "next", "goal"), b["goal_steps"])
    terms = {"loss_value": ((side * (least - v) ** 2).mean(), 1), "value_mean": (v.mean(), 0)}
    terms["loss_critic"] = (((q(live, "goal", action) - y) ** 2).sum(0).mean(), 1)
    judge = lambda a: q(hold(live), "actor_goal", a).min(0)
    if o.policy == "ddpgbc":
        return terms | ddpgbc(live, b, o, judge)
    if o.policy == "rejection":
        return terms | {"loss_flow": (flow(live, b, o), 1)}
    mean = net(live["actor"], b["state"], o.goal(b["actor_goal"]))[0]
    adv = judge(action) - value(live, "state", "actor_goal")
    return terms | {"loss_awr": (awr(mean, action, adv, ALPHA), 1)}


def crl(live, target, b, o):
    phi = lambda nets, action: net(nets["phi"], b["state"], action)
    psi = lambda nets, goal: net(nets["psi"], o.goal(b[goal]))
    held = hold(live)
    judge = lambda a: ((phi(held, a) * psi(held, "actor_goal")).sum(-1) / np.sqrt(LATENT)).min(0)
    loss = contrast(pairs(phi(live, b["state_action"]), psi(live, "goal")))
    return {"loss_contrast": (loss, 1)} | ddpgbc(live, b, o, judge)


def qrl(live, target, b, o):
    phi = lambda nets, row: net(nets["phi"], b[row])[0]
    led = lambda nets, z, action: z + net(nets["dynamics"], z, action)[0]  # where an action leads
    distance = lambda nets, x, y: iqe(x, y, number(nets["rho"]))
    held, state, after = hold(live), phi(live, "state"), phi(live, "next")
    far, p = distance(live, state, phi(live, "goal")), excess(distance(live, state, after))
    z = led(live, state, b["state_action"])
    terms = {"loss_negative": (push_apart(far), 1), "distance_mean": (far.mean(), 0),
             "loss_local": (p, jnp.exp(number(held["lambda"]))),
             "loss_lambda": (multiplier_loss(number(live["lambda"]), p), 1),
             "loss_dynamics": ((distance(live, after, z) + distance(live, z, after)).mean() / 2, 1)}
    goal = o.goal(b["actor_goal"])
    judge = lambda a: -distance(held, led(held, phi(held, "state"), a), phi(held, "actor_goal"))
    if o.rep:
        v = net(live["goal_value"], hold(state), o.goal(b["goal"]))[..., 0]
        terms["loss_goal_value"] = (((v - hold(far)) ** 2).mean(), 1)
        judge = lambda a: -net(held["goal_value"], led(held, phi(held, "state"), a), goal)[..., 0].mean(0)
    return terms | ddpgbc(live, b, o, judge)


ALPHA_LOW, ALPHA_HIGH = 2.0, 1.5


def hiql(live, target, b, o):
    def seen(row, goal):
        """A goal as V and the low policy see it; not a target network: phi has none."""
        return normalise(net(live["rep"], b[row], o.goal(b[goal]))[0]) if o.goal_rep else o.goal(b[goal])

    value = lambda nets, row, goal: net(nets["value"], b[row], seen(row, goal))[..., 0]
    gain = lambda to, row, goal: hold((value(live, to, goal) - value(live, row, goal)).mean(0))
    v = value(live, "state", "goal")
    now, later = hold(value(target, "state", "goal")), hold(value(target, "next", "goal"))
    low = net(live["low_actor"], b["state"], hold(seen("state", "low_goal")))[0]
    high = net(live["high_actor"], b["state"], o.goal(b["high_goal"]))[0]
    loss_low = awr(low, b["state_action"], gain("next", "state", "low_goal"), ALPHA_LOW)
    loss_high = awr(high, seen("state", "waypoint"), gain("waypoint", "state", "high_goal"), ALPHA_HIGH)
    return {"loss_value": (hierarchy_value(v, now, later, b["goal_steps"], KAPPA), 1), "value_mean": (v.mean(), 0),
            "loss_low": (loss_low, 1), "loss_high": (loss_high, 1)}


@dataclasses.dataclass(frozen=True)
class Method:
    losses: Callable
    rows: tuple         # observations of a batch; "state" has its action beside it
    networks: Callable  # of a case: {name: (inputs, members, outputs)}; None for a single number
    sets: Callable      # of a case: what the program is told
    ema: tuple = ()     # networks with a target copy
    steps: bool = False  # does it read goal_steps?


def actor(o, flow=False):
    return OBS + o.goal_width + (ACT + 1) * flow, 1, ACT


def networks_iql(o):
    pair = OBS + o.goal_width
    return {"critic": (pair + ACT, 2, 1), "value": (pair, 1, 1), "actor": actor(o, o.policy == "rejection")}


def networks_crl(o):
    return {"phi": (OBS + ACT, 2, LATENT), "psi": (o.goal_width, 2, LATENT), "actor": actor(o)}


def networks_qrl(o):
    nets = {"phi": (OBS, 1, LATENT), "dynamics": (LATENT + ACT, 1, LATENT), "rho": None, "lambda": None}
    return nets | ({"goal_value": (LATENT + o.goal_width, 2, 1)} if o.rep else {}) | {"actor": actor(o)}


def networks_hiql(o):
    seen, pair = REP_DIM if o.goal_rep else o.goal_width, OBS + o.goal_width
    nets = {"value": (OBS + seen, 2, 1), "high_actor": (pair, 1, seen), "low_actor": (OBS + seen, 1, ACT)}
    return nets | ({"rep": (pair, 1, REP_DIM)} if o.goal_rep else {})


METHODS = {
    "bc": Method(bc, ("state", "goal"), lambda o: {"actor": actor(o)}, lambda o: ""),
    "iql": Method(iql, ("state", "next", "goal", "actor_goal"), networks_iql,
                  lambda o: f"kappa={KAPPA} alpha={ALPHA} policy={o.policy}", ema=("critic",), steps=True),
    "crl": Method(crl, ("state", "goal", "actor_goal"), networks_crl, lambda o: f"latent={LATENT} alpha={ALPHA}"),
    "qrl": Method(qrl, ("state", "next", "goal", "actor_goal"), networks_qrl,
                  lambda o: f"latent={LATENT} alpha={ALPHA} eps={EPS}"),
    "hiql": Method(hiql, ("state", "next", "goal", "low_goal", "high_goal", "waypoint"), networks_hiql,
                   lambda o: f"goal_rep={'on' if o.goal_rep else 'off'} rep_dim={REP_DIM} kappa={KAPPA} "
                             f"alpha_low={ALPHA_LOW} alpha_high={ALPHA_HIGH}", ema=("value",), steps=True),
}
KINDS = {
    "bc": [{"policy": "clone"}, {"policy": "clone", "discrete": True}],
    "iql": [{}, {"discrete": True}, {"policy": "awr"}, {"policy": "rejection"}],
    "crl": [{}],
    "qrl": [{"spread": 2.0}, {"spread": 100.0}],
    "hiql": [{"policy": "awr"}, {"policy": "awr", "goal_rep": False}],
}
GOALS = [{}, {"rep": (1, 3)}, {"rep": (1, 3), "layernorm": True}]
CASES = [Case(method, **kind, **goal) for method, kinds in KINDS.items() for kind, goal in itertools.product(kinds, GOALS)]

# Where the losses of each agent are compared with JAX.
HERE = os.path.basename(__file__)
PARITY = {"dcrl": "test_jax_parity.py", "trl": "test_jax_parity.py", "trl-n": "test_jax_parity.py", "td-n": "test_jax_parity.py",
          "td": "test_value_parity.py", "mc": "test_value_parity.py", "curriculum": "test_value_parity.py",
          "bc": HERE, "iql": HERE, "crl": HERE, "qrl": HERE, "hiql": HERE}


# ---- by hand ----


def near(x, want, digits=8):
    assert np.allclose(x, want, rtol=0, atol=0.51 * 10.0**-digits), (x, want)


def check_iqe_by_hand():
    i = np.arange(2 * GROUP)
    x, y = jnp.array(np.sin(i + 1.0))[None], jnp.array(np.cos(2 * i + 1.0))[None]
    near(components(x, y), [[1.712043290, 1.987484869]])
    d, (dx, dy, drho) = jax.value_and_grad(lambda x, y, rho: iqe(x, y, rho)[0], (0, 1, 2))(x, y, 0.3)
    near([d, drho], [1.908372192, -0.033666992])
    near(iqe(y, x, 0.3), 1.910220648)
    opens, closes = np.zeros(2 * GROUP), np.zeros(2 * GROUP)
    opens[[3, 4]], opens[[9, 10]], closes[[4, 6]], closes[[10, 12]] = -0.287221, -0.712779, 0.287221, 0.712779
    near(dx[0], opens, 6)
    near(dy[0], closes, 6)


def check_by_hand():
    """Numbers computed from the formulas by other means, in double precision."""
    check_iqe_by_hand()
    row, k = np.arange(3.0)[:, None], np.arange(4)
    phi, psi = jnp.array(np.sin(3 * row + k))[None], jnp.array(np.cos(2 * row + k))[None]
    f = pairs(phi, psi)
    near([f[0, 0, 0], f[0, 0, 1], f[0, 1, 0]], [-0.031730, -0.693688, 0.203945], 6)
    near(contrast(f), 0.570969977)
    near(push_apart(jnp.array([120.0, 900, 3])), 293.906443, 6)
    p = excess(jnp.array([0.4, 1.5, 2]))
    near([p, jax.grad(multiplier_loss)(0.0, p)], [0.416667, -0.366667], 6)
    near(normalise(jnp.array([[3.0, 4, 0, 0]])), [[1.2, 1.6, 0, 0]])
    v, now, later = (jnp.array(x)[:, None] for x in ((-3.7, -3.2), (-3.6, -3.4), (-3.0, -2.5)))
    near(hierarchy_value(v, now, later, jnp.array([-1]), 0.7, 0.99), 0.0445575)


# ---- what they are fed ----


def draw_network(rng, sizes, members, layernorm):
    layers = []
    for k, (m, n) in enumerate(zip(sizes, sizes[1:])):
        layers.append({"w": rng.normal(0, m**-0.5, (members, m, n)), "b": rng.normal(0, 0.1, (members, n))})
        if layernorm and k < len(sizes) - 2:
            layers[-1] |= {"scale": rng.normal(1, 0.1, (members, n)), "bias": rng.normal(0, 0.1, (members, n))}
    return layers


def draw_weights(rng, o, hidden):
    """{network: layers}, live and target, as float64 of float32 numbers."""
    live = {}
    for name, shape in METHODS[o.method].networks(o).items():
        if shape is None:
            live[name] = [{"b": rng.normal(0, 0.5, (1, 1))}]
            continue
        inputs, members, outputs = shape
        live[name] = draw_network(rng, (inputs, *hidden, outputs), members, o.layernorm or not name.endswith("actor"))
    for part in ("w", "b") if o.method == "qrl" else ():
        live["phi"][-1][part] *= o.spread
    around = lambda v: v + 0.3 * rng.normal(size=v.shape) * np.abs(v).mean()
    target = {name: jax.tree.map(around, live[name]) for name in METHODS[o.method].ema}
    return jax.tree.map(lambda x: np.float64(np.float32(x)), (live, target))


def draw_batch(rng, o, rows):
    """Random rows: losses do not ask whether they belong together. Half of the next states are close, for qrl's hinge."""
    m = METHODS[o.method]
    b = {name: rng.normal(size=(rows, OBS)) for name in m.rows}
    if "next" in b:
        b["next"] = b["state"] + np.where(rng.random((rows, 1)) < 0.5, 0.1, 1) * rng.normal(size=(rows, OBS))
    b["state_action"] = rng.uniform(-1, 1, (rows, ACT))
    if m.steps:
        b["goal_steps"] = rng.integers(-1, 4, rows)
    if o.policy == "rejection":
        b |= {"noise": rng.normal(size=(rows, ACT)), "time": rng.uniform(size=rows)}
    b = {k: v.astype(np.float32) for k, v in b.items()}
    if o.discrete:  # whole numbers; the highest must occur, since the data says how many there are
        b["state_action"] = rng.integers(0, ACT, (rows, 1))
        b["state_action"][0] = ACT - 1
    return b


# ---- a hundred updates ----


def named(nets, prefix=""):
    return {f"{prefix}{net}/{k}/{part}": np.asarray(v) for net, layers in nets.items() for k, p in enumerate(layers)
            for part, v in p.items()}


def train(live, target, b, o):
    """Adam on the sum of all terms, beside EMA of the weights before the step: what remains, the reported numbers before
    each step and after the last, and the first gradients."""
    if o.discrete:
        b = b | {"state_action": np.eye(ACT)[b["state_action"][:, 0]]}
    b = {k: jnp.asarray(v, jnp.float64) for k, v in b.items()}

    def total(live, target):
        terms = METHODS[o.method].losses(live, target, b, o)
        return sum(value * weight for value, weight in terms.values()), {k: v for k, (v, _) in terms.items()}

    evaluate = jax.jit(jax.value_and_grad(total, has_aux=True))
    m = v = jax.tree.map(np.zeros_like, live)
    path = []
    for t in range(1, UPDATES + 2):
        (_, reported), g = jax.tree.map(np.asarray, evaluate(live, target))
        path.append(reported)
        first = g if t == 1 else first
        if t > UPDATES:
            break
        target = {name: jax.tree.map(lambda p, e: 0.005 * p + 0.995 * e, live[name], target[name]) for name in target}
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        adam = lambda p, m, v: p - 3e-4 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        live = jax.tree.map(adam, live, m, v)
    return live, target, {k: np.array([p[k] for p in path]) for k in path[0]}, first


# ---- the program ----


def settings(o):
    sets = f"gamma={GAMMA} {METHODS[o.method].sets(o)}"
    sets += f" rep={o.rep[0]},{o.rep[1]}" if o.rep else ""
    sets += " actor_layernorm=on" if o.layernorm else ""  # off is the default
    return [word for s in sets.split() for word in ("--set", s)]


def call(*words):
    done = subprocess.run([DCRL, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr}"
    return done.stdout


def program(weights, batch, o):
    with tempfile.TemporaryDirectory() as folder:
        w, b, g = (os.path.join(folder, name) for name in ("w.safetensors", "b.npz", "g.safetensors"))
        save_file(weights, w)
        np.savez(b, **batch)
        call("grad", "--agent", o.method, "--weights", w, "--batch", b, "--out", g, "--updates", str(UPDATES), *settings(o))
        return {k: np.asarray(v, np.float64) for k, v in load_file(g).items()}


# ---- the comparison ----


def tensors_off(got, want, floor):
    """Worst tensor, by norm relative to its norm; one that cancels to nothing is measured against a part of the whole."""
    whole = np.sqrt(sum(np.sum(v**2) for v in want.values()))
    return max(np.linalg.norm(got[k] - v) / max(np.linalg.norm(v), floor * whole, 1e-30) for k, v in want.items())


def change_off(got, before, after, name):
    """Error of a network's change, relative to that change."""
    flat = lambda tensors: np.concatenate([np.ravel(v) for k, v in tensors.items() if k.startswith(name + "/")])
    old, new = flat(before), flat(after)
    mine = flat({k: got["after/" + k] for k in after})
    return np.linalg.norm(mine - new) / np.linalg.norm(new - old)


def path_off(got, path):
    """A loss may jump where a row changes sides, which rounding may put a step earlier or later, so the two worst of
    the hundred steps are left out."""
    return max((np.sort(np.abs(got["path/" + k] - v) / (np.abs(v) + 0.1))[-3] for k, v in path.items()), default=0.0)


def compare(got, before, after, path, grads):
    """{what: worst error}. What belongs to the policy is measured apart."""
    policy = ("actor", "low_actor", "high_actor", "loss_q", "loss_bc")
    split = lambda names: [[k for k in names if (k in policy) == side] for side in (False, True)]
    targets = {"after/" + k: v for k, v in after.items() if k.startswith("target_")}
    found = {"loss": max(abs(got[k] - v[0]) / (abs(v[0]) + 0.1) for k, v in path.items())}
    found["grad"] = max(tensors_off(got, named({name: g}), 0.01) for name, g in grads.items())
    found["target"] = tensors_off(got, targets, 0.001) if targets else 0.0
    for prefix, losses, nets in zip(("", "policy_"), split(path), split(grads)):
        found[prefix + "path"] = path_off(got, {k: path[k] for k in losses})
        found[prefix + "moved"] = max((change_off(got, before, after, name) for name in nets), default=0.0)
    return {k: float(v) for k, v in found.items()}


def measure(o, rng):
    """Errors of a fresh draw, and its size."""
    rows, hidden = SIZES[rng.integers(len(SIZES))]
    live, target = draw_weights(rng, o, hidden)
    batch = draw_batch(rng, o, rows)
    before = named(live) | named(target, "target_")
    got = program({k: np.float32(v) for k, v in before.items()}, batch, o)
    after, after_target, path, grads = train(live, target, batch, o)
    after = named(after) | named(after_target, "target_")
    wanted = set(named(live)) | {"after/" + k for k in after} | set(path) | {"path/" + k for k in path}
    assert set(got) == wanted, (str(o), "other tensors than expected", set(got) ^ wanted)
    return compare(got, before, after, path, grads), (rows, hidden)


def check(o, rng):
    found, size = measure(o, rng)
    print(f"{o}, {size[0]} rows, {size[1]}:", ", ".join(f"{k} {v:.1e}" for k, v in found.items()), flush=True)
    return found, [f"{k} {v:.2e} ({o})" for k, v in found.items() if not v <= o.limits[k]]


def check_describe(o):
    """--describe lists exactly the arrays that the equations read."""
    want = {*METHODS[o.method].rows, "state_action"} | ({"goal_steps"} if METHODS[o.method].steps else set())
    want |= {"noise", "time"} if o.policy == "rejection" else set()
    listed = json.loads(call("grad", "--agent", o.method, "--describe", "--json", *settings(o)))["inputs"]
    assert {x["name"] for x in listed} == want, (o, listed)


def check_every_agent():
    """An agent without a parity case is a failure, here or elsewhere."""
    agents = {a["name"] for a in json.loads(call("list", "agents", "--json"))["agents"]}
    assert agents == set(PARITY), ("agents without a parity case, or cases without an agent", agents ^ set(PARITY))
    cases = {HERE: {o.method for o in CASES}}
    for file, pattern in (("test_jax_parity.py", r'^    \("([a-z-]+)", "'), ("test_value_parity.py", r'\bagent="([a-z-]+)"')):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), file)) as text:
            cases[file] = set(re.findall(pattern, text.read(), re.M))
    for agent, file in PARITY.items():
        assert agent in cases[file], f"{file} has no case of {agent}"


def main():
    seed = int(os.environ.get("DCRL_SEED", np.random.SeedSequence().entropy % 2**32))
    free = float(os.environ.get("DCRL_TOL", 1)) == 0
    print(f"DCRL_SEED={seed} repeats this run")
    check_by_hand()
    check_every_agent()
    failures, worst = [], {}
    for number, o in enumerate(CASES):
        check_describe(o)
        found, bad = check(o, np.random.default_rng([seed, number]))
        for again in (1, 2) if bad else ():
            print("beyond a limit:", *bad, "- drawn again", flush=True)
            failures += check(o, np.random.default_rng([seed, number, again]))[1]
        worst = {k: max(v, worst.get(k, 0)) for k, v in found.items()}
    print("worst: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    for failure in failures:
        print("beyond a limit:", failure)
    print(f"{len(CASES)} cases, {len(failures)} failed")
    sys.exit(bool(failures) and not free)


if __name__ == "__main__":
    main()
