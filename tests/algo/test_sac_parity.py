"""sac against JAX (parity.py). log pi is that of the normal, less log(1 - tanh^2 u) as it stands."""
import parity
import jax.numpy as jnp
from parity import ACT, GAMMA, OBS, Method, hold, near, net, number
from test_sacbc_parity import sample as mean_sample

GOAL, START, REWARD = 3, 0.2, 2.5


def sample(out, eps, high):
    """Actions (rows, ACT) and their log-likelihoods, of an actor's means and log stds side by side."""
    mean, log_std = out[:, : out.shape[1] // 2], jnp.clip(out[:, out.shape[1] // 2 :], -5, high)
    u = mean + jnp.exp(log_std) * eps
    normal = -0.5 * ((u - mean) / jnp.exp(log_std)) ** 2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    squash = 2 * (jnp.log(2.0) - jnp.logaddexp(u, -u))  # log(1 - tanh^2 u) = -2 log cosh u
    return jnp.tanh(u), (normal - squash).sum(-1)


def losses(live, target, b, o):
    relabelled = "command_command" in b
    command = b["command_command" if relabelled else "state_command"]
    later_command = command if relabelled else b["state_next_command"]
    policy = lambda s, c, eps: sample(net(live["actor"], s, c)[0], b[eps], o.high)
    q = lambda nets, s, c, a: net(nets["critic"], s, c, a)[..., 0]
    agg = lambda x: x.min(0) if o.agg == "min" else x.mean(0)
    alpha = START * jnp.exp(number(live["alpha"]))

    after, after_log = policy(b["state_next_obs"], later_command, "next_noise")
    reward = REWARD * (b["state_base"][:, 0] + (b["state_pull"] * command).sum(-1))
    soft = agg(q(target, b["state_next_obs"], later_command, after)) - alpha * after_log
    y = hold(reward + GAMMA * b["state_mask"][:, 0] * soft)
    value = q(live, b["state"], command, b["state_action"])

    action, log_pi = policy(b["state"], command, "actor_noise")
    opinion = agg(q(hold(live), b["state"], command, action))
    return {"reward": (reward.mean(), 0), "value_mean": (value.mean(), 0),
            "loss_critic": (((value - y) ** 2).mean(), 1),
            "loss_actor": ((hold(alpha) * log_pi - opinion).mean(), 1),
            "log_pi": (log_pi.mean(), 0), "alpha": (alpha, 0),
            "loss_alpha": (alpha * (hold(-log_pi.mean()) + 0.5 * ACT), 1)}


def arrays(rng, o, rows):
    """Commands of length 1, and masks of both kinds."""
    command = lambda: (lambda c: c / (c**2).sum(-1, keepdims=True) ** 0.5)(rng.normal(size=(rows, GOAL)))
    own = {"command_command": command()} if o.relabel else {"state_command": command(), "state_next_command": command()}
    own |= {"state_next_obs": rng.normal(size=(rows, OBS)), "state_base": rng.normal(size=(rows, 1))}
    own |= {"state_pull": rng.normal(size=(rows, GOAL)), "state_mask": rng.integers(0, 2, (rows, 1)).astype(float)}
    return own | {k: rng.normal(size=(rows, ACT)) for k in ("next_noise", "actor_noise")}


def by_hand():
    out, eps = jnp.array([[0.3, -1.2, -0.5, 0.4]]), jnp.array([[0.7, -1.1]])
    action, log_pi = sample(out, eps, 2)
    near(action, [[0.619732988, -0.993209754]])
    near(log_pi[0], 2.199265003)
    near(mean_sample(out, eps)[1], 2.199265003)


def networks(o):
    return {"critic": (OBS + GOAL + ACT, 2, 1), "actor": (OBS + GOAL, 1, 2 * ACT, (24, 40)), "alpha": None}


def told(o):
    return (f"rep=0,{GOAL} goal_column=command agg={o.agg} alpha_start={START} reward={REWARD} relabel={o.relabel} std_high={o.high} "
            "critic_layernorm=on actor_hidden=24,40")


KINDS = ({"agg": "min", "relabel": 0, "high": 2}, {"agg": "mean", "relabel": 0.5, "high": 0}, {"agg": "min", "relabel": 1, "high": 2})
# The lesser critic changes for a row, or a log std passes an end of its range.
METHOD = Method("sac", losses, lambda o: ("state", "command") if o.relabel else ("state",), networks, told,
                kinds=KINDS, goals=({}, {"layernorm": True}), ema=("critic",),
                policy=("actor", "alpha", "loss_actor", "log_pi", "loss_alpha"),
                extra=arrays, limits={"policy_moved": 2e-3, "policy_path": 1e-3}, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
