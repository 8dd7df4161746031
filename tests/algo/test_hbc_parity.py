"""hbc against JAX (parity.py)."""
import parity
import numpy as np
import jax.numpy as jnp
from parity import ACT, OBS, OWN_FORM, WIDE, Method, flow, likelihood, log_std, near, two_flows, wide_deviations


def losses(live, target, b, o):
    high, low = o.goal(b["high_goal"]), o.goal(b["low_goal"])
    if o.actors == "flow":
        return {"loss_high": (flow(live, b, o, "high_goal", o.goal(b["waypoint"]), "high_"), 1),
                "loss_low": (flow(live, b, o, "low_goal", None, "low_"), 1)}
    subgoal = o.goal(b["waypoint"]) - (0 if o.rep else b["state"])
    return {"loss_high": (likelihood(live, "high_", b["state"], high, subgoal, o.own_form).mean(), 1),
            "loss_low": (likelihood(live, "low_", b["state"], low, b["state_action"], o.own_form).mean(), 1)}


def networks(o):
    pair, path = OBS + o.goal_width, o.actors == "flow"
    own = () if path else (WIDE,)
    nets = {"high_actor": (pair + path * (o.goal_width + 1), 1, o.goal_width, *own), "low_actor": (pair + path * (ACT + 1), 1, ACT, *own)}
    return nets | ({"high_log_std": log_std(o.goal_width), "low_log_std": log_std(ACT)} if o.own_form else {})


def sets(o):
    return f"actors={o.actors} " + (OWN_FORM if o.own_form else "actor_hidden=9,7 actor_activation=gelu actor_std=one")


def by_hand():
    """A Gaussian of mean 0.5 and deviation 2 at 1.5 has the density of its table, less log sqrt(2 pi)."""
    live = {"high_actor": [{"w": jnp.zeros((1, 2, 1)), "b": jnp.array([[0.5]])}],
            "high_log_std": [{"b": jnp.log(jnp.array([[2.0]]))}]}
    one = jnp.ones((1, 1))
    near(likelihood(live, "high_", one, one, 1.5 * one, True)[0], 0.125 + np.log(2))
    near(likelihood(live, "high_", one, one, 1.5 * one, False)[0], 0.5)


METHOD = Method("hbc", losses, ("state", "low_goal", "high_goal", "waypoint"), networks, sets,
                kinds=tuple({"policy": "clone", "actors": actors, "own_form": own} for actors, own in (("gaussian", True), ("gaussian", False), ("flow", False))),
                extra=lambda rng, o, rows: two_flows(rng, o, rows) if o.actors == "flow" else {},
                policy=("high_actor", "low_actor", "high_log_std", "low_log_std", "loss_high", "loss_low"), prepare=wide_deviations,
                by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
