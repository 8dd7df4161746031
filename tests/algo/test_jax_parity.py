"""Every distance-form loss against JAX: values, gradients, and ten updates.

The JAX side is written from SPEC.md (combination-lock, Variants) in the plainest way: one network call a term, no
stacking of rows, no packing of children, autodiff for everything. Weights and batches are drawn by a fixed seed, and for a
third of the cases also by one for these sources (fresh.py; DCRL_SEED runs all by that one), handed to `dcrl grad`, and
compared with JAX in float64 on the same float32 numbers. For some, JAX in float32 runs beside it, to show what float32 itself can keep: column "jax32",
its gradients against float64 along the program's path.

How it is measured:

  losses      |c - j| / |j|, and distance_mean over the mean of |d|, since distances may cancel in it.
  gradients   ||c - j|| / ||j|| of each tensor, 2-norms. Predictions that almost hit their targets, or a sum over
              rows that cancels, have no relative precision in any float32 code, so batches are drawn again until
              the losses and the output bias, the one tensor of one number, are well conditioned (`conditioned`).
  updates     ||error|| / (||change|| + r) of each tensor over the ten steps, where r = 10 x 2^-24 ||W|| / 1e-5: so
              1e-5 of the change, and beside it what storing W in float32 costs, half a unit in the last place a
              step, for EMA a whole one, product and sum (most of what is seen). Live weights leave out the few
              numbers where Adam amplifies without bound: its step is m / sqrt(v), about the sign of g at first,
              and where |g| is at the level of rounding that sign is noise. A number is left out if its gradient
              came under 0.1 % of the tensor's rms during the ten steps (one in twenty; with one row a fifth was
              seen). At most half of a tensor may be. Target weights leave out nothing.
  path        For one case of each method the ten steps are also taken apart: at every point of C's own path the
              gradient must equal JAX's there, and Adam and EMA in float64, fed with C's own gradients, must land
              on C's weights. There nothing is amplified and nothing is left out.

All must be at most 1e-5, or three times what JAX in float32 is off by in the program's place (a single row was seen at
1.1e-5). Nothing is drawn again. DCRL_TOL=0 prints every residual and fails nothing.
"""
import dataclasses
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")  # compiling is most of the time
import jax
import jax.numpy as jnp
import numpy as np
from batches import array, arrays
from safetensors.numpy import load_file, save_file

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "float32")

DCRL = os.environ.get("DCRL", "build/dcrl")
TOLERANCE = 1e-5
FIXED_SEED = 20260101
STEPS, LR, BETA1, BETA2, EPS, TAU = 10, 3e-4, 0.9, 0.999, 1e-8, 0.005


@dataclasses.dataclass(frozen=True)
class Method:
    """What SPEC.md says of a method; each field is something the loss depends on."""
    segments: bool = True       # a pair trained toward the sum of its two parts
    propagation: bool = True    # n steps, then the target network
    grounding: bool = False     # single steps
    n: int = 64
    known: int = 64             # spans up to this are exact
    kappa_dc: float = 0.5
    kappa_prop: float = 0.5
    lam: float = 0.0
    clip: bool = True
    first: str = "online"       # weights that value the first part, and the second
    second: str = "ema"
    tree: bool = True           # pairs split at the midpoint, single steps among them


def dcrl(n, **change):
    return Method(n=n, known=change.pop("known", n), **change)


def trl(**change):
    return Method(propagation=False, known=1, clip=True, first="ema", second="ema", tree=False, **change)


def trl_n(n, **change):
    return Method(n=n, known=n, first="ema", second="ema", tree=False, **change)


# (agent, settings for the program, what they mean)
CASES = [
    ("td-n", "n=16", Method(segments=False, n=16)),
    ("td-n", "n=5 kappa_prop=0.7", Method(segments=False, n=5, kappa_prop=0.7)),
    ("trl", "", trl(kappa_dc=0.7)),
    ("trl", "kappa=0.5", trl(kappa_dc=0.5)),
    ("trl", "kappa=0.9 lambda=0.5", trl(kappa_dc=0.9, lam=0.5)),
    ("trl-n", "n=16", trl_n(16, kappa_dc=0.7)),
    ("trl-n", "n=16 kappa=0.5", trl_n(16, kappa_dc=0.5)),
    ("trl-n", "n=8 kappa=0.7 clip=off", trl_n(8, kappa_dc=0.7, clip=False)),
    ("trl-n", "n=8 kappa=0.5 clip=on lambda=1.5 kappa_prop=0.6",
     trl_n(8, kappa_dc=0.5, clip=True, lam=1.5, kappa_prop=0.6)),
    ("dcrl", "", dcrl(64)),
    ("dcrl", "n=7", dcrl(7)),
    ("dcrl", "n=7 order=down", dcrl(7)),
    ("dcrl", "n=1 slots=3", dcrl(1)),
    ("dcrl", "n=100000", dcrl(100000)),  # everything is known: no child needs the network
    ("dcrl", "n=16 recursion=off", dcrl(16, tree=False)),
    ("dcrl", "n=16 split=random", dcrl(16, tree=False)),
    ("dcrl", "n=16 propagation=off", dcrl(16, propagation=False, known=1, kappa_dc=0.7)),
    ("dcrl", "recursion=off propagation=off",  # nothing else grounds it, so single steps do
     dcrl(64, propagation=False, known=1, kappa_dc=0.7, grounding=True, clip=True, tree=False)),
    ("dcrl", "n=12 targets=online*ema", dcrl(12, first="online", second="ema")),
    ("dcrl", "n=12 targets=ema*ema", dcrl(12, first="ema", second="ema")),
    ("dcrl", "n=12 targets=online*online", dcrl(12, first="online", second="online")),
    ("dcrl", "n=12 targets=ema*online", dcrl(12, first="ema", second="online")),
    ("dcrl", "n=12 kappa_dc=0.8", dcrl(12, kappa_dc=0.8)),
    ("dcrl", "n=12 kappa_prop=0.7", dcrl(12, kappa_prop=0.7)),
    ("dcrl", "n=12 grounding=on", dcrl(12, grounding=True)),
    ("dcrl", "n=12 clip=off kappa_dc=0.6 kappa_prop=0.3", dcrl(12, clip=False, kappa_dc=0.6, kappa_prop=0.3)),
]
PATHS = (0, 4, 8, 10, 21)  # cases whose ten steps are taken apart
SIZES = [((32, 48), 1), ((64, 64, 64), 7), ((32, 48), 300), ((64, 64, 64), 512), ((40,), 512), ((64, 64, 64), 300)]

# ---- the losses, in JAX ----


def distance(w, s, g):
    """d(s, g): Dense -> GELU (tanh) -> LayerNorm (1e-6), repeated; the last Dense plain."""
    x, layer = jnp.concatenate([s, g], -1), 0
    while True:
        x = x @ w[f"critic/{layer}/w"][0] + w[f"critic/{layer}/b"][0]
        if f"critic/{layer}/scale" not in w:
            return x[:, 0]
        x = jax.nn.gelu(x, approximate=True)
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)
        x = x * w[f"critic/{layer}/scale"][0] + w[f"critic/{layer}/bias"][0]
        layer += 1


def expectile(p, t, kappa):
    """Weight of a squared error. An upper expectile of value is one of shorter distance: kappa where p is too long."""
    return 2 * jnp.where(p > t, kappa, 1 - kappa)


def segment(live, target, b, m):
    weights = {"online": live, "ema": target}
    left, right, span = b["left"], b["right"], b["left"] + b["right"]
    parent = distance(live, b["obs_i"], b["obs_j"])
    first = jnp.where(left <= m.known, left, distance(weights[m.first], b["obs_i"], b["obs_k"]))
    second = jnp.where(right <= m.known, right, distance(weights[m.second], b["obs_k"], b["obs_j"]))
    t = first + second
    if m.clip:
        t = jnp.clip(t, 0, b["longest"])
    t = jax.lax.stop_gradient(jnp.where(span <= m.known, span, t))
    weight = jax.lax.stop_gradient((1 + jnp.maximum(parent, 0)) ** -m.lam)
    return parent, t, weight * expectile(parent, t, m.kappa_dc)


def propagation(live, target, b, m):
    p = distance(live, b["obs_p"], b["obs_g"])
    far = b["nsteps"] + distance(target, b["obs_n"], b["obs_g"])
    exact = (b["off"] >= 0) & (b["off"] <= m.n)
    t = jax.lax.stop_gradient(jnp.where(exact, b["off"], far))
    return p, t, expectile(p, t, m.kappa_prop)


def loss(live, target, b, m):
    """Sum of the terms, and (what is reported by name, each term's predictions, targets and weights)."""
    terms = {}
    if m.segments:
        terms["loss_dc"] = segment(live, target, b, m)
    if m.propagation:
        terms["loss_prop"] = propagation(live, target, b, m)
    if m.grounding:
        p = distance(live, b["obs_a"], b["obs_a1"])
        terms["loss_ground"] = p, jnp.ones_like(p), jnp.ones_like(p)
    values = {name: (weight * (p - t) ** 2).mean() for name, (p, t, weight) in terms.items()}
    total = sum(values.values())
    values["distance_mean"] = terms["loss_prop" if m.propagation else "loss_dc"][0].mean()
    return total, (values, terms)


gradients = jax.jit(jax.value_and_grad(loss, has_aux=True), static_argnums=3)



def cast(tensors, dtype):
    return {k: np.asarray(v, dtype) for k, v in tensors.items()}


def split(weights):
    """(live, target) of a file's tensors."""
    return ({k: v for k, v in weights.items() if not k.startswith("target_")},
            {k[7:]: v for k, v in weights.items() if k.startswith("target_")})


def evaluate(weights, batch, m, dtype):
    live, target = split(cast(weights, dtype))
    return jax.tree.map(np.asarray, gradients(live, target, cast(batch, dtype), m))


def adam_step(live, target, g, mv, t):
    """One update in float64: EMA of the weights before the step, then Adam."""
    target = {k: (1 - TAU) * target[k] + TAU * live[k] for k in live}
    m = {k: BETA1 * mv[0][k] + (1 - BETA1) * g[k] for k in live}
    v = {k: BETA2 * mv[1][k] + (1 - BETA2) * g[k] ** 2 for k in live}
    live = {k: live[k] - LR * (m[k] / (1 - BETA1**t)) / (np.sqrt(v[k] / (1 - BETA2**t)) + EPS) for k in live}
    return live, target, (m, v)


# ---- what they are fed ----


def draw_weights(rng, width, hidden, horizon):
    """Live and target weights, nothing trivial; distances spread over about the horizon, off to one side."""
    weights, sizes = {}, [2 * width, *hidden, 1]
    side = rng.choice([0.1, 0.9])
    for prefix in ("", "target_"):
        for i, (rows, cols) in enumerate(zip(sizes, sizes[1:])):
            name, last = f"{prefix}critic/{i}/", i == len(hidden)
            w = rng.normal(0, rows**-0.5, (1, rows, cols)) * (0.25 * horizon if last else 1)
            b = rng.normal(0, 0.3, (1, cols)) + (side * horizon if last else 0)
            weights |= {name + "w": w, name + "b": b}
            if not last:
                weights |= {name + "scale": rng.normal(1, 0.3, (1, cols)), name + "bias": rng.normal(0, 0.3, (1, cols))}
    return {k: v.astype(np.float32) for k, v in weights.items()}


def draw_observations(rng, horizon, kind):
    if kind == "codes":
        bits = int(np.ceil(np.log2(horizon)))
        return (rng.permutation(horizon)[:, None] >> np.arange(bits) & 1).astype(np.float32)
    return rng.normal(0, 1.5, (horizon, int(rng.integers(1, 9)))).astype(np.float32)


def draw_batch(rng, obs, batch, m):
    """Rows as the sampler draws them; a few propagation goals are no goal ahead, as in other data sets."""
    horizon = len(obs)

    def pairs():
        a = rng.integers(0, horizon, batch)
        b = (a + rng.integers(1, horizon, batch)) % horizon
        return np.minimum(a, b), np.maximum(a, b)

    i, j = pairs()
    short = rng.random(batch) < 0.3  # low nodes of a tree
    j = np.where(short, np.minimum(i + rng.integers(1, 9, batch), horizon - 1), j)
    k = (i + j) // 2 if m.tree else i + (rng.random(batch) * (j - i)).astype(int)
    k = np.where((k == i) & (j - i > 1), i + 1, k)
    p, g = pairs()
    off = g - p
    lost = rng.random(batch) < 0.1
    off = np.where(lost, -1, off)
    n = np.minimum(p + m.n, horizon - 1)
    a = rng.integers(0, horizon - 1, batch)
    rows = dict(i=i, k=k, j=j, p=p, n=n, g=g, a=a, a1=a + 1)
    out = {"obs_" + name: obs[row] for name, row in rows.items()}
    counts = dict(left=k - i, right=j - k, nsteps=n - p, off=off, longest=np.asarray(0.7 * horizon))
    return out | {name: np.asarray(x, np.float32) for name, x in counts.items()}


def conditioned(terms, m):
    """Is what is left of p - t, in every loss and in the gradient of the output bias, not much less than p and t?
    And are lambda's weights steady: an error of p by a part of its size changes (1 + p)^-lambda most where p is 0."""
    rows = [(abs(p) + abs(t), p - t, weight) for p, t, weight in terms.values()]
    good = all(np.mean(w * size**2) <= 36 * np.mean(w * rest**2) for size, rest, w in rows)
    good &= sum(np.mean(w * size) for size, _, w in rows) <= 6 * abs(sum(np.mean(w * rest) for _, rest, w in rows))
    if m.lam:
        p, t, w = terms["loss_dc"]
        steep = np.where(p > -1, m.lam * np.sqrt(np.mean(p**2)) / (1 + np.maximum(p, 0)), 0)
        good &= np.mean(w * (p - t) ** 2 * steep) <= 10 * np.mean(w * (p - t) ** 2)
    return good


def draw(rng, m, hidden, batch, kind):
    """Weights and batch, and what JAX in float64 makes of them."""
    horizon = int(rng.integers(60, 1025))
    obs = draw_observations(rng, horizon, kind)
    for _ in range(1000):
        b = draw_batch(rng, obs, batch, m)
        weights = draw_weights(rng, obs.shape[1], hidden, horizon)
        (_, (values, terms)), grads = evaluate(weights, b, m, "f8")
        if conditioned(terms, m):
            return weights, b, values, terms, grads
    raise SystemExit("no well conditioned batch was found")


# ---- the program ----


def program(folder, agent, settings, weights, batch, updates=0):
    paths = [os.path.join(folder, name) for name in ("w.safetensors", "b.npz", "g.safetensors")]
    save_file(weights, paths[0])
    np.savez(paths[1], **arrays(batch))
    command = [DCRL, "grad", "--agent", agent, "--weights", paths[0], "--batch", paths[1], "--out", paths[2]]
    command += ["--updates", str(updates), "--set", "form=distance"] + [x for s in settings.split() for x in ("--set", s)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return {k: np.asarray(v, np.float64) for k, v in load_file(paths[2]).items()}


# ---- the comparison ----


def norm(x):
    return float(np.sqrt(np.sum(np.square(np.asarray(x, np.float64)))))


def relative(x, y):
    error = norm(np.asarray(x, np.float64) - np.asarray(y, np.float64))
    return error / norm(y) if norm(y) else (0.0 if error == 0 else np.inf)


def compare_losses(got, values, terms):
    worst = 0.0
    for name, value in values.items():
        scale = max(np.mean(abs(p)) for p, _, _ in terms.values()) if name == "distance_mean" else abs(value)
        worst = max(worst, float(abs(got[name] - value) / scale))
    return worst


def compare_gradients(got, grads):
    return max((relative(got[k], grads[k]), k) for k in grads)


def stored(error, change, size, steps):
    """||error|| against ||change|| and `steps` roundings of W; at most TOLERANCE if both explain it."""
    scale = norm(change) + steps * 2.0**-24 * norm(size) / TOLERANCE
    return norm(error) / scale if scale else (0.0 if norm(error) == 0 else np.inf)


def walk(weights, batch, m):
    """Ten updates in float64: final live and target weights, and the gradients on the way."""
    live, target = split(cast(weights, "f8"))
    mv, path = ({k: 0 for k in live},) * 2, []
    for t in range(1, STEPS + 1):
        path.append(jax.tree.map(np.asarray, gradients(live, target, cast(batch, "f8"), m)[1]))
        live, target, mv = adam_step(live, target, path[-1], mv, t)
    return live, target, path


def steady(path, k):
    """Numbers whose gradients stay clear of zero; those that are zero throughout are steady too."""
    g = np.stack([step[k] for step in path])
    rms = np.sqrt(np.mean(g**2, axis=tuple(range(1, g.ndim)), keepdims=True))
    return np.all(abs(g) > 0.001 * rms, 0) | np.all(g == 0, 0)


def compare_updates(got, weights, batch, m):
    """Worst (live, target) residual after ten steps, and the largest part of a tensor left out."""
    live, target, path = walk(weights, batch, m)
    worst_live, worst_target, left_out = (0.0, ""), (0.0, ""), 0.0
    for k in live:
        keep = steady(path, k)
        if keep.size > 16:
            left_out = max(left_out, 1 - keep.mean())
        error, change = got["after/" + k] - live[k], np.asarray(live[k]) - weights[k]
        worst_live = max(worst_live, (stored(error[keep], change[keep], weights[k][keep], STEPS), k))
        error, change = got["after/target_" + k] - target[k], np.asarray(target[k]) - weights["target_" + k]
        worst_target = max(worst_target, (stored(error, change, weights["target_" + k], 2 * STEPS), k))
    return worst_live, worst_target, left_out


def compare_path(folder, agent, settings, weights, batch, m):
    """Worst residual of gradients and of single updates along the program's own ten steps, and the worst that JAX's
    gradients in float32 have at the same points. An update is measured against the longest so far: where the gradient
    has just turned round, m is next to nothing."""
    here, mv = dict(weights), ({k: 0 for k in split(weights)[0]},) * 2
    worst, jax32, longest = (0.0, ""), 0.0, dict.fromkeys(weights, 0.0)
    for t in range(1, STEPS + 1):
        live, target = split(cast(here, "f8"))
        got = program(folder, agent, settings, here, batch)
        (_, (_, terms)), grads = evaluate(here, batch, m, "f8")
        if conditioned(terms, m):  # p may pass t on the way
            worst = max(worst, compare_gradients(got, grads))
            jax32 = max(jax32, compare_gradients(evaluate(here, batch, m, "f4")[1], grads)[0])
        live, target, mv = adam_step(live, target, {k: got[k] for k in live}, mv, t)
        after = program(folder, agent, settings, weights, batch, t)
        for k, want in (live | {"target_" + k: x for k, x in target.items()}).items():
            new = after["after/" + k]
            longest[k] = max(longest[k], norm(want - here[k]))
            worst = max(worst, (stored(new - want, longest[k], new, 3), k))
            here[k] = new.astype(np.float32)
    return worst, jax32


def float32_errors(weights, batch, m, values, terms, grads):
    """The same residuals of JAX in float32, with updates in float64 of weights that are stored in float32."""
    here, mv, got = dict(weights), ({k: 0 for k in split(weights)[0]},) * 2, {}
    for t in range(1, STEPS + 1):
        (_, (first, _)), g = evaluate(here, batch, m, "f4")
        got = got or {**first, **g}
        live, target, mv = adam_step(*split(cast(here, "f8")), cast(g, "f8"), mv, t)
        here = cast(live | {"target_" + k: v for k, v in target.items()}, "f4")
    got |= {"after/" + k: np.asarray(v, np.float64) for k, v in here.items()}
    live, target, _ = compare_updates(got, weights, batch, m)
    return {"loss": compare_losses(got, values, terms), "grad": compare_gradients(got, grads)[0], "live": live[0], "target": target[0]}


def check(folder, rng, number):
    agent, settings, m = CASES[number]
    hidden, size = SIZES[(number + rng.integers(len(SIZES))) % len(SIZES)]
    kind = rng.choice(["codes", "floats"])
    weights, batch, values, terms, grads = draw(rng, m, hidden, size, kind)
    got = program(folder, agent, settings, weights, batch, STEPS)
    wanted = set(values) | set(grads) | {"after/" + k for k in weights} | {"path/" + k for k in values}
    assert set(got) == wanted, "other tensors than expected"
    found = {"loss": (compare_losses(got, values, terms), ""), "grad": compare_gradients(got, grads)}
    found["live"], found["target"], left_out = compare_updates(got, weights, batch, m)
    found["path"], path32 = compare_path(folder, agent, settings, weights, batch, m) if number in PATHS else ((0.0, ""), np.nan)
    shape = ",".join(map(str, hidden)) + f" x{size} {kind}"
    numbers = " ".join(f"{found[k][0]:8.1e}" for k in found)
    print(f"{agent:5} {settings or '(defaults)':48} {shape:22} {numbers} {path32:8.1e} "
          f"{left_out:6.1%}", flush=True)
    bad = [k for k, v in found.items() if not v[0] <= TOLERANCE]
    own = float32_errors(weights, batch, m, values, terms, grads) | {"path": path32} if bad else {}
    for k in bad:
        print(f"beyond 1e-5: {k} {found[k][0]:.2e}; JAX in float32 is off by {own[k]:.2e}", flush=True)
    bad = [f"{k} {found[k][0]:.2e} {found[k][1]}" for k in bad if not found[k][0] <= 3 * own[k]]
    return found, bad + ([f"{left_out:.0%} of a tensor has no steady gradient"] if left_out > 0.5 else [])


def check_describe(agent, settings, m):
    """--describe lists exactly the arrays that the loss of the specification reads."""
    want = {"longest"}
    want |= {"obs_i", "obs_k", "obs_j", "left", "right"} if m.segments else set()
    want |= {"obs_p", "obs_n", "obs_g", "nsteps", "off"} if m.propagation else set()
    want |= {"obs_a", "obs_a1"} if m.grounding else set()
    command = [DCRL, "grad", "--agent", agent, "--describe", "--set", "form=distance"] + [x for s in settings.split() for x in ("--set", s)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[0] for line in lines} == set(map(array, want)), (agent, settings, lines)


def seeds():
    """What each case is drawn by: {seed: which cases, of three}."""
    if fresh.given() is not None:
        return {fresh.seed(): {0, 1, 2}}
    drawn = fresh.seed()
    return {FIXED_SEED: {0, 1, 2}, drawn: {drawn % 3}}


def main():
    free = "DCRL_TOL" in os.environ and float(os.environ["DCRL_TOL"]) == 0
    failures, worst, drawn = [], {}, seeds()
    print(f"DCRL_SEED={' and DCRL_SEED='.join(map(str, drawn))} repeat this run\n{'method':77} {'loss':>8} {'grad':>8} {'live':>8} "
          f"{'target':>8} {'path':>8} {'jax32':>8} left out")
    with tempfile.TemporaryDirectory() as folder:
        for number, (agent, settings, m) in enumerate(CASES):
            check_describe(agent, settings, m)
            for seed in (seed for seed, which in drawn.items() if number % 3 in which):
                found, bad = check(folder, np.random.default_rng([seed, number]), number)
                failures += [f"{agent} {settings}: {x}, DCRL_SEED={seed}" for x in bad]
                worst = {k: max(v, worst.get(k, (0.0, ""))) for k, v in found.items()}
    print("worst: " + ", ".join(f"{k} {v[0]:.1e} {v[1]}".strip() for k, v in worst.items()))
    for failure in failures:
        print("beyond 1e-5:", failure)
    sys.exit(bool(failures) and not free)


if __name__ == "__main__":
    main()
