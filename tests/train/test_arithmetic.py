"""A run that goes on with another processor's products: DCRL_VECTORS names a kind. The bits may then differ, which config.json
allows to see and a resume tells; with the same words there is no warning, and the bytes are equal.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, Scratch, call, digests, good, run_tests  # noqa: E402

CORES = ("avx512", "avx2", "base")


def on(core):
    return {**os.environ, "DCRL_VECTORS": core}


def words_of_run(run):
    with open(os.path.join(run, "config.json")) as file:
        return json.load(file)["arithmetic"]


def train(run, core, steps=40):
    good("train", *SMALL, "--steps", steps, "--save-every", 20, "--log-every", 5, "--out", run, env=on(core))


def unfinished(run):
    """Step 20 of 40, as a kill would leave it."""
    for name in ("DONE", "step-0000000040.safetensors"):
        os.remove(os.path.join(run, name))


def two_cores(scratch):
    """Two kinds that this processor runs, the least last."""
    seen = {}
    for core in CORES:
        run = scratch.at("probe" + core)
        train(run, core, steps=1)
        seen.setdefault(words_of_run(run), core)
    if len(seen) < 2:
        print("  skipped: this processor has one kind of products")
        sys.exit(0)
    return [list(seen.values())[0], list(seen.values())[-1]]


def test_other_core():
    with Scratch("arithmetic") as scratch:
        one, other = two_cores(scratch)
        run, whole = scratch.at("run"), scratch.at("whole")
        for folder in (run, whole):
            train(folder, one)
        assert digests(run) == digests(whole)
        words = words_of_run(run)
        assert re.fullmatch(r"products with [\w -]+, C library [\d.]*, program for [\w -]+", words), words
        unfinished(run)
        done = call("train", "--resume", run, env=on(other))
        assert done.returncode == 0 and done.stderr.count("\n") == 1, done
        assert done.stderr.startswith(f"dcrl: warning: {run} was begun with {words}, this is products with "), done.stderr
        print(f"  {one} and {other}: other bytes: {digests(run) != digests(whole)}")
        assert words_of_run(run) == words
        unfinished(whole)
        done = call("train", "--resume", whole, env=on(one))
        assert done.returncode == 0 and not done.stderr, done


def test_same_core():
    """The same words, the same bytes, also after a stop."""
    with Scratch("arithmetic") as scratch:
        core = two_cores(scratch)[1]
        run, whole = scratch.at("run"), scratch.at("whole")
        for folder in (run, whole):
            train(folder, core)
        unfinished(run)
        done = call("train", "--resume", run, env=on(core))
        assert done.returncode == 0 and not done.stderr and digests(run) == digests(whole), done


def test_old_config():
    """A config of before says nothing, and nothing is told."""
    with Scratch("arithmetic") as scratch:
        run = scratch.at("run")
        train(run, CORES[0])
        unfinished(run)
        path = os.path.join(run, "config.json")
        with open(path) as file:
            config = json.load(file)
        del config["arithmetic"]
        with open(path, "w") as file:
            json.dump(config, file)
        done = call("train", "--resume", run)
        assert done.returncode == 0 and not done.stderr, done


if __name__ == "__main__":
    run_tests(globals())
