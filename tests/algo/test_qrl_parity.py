"""qrl against JAX (parity.py), with both of its quasimetrics. An IQE sorts its intervals' ends and differentiates through that."""
import parity
import jax
import jax.numpy as jnp
import numpy as np
from parity import ALPHA, ACT, OBS, Method, actor, ddpgbc, hold, near, net, number


LATENT, EPS, GROUP = 16, 0.05, 8  # columns of phi; of the constraint; columns of a group


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


def mrn(x, y):
    """Euclidean in the first half of the columns; in the second the largest x - y, if that is above 0."""
    near, far = jnp.split(x - y, 2, -1)
    return jnp.sqrt(jnp.maximum((near**2).sum(-1), 1e-12)) + jnp.maximum(far.max(-1), 0)


def push_apart(d):
    return (100 * jax.nn.softplus(5 - d / 100)).mean()


def excess(d):
    return (jnp.maximum(d - 1, 0) ** 2).mean()


def multiplier_loss(log_lambda, p):
    return jnp.exp(log_lambda) * (EPS - hold(p))


def losses(live, target, b, o):
    phi = lambda nets, row: net(nets["phi"], b[row])[0]
    led = lambda nets, z, action: z + net(nets["dynamics"], z, action)[0]  # where an action leads
    distance = lambda nets, x, y: mrn(x, y) if o.quasimetric == "mrn" else iqe(x, y, number(nets["rho"]))
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


def networks(o):
    nets = {"phi": (OBS, 1, LATENT), "dynamics": (LATENT + ACT, 1, LATENT), "lambda": None}
    nets |= {"rho": None} if o.quasimetric == "iqe" else {}
    return nets | ({"goal_value": (LATENT + o.goal_width, 2, 1)} if o.rep else {}) | {"actor": actor(o)}


def check_iqe_by_hand():
    i = np.arange(2 * GROUP)
    x, y = jnp.array(np.sin(i + 1.0))[None], jnp.array(np.cos(2 * i + 1.0))[None]
    near(components(x, y), [[1.712043290, 1.987484869]])
    d, (dx, dy, drho) = jax.value_and_grad(lambda x, y, rho: iqe(x, y, rho)[0], (0, 1, 2))(x, y, 0.3)
    near([d, drho], [1.908372192, -0.033666992])
    near(iqe(y, x, 0.3), 1.910220648)
    near(mrn(x, y), 4.432368238)
    opens, closes = np.zeros(2 * GROUP), np.zeros(2 * GROUP)
    opens[[3, 4]], opens[[9, 10]], closes[[4, 6]], closes[[10, 12]] = -0.287221, -0.712779, 0.287221, 0.712779
    near(dx[0], opens, 6)
    near(dy[0], closes, 6)


def by_hand():
    check_iqe_by_hand()
    near(push_apart(jnp.array([120.0, 900, 3])), 293.906443, 6)
    p = excess(jnp.array([0.4, 1.5, 2]))
    near([p, jax.grad(multiplier_loss)(0.0, p)], [0.416667, -0.366667], 6)


def spread_phi(live, o):
    """So that distances are near the 1 of a step, or near the 500 of the softplus."""
    for part in ("w", "b"):
        live["phi"][-1][part] *= o.spread


# The ends of two intervals meet, or another group becomes the longest: seen of these losses in float32 2e-2.
METHOD = Method("qrl", losses, ("state", "next", "goal", "actor_goal"), networks,
                lambda o: f"latent={LATENT} alpha={ALPHA} eps={EPS} quasimetric={o.quasimetric}",
                kinds=tuple({"quasimetric": d, "spread": far} for d, far in (("iqe", 2.0), ("iqe", 100.0), ("mrn", 10.0))),
                limits={"path": 1e-2, "moved": 1e-1}, prepare=spread_phi, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
