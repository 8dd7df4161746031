"""Evaluation on the way: eval.csv is a function of config and seed, however often a run was stopped or killed.

A small pointmaze run evaluates every 60 steps, which is neither a multiple nor a divisor of the saves. Rows are compared
with what `dcrl eval` gives for the same checkpoint; stopped, killed and cut-back runs with one that nothing touched, byte
for byte. What cannot be evaluated is told before the run folder is made.
"""

import json
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, await_handler, bad, call, checkpoints, complaints, digest, digests, good, progress, run_tests, spawn  # noqa: E402
from drive import step_of  # noqa: E402

ENV = "pointmaze-medium-navigate-oraclerep-v0"
STEPS, EVERY = 200, 60
WANT = [60, 120, 180, 200]


def flags(*more):
    return ["train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", "64,64", "--batch", 128, "--steps", STEPS,
            "--save-every", 50, "--log-every", 40, "--eval-every", EVERY, "--eval-episodes", 1, *more]


def rows(run):
    with open(os.path.join(run, "eval.csv")) as file:
        head, *lines = file.read().splitlines()
    assert head.startswith("step,overall_success,task1_success"), head
    return [int(line.split(",")[0]) for line in lines]


def both(run):
    return digests(run), digest(os.path.join(run, "eval.csv"))


def test_rows_equal_eval():
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 20)
    run = scratch.at("unbroken")
    out = good(*flags("--out", run))
    assert [int(line.split()[1][:-1]) for line in out.splitlines() if line.startswith("step ")] == WANT, out
    assert rows(run) == WANT
    # The newest saves stay (150, 180, 200), and as many evaluated ones (120, 180, 200).
    assert [step_of(path) for path in checkpoints(run)] == [120, 150, 180, 200]
    with open(os.path.join(run, "config.json")) as file:
        config = json.load(file)
    assert config["eval_every"] == EVERY and config["eval_episodes"] == 1
    before = digest(os.path.join(run, "eval.csv"))
    for step in (120, 200):
        good("eval", run, "--step", step, "--episodes", 1)
    assert digest(os.path.join(run, "eval.csv")) == before
    # Training is the same without.
    plain = scratch.at("plain")
    words = flags("--out", plain)
    at = words.index("--eval-every")
    good(*words[:at], *words[at + 4:])
    assert digests(plain) == digests(run) and not os.path.exists(os.path.join(plain, "eval.csv"))


def test_rejection():
    """A policy that draws candidates is played as config.json says, on the way as later."""
    run = scratch.at("rejection")
    more = ["--set", "policy=rejection", "--set", "samples=3", "--set", "flow_steps=2"]
    words = flags("--out", run, *more)
    words[words.index("--eval-every") + 1] = 200
    good(*words)
    before = digest(os.path.join(run, "eval.csv"))
    good("eval", run, "--episodes", 1)
    assert rows(run) == [200] and digest(os.path.join(run, "eval.csv")) == before


def test_clock():
    """Evaluations are not counted as training: here they are nearly all of the time."""
    run, start = scratch.at("clock"), time.time()
    good("train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", "8", "--batch", 4, "--steps", 40, "--log-every", 5,
         "--eval-every", 10, "--eval-episodes", 6, "--out", run)
    wall = time.time() - start
    with open(os.path.join(run, "timing.csv")) as file:
        table = [[float(x) for x in line.split(",")] for line in file.read().splitlines()[1:]]
    assert 0 < table[-1][1] < 0.3 * wall, (table, wall)
    assert all(b[1] >= a[1] for a, b in zip(table, table[1:]))


def test_one_line():
    """Training and a long evaluation take turns on the same line of a terminal."""
    words = flags("--out", scratch.at("long"), "--eval-episodes", 500, "--threads", 1)
    lines = progress("evaluating", *words)
    assert lines[-1].startswith("evaluating ") and " ETA " in lines[-1], lines
    assert all(line.startswith(("step ", "evaluating ")) for line in lines), lines


def test_cut_back():
    run = scratch.at("cut")
    shutil.copytree(scratch.at("unbroken"), run)
    want = both(run)
    for gone in ([200], [200, 180], [200, 180, 150]):
        for step in gone:
            path = os.path.join(run, f"step-{step:010d}.safetensors")
            if os.path.exists(path):
                os.remove(path)
        os.remove(os.path.join(run, "DONE"))
        good("train", "--resume", run)
        assert both(run) == want, gone
    # A checkpoint whose evaluation never came to its row; half a row; rows of steps that are still to come.
    path = os.path.join(run, "eval.csv")
    whole = open(path).read()
    lines = whole.splitlines(keepends=True)
    for damaged in ("".join(lines[:-1]), whole[:-9], whole + "900,1,1,1,1,1,1,5,0\n", "", lines[0]):
        with open(path, "w") as file:
            file.write(damaged)
        os.remove(os.path.join(run, "DONE"))
        good("train", "--resume", run)
        assert (damaged in ("", lines[0]) and rows(run) == [200]) or both(run) == want, damaged
        with open(path, "w") as file:
            file.write(whole)


def test_foreign_file():
    run = scratch.at("foreign")
    shutil.copytree(scratch.at("unbroken"), run)
    with open(os.path.join(run, "eval.csv"), "w") as file:
        file.write("step,evaluation/overall_success\n60,0.5\n")
    os.remove(os.path.join(run, "DONE"))
    for words in (["train", "--resume", run], ["eval", run, "--episodes", 1]):
        bad(1, ["eval.csv", "other columns", "move it away"], *words)
    assert rows_text(run) == "step,evaluation/overall_success\n60,0.5\n"


def rows_text(run):
    return open(os.path.join(run, "eval.csv")).read()


def finish(run):
    done = call("train", "--resume", run)
    assert done.returncode == 0 and not complaints(done.stderr), done
    assert not [name for name in os.listdir(run) if ".tmp." in name]


def test_stop_and_kill():
    want, stops, kills, killed_in_eval = both(scratch.at("unbroken")), 0, 0, 0
    start = time.time()
    good(*flags("--out", scratch.at("timed")))
    seconds = time.time() - start
    for number in range(80):  # a machine that became faster than it was just now is done before most of the signals
        if number >= 8 and stops and kills:
            break
        run = scratch.at(f"broken{number}")
        process = spawn(*flags("--out", run))
        await_handler(process)
        time.sleep(random.random() * seconds)
        process.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
        out, err = process.communicate(timeout=120)
        if not os.path.exists(os.path.join(run, "config.json")):
            shutil.rmtree(run, ignore_errors=True)
            good(*flags("--out", run))
        elif process.returncode:
            stops += process.returncode > 0
            kills += process.returncode < 0
            assert process.returncode < 0 or "stopped at step " in err, err
            steps = [step_of(path) for path in checkpoints(run)]
            last = rows(run)[-1:] if os.path.exists(os.path.join(run, "eval.csv")) else []
            killed_in_eval += bool(steps) and steps[-1] in WANT and last != [steps[-1]]
            finish(run)
        assert both(run) == want, number
    print(f"  {stops} stops, {kills} kills, {killed_in_eval} between a save and its row")
    assert stops and kills


def test_refused_before_training():
    lock, data, out = ["train", "--env", "lock-32"], scratch.at("data.npz"), scratch.at("never")
    more = ["--steps", 4, "--hidden", 8, "--batch", 8, "--eval-every", 2, "--out", out]
    bad(2, ["no tasks", "lock-32", "--eval-every"], *lock, *more)
    bad(2, ["no policy"], "train", "--env", ENV, "--data", data, "--set", "policy=none", *more)
    bad(2, ["no policy"], "train", "--env", ENV, "--data", data, "--form", "distance", *more)
    bad(1, ["antmaze-medium-v0", "29"], "train", "--env", "antmaze-medium-navigate-v0", "--data", data, *more)
    bad(1, ["goals"], "train", "--env", ENV, "--data", data, "--rep", "0,1", *more)
    bad(2, ["unknown environment"], "train", "--env", "pointmaze-tiny", "--data", data, *more)
    bad(2, ["--eval-episodes"], "train", "--env", ENV, "--data", data, "--eval-episodes", 0, *more)
    assert not os.path.exists(out)


def test_one_experiment():
    """How often a run was evaluated makes no other method of it."""
    more = scratch.at("more")
    words = flags("--seed", 1, "--out", more)
    words[words.index("--eval-every") + 1] = 100
    good(*words)
    text = good("report", scratch.at("unbroken"), more, "--format", "csv", "-o", "-")
    assert {line.split(",")[1] for line in text.splitlines()[1:]} == {"dcrl"}
    assert [line for line in text.splitlines() if ",overall_success," in line][0].split(",")[10] == "2", text


if __name__ == "__main__":
    with Scratch("evals") as scratch:
        run_tests(globals())
