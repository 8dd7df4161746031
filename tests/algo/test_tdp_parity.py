"""tdp against JAX (parity.py). Ways are laid out as an axis of their own."""
import parity
import jax
import jax.numpy as jnp
import numpy as np
from parity import ACT, ALPHA, GAMMA, OBS, Method, actor, ddpgbc, flow, hold, near, net

FAR = 40  # steps; gamma^40 = 0.3, so that some targets are raised and others are not


def cross_entropy(logit, t):
    return -(t * jax.nn.log_sigmoid(logit) + (1 - t) * jax.nn.log_sigmoid(-logit))


def best_way(there, on, far, own=0.0):
    """(members, rows, ways) of values each to (members, rows), at least `own` (members, rows)."""
    best = jnp.maximum((there * on).max(-1), own)
    return jnp.maximum(best, GAMMA**FAR) if far == "floor" else best


def losses(live, target, b, o):
    every = lambda x: jnp.repeat(x, o.ways, 0)  # a row once for each way
    q = lambda nets, s, g, a: net(nets["critic"], s, g, a)[..., 0]
    value = lambda *sga: jax.nn.sigmoid(net(target["critic"], *sga)).reshape(2, -1, o.ways)
    there = value(every(b["state"]), b["via"], every(b["state_action"]))
    on = value(b["via"], every(b["goal"]), b["via_action"])
    own = jax.nn.sigmoid(q(target, b["state"], b["goal"], b["state_action"])) if o.own else 0.0
    y = hold(jnp.where(b["goal_steps"] == 0, 1.0, jnp.where(b["goal_steps"] == 1, GAMMA, best_way(there, on, o.far, own))))
    logit = q(live, b["state"], b["goal"], b["state_action"])
    side = hold(jnp.where(y >= jax.nn.sigmoid(logit), o.kappa, 1 - o.kappa))
    terms = {"loss_way": ((2 * side * cross_entropy(logit, y)).mean(), 1), "value_mean": (jax.nn.sigmoid(logit).mean(), 0)}
    if o.far == "pairs":
        terms["loss_far"] = (cross_entropy(q(live, b["state"], b["far_goal"], b["state_action"]), GAMMA**FAR).mean(), 1)
    judge = "oracle_critic" if o.rep else "critic"
    if o.rep:
        taught = net(live[judge], b["state"], o.goal(b["goal"]), b["state_action"])[..., 0]
        terms["loss_oracle"] = (cross_entropy(taught, hold(jax.nn.sigmoid(logit))).mean(), 1)
    if o.policy == "rejection":
        return terms | {"loss_flow": (flow(live, b, o, state="actor_state"), 1)}
    opinion = lambda action: net(hold(live[judge]), b["actor_state"], o.goal(b["actor_goal"]), action)[..., 0].min(0)
    return terms | ddpgbc(live, b, o, opinion, state="actor_state")


def networks(o):
    nets = {"critic": (2 * OBS + ACT, 2, 1), "actor": actor(o, o.policy == "rejection")}
    return nets | ({"oracle_critic": (OBS + o.goal_width + ACT, 2, 1)} if o.rep else {})


def by_hand():
    """Two members, a row each, three ways: the products are .18, .2, .14 and .06, .05, .04."""
    there = np.array([[[0.9, 0.5, 0.2]], [[0.1, 0.5, 0.2]]])
    on = np.array([[[0.2, 0.4, 0.7]], [[0.6, 0.1, 0.2]]])
    near(best_way(there, on, "off"), [[0.2], [0.06]])
    near(best_way(there, on, "floor"), [[0.29571229], [0.29571229]])
    near(best_way(there, on, "off", np.array([[0.19], [0.07]])), [[0.2], [0.07]])


KINDS = ({"far": "floor", "ways": 3, "kappa": 0.5, "own": False}, {"far": "pairs", "ways": 16, "kappa": 0.8, "own": True},
         {"far": "off", "ways": 1, "kappa": 0.5, "own": False, "policy": "rejection"}, {"far": "floor", "ways": 4, "kappa": 0.7, "own": True, "discrete": True})


def rows(o):
    return ("state", "goal", "via", *(("far_goal",) if o.far == "pairs" else ()), "actor_state", "actor_goal")


METHOD = Method("tdp", losses, rows, networks,
                lambda o: f"alpha={ALPHA} policy={o.policy} candidates={o.ways} far={o.far} far_steps={FAR} kappa={o.kappa} own={'on' if o.own else 'off'}",
                kinds=KINDS, ema=("critic",), steps=True, acted=("state", "via", "actor_state"), times=lambda o: {"via": o.ways}, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
