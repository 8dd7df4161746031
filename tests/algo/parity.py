"""What the parity tests of methods share: losses, all gradients and a hundred updates of `dcrl grad` against JAX, on
weights and batches of one fixed seed and of one for these sources (fresh.py). A method's own file, test_NAME_parity.py, holds
its equations and what it is fed (`Method`), and ends with `parity.main`.

The JAX side is written from the equations alone, in float64 and in the plainest way: one network call per term, no stacking
of rows, autodiff for everything. It is anchored by numbers worked out by hand (`Method.by_hand`). `dcrl grad` gets the same
weights and batch in float32. Every method runs with whole observations as goals and with three columns of them, without
LayerNorm in its actors and with it (but for actors of ReLU, which have none), and in every kind that it names.

Measures: a loss relative to its value plus 0.1, at the first batch and along the hundred Adam steps ("path"); a gradient
tensor by norm relative to its norm; after the steps, each network's change relative to the norm of that change ("moved"), and
each target tensor relative to its norm. No tensor is left out. Where a draw exceeds a limit, JAX itself says how far
rounding moves it: the same equations in float64 on weights and rows that differ by a few roundings of float32, at most of forty
such. A row at a kink is moved to its other side by one and not by another, and then the program may be three times as far off as
that. (Of six a unit of ReLU at its kink was moved by none, of forty by many.) Nothing is drawn again. A build with sanitizers runs every case, and compares nothing. DCRL_DEVICE=cuda compares a GPU (in fp32), DCRL_SEED runs that seed alone, DCRL_TOL=0 prints all figures and fails nothing.
"""
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
from typing import Callable

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")  # compiling is most of the time
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402

DCRL = os.environ.get("DCRL", "build/dcrl")
DEVICE = os.environ.get("DCRL_DEVICE", "cpu")
UPDATES = 100
FIXED_SEED = 20260101
SWAYS, ROUNDINGS = 40, 8  # draws of rounded numbers at most, and by how many roundings of float32 those differ
OBS, ACT = 6, 3  # columns of an observation, an action
GAMMA, ALPHA, KAPPA = 0.97, 0.4, 0.8
SIZES = [(64, (24, 40)), (33, (20,)), (100, (32, 24, 16))]  # rows of a batch, hidden widths

LIMITS = {"loss": 1e-5, "grad": 1e-5, "target": 1e-5, "path": 1e-4, "moved": 1e-4, "policy_path": 1e-4, "policy_moved": 1e-4}
# Where a gradient jumps, a row that does so one step earlier in float32 shows in all later steps: with ddpgbc, where a mean
# leaves +-1 or the lesser critic changes. (Seen of these same losses in float32: 2e-3; of all others 4e-5.)
KINKS = {"ddpgbc": {"policy_path": 1e-2, "policy_moved": 5e-2}}


class Case:
    """One comparison: `rep` is the first column and count of what stands for a goal, () the whole observation; `layernorm`
    says whether actors have it; `policy` and `discrete` say how the policy is extracted; what else a method's kinds name
    is read as an attribute."""

    def __init__(self, name, rep=(), layernorm=False, policy="ddpgbc", discrete=False, **more):
        self.told = {k: v for k, v in (("rep", rep), ("layernorm", layernorm), ("policy", policy), ("discrete", discrete)) if v}
        self.told |= more
        self.name, self.rep, self.layernorm, self.policy, self.discrete = name, rep, layernorm, policy, discrete
        self.__dict__ |= more

    @property
    def goal_width(self):
        return self.rep[1] if self.rep else OBS

    def goal(self, row):
        return row[:, self.rep[0] : sum(self.rep)] if self.rep else row

    def __str__(self):
        return " ".join([self.name, *(f"{k}={v}" for k, v in self.told.items())])


@dataclasses.dataclass(frozen=True)
class Method:
    """losses(live, target, batch, case) gives the terms of the loss as {name: (value, weight)}; weight 0 is only reported."""
    name: str
    losses: Callable
    rows: tuple         # observations of a batch, or a function of a case to them
    networks: Callable  # of a case: {name: (inputs, members, outputs)}, with hidden widths of its own as a fourth; None for a single number
    sets: Callable      # of a case: what the program is told
    kinds: tuple = ({},)  # what to compare, as arguments of Case
    goals: tuple = ({}, {"rep": (1, 3)}, {"rep": (1, 3), "layernorm": True})
    ema: tuple = ()      # networks with a target copy
    steps: bool = False  # does it read goal_steps?
    acted: tuple = ("state",)  # rows that have their action beside them
    times: Callable = lambda o: {}  # rows of which a batch has several for each of its own
    policy: tuple = ("actor", "low_actor", "high_actor", "loss_q", "loss_bc")  # networks and terms that are measured apart
    limits: dict = dataclasses.field(default_factory=dict)  # instead of LIMITS, with the reason beside
    # Arrays beside rows: of (rng, case, rows) to {name: array}. By itself those of a flow policy.
    extra: Callable = lambda rng, o, rows: flow_draws(rng, rows) if o.policy == "rejection" else {}
    prepare: Callable = lambda live, o: None  # changes fresh weights in place
    by_hand: Callable = lambda: None          # numbers computed from the formulas by other means

    def limit(self, o):
        return LIMITS | KINKS.get(o.policy, {}) | self.limits


# ---- what losses are made of ----

hold = jax.lax.stop_gradient


def net(layers, *inputs, relu=False):
    """(members, rows, out) of inputs side by side: Dense -> GELU (tanh) -> LayerNorm (1e-6) if it has one, or Dense -> ReLU,
    repeated; the last Dense plain."""
    x = jnp.concatenate(inputs, -1)
    x = jnp.broadcast_to(x, (layers[0]["w"].shape[0], *x.shape))
    for k, p in enumerate(layers):
        x = jnp.einsum("eri,eio->ero", x, p["w"]) + p["b"][:, None]
        if k == len(layers) - 1:
            return x
        x = jax.nn.relu(x) if relu else jax.nn.gelu(x, approximate=True)
        if "scale" in p:
            mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
            x = (x - mean) / jnp.sqrt(var + 1e-6) * p["scale"][:, None] + p["bias"][:, None]


def number(layers):
    return layers[0]["b"][0, 0]


def normalise(z):
    """Rows to length sqrt(columns)."""
    return z * jnp.sqrt(z.shape[-1] / (z**2).sum(-1, keepdims=True))


def return_target(later, goal_steps, gamma=GAMMA):
    """-1 a step, and the end where the goal is the state itself."""
    return hold(jnp.where(goal_steps == 0, 0.0, -1 + gamma * later))


def hierarchy_value(v, now, later, goal_steps, kappa, gamma=GAMMA):
    """v, and target values of s and s', (members, rows): each member has its own target, but a row's side is the same for all."""
    adv = return_target(later.min(0), goal_steps, gamma) - now.mean(0)
    side = hold(jnp.where(adv >= 0, kappa, 1 - kappa))
    return (side * (return_target(later, goal_steps, gamma) - v) ** 2).mean(1).sum(0)


# ---- policies ----


WIDE = (9, 7)  # hidden layers of actors that have widths of their own
OWN_FORM = "actor_hidden=9,7 actor_activation=relu actor_std=free"  # Gaussian actors as HIQL's code has them on CALVIN


def likelihood(live, level, state, goal, target, own_form):
    """level: "high_", "low_", or "actor_" of an only one.
    -log pi(target) of each row, less its constant: a Gaussian around a network's mean, of deviation 1 or of `own_form`."""
    off = target - net(live["actor" if level == "actor_" else level + "actor"], state, goal, relu=own_form)[0]
    logs = jnp.clip(live[level + "log_std"][0]["b"][0], -5, 2) if own_form else 0.0
    return (0.5 * (off / jnp.exp(logs)) ** 2 + logs).sum(-1)


def log_std(columns):
    """Of Method.networks: no hidden layers, and an input that is always 0, so that the bias is what it says."""
    return 1, 1, columns, ()


def wide_deviations(live, o):
    """For Method.prepare: a deviation beyond what it is clipped to."""
    for name in live:
        if name.endswith("log_std"):
            live[name][0]["b"][0, 0] = 2.5


def clone(out, b, o, state="state"):
    """-log pi of the data's actions, less its constant: Gaussian of unit variance, or softmax."""
    if o.discrete:
        return -(b[state + "_action"] * jax.nn.log_softmax(out)).sum(-1).mean()
    return 0.5 * ((out - b[state + "_action"]) ** 2).sum(-1).mean()


def ddpgbc(live, b, o, value, state="state"):
    """value(action): (rows), by held weights. Terms of the policy as (value, weight)."""
    out = net(live["actor"], b[state], o.goal(b["actor_goal"]))[0]
    if o.discrete:
        every = [value(jnp.broadcast_to(jnp.eye(ACT)[k], out.shape)) for k in range(ACT)]
        q = (jax.nn.softmax(out) * jnp.stack(every, -1)).sum(-1)
    else:
        q = value(jnp.clip(out, -1, 1))
    pull = -q.mean() / hold(jnp.abs(q).mean() + 1e-6)
    return {"loss_q": (pull, 1), "loss_bc": (clone(out, b, o, state), ALPHA)}


def awr(mean, taken, adv, alpha):
    weight = hold(jnp.minimum(jnp.exp(alpha * adv), 100))
    return (weight * 0.5 * ((mean - hold(taken)) ** 2).sum(-1)).mean()


def flow(live, b, o, goal="actor_goal", to=None, level="", state="state"):
    """level: "high_" or "low_" of the network and its draws; to: what noise is carried to, by itself the action."""
    to, noise, t = b[state + "_action"] if to is None else to, b[level + "noise"], b[level + "time"][:, None]
    x = (1 - t) * noise + t * to
    v = net(live[level + "actor"], b[state], o.goal(b[goal]), x, t)[0]
    return ((v - (to - noise)) ** 2).mean()


def near(x, want, digits=8):
    assert np.allclose(x, want, rtol=0, atol=0.51 * 10.0**-digits), (x, want)


def actor(o, flow=False):
    """Inputs, members and outputs of a policy network, for Method.networks."""
    return OBS + o.goal_width + (ACT + 1) * flow, 1, ACT


# ---- what they are fed ----


def draw_network(rng, sizes, members, layernorm):
    layers = []
    for k, (m, n) in enumerate(zip(sizes, sizes[1:])):
        layers.append({"w": rng.normal(0, m**-0.5, (members, m, n)), "b": rng.normal(0, 0.1, (members, n))})
        if layernorm and k < len(sizes) - 2:
            layers[-1] |= {"scale": rng.normal(1, 0.1, (members, n)), "bias": rng.normal(0, 0.1, (members, n))}
    return layers


def draw_weights(rng, m, o, hidden):
    """{network: layers}, live and target, as float64 of float32 numbers."""
    live = {}
    for name, shape in m.networks(o).items():
        if shape is None:
            live[name] = [{"b": rng.normal(0, 0.5, (1, 1))}]
            continue
        inputs, members, outputs, *own = shape
        widths = own[0] if own else hidden
        live[name] = draw_network(rng, (inputs, *widths, outputs), members, o.layernorm or not name.endswith("actor"))
    m.prepare(live, o)
    around = lambda v: v + 0.3 * rng.normal(size=v.shape) * np.abs(v).mean()
    target = {name: jax.tree.map(around, live[name]) for name in m.ema}
    return jax.tree.map(lambda x: np.float64(np.float32(x)), (live, target))


def flow_draws(rng, rows, width=ACT, level=""):
    return {level + "noise": rng.normal(size=(rows, width)), level + "time": rng.uniform(size=rows)}


def two_flows(rng, o, rows):
    """Draws of a high flow to a subgoal and a low flow to an action, for Method.extra."""
    return flow_draws(rng, rows, o.goal_width, "high_") | flow_draws(rng, rows, ACT, "low_")


def draw_batch(rng, m, o, rows):
    """Random rows: losses do not ask whether they belong together. Half of the next states are close, for qrl's hinge."""
    names = m.rows(o) if callable(m.rows) else m.rows
    count = {name: rows * m.times(o).get(name, 1) for name in names}
    b = {name: rng.normal(size=(count[name], OBS)) for name in names}
    if "next" in b:
        b["next"] = b["state"] + np.where(rng.random((rows, 1)) < 0.5, 0.1, 1) * rng.normal(size=(rows, OBS))
    b |= {name + "_action": rng.uniform(-1, 1, (count[name], ACT)) for name in m.acted}
    if m.steps:
        b["goal_steps"] = rng.integers(-1, 4, rows)
    b |= m.extra(rng, o, rows)
    b = {k: v.astype(np.float32) for k, v in b.items()}
    if o.discrete:  # whole numbers; the highest must occur, since the data says how many there are
        b |= {name + "_action": rng.integers(0, ACT, (count[name], 1)) for name in m.acted}
        b[m.acted[0] + "_action"][0] = ACT - 1
    return b


# ---- a hundred updates ----


def named(nets, prefix=""):
    return {f"{prefix}{net}/{k}/{part}": np.asarray(v) for net, layers in nets.items() for k, p in enumerate(layers)
            for part, v in p.items()}


def gradients(m, o):
    """Value, reported numbers and gradients of the sum of all terms, compiled once a case."""
    def total(live, target, b):
        terms = m.losses(live, target, b, o)
        return sum(value * weight for value, weight in terms.values()), {k: v for k, (v, _) in terms.items()}

    return jax.jit(jax.value_and_grad(total, has_aux=True))


def train(m, live, target, b, o, evaluate):
    """Adam on the sum of all terms, beside EMA of the weights before the step: what remains, the reported numbers before
    each step and after the last, and the first gradients."""
    if o.discrete:
        b = b | {k + "_action": np.eye(ACT)[b[k + "_action"][:, 0]] for k in m.acted}
    b = {k: jnp.asarray(v, jnp.float64) for k, v in b.items()}
    first_moment = second_moment = jax.tree.map(np.zeros_like, live)
    path = []
    for t in range(1, UPDATES + 2):
        (_, reported), g = jax.tree.map(np.asarray, evaluate(live, target, b))
        path.append(reported)
        first = g if t == 1 else first
        if t > UPDATES:
            break
        target = {name: jax.tree.map(lambda p, e: 0.005 * p + 0.995 * e, live[name], target[name]) for name in target}
        first_moment = jax.tree.map(lambda p, g: 0.9 * p + 0.1 * g, first_moment, g)
        second_moment = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second_moment, g)
        adam = lambda p, m, v: p - 3e-4 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        live = jax.tree.map(adam, live, first_moment, second_moment)
    return live, target, {k: np.array([p[k] for p in path]) for k in path[0]}, first


# ---- the program ----


def settings(m, o):
    sets = f"gamma={GAMMA} {m.sets(o)}"
    sets += f" rep={o.rep[0]},{o.rep[1]}" if o.rep else ""
    sets += f" actor_layernorm={'on' if o.layernorm else 'off'}"
    return [word for s in sets.split() for word in ("--set", s)]


def call(*words):
    done = subprocess.run([DCRL, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr}"
    return done.stdout


def program(weights, batch, m, o, hidden):
    with tempfile.TemporaryDirectory() as folder:
        w, b, g = (os.path.join(folder, name) for name in ("w.safetensors", "b.npz", "g.safetensors"))
        save_file(weights, w)
        np.savez(b, **batch)
        call("grad", "--agent", m.name, "--weights", w, "--batch", b, "--out", g, "--updates", str(UPDATES), "--device", DEVICE, *settings(m, o),
             *(["--hidden", ",".join(map(str, hidden))] if any(n and len(n) > 3 for n in m.networks(o).values()) else []))
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


def compare(m, got, before, after, path, grads):
    """{what: worst error}. What belongs to the policy is measured apart."""
    split = lambda names: [[k for k in names if (k in m.policy) == side] for side in (False, True)]
    targets = {"after/" + k: v for k, v in after.items() if k.startswith("target_")}
    found = {"loss": max(abs(got[k] - v[0]) / (abs(v[0]) + 0.1) for k, v in path.items())}
    found["grad"] = max(tensors_off(got, named({name: g}), 0.01) for name, g in grads.items())
    found["target"] = tensors_off(got, targets, 0.001) if targets else 0.0
    for prefix, losses, nets in zip(("", "policy_"), split(path), split(grads)):
        found[prefix + "path"] = path_off(got, {k: path[k] for k in losses})
        found[prefix + "moved"] = max((change_off(got, before, after, name) for name in nets), default=0.0)
    return {k: float(v) for k, v in found.items()}


def rounded(rng, x):
    """The same numbers, a few roundings off; whole ones, which are counts and actions, as they are."""
    if x.dtype.kind != "f" or np.array_equal(x, np.round(x)):
        return x
    return np.asarray(x, np.float64) * (1 + ROUNDINGS * 2.0**-24 * rng.uniform(-1, 1, x.shape))


def sway(m, o, live, target, batch, evaluate, wanted, bad):
    """How far rounding moves what is wanted, in the measures of `compare`; bad: {what: error}, which ends it once explained."""
    most, rng = {}, np.random.default_rng(FIXED_SEED)
    before, after, path, grads = wanted
    for _ in range(SWAYS):
        new = jax.tree.map(lambda x: rounded(rng, x), (live, target))
        new_after, new_target, new_path, new_grads = train(
            m, *new, {k: rounded(rng, v) for k, v in batch.items()}, o, evaluate)
        got = named(new_grads) | {"after/" + k: v for k, v in (named(new_after) | named(new_target, "target_")).items()}
        got |= {k: v[0] for k, v in new_path.items()} | {"path/" + k: v for k, v in new_path.items()}
        most = {k: max(v, most.get(k, 0)) for k, v in compare(m, got, before, after, path, grads).items()}
        if all(v <= 3 * most[k] for k, v in bad.items()):
            break
    return most


def check(m, o, rng, number, evaluate):
    """Errors of a draw, and what of them is too much."""
    rows, hidden = SIZES[number % len(SIZES)]
    live, target = draw_weights(rng, m, o, hidden)
    batch = draw_batch(rng, m, o, rows)
    before = named(live) | named(target, "target_")
    got = program({k: np.float32(v) for k, v in before.items()}, batch, m, o, hidden)
    after, after_target, path, grads = train(m, live, target, batch, o, evaluate)
    after = named(after) | named(after_target, "target_")
    wanted = set(named(live)) | {"after/" + k for k in after} | set(path) | {"path/" + k for k in path}
    assert set(got) == wanted, (str(o), "other tensors than expected", set(got) ^ wanted)
    found = compare(m, got, before, after, path, grads)
    print(f"{o}, {rows} rows, {hidden}:", ", ".join(f"{k} {v:.1e}" for k, v in found.items()), flush=True)
    bad = [k for k, v in found.items() if not v <= m.limit(o)[k]]
    may = sway(m, o, live, target, batch, evaluate, (before, after, path, grads), {k: found[k] for k in bad}) if bad else {}
    for k in bad:
        print(f"beyond a limit: {k} {found[k]:.2e}; rounded numbers move JAX by {may[k]:.2e}", flush=True)
    return found, [f"{k} {found[k]:.2e} ({o})" for k in bad if not found[k] <= 3 * may[k]]


def check_describe(m, o, rng):
    """--describe lists exactly the arrays that the equations read."""
    want = set(draw_batch(rng, m, o, 4))
    listed = json.loads(call("grad", "--agent", m.name, "--describe", "--json", *settings(m, o)))["inputs"]
    assert {x["name"] for x in listed} == want, (o, listed)


def checked_build():
    """Whether the program looks for errors of its own (drive.sanitized): what it computes is compared in the release build."""
    if "BUILD" not in os.environ:
        return False
    os.environ.setdefault("DCRL", DCRL)
    import drive
    return drive.sanitized()


def run_alone(m, cases):
    """Every case through the program, which must end well with numbers for all that it was given."""
    for number, o in enumerate(cases):
        rng = np.random.default_rng([FIXED_SEED, number])
        check_describe(m, o, rng)
        rows, hidden = SIZES[number % len(SIZES)]
        live, target = draw_weights(rng, m, o, hidden)
        before = {k: np.float32(v) for k, v in (named(live) | named(target, "target_")).items()}
        got = program(before, draw_batch(rng, m, o, rows), m, o, hidden)
        assert set(named(live)) | {"after/" + k for k in before} <= set(got) and all(np.isfinite(v).all() for v in got.values()), str(o)
    print(f"{len(cases)} cases run")


def seeds():
    """The fixed one and that of these sources, or that of DCRL_SEED alone."""
    drawn = [fresh.seed()] if fresh.given() is not None else [FIXED_SEED, fresh.seed()]
    print(f"DCRL_SEED={' and DCRL_SEED='.join(map(str, drawn))} repeat this run")
    return drawn


def main(m):
    free = float(os.environ.get("DCRL_TOL", 1)) == 0
    cases = [Case(m.name, **kind, **goal) for kind, goal in itertools.product(m.kinds, m.goals)
             if not (kind.get("own_form") and goal.get("layernorm"))]
    if checked_build():
        return run_alone(m, cases)
    m.by_hand()
    failures, worst, drawn = [], {}, seeds()
    for number, o in enumerate(cases):
        check_describe(m, o, np.random.default_rng(FIXED_SEED))
        evaluate = gradients(m, o)
        for seed in drawn:
            found, bad = check(m, o, np.random.default_rng([seed, number]), number, evaluate)
            failures += [f"{text}, DCRL_SEED={seed}" for text in bad]
            worst = {k: max(v, worst.get(k, 0)) for k, v in found.items()}
    print("worst: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    for failure in failures:
        print("beyond a limit:", failure)
    print(f"{len(cases)} cases, {len(failures)} failed")
    sys.exit(bool(failures) and not free)
