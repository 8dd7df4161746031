"""From nothing to a score, as a user would: make a maze's data, train a small policy, play the tasks.

Checks that the score does not depend on the number of threads, that the same seed gives the same result, that eval.csv
holds one row a step in rising order, and that wrong calls get one clear line. How good a policy gets is not a test's
matter; that it gets anywhere is: the first task of pointmaze-medium is in reach after a few hundred steps.

The flow policy (rejection) is trained after its critic; its candidates are drawn by (seed, task, episode, step), so its score
is as independent of threads as the other's.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import progress  # noqa: E402

DCRL = os.environ["DCRL"]


def call(*words, code=0):
    done = subprocess.run([DCRL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def score(run, **flags):
    words = [x for k, v in flags.items() for x in ("--" + k, v)]
    return json.loads(call("eval", run, "--json", *words))


def same(a, b):
    return {k: v for k, v in a.items() if k != "seconds"} == {k: v for k, v in b.items() if k != "seconds"}


def flow(folder, data):
    run, word = os.path.join(folder, "flow"), ["--set", "policy=rejection", "--set", "samples=6", "--set", "flow_steps=4"]
    common = ["--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", data, "--hidden", "32,32", "--batch", 64, "--steps", 600]
    call("train", *common, *word, "--set", "policy_after=300", "--save-every", 300, "--out", run)
    one = score(run, episodes=2, threads=1)
    assert same(one, score(run, episodes=2, threads=2))
    assert same(one, score(run, episodes=2, threads=2, samples=6))
    rows = open(os.path.join(run, "eval.csv")).read()
    short = score(run, episodes=1, threads=2, samples=1)
    assert same(short, score(run, episodes=1, threads=1, samples=1))
    assert open(os.path.join(run, "eval.csv")).read() == rows  # only what the config says is the run's score
    # Until step 300 only the critics were trained, after it only the policy.
    old, new = (load_file(os.path.join(run, f"step-{s:010d}.safetensors")) for s in (300, 600))
    for name in old:
        if "critic/" in name or "actor/" in name:
            assert np.array_equal(old[name], new[name]) == ("critic/" in name), name
            assert not (name.startswith("adam_") and "actor/" in name) or not old[name].any(), name
    # How a policy acts stands in its checkpoint; a config that says otherwise is refused, as is one that was edited.
    path, newest = os.path.join(run, "config.json"), os.path.join(run, "step-0000000600.safetensors")
    config, weights = open(path).read(), open(newest, "rb").read()
    for change in ("ddpgbc", "none", "flows"):
        open(path, "w").write(config.replace('"rejection"', f'"{change}"'))
        assert "config.json" in call("eval", run, code=1)
    open(path, "w").write(config)
    for text, other in ((b'rejection', b'rejectiom'), (b'\\"samples\\": 6', b'\\"samples\\": 5'), (b'"seed":"0"', b'"seed":"1"')):
        assert text in weights, text
        open(newest, "wb").write(weights.replace(text, other))
        error = call("eval", run, "--step", 600, code=1)
        assert "is damaged" in error and error.count("\n") == 1, error
    open(newest, "wb").write(weights)
    assert same(one, score(run, episodes=2, threads=1))
    call("train", *common, "--set", "policy=none", "--out", run + "0")
    assert "has no policy" in call("eval", run + "0", code=1)
    assert "never be trained" in call("train", *common, *word, "--set", "policy_after=600", "--out", run + "2", code=2)
    assert "no policy to train" in call("train", *common, "--set", "policy=none", "--set", "policy_after=6", "--out", run + "2", code=2)


def together(folder, data):
    """Evaluations side by side: each leaves its row."""
    run = os.path.join(folder, "many")
    common = ["--data", data, "--hidden", "8,8", "--batch", 8, "--steps", 16, "--save-every", 1, "--keep", 0]
    call("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", *common, "--out", run)
    words = [[DCRL, "eval", run, "--step", str(step), "--episodes", "1", "--threads", "1"] for step in range(1, 17)]
    for process in [subprocess.Popen(w, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for w in words]:
        assert process.wait() == 0, process.stderr.read()
        process.stderr.close()
    rows = open(os.path.join(run, "eval.csv")).read().splitlines()
    assert [int(r.split(",")[0]) for r in rows[1:]] == list(range(1, 17)), rows


def giant(folder):
    """A policy that knows nothing reaches nothing, and many episodes show how far they are."""
    data, run = os.path.join(folder, "giant.npz"), os.path.join(folder, "giant")
    call("gen", "pointmaze-giant-navigate", "-o", data, "--episodes", 2)
    common = ["--env", "pointmaze-giant-navigate-oraclerep-v0", "--data", data, "--hidden", "256,256", "--batch", 8, "--steps", 2]
    call("train", *common, "--out", run)
    told = score(run, episodes=1)
    assert told["overall_success"] == 0 and told["mean_steps"] is None, told
    assert ", - steps to a goal" in call("eval", run, "--episodes", 1)
    for command, what, episodes in ("eval", "evaluating", 500), ("map", "playing", 100):
        lines = progress(what, command, run, "--episodes", episodes, "--threads", 1)
        for line in lines:
            assert re.fullmatch(what + r" \d+/\d+ steps \(\d+%\)  [\d.]+ steps/s  ETA [\d:]+", line), lines
        done, most = map(int, lines[-1].split()[1].split("/"))
        assert 0 < done < most <= 5 * episodes * 1000, lines


def several(folder, data):
    """Runs side by side, two seeds and another method: each is played, then one table."""
    many, empty = os.path.join(folder, "several"), os.path.join(folder, "empty")
    common = ["--env", "pointmaze-medium-navigate-v0", "--data", data, "--hidden", "8,8", "--batch", 8, "--steps", 20]
    call("train", *common, "--agent", "iql", "--seed", "0-1", "--out", os.path.join(many, "iql"))
    call("train", *common, "--agent", "bc", "--out", os.path.join(many, "bc"))
    told = json.loads(call("eval", many, "--episodes", 2, "--json"))
    assert [r["episodes"] for r in told["runs"]] == [10] * 3, told
    table = {row["agent"]: row for row in told["table"]}
    assert table["iql"]["seeds"] == 2 and table["bc"]["seeds"] == 1 and table["bc"]["over"] == "episodes", table
    assert table["bc"]["published"] == 9 and table["iql"]["published"] == 53 and table["bc"]["transitions"] == 40 * 1000, table
    assert abs(table["bc"]["success"] - 100 * told["runs"][0]["overall_success"]) < 1e-3
    assert table["iql"]["steps"] == 20 and "OGBench" in table["iql"]["source"]
    text = call("eval", os.path.join(many, "iql"), os.path.join(many, "bc"), "--episodes", 2)
    assert text.count(" at step 20: ") == 3 and re.search(r"\n  iql .* 53 \+- 8 ", text), text
    assert "leave no row" in call("eval", many, "--samples", 2, code=2)
    assert "no checkpoint of step 7" in call("eval", many, "--step", 7, code=2)
    os.mkdir(empty)
    assert "no run in" in call("eval", empty, code=1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        data, run = os.path.join(folder, "data.npz"), os.path.join(folder, "run")
        call("gen", "pointmaze-medium-navigate", "-o", data, "--episodes", 40)
        common = ["--data", data, "--hidden", "32,32", "--batch", 64, "--steps", 600, "--save-every", 300]
        call("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", *common, "--out", run)
        config = json.load(open(os.path.join(run, "config.json")))
        assert config["rep"] == [0, 2], config  # the name says where the goal lies
        one, two = score(run, episodes=3, threads=1), score(run, episodes=3, threads=2)
        assert same(one, two), (one, two)
        assert 0 <= one["overall_success"] <= 1 and len(one["task_success"]) == 5 and one["episodes"] == 15
        assert abs(one["overall_success"] - sum(one["task_success"]) / 5) < 1e-5
        assert same(one, score(run, episodes=3, threads=2, seed=0))
        score(run, episodes=2, step=300)
        rows = open(os.path.join(run, "eval.csv")).read().splitlines()
        assert rows[0].startswith("step,overall_success,task1_success") and [r.split(",")[0] for r in rows[1:]] == ["300", "600"], rows
        assert "policy=rejection" in call("eval", run, "--samples", 3, code=2)
        assert "policies that are flows" in call("eval", run, "--flow-steps", 3, code=2)
        assert "fp32 only" in call("eval", run, "--precision", "tf32", code=2)
        assert "no checkpoint of step 7" in call("eval", run, "--step", 7, code=2)
        several(folder, data)
        together(folder, data)
        flow(folder, data)
        giant(folder)
        # A policy that was trained on whole observations does not fit the xy goals of another name.
        lock = os.path.join(folder, "lock")
        call("train", "--env", "lock-32", "--hidden", "8,8", "--batch", 8, "--steps", 2, "--out", lock)
        assert "dcrl: " in call("eval", lock, code=2)
    print("1 passed, 0 failed")


main()
