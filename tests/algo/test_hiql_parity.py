"""hiql against JAX (parity.py). test_por_parity.py compares its variant by the same equations."""
import parity
import jax.numpy as jnp
from parity import ACT, KAPPA, OBS, OWN_FORM, WIDE, Method, hierarchy_value, hold, likelihood, log_std, near, net, normalise


REP_DIM = 5  # columns of phi
ALPHA_LOW, ALPHA_HIGH = 2.0, 1.5


def losses(live, target, b, o):
    def seen(row, goal):
        """A goal as V and the low policy see it; not a target network: phi has none."""
        return normalise(net(live["rep"], b[row], o.goal(b[goal]))[0]) if o.goal_rep else o.goal(b[goal])

    def awr(level, goal, to, adv, alpha):
        return (hold(jnp.minimum(jnp.exp(alpha * adv), 100)) * likelihood(live, level, b["state"], hold(goal), hold(to), o.own_form)).mean()

    value = lambda nets, row, goal: net(nets["value"], b[row], seen(row, goal))[..., 0]
    gain = lambda to, row, goal: hold((value(live, to, goal) - value(live, row, goal)).mean(0))
    v = value(live, "state", "goal")
    now, later = hold(value(target, "state", "goal")), hold(value(target, "next", "goal"))
    subgoal = seen("state", "waypoint") - (o.goal(b["state"]) if difference(o) else 0)
    loss_low = awr("low_", seen("state", "low_goal"), b["state_action"], gain("next", "state", "low_goal"), ALPHA_LOW)
    loss_high = awr("high_", o.goal(b["high_goal"]), subgoal, gain("waypoint", "state", "high_goal"), ALPHA_HIGH)
    return {"loss_value": (hierarchy_value(v, now, later, b["goal_steps"], KAPPA), 1), "value_mean": (v.mean(), 0),
            "loss_low": (loss_low, 1), "loss_high": (loss_high, 1)}


def difference(o):
    """Of its own accord (high_target=auto) where goals are whole observations."""
    return o.high_target == "auto" and not o.rep


def networks(o):
    seen, pair = REP_DIM if o.goal_rep else o.goal_width, OBS + o.goal_width
    own = (WIDE,) if o.own_form else ()
    nets = {"value": (OBS + seen, 2, 1), "high_actor": (pair, 1, seen, *own), "low_actor": (OBS + seen, 1, ACT, *own)}
    nets |= {"high_log_std": log_std(seen), "low_log_std": log_std(ACT)} if o.own_form else {}
    return nets | ({"rep": (pair, 1, REP_DIM)} if o.goal_rep else {})


def sets(o):
    return f"kappa={KAPPA} alpha_low={ALPHA_LOW} alpha_high={ALPHA_HIGH} high_target={o.high_target} {OWN_FORM if o.own_form else ''}"


def by_hand():
    near(normalise(jnp.array([[3.0, 4, 0, 0]])), [[1.2, 1.6, 0, 0]])
    v, now, later = (jnp.array(x)[:, None] for x in ((-3.7, -3.2), (-3.6, -3.4), (-3.0, -2.5)))
    near(hierarchy_value(v, now, later, jnp.array([-1]), 0.7, 0.99), 0.0445575)


ROWS = ("state", "next", "goal", "low_goal", "high_goal", "waypoint")
POLICY = ("high_actor", "low_actor", "high_log_std", "low_log_std", "loss_low", "loss_high")
PLAIN = {"policy": "awr", "goal_rep": True, "high_target": "state", "own_form": False}
METHOD = Method("hiql", losses, ROWS, networks,
                lambda o: f"goal_rep={'on' if o.goal_rep else 'off'} rep_dim={REP_DIM} {sets(o)}",
                kinds=(PLAIN, PLAIN | {"goal_rep": False}, PLAIN | {"goal_rep": False, "high_target": "auto"}), ema=("value",), steps=True,
                policy=POLICY, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
