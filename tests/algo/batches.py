"""Names of the arrays of `dcrl grad` for the letters that equations use.

i, k, j: start, split and end of a segment; p, n, g: a state, the one n' steps later, its goal; a, a1: a single step;
s, ag: a policy's state and its goal.
"""

ROWS = {"i": "segment_start", "k": "segment_split", "j": "segment_end", "p": "state", "n": "later", "g": "goal",
        "a": "step_start", "a1": "step_end", "s": "actor_state", "ag": "actor_goal"}
COUNTS = {"left": "first_steps", "right": "second_steps", "nsteps": "later_steps", "off": "goal_steps"}


def array(name):
    """obs_i -> segment_start, act_i -> segment_start_action, left -> first_steps; other names stay."""
    kind, _, row = name.partition("_")
    if kind in ("obs", "act") and row in ROWS:
        return ROWS[row] + ("_action" if kind == "act" else "")
    return COUNTS.get(name, name)


def arrays(batch):
    return {array(name): values for name, values in batch.items()}
