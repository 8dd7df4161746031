"""Every command under faults of memory, files, folders and threads: a sample of what `tools/torture.sh faults` runs whole.

The sample is the same each time. tests/faults/faults.py says what may come of a fault.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
import faults  # noqa: E402
from drive import run_tests, sanitized  # noqa: E402

# A call of each of these is always among the faults: (case, kind, number, ever). Each was a finding.
KNOWN = [
    ("resume", "read", range(10, 20)),  # a listing of the folder that breaks off hid the newest checkpoint
    ("map", "read", range(4, 8)),
    ("grad", "memory", range(98, 104)),  # losses were not printed, and the status was 0
    ("train-store", "memory", range(148, 158)),  # config.json lacked where the data lie
    ("train-held-out", "stat", range(3, 10)),  # the data beside were taken for missing
    ("report", "stat", range(10, 30)),  # a run was left out of the page
]


def test_sample():
    if sanitized():
        print("  skipped: a sanitizer's calls stand where these faults would")
        return
    random.seed(2)
    total, found = faults.attack_all([], faults.KINDS, sample=4, slow=1, leave=["eval-two", "render", "render-run"], tell=lambda *what: print("    FINDING", *what))
    assert total > 450 and not found, f"{len(found)} findings in {total} faults"


def test_known():
    if not sanitized():
        assert not faults.attack_these(KNOWN)


if __name__ == "__main__":
    run_tests(globals())
