"""From the start of the program to its first step at the paper's lock size: under a second.

The best of some, since the machine may be busy with other tests, and more on a slower one; the time includes the first save.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, good, quickest, run_tests, slowness  # noqa: E402


def test_first_step():
    times, limit = [], slowness()
    with Scratch("start") as scratch:

        def start():
            before = time.time()
            good("train", "--env", "lock-2048", "--hidden", "512,512,512", "--batch", 512, "--steps", 1, "--out", scratch.at(f"run{len(times)}"))
            times.append(time.time() - before)
            return times[-1:]

        (least,) = quickest(start, limit, 30)
    print("  seconds:", " ".join(f"{t:.2f}" for t in times))
    assert least < limit, (times, limit)


if __name__ == "__main__":
    run_tests(globals())
