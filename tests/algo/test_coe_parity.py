"""coe against JAX (parity.py). Its critic sees a state that a network made, as a goal and as a state."""
import parity
import jax
import jax.numpy as jnp
from parity import ACT, ALPHA, GAMMA, OBS, Method, actor, ddpgbc, hold, near, net

BETA = 0.6


def cross_entropy(logit, t):
    return -(t * jax.nn.log_sigmoid(logit) + (1 - t) * jax.nn.log_sigmoid(-logit))


def pull(z):
    """-z for each row, relative to its mean size."""
    return -z.mean() / hold(jnp.abs(z).mean() + 1e-6)


def held(w, subgoal, ahead):
    return (0.5 * ((w - subgoal) ** 2).sum(-1) * ahead).mean()


def losses(live, target, b, o):
    s, g, a, steps = b["state"], b["goal"], b["state_action"], b["goal_steps"]
    q = lambda nets, s, g, a: net(nets["critic"], s, g, a)[..., 0]
    w = net(live["generator"], s, g, a)[0]
    a_w = hold(jnp.clip(net(live["actor"], w, o.goal(g))[0], -1, 1))
    way = lambda nets: jax.nn.sigmoid(q(nets, s, w, a)) * jax.nn.sigmoid(q(nets, w, g, a_w))
    y = hold(jnp.where(steps == 0, 1.0, jnp.where(steps == 1, GAMMA, way(target))))
    logit = q(live, s, g, a)
    side = hold(jnp.where(y >= jax.nn.sigmoid(logit), o.kappa, 1 - o.kappa))
    terms = {"loss_critic": ((2 * side * cross_entropy(logit, y)).mean(), 1), "value_mean": (jax.nn.sigmoid(logit).mean(), 0),
             "loss_way": (pull(way(hold(live)).min(0)), 1), "loss_subgoal": (held(w, b["between"], steps >= 0), BETA)}
    judge = "oracle_critic" if o.rep else "critic"
    if o.rep:
        taught = net(live[judge], s, o.goal(g), a)[..., 0]
        terms["loss_oracle"] = (cross_entropy(taught, hold(jax.nn.sigmoid(logit))).mean(), 1)
    opinion = lambda action: net(hold(live[judge]), b["actor_state"], o.goal(b["actor_goal"]), action)[..., 0].min(0)
    return terms | ddpgbc(live, b, o, opinion, state="actor_state")


def networks(o):
    nets = {"critic": (2 * OBS + ACT, 2, 1), "generator": (2 * OBS + ACT, 1, OBS), "actor": actor(o)}
    return nets | ({"oracle_critic": (OBS + o.goal_width + ACT, 2, 1)} if o.rep else {})


def by_hand():
    near(pull(jnp.array([0.2, 0.4])), -0.3 / 0.300001)
    near(held(jnp.array([[1.0, 2.0], [5.0, 5.0]]), jnp.array([[0.0, 4.0], [0.0, 0.0]]), jnp.array([1.0, 0.0])), 1.25)


# The generator's pull changes sides with the lesser member, as a policy's does; and the critic's targets hang on what both
# propose, so that a row which does so a step earlier shows there too: seen 1.1e-4.
METHOD = Method("coe", losses, ("state", "goal", "between", "actor_state", "actor_goal"), networks,
                lambda o: f"alpha={ALPHA} beta={BETA} kappa={o.kappa} goal_random=0.3 goal_future=0.5", kinds=({"kappa": 0.5}, {"kappa": 0.7}),
                ema=("critic",), steps=True, acted=("state", "actor_state"), policy=("actor", "loss_q", "loss_bc", "generator", "loss_way"),
                limits={"path": 1e-3, "moved": 2e-3}, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
