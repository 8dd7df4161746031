"""bc against JAX (parity.py)."""
import parity
from parity import ACT, OWN_FORM, WIDE, Method, actor, clone, likelihood, log_std, net


def losses(live, target, b, o):
    goal = o.goal(b["goal"])
    if o.own_form:
        return {"loss_bc": (likelihood(live, "actor_", b["state"], goal, b["state_action"], True).mean(), 1)}
    return {"loss_bc": (clone(net(live["actor"], b["state"], goal)[0], b, o), 1)}


def networks(o):
    return {"actor": (*actor(o), WIDE), "actor_log_std": log_std(ACT)} if o.own_form else {"actor": actor(o)}


METHOD = Method("bc", losses, ("state", "goal"), networks, lambda o: OWN_FORM if o.own_form else "",
                kinds=({"policy": "clone", "own_form": False}, {"policy": "clone", "discrete": True, "own_form": False},
                       {"policy": "clone", "own_form": True}), policy=("actor", "actor_log_std", "loss_bc"))


if __name__ == "__main__":
    parity.main(METHOD)
