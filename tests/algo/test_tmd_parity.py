"""tmd against JAX (parity.py). All pairs stand in one array here, and a chunk's parts are taken by max and sum."""
import parity
import jax
import jax.numpy as jnp
import numpy as np
from parity import ALPHA, ACT, GAMMA, OBS, Method, actor, ddpgbc, hold, near, net


LATENT, CHUNKS, ZETA, FAR = 48, 8, 0.3, 3.0  # columns of phi and psi; weight of the backup; where its loss becomes linear


def mrn(x, y, chunks=CHUNKS):
    """d of any two arrays of rows: mean over chunks of the largest x - y of the first half, if that is above 0, and the length of the second."""
    z = (x - y).reshape(*jnp.broadcast_shapes(x.shape, y.shape)[:-1], chunks, 2, -1)
    return (jnp.maximum(z[..., 0, :], 0).max(-1) + jnp.sqrt((z[..., 1, :] ** 2).sum(-1) + 1e-6)).mean(-1)


def pairs(x, y, chunks=CHUNKS):
    """D_e(i, j) = d(x_e(i), y_e(j))"""
    return mrn(x[:, :, None], y[:, None], chunks)


def contrast(d, latent):
    """For each goal j, which state-action i led to it? Softmax over i, mean over goals and members."""
    logit = -d / np.sqrt(latent)
    return -jnp.diagonal(jax.nn.log_softmax(logit, 1), axis1=1, axis2=2).mean()


def linex(d, n, gamma=GAMMA):
    return jnp.where(d - n > FAR, d - n, gamma * jnp.exp(jnp.minimum(d - n, FAR)) - d)


def backup(d, n, gamma=GAMMA):
    b = linex(d, hold(n), gamma)
    return (b.mean() + jnp.diagonal(b, axis1=1, axis2=2).mean()) / 2


def losses(live, target, b, o):
    phi = lambda nets, action: net(nets["phi"], b["state"], action)
    psi = lambda nets, row: net(nets["psi"], b[row])
    held, taken, goal = hold(live), phi(live, b["state_action"]), psi(live, "goal")
    d, n = pairs(taken, goal), pairs(psi(held, "next"), hold(goal))
    terms = {"loss_contrast": (contrast(d, LATENT), 1), "loss_action": (mrn(psi(live, "state"), taken).mean(), 1),
             "loss_backup": (backup(d, n), ZETA), "distance_mean": (jnp.diagonal(d, axis1=1, axis2=2).mean(), 0)}
    judge = lambda a: -mrn(phi(held, a), psi(held, "actor_goal")).max(0)
    if o.rep:
        far = o.goal(b["actor_goal"])
        v = net(live["goal_value"], b["state"], b["state_action"], far)[..., 0]
        terms["loss_goal_value"] = (((v - mrn(hold(taken), psi(held, "actor_goal"))) ** 2).mean(), 1)
        judge = lambda a: -net(held["goal_value"], b["state"], a, far)[..., 0].max(0)
    return terms | ddpgbc(live, b, o, judge)


def networks(o):
    nets = {"phi": (OBS + ACT, 2, LATENT), "psi": (OBS, 2, LATENT)}
    return nets | ({"goal_value": (OBS + ACT + o.goal_width, 2, 1)} if o.rep else {}) | {"actor": actor(o)}


def by_hand():
    i = np.arange(16.0)
    x, y = jnp.array(np.sin(i + 1)), jnp.array(np.cos(2 * i + 1))
    near([mrn(x, y, 2), mrn(y, x, 2)], [3.347389056, 3.575818422])
    near([linex(5.0, 1.0, 0.99), linex(2.0, 1.5, 0.99)], [4, -0.367765942])
    near(jax.grad(linex)(1 - np.log(GAMMA), 1.0), 0)
    row, k = np.arange(3.0)[:, None], np.arange(4)
    phi, psi, after = (jnp.array(v)[None] for v in (np.sin(3 * row + k), np.cos(2 * row + k), np.sin(3 * row + k + 0.5)))
    d, n = pairs(phi, psi, 1), pairs(after, psi, 1)
    near([contrast(d, 4), backup(d, n, 0.99)], [0.858419998, -0.255386373])


def spread(live, o):
    """So that some D exceed N by more than FAR, and others do not."""
    for name in ("phi", "psi"):
        for part in ("w", "b"):
            live[name][-1][part] *= o.spread


METHOD = Method("tmd", losses, ("state", "next", "goal", "actor_goal"), networks, lambda o: f"latent={LATENT} alpha={ALPHA} zeta={ZETA}",
                kinds=({"spread": 1.0}, {"spread": 6.0}), prepare=spread, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
