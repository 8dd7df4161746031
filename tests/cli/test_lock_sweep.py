"""dcrl lock as a sweep: 2 agents x 2 horizons x 2 seeds side by side.

Results and the bytes of every run do not depend on the number of threads or on being interrupted; what is
finished is not run again; a folder is not mixed with other options; --json and the plot are what the
documents promise.
"""

import glob
import json
import os
import random
import signal
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import STOPPED, Scratch, await_handler, bad, check_error, digests, good, run_tests, spawn  # noqa: E402

FLAGS = ["lock", "--agent", "dcrl,td-n", "--horizon", "16,32", "--seed", "0-1", "--n", 4, "--slots", 16, "--hidden", "16,16",
         "--batch", 32]
KEYS = {"agent", "horizon", "n", "steps", "seed", "accumulated_error", "error_by_distance", "steps_per_second"}
TIMES = {"steps_per_second", "seconds"}


def sweep(folder, steps, *more):
    return json.loads(good(*FLAGS, "--steps", steps, "--out", folder, "--json", *more))


def values(result):
    """A sweep's results without what the clock says."""
    return [{key: run[key] for key in run if key not in TIMES} for run in result["runs"]]


def all_bytes(folder):
    runs = sorted(glob.glob(os.path.join(folder, "*-H*-s*")))
    assert len(runs) == 8
    return {os.path.basename(run): digests(run) for run in runs}


def check_shape(result, steps):
    assert len(result["runs"]) == 8 and os.path.isfile(result["plot"])
    seen = set()
    for run in result["runs"]:
        assert KEYS <= set(run), run
        seen.add((run["agent"], run["horizon"], run["seed"]))
        assert run["steps"] == steps and run["n"] == 4 and run["steps_per_second"] > 0
        bins = run["error_by_distance"]
        assert bins and all(set(b) == {"distance", "error"} for b in bins)
        distances = [b["distance"] for b in bins]
        assert distances == sorted(distances) and 1 <= distances[0] and distances[-1] < run["horizon"]
        assert run["accumulated_error"] >= 0
    assert seen == {(a, h, s) for a in ("dcrl", "td-n") for h in (16, 32) for s in (0, 1)}


def check_plot(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    text = " ".join(root.itertext())
    assert "dcrl" in text and "td-n" in text


def test_threads():
    with Scratch("sweep") as scratch:
        one, two = sweep(scratch.at("one"), 400, "--threads", 1), sweep(scratch.at("two"), 400, "--threads", 2)
        check_shape(one, 400)
        check_plot(one["plot"])
        assert values(one) == values(two)
        assert all_bytes(scratch.at("one")) == all_bytes(scratch.at("two"))
        with open(one["plot"], "rb") as a, open(two["plot"], "rb") as b:
            assert a.read() == b.read()
        # Each run's result.json is what --json says of it, and a single run outside a sweep is the same run.
        for run in one["runs"]:
            with open(scratch.at("one", f"{run['agent']}-H{run['horizon']}-s{run['seed']}", "result.json")) as file:
                assert json.load(file) == run
        alone = json.loads(good(*FLAGS, "--steps", 400, "--json", "--agent", "td-n", "--horizon", 32, "--seed", 1))
        assert values({"runs": [alone]})[0] in values(one)


def stamps(folder):
    return {path: os.stat(path).st_mtime_ns for path in glob.glob(os.path.join(folder, "*", "*"))}


def test_again():
    with Scratch("sweep") as scratch:
        folder = scratch.at("out")
        first = sweep(folder, 300)
        before = stamps(folder)
        assert sweep(folder, 300) == first and stamps(folder) == before, "a finished run was run again"
        # One more seed trains that seed only.
        more = sweep(folder, 300, "--seed", "0-2")
        assert len(more["runs"]) == 12
        assert {path: stamp for path, stamp in stamps(folder).items() if path in before} == before
        # A lost result is evaluated again from the last checkpoint, to the same values.
        os.remove(os.path.join(folder, "dcrl-H32-s1", "result.json"))
        assert values(sweep(folder, 300)) == values(first)


def test_other_options():
    with Scratch("sweep") as scratch:
        folder = scratch.at("out")
        sweep(folder, 50)
        before = stamps(folder)
        for more in (["--batch", 16], ["--n", 5], ["--set", "lr=1e-3"], ["--hidden", "16,16,16"]):
            bad(2, [folder, "other options", "another --out"], *FLAGS, "--steps", 50, "--out", folder, *more)
        bad(2, [folder, "other options"], *FLAGS, "--steps", 60, "--out", folder)
        assert stamps(folder) == before


def test_interrupted():
    with Scratch("sweep") as scratch:
        start = time.time()
        want, steps = sweep(scratch.at("unbroken"), 8000), 8000
        seconds, stopped = time.time() - start, 0
        for attempt in range(20):
            folder = scratch.at(f"out{attempt}")
            process = spawn(*FLAGS, "--steps", steps, "--out", folder)
            await_handler(process)
            time.sleep(random.random() * seconds * 0.8)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
            if process.returncode != 0:
                stopped += 1
                check_error(process.returncode, err, STOPPED, ["stopped", "the same command continues"], "lock")
                assert not out
                assert values(sweep(folder, steps)) == values(want)
                assert all_bytes(folder) == all_bytes(scratch.at("unbroken"))
            if stopped == 3:
                break
        assert stopped == 3
        bad_out = spawn(*FLAGS, "--steps", 10**9)
        await_handler(bad_out)
        bad_out.send_signal(signal.SIGTERM)
        _, err = bad_out.communicate()
        check_error(bad_out.returncode, err, STOPPED, ["stopped", "--out DIR"], "lock without --out")


def test_broken_result():
    """A result.json that was damaged is made again."""
    with Scratch("sweep") as scratch:
        folder = scratch.at("out")
        first = sweep(folder, 50)
        for text in "", "{", "{}", "[]", '{"agent": "dcrl"}':
            with open(os.path.join(folder, "dcrl-H16-s0", "result.json"), "w") as file:
                file.write(text)
            assert values(sweep(folder, 50)) == values(first), text


def test_foreign_result():
    """A result.json of another run is not believed, and not overwritten."""
    with Scratch("sweep") as scratch:
        folder = scratch.at("out")
        sweep(folder, 50)
        path = os.path.join(folder, "dcrl-H16-s0", "result.json")
        with open(path) as file:
            own = file.read()
        for other in ("dcrl-H32-s0", "dcrl-H16-s1", "td-n-H16-s0"):
            with open(os.path.join(folder, other, "result.json")) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(text)
            bad(1, [path, "is the result of another run"], *FLAGS, "--steps", 50, "--out", folder)
            with open(path) as file:
                assert file.read() == text
        with open(path, "w") as file:
            file.write(own.replace('"hidden": [16, 16]', '"hidden": [16, 17]'))
        bad(1, [path, "is the result of another run"], *FLAGS, "--steps", 50, "--out", folder)


if __name__ == "__main__":
    run_tests(globals())
