"""iql against JAX (parity.py)."""
import parity
import jax.numpy as jnp
from parity import ALPHA, KAPPA, OBS, ACT, Method, actor, awr, ddpgbc, flow, hold, net, return_target


def losses(live, target, b, o):
    q = lambda nets, goal, action: net(nets["critic"], b["state"], o.goal(b[goal]), action)[..., 0]
    value = lambda nets, row, goal: net(nets["value"], b[row], o.goal(b[goal]))[0, :, 0]
    action, v = b["state_action"], value(live, "state", "goal")
    least = hold(q(target, "goal", action).min(0))
    side = hold(jnp.where(least >= v, KAPPA, 1 - KAPPA))
    y = return_target(value(live, "next", "goal"), b["goal_steps"])
    terms = {"loss_value": ((side * (least - v) ** 2).mean(), 1), "value_mean": (v.mean(), 0)}
    terms["loss_critic"] = (((q(live, "goal", action) - y) ** 2).sum(0).mean(), 1)
    judge = lambda a: q(hold(live), "actor_goal", a).min(0)
    if o.policy == "ddpgbc":
        return terms | ddpgbc(live, b, o, judge)
    if o.policy == "rejection":
        return terms | {"loss_flow": (flow(live, b, o), 1)}
    mean = net(live["actor"], b["state"], o.goal(b["actor_goal"]))[0]
    adv = judge(action) - value(live, "state", "actor_goal")
    return terms | {"loss_awr": (awr(mean, action, adv, ALPHA), 1)}


def networks(o):
    pair = OBS + o.goal_width
    return {"critic": (pair + ACT, 2, 1), "value": (pair, 1, 1), "actor": actor(o, o.policy == "rejection")}


METHOD = Method("iql", losses, ("state", "next", "goal", "actor_goal"), networks,
                lambda o: f"kappa={KAPPA} alpha={ALPHA} policy={o.policy}",
                kinds=({}, {"discrete": True}, {"policy": "awr"}, {"policy": "rejection"}), ema=("critic",), steps=True)


if __name__ == "__main__":
    parity.main(METHOD)
