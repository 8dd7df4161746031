"""The value form against JAX: losses, all gradients and a hundred updates, on weights and batches of one seed for these sources (fresh.py).

The oracle is written from the specification in float64: an ensemble of two critics on [s | g | a], segment and
propagation losses by cross-entropy, the oracle critic distilled from it, and the policies, ddpgbc (of real and of discrete
actions) and rejection (flow matching), beside the critic and after it. `dcrl grad` gets the same numbers in float32. Measures: a loss relative to its value plus 0.1, at
the first batch and before each of the hundred Adam steps; a gradient tensor by norm relative to its norm; after the steps, each
network's change relative to the norm of that change, and each target tensor relative to its norm. No tensor is left out.
DCRL_SEED repeats a run.
"""
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")  # compiling is most of the time
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
from batches import arrays
from safetensors.numpy import load_file, save_file  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402

DCRL = os.environ["DCRL"]
SEED = fresh.seed()
GAMMA, UPDATES = 0.97, 100
# Networks by the norm of their change. Losses are smooth in the critics' and the flow's weights (an expectile's weight jumps
# where its gradient is zero); ddpgbc's gradient jumps where a mean leaves +-1 or the least critic changes, and a row that does
# so one step earlier in float32 shows: seen 2e-3, else 5e-6.
LIMITS = {"loss": 1e-5, "grad": 1e-5, "target": 1e-5, "critic": 1e-4, "oracle_critic": 1e-4,
          "path": 1e-4, "path_q_bc": 1e-2}
ACTOR_LIMITS = {"rejection": {"actor": 1e-4}, "ddpgbc": {"actor": 5e-2}}
rng = np.random.default_rng(SEED)
passed = []  # cases


def network(sizes, members):
    layers = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        layers.append({"w": rng.normal(size=(members, m, n)) / np.sqrt(m), "b": 0.1 * rng.normal(size=(members, n))})
        if n != sizes[-1] or len(layers) < len(sizes) - 1:
            layers[-1] |= {"scale": 1 + 0.1 * rng.normal(size=(members, n)), "bias": 0.1 * rng.normal(size=(members, n))}
    return layers


def apply(layers, x):
    """x (rows, in) -> (members, rows, out)."""
    x = jnp.broadcast_to(x, (layers[0]["w"].shape[0], *x.shape[-2:]))
    for k, p in enumerate(layers):
        x = jnp.einsum("eri,eio->ero", x, p["w"]) + p["b"][:, None]
        if k < len(layers) - 1:
            x = jax.nn.gelu(x)
            mean = x.mean(-1, keepdims=True)
            var = ((x - mean) ** 2).mean(-1, keepdims=True)
            x = (x - mean) / jnp.sqrt(var + 1e-6) * p["scale"][:, None] + p["bias"][:, None]
    return x


def bce(logit, t):
    return -(jax.nn.log_sigmoid(logit) * t + jax.nn.log_sigmoid(-logit) * (1 - t))


def total(parts, o):
    weights = {"loss_bc": o["alpha"], "loss_dc": o["segment_weight"]}
    return sum(weights.get(name, 1) * part for name, part in parts.items())


def losses(live, target, b, o):
    sg, cat = jax.lax.stop_gradient, lambda *x: jnp.concatenate(x, -1)
    q = lambda p, s, g, a: apply(p, cat(b["obs_" + s], b["obs_" + g], b["act_" + a]))[..., 0]
    known = jnp.inf if o["agent"] == "mc" else 1
    value = lambda steps, logit: jnp.where(steps <= known, GAMMA**steps, jax.nn.sigmoid(logit))
    source = {"online": live["critic"], "ema": target["critic"]}
    first, second = (source[s] for s in o["targets"].split("*"))
    out = {}
    if o["segments"]:
        parent = q(live["critic"], "i", "j", "i")
        t = sg(value(b["left"], q(first, "i", "k", "i")) * value(b["right"], q(second, "k", "j", "k")))
        side = jnp.where(t >= sg(jax.nn.sigmoid(parent)), o["kappa_dc"], 1 - o["kappa_dc"])
        weight = (1 + jnp.log(sg(jax.nn.sigmoid(parent))) / jnp.log(GAMMA)) ** -o["lambda"]
        out["loss_dc"] = (2 * weight * side * bce(parent, t)).mean()
        rows = ("i", "j", parent)
    if o["propagation"]:
        prop = q(live["critic"], "p", "g", "p")
        far = GAMMA ** b["nsteps"] * jax.nn.sigmoid(q(target["critic"], "n", "g", "n"))
        t = sg(jnp.where((b["off"] >= 0) & (b["off"] <= o["n"]), GAMMA ** b["off"], far))
        side = jnp.where(t >= sg(jax.nn.sigmoid(prop)), o["kappa_prop"], 1 - o["kappa_prop"])
        out["loss_prop"] = (side * bce(prop, t)).mean()
        rows = ("p", "g", prop)
    if o["grounding"]:
        out["loss_ground"] = bce(q(live["critic"], "a", "a1", "a"), GAMMA).mean()
    judge, rep = live["critic"], lambda g: b["obs_" + g]
    if o["rep"]:
        rep = lambda g: b["obs_" + g][:, np.array(columns(o["rep"]))]
        judge = live["oracle_critic"]
        if not o["propagation"] and o["distil"] == "goals":  # rows of the goals' law, whatever else is trained
            rows = ("p", "g", q(live["critic"], "p", "g", "p"))
        x = cat(b["obs_" + rows[0]], rep(rows[1]), b["act_" + rows[0]])
        out["loss_oracle"] = bce(apply(judge, x)[..., 0], sg(jax.nn.sigmoid(rows[2]))).mean()
    if o["policy"] == "rejection":
        velocity = b["act_s"] - b["noise"]
        t = b["time"][:, None]
        v = apply(live["actor"], cat(b["obs_s"], rep("ag"), (1 - t) * b["noise"] + t * b["act_s"], t))[0]
        out["loss_flow"] = ((v - velocity) ** 2).mean()
        return total(out, o), out
    if o["discrete"]:
        logits = apply(live["actor"], cat(b["obs_s"], rep("ag")))[0]
        count = logits.shape[-1]
        each = [apply(sg(judge), cat(b["obs_s"], rep("ag"), jnp.broadcast_to(jnp.eye(count)[k], logits.shape)))[..., 0].min(0) for k in range(count)]
        best = (jax.nn.softmax(logits) * jnp.stack(each, -1)).sum(-1)
        out["loss_q"] = -best.mean() / sg(jnp.abs(best).mean() + 1e-6)
        out["loss_bc"] = -(b["act_s"] * jax.nn.log_softmax(logits)).sum(-1).mean()
        return total(out, o), out
    mean = apply(live["actor"], cat(b["obs_s"], rep("ag")))[0]
    best = apply(sg(judge), cat(b["obs_s"], rep("ag"), jnp.clip(mean, -1, 1)))[..., 0].min(0)
    out["loss_q"] = -best.mean() / sg(jnp.abs(best).mean() + 1e-6)
    out["loss_bc"] = 0.5 * ((mean - b["act_s"]) ** 2).sum(-1).mean()
    return total(out, o), out


def random_batch(rows, width, act, discrete):
    b = {f"obs_{s}": rng.normal(size=(rows, width)) for s in ("i", "k", "j", "p", "n", "g", "a", "a1", "s", "ag")}
    b |= {f"act_{s}": rng.uniform(-1, 1, size=(rows, act)) for s in ("i", "k", "p", "n", "a", "s")}
    b["left"], b["right"] = rng.integers(0, 4, rows), rng.integers(1, 4, rows)
    b["noise"], b["time"] = rng.normal(size=(rows, act)), rng.uniform(size=rows)
    b["nsteps"], b["off"] = rng.integers(1, 9, rows), rng.integers(-1, 12, rows)
    b = {k: v.astype(np.float32) for k, v in b.items()}
    if discrete:  # whole numbers; the highest must occur, since the data says how many there are
        b |= {k: rng.integers(0, act, size=(rows, 1)) for k in b if k.startswith("act_")}
        b["act_s"][0] = act - 1
    return b


def named(nets, prefix=""):
    return {f"{prefix}{net}/{k}/{part}": v for net, layers in nets.items() for k, p in enumerate(layers) for part, v in p.items()}


def train(live, target, b, o):
    """Adam steps with the losses before each and after the last; targets follow the weights from before a step.

    policy_after=K: K steps of the critics alone, then the actor alone, whose moments begin there.
    """
    run = jax.jit(jax.value_and_grad(lambda l, t: losses(l, t, b, o), has_aux=True))
    m = v = jax.tree.map(np.zeros_like, live)
    path, late = [], o["policy_after"]
    for done in range(UPDATES + 1):
        (_, parts), g = jax.tree.map(np.asarray, run(live, target))
        path.append(parts)
        first = g if done == 0 else first
        if done == UPDATES:
            break
        t = done + 1 - (late if late and done >= late else 0)
        trained = {net for net in live if not late or (net == "actor") == (done >= late)}
        step = {net: (jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m[net], g[net]),
                      jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v[net], g[net])) for net in trained}
        m, v = m | {net: x[0] for net, x in step.items()}, v | {net: x[1] for net, x in step.items()}
        if "critic" in trained:
            target = {"critic": jax.tree.map(lambda p, e: 0.005 * p + 0.995 * e, live["critic"], target["critic"])}
        adam = lambda p, m, v: p - 3e-4 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        live = live | {net: jax.tree.map(adam, live[net], m[net], v[net]) for net in trained}
    return live, target, {k: np.array([p[k] for p in path]) for k in path[0]}, first


def columns(rep):
    """The columns of an observation that `rep` names: first and count, or fours of first, count, step, times."""
    fours = [rep[k : k + 4] for k in range(0, len(rep), 4)] if len(rep) > 2 else [(*rep, 0, 1)]
    return [first + t * step + k for first, count, step, times in fours for t in range(times) for k in range(count)]


def program(weights, batch, o):
    with tempfile.TemporaryDirectory() as folder:
        w, b, g = (os.path.join(folder, n) for n in ("w.safetensors", "b.npz", "g.safetensors"))
        save_file(weights, w)
        np.savez(b, **arrays(batch))
        sets = [f"form=value gamma={GAMMA} alpha={o['alpha']} policy={o['policy']} policy_after={o['policy_after']}", "rep=" + ",".join(map(str, o["rep"])) if o["rep"] else ""]
        sets += [f"{key}={o[key]}" for key in KEYS[o["agent"]]] + [o["sets"]]
        command = [DCRL, "grad", "--agent", o["agent"], "--weights", w, "--batch", b, "--out", g, "--updates", str(UPDATES)]
        done = subprocess.run(command + [x for s in " ".join(sets).split() for x in ("--set", s)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return load_file(g)


# Options that the program is told; the others of a case say what its method is.
KEYS = {"dcrl": ["n", "targets", "kappa_dc", "kappa_prop"], "curriculum": ["n", "targets", "kappa_dc", "kappa_prop"], "trl": ["lambda"],
        "trl-n": ["n", "lambda", "kappa_prop"], "td-n": ["n", "kappa_prop"], "td": ["kappa_prop"], "mc": []}
# What a method is, for the oracle.
TRL = {"targets": "ema*ema", "kappa_dc": 0.7}


def off(x, y):
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return np.linalg.norm(x - y) / (np.linalg.norm(y) + 1e-30)


def grad_off(got, grads, net):
    """Worst tensor of a network; one that cancels to nothing is measured against a hundredth of the whole gradient."""
    mine = {k: np.asarray(v) for k, v in named({net: grads[net]}).items()}
    whole = np.sqrt(sum(np.sum(v**2) for v in mine.values()))
    return max(np.linalg.norm(got[k] - v) / max(np.linalg.norm(v), 0.01 * whole) for k, v in mine.items())


def target_off(got, after):
    """Worst tensor; one that stands next to zero, as the output's two biases may (seen: 9e-4, off by 1e-8),
    is measured against 0.001 of its network."""
    mine = {k: np.asarray(v) for k, v in named(after, "target_").items()}
    whole = np.sqrt(sum(np.sum(v**2) for v in mine.values()))
    return max(np.linalg.norm(got["after/" + k] - v) / max(np.linalg.norm(v), 0.001 * whole) for k, v in mine.items())


def check(rows, width, act, hidden, **change):
    o = {"agent": "dcrl", "sets": "", "segments": True, "propagation": True, "grounding": False, "lambda": 0} | change
    o = {"n": 5, "alpha": 0.3, "targets": "online*ema", "kappa_dc": 0.5, "kappa_prop": 0.7, "rep": None, "policy": "ddpgbc", "policy_after": 0, "discrete": False, "distil": "goals", "segment_weight": 1} | o
    rep = len(columns(o["rep"])) if o["rep"] else width
    live = {"critic": network((2 * width + act, *hidden, 1), 2), "actor": network((width + rep + (act + 1) * (o["policy"] == "rejection"), *hidden, act), 1)}
    if o["rep"]:
        live["oracle_critic"] = network((width + rep + act, *hidden, 1), 2)
    target = {"critic": network((2 * width + act, *hidden, 1), 2)}
    live, target = (jax.tree.map(lambda x: np.asarray(x, np.float32).astype(np.float64), t) for t in (live, target))
    batch = random_batch(rows, width, act, o["discrete"])
    got = program({k: np.asarray(v, np.float32) for k, v in (named(live) | named(target, "target_")).items()}, batch, o)
    shown = {k: np.eye(act)[v[:, 0]] if o["discrete"] and k.startswith("act_") else v for k, v in batch.items()}
    b = {k: jnp.asarray(v, jnp.float64) for k, v in shown.items()}
    after, after_target, path, grads = train(live, target, b, o)
    parts = {k: v[0] for k, v in path.items()}
    size = lambda v: abs(float(v)) + 0.1  # a mean that cancels to nothing is not measured against nothing
    worst = {"loss": max(abs(float(got[k]) - float(v)) / size(v) for k, v in parts.items()), "grad": max(grad_off(got, grads, net) for net in grads)}
    # Cross entropy is not zero where a row meets its target, so a loss jumps when a row changes sides, which rounding may
    # put a step earlier or later (seen: 4.6e-3 in one step of 100). The two worst steps are left out.
    far = {k: np.sort(np.abs(got["path/" + k] - v) / (np.abs(v) + 0.1))[-3] for k, v in path.items()}
    worst["path"] = max(x for k, x in far.items() if k not in ("loss_q", "loss_bc"))
    worst["path_q_bc"] = max(far.get("loss_q", 0), far.get("loss_bc", 0))
    old, new = named(live), named(after)
    flat = lambda nets, net: np.concatenate([np.ravel(v) for k, v in nets.items() if k.startswith(net + "/")])
    moved = {k: np.asarray(got["after/" + k], np.float64) - old[k] for k in new}
    for net in live:
        worst[net] = off(flat(moved, net), flat({k: new[k] - old[k] for k in new}, net))
    worst["target"] = target_off(got, after_target)
    print(f"{rows:4d} rows, {hidden}: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()), o, flush=True)
    passed.append(o)
    for name, x in worst.items():
        assert x < (LIMITS | ACTOR_LIMITS[o["policy"]])[name], (name, x)


print(f"DCRL_SEED={SEED} repeats this run")
check(64, 6, 3, (32, 48), rep=(0, 2))
check(300, 5, 2, (64, 64, 64), rep=(1, 3), alpha=2.0, n=8)
check(7, 4, 1, (16,), kappa_prop=0.9)
check(128, 6, 2, (32, 32), propagation=False, kappa_dc=0.7, rep=(0, 2), sets="propagation=off kappa_dc=0")
check(64, 6, 3, (32, 48), policy="rejection", rep=(0, 2))
check(64, 9, 2, (24, 32), rep=(1, 2, 4, 2, 8, 1, 0, 1))
check(300, 4, 1, (48, 32, 16), policy="rejection")
check(64, 5, 2, (24, 32), policy_after=40, rep=(2, 2))
check(64, 5, 2, (24, 32), policy="rejection", policy_after=40)
check(64, 5, 4, (24, 32), discrete=True, rep=(1, 2))
check(100, 4, 2, (32, 16), discrete=True, alpha=1.0)
for sources in ("ema*ema", "online*online", "ema*online"):
    check(64, 4, 2, (24, 24), targets=sources)
# Every variant that changes the loss, and each method of the same structure.
check(64, 5, 2, (24, 32), grounding=True, sets="recursion=off", rep=(0, 2))
check(64, 4, 1, (24,), grounding=True, sets="recursion=off propagation=off", propagation=False, kappa_dc=0.7)
check(64, 4, 2, (24, 24), agent="curriculum", sets="delta=1", rep=(1, 2))
for weight in (0.5, 2):
    check(64, 5, 2, (24, 32), agent="trl", propagation=False, rep=(0, 2), **TRL, **{"lambda": weight})
check(64, 4, 2, (24, 24), agent="trl-n", **TRL | {"kappa_dc": 0.9}, sets="kappa=0.9", n=3)
check(64, 4, 2, (24, 24), agent="td-n", segments=False, n=7, kappa_prop=0.6, rep=(0, 3))
check(64, 4, 2, (24, 24), agent="td", segments=False, n=1)
check(64, 4, 2, (24, 24), agent="mc", propagation=False, rep=(0, 2))
# Corrections that are options: rows of distillation, and the weight of the segment loss.
check(64, 4, 2, (24, 24), agent="mc", propagation=False, rep=(0, 2), distil="segments", sets="distil=segments")
check(64, 5, 2, (24, 32), agent="trl", propagation=False, rep=(0, 2), **TRL, distil="segments", sets="distil=segments", **{"lambda": 0.5})
check(64, 5, 2, (24, 32), segment_weight=0.5, sets="segment_weight=0.5", rep=(0, 2))
print(f"{len(passed)} passed, 0 failed")
