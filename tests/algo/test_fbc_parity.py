"""fbc against JAX (parity.py)."""
import parity
from parity import Method, actor, flow


METHOD = Method("fbc", lambda live, target, b, o: {"loss_flow": (flow(live, b, o, "goal"), 1)}, ("state", "goal"),
                lambda o: {"actor": actor(o, True)}, lambda o: "", kinds=({"policy": "rejection"},))


if __name__ == "__main__":
    parity.main(METHOD)
