"""sacbc against JAX (parity.py). log pi is that of the normal, less log(1 - tanh^2 u) as it stands."""
import parity
import jax
import jax.numpy as jnp
import numpy as np
from parity import ACT, ALPHA, GAMMA, OBS, Method, hold, near, net, number


def sample(out, eps):
    """Actions (rows, ACT) and the mean of their log-likelihoods, of an actor's means and log stds side by side."""
    mean, log_std = out[:, : out.shape[1] // 2], jnp.clip(out[:, out.shape[1] // 2 :], -5, 2)
    u = mean + jnp.exp(log_std) * eps
    normal = -0.5 * ((u - mean) / jnp.exp(log_std)) ** 2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    squash = 2 * (jnp.log(2.0) - jnp.logaddexp(u, -u))  # log(1 - tanh^2 u) = -2 log cosh u
    return jnp.tanh(u), (normal - squash).sum(-1).mean()


def losses(live, target, b, o):
    act = lambda nets, row, goal, eps: sample(net(nets["actor"], b[row], o.goal(b[goal]))[0], b[eps])
    q = lambda nets, row, goal, action: net(nets["critic"], b[row], o.goal(b[goal]), action)[..., 0]
    later = jax.nn.sigmoid(q(target, "next", "goal", act(live, "next", "goal", "next_noise")[0]))
    later = later.min(0) if o.agg == "min" else later.mean(0)
    success = b["goal_steps"] == 0
    y = hold(jnp.clip(success + GAMMA * ~success * later, 0, 1))
    logit = q(live, "state", "goal", b["state_action"])
    bce = -(y * jax.nn.log_sigmoid(logit) + (1 - y) * jax.nn.log_sigmoid(-logit)).mean()

    action, log_pi = act(live, "state", "actor_goal", "actor_noise")
    opinion = q(hold(live), "state", "actor_goal", action).mean(0)
    clone = ((action - b["state_action"]) ** 2).sum(-1).mean()
    lam = jnp.exp(number(live["lambda"]))
    pull = hold(lam) * log_pi - opinion.mean() + ALPHA * hold(jnp.abs(opinion).mean()) * clone
    return {"loss_critic": (bce, 1), "value_mean": (jax.nn.sigmoid(logit).mean(), 0),
            "loss_actor": (pull, 1), "loss_bc": (clone, 0), "log_pi": (log_pi, 0),
            "loss_lambda": (lam * (hold(-log_pi) + 0.5 * ACT), 1)}


def spread(live, o):
    """So that some log stds lie beyond -5 and 2."""
    live["actor"][-1]["w"][..., ACT:] *= o.spread


def by_hand():
    out, eps = jnp.array([[0.3, -1.2, -0.5, 0.4]]), jnp.array([[0.7, -1.1]])
    action, log_pi = sample(out, eps)
    near(action, [[0.619732988, -0.993209754]])
    near(log_pi, 2.199265003)


# A log std passes an end of its range: seen of these losses in float32 2e-4.
METHOD = Method("sacbc", losses, ("state", "next", "goal", "actor_goal"),
                lambda o: {"critic": (OBS + o.goal_width + ACT, 2, 1), "actor": (OBS + o.goal_width, 1, 2 * ACT), "lambda": None},
                lambda o: f"alpha={ALPHA} agg={o.agg}",
                kinds=tuple({"policy": "tanh", "agg": agg, "spread": spread} for agg, spread in (("min", 1.0), ("mean", 1.0), ("min", 4.0))),
                ema=("critic",), steps=True, policy=("actor", "lambda", "loss_actor", "loss_bc", "log_pi", "loss_lambda"),
                extra=lambda rng, o, rows: {k: rng.normal(size=(rows, ACT)) for k in ("next_noise", "actor_noise")},
                limits={"policy_moved": 2e-3}, prepare=spread, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
