"""fbc against JAX (parity.py)."""
import types

import parity
import jax.numpy as jnp
from parity import ACT, OBS, Method, actor, flow, near


def by_hand():
    """A network that answers t + 1 in every column, halfway and at the start: the mean over rows and columns, not their sum."""
    inputs = OBS + OBS + ACT + 1
    live = {"actor": [{"w": jnp.zeros((1, inputs, ACT)).at[:, -1].set(1), "b": jnp.ones((1, ACT))}]}
    row = {"state": jnp.ones((2, OBS)), "goal": jnp.ones((2, OBS)), "state_action": jnp.array([[0.5, 0, -1], [1, 1, 1]]),
           "noise": jnp.array([[1.0, -1, 0], [0, 0, 0]]), "time": jnp.array([0.5, 0])}
    # velocities (-0.5, 1, -1) and (1, 1, 1), answers 1.5 and 1
    near(flow(live, row, types.SimpleNamespace(goal=lambda g: g), "goal"), (2**2 + 0.5**2 + 2.5**2) / 6)


METHOD = Method("fbc", lambda live, target, b, o: {"loss_flow": (flow(live, b, o, "goal"), 1)}, ("state", "goal"),
                lambda o: {"actor": actor(o, True)}, lambda o: "", kinds=({"policy": "rejection"},), by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
