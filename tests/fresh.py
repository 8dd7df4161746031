"""What the tests draw by beside fixed seeds: one number for each state of the sources, so that a change meets new numbers
and the same commit always meets the same.

DCRL_SEED=N repeats a run, DCRL_SEED=clock draws a new number. Without git (an archive of the sources) it is a new one too.
"""

import os
import subprocess

CLOCK = "clock"


def given():
    """DCRL_SEED's number, or None: a test that also runs a fixed seed then leaves that out."""
    text = os.environ.get("DCRL_SEED", CLOCK)
    return None if text == CLOCK else int(text)


def seed():
    if given() is not None:
        return given()
    here = os.path.dirname(os.path.abspath(__file__))
    words = ["git", "-C", here, "-c", f"safe.directory={os.path.dirname(here)}", "rev-parse", "HEAD:src"]
    try:
        tree = "" if os.environ.get("DCRL_SEED") == CLOCK else subprocess.run(words, capture_output=True, text=True).stdout
    except FileNotFoundError:
        tree = ""
    return int(tree[:7], 16) if tree else int.from_bytes(os.urandom(4), "little") >> 4
