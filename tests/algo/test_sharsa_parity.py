"""sharsa against JAX (parity.py)."""
import parity
import jax
import jax.numpy as jnp
from parity import ACT, GAMMA, OBS, Method, flow, hold, near, net, two_flows

K = 3  # steps to a subgoal


def target(n, goal_steps, later, end_success, k=K, gamma=GAMMA):
    """gamma^n where the stretch ends in success, else the value from there on. later: sigmoid V at its end."""
    done = n < k if end_success else (goal_steps >= 0) & (goal_steps < k)
    return hold(jnp.where(done, gamma**n, gamma**n * later))


def bce(logit, t):
    return -(t * jax.nn.log_sigmoid(logit) + (1 - t) * jax.nn.log_sigmoid(-logit))


def losses(live, targets, b, o):
    goal, subgoal = o.goal(b["goal"]), o.goal(b["subgoal"])
    bar = jax.nn.sigmoid(net(targets["critic"], b["state"], goal, subgoal)[..., 0])
    q = net(live["critic"], b["state"], goal, subgoal)[..., 0]
    v, later = net(live["value"], b["state"], goal)[0, :, 0], net(live["value"], b["subgoal"], goal)[0, :, 0]
    y = target(b["subgoal_steps"], b.get("goal_steps"), jax.nn.sigmoid(later), o.end_success)
    return {"loss_value": (bce(v, hold(bar.min(0) if o.agg == "min" else bar.mean(0))).mean(), 1),
            "value_mean": (jax.nn.sigmoid(v).mean(), 0),
            "loss_critic": (bce(q, y).mean(1).sum(), 1),
            "loss_high": (flow(live, b, o, "high_goal", o.goal(b["waypoint"]), "high_"), 1),
            "loss_low": (flow(live, b, o, "low_goal", None, "low_"), 1)}


def networks(o):
    pair = OBS + o.goal_width
    return {"critic": (pair + o.goal_width, 2, 1), "value": (pair, 1, 1),
            "high_actor": (pair + o.goal_width + 1, 1, o.goal_width), "low_actor": (pair + ACT + 1, 1, ACT)}


def extra(rng, o, rows):
    steps = {"subgoal_steps": rng.integers(0, K + 1, rows)}
    if not o.end_success:  # of a goal that lies ahead as the subgoal says, or elsewhere
        ahead = rng.random(rows) < 0.5
        far = rng.integers(0, 5, rows)
        steps["goal_steps"] = jnp.where(ahead, steps["subgoal_steps"] + far * (steps["subgoal_steps"] == K), -1).__array__()
    return steps | two_flows(rng, o, rows)


def by_hand():
    """Rows of a trajectory that ends at 999, k 25: its end counts as success, or is bootstrapped from."""
    n, done = jnp.array([10, 25, 9, 25, 0, 25]), jnp.array([1, 0, 1, 0, 1, 0])
    ahead = jnp.array([10, -1, -1, 25, 0, -1])
    near(target(n, ahead, 0.5, True, 25, 0.99), 0.99**n * jnp.where(done, 1, 0.5))
    near(target(n, ahead, 0.5, False, 25, 0.99), 0.99**n * jnp.array([1, 0.5, 0.5, 0.5, 1, 0.5]))


METHOD = Method("sharsa", losses, ("state", "goal", "subgoal", "low_goal", "high_goal", "waypoint"), networks,
                lambda o: f"subgoal_steps={K} agg={o.agg} end_success={'on' if o.end_success else 'off'}",
                kinds=({"policy": "flow", "agg": "min", "end_success": True}, {"policy": "flow", "agg": "mean", "end_success": False}), ema=("critic",),
                policy=("high_actor", "low_actor", "loss_high", "loss_low"), extra=extra, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
