"""gcivl against JAX (parity.py)."""
import parity
from parity import ALPHA, KAPPA, OBS, Method, actor, awr, hierarchy_value, hold, net


def losses(live, target, b, o):
    value = lambda nets, row, goal: net(nets["value"], b[row], o.goal(b[goal]))[..., 0]
    v, now, later = value(live, "state", "goal"), hold(value(target, "state", "goal")), hold(value(target, "next", "goal"))
    gain = hold(value(live, "next", "actor_goal").mean(0) - value(live, "state", "actor_goal").mean(0))
    mean = net(live["actor"], b["state"], o.goal(b["actor_goal"]))[0]
    return {"loss_value": (hierarchy_value(v, now, later, b["goal_steps"], KAPPA), 1), "value_mean": (v.mean(), 0),
            "loss_awr": (awr(mean, b["state_action"], gain, ALPHA), 1)}


METHOD = Method("gcivl", losses, ("state", "next", "goal", "actor_goal"),
                lambda o: {"value": (OBS + o.goal_width, 2, 1), "actor": actor(o)},
                lambda o: f"kappa={KAPPA} alpha={ALPHA}", kinds=({"policy": "awr"},), ema=("value",), steps=True)


if __name__ == "__main__":
    parity.main(METHOD)
