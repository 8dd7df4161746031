"""crl against JAX (parity.py)."""
import parity
import jax
import jax.numpy as jnp
import numpy as np
from parity import ALPHA, ACT, OBS, Method, actor, ddpgbc, hold, near, net


LATENT = 16  # columns of phi and psi


def pairs(phi, psi):
    """f_e(i, j) = phi_e(i) . psi_e(j) / sqrt(latent)"""
    return jnp.einsum("eik,ejk->eij", phi, psi) / np.sqrt(phi.shape[-1])


def contrast(f):
    """Binary cross-entropy of f (members, rows, rows) against [i == j], mean over all."""
    same = jnp.eye(f.shape[1])
    return -(same * jax.nn.log_sigmoid(f) + (1 - same) * jax.nn.log_sigmoid(-f)).mean()


def losses(live, target, b, o):
    phi = lambda nets, action: net(nets["phi"], b["state"], action)
    psi = lambda nets, goal: net(nets["psi"], o.goal(b[goal]))
    held = hold(live)
    judge = lambda a: jnp.maximum(((phi(held, a) * psi(held, "actor_goal")).sum(-1) / np.sqrt(LATENT)).min(0), o.q_floor)
    loss = contrast(pairs(phi(live, b["state_action"]), psi(live, "goal")))
    return {"loss_contrast": (loss, 1)} | ddpgbc(live, b, o, judge)


def networks(o):
    return {"phi": (OBS + ACT, 2, LATENT), "psi": (o.goal_width, 2, LATENT), "actor": actor(o)}


def by_hand():
    row, k = np.arange(3.0)[:, None], np.arange(4)
    phi, psi = jnp.array(np.sin(3 * row + k))[None], jnp.array(np.cos(2 * row + k))[None]
    f = pairs(phi, psi)
    near([f[0, 0, 0], f[0, 0, 1], f[0, 1, 0]], [-0.031730, -0.693688, 0.203945], 6)
    near(contrast(f), 0.570969977)


METHOD = Method("crl", losses, ("state", "goal", "actor_goal"), networks, lambda o: f"latent={LATENT} alpha={ALPHA} q_floor={o.q_floor}",
                kinds=({"q_floor": -1e9}, {"q_floor": -0.1}), by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
