"""por against JAX (parity.py): hiql's equations without a representation, with actors of a form of their own."""
import parity
from parity import Method, wide_deviations
from test_hiql_parity import POLICY, ROWS, by_hand, losses, networks, sets

METHOD = Method("por", losses, ROWS, networks, sets,
                kinds=({"policy": "awr", "goal_rep": False, "high_target": "auto", "own_form": True},), ema=("value",), steps=True,
                policy=POLICY, prepare=wide_deviations, by_hand=by_hand)


if __name__ == "__main__":
    parity.main(METHOD)
