"""gcivl against JAX (parity.py)."""
import parity
import jax.numpy as jnp
import numpy as np
from parity import ALPHA, KAPPA, OBS, Method, actor, awr, hierarchy_value, hold, near, net


def losses(live, target, b, o):
    value = lambda nets, row, goal: net(nets["value"], b[row], o.goal(b[goal]))[..., 0]
    v, now, later = value(live, "state", "goal"), hold(value(target, "state", "goal")), hold(value(target, "next", "goal"))
    gain = hold(value(live, "next", "actor_goal").mean(0) - value(live, "state", "actor_goal").mean(0))
    mean = net(live["actor"], b["state"], o.goal(b["actor_goal"]))[0]
    return {"loss_value": (hierarchy_value(v, now, later, b["goal_steps"], KAPPA), 1), "value_mean": (v.mean(), 0),
            "loss_awr": (awr(mean, b["state_action"], gain, ALPHA), 1)}


def by_hand():
    """V of two members at a row that is not the goal, kappa 0.7; then weights of three actions, the last one's at its limit."""
    v, now, later = (jnp.array(x)[:, None] for x in ([-3.7, -3.2], [-3.6, -3.4], [-3.0, -2.5]))
    near(hierarchy_value(v, now, later, jnp.array([-1]), 0.7, 0.99), 0.0445575)
    adv, off = jnp.array([0.0, -0.1, 1.0]), jnp.array([[1.0, 0], [0, 2], [1, 1]])
    near(awr(off, jnp.zeros((3, 2)), adv, 10), (0.5 + 2 * np.exp(-1) + 100) / 3)


METHOD = Method("gcivl", losses, ("state", "next", "goal", "actor_goal"),
                lambda o: {"value": (OBS + o.goal_width, 2, 1), "actor": actor(o)},
                lambda o: f"kappa={KAPPA} alpha={ALPHA}", kinds=({"policy": "awr"},), ema=("value",), steps=True, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
