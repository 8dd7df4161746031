"""Held-out rows: X-val.npz beside X.npz is found by itself and gives train.csv the columns val_*, which come from a computation
of its own: training has the same bytes with and without. The rows are the same whatever the seed, threads, stops and side-by-side
training; the value's error is what the definition says; memorised rows are told from others."""
import csv
import ctypes
import json
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, checkpoints, digest, digests, good, run_tests  # noqa: E402

STATES, OBS, ACT = 50, 3, 2
TRAIN = ["train", "--hidden", "16,8", "--batch", 32, "--steps", 40, "--log-every", 10]


def write(path, count, seed, obs=OBS, act=None, noise=0.0):
    """Walks along a line: a state is its place, so a distance can be learned."""
    rng = np.random.default_rng(seed)
    rows = count * STATES
    place = np.tile(np.arange(STATES) / STATES, count) * 2 - 1
    observations = np.stack([place] * obs, 1) + noise * rng.normal(size=(rows, obs))
    actions = rng.uniform(-0.9, 0.9, size=(rows, ACT)).astype("f4") if act is None else act
    np.savez(path, observations=observations.astype("f4"), actions=actions, terminals=np.arange(rows) % STATES == STATES - 1)
    return path


def log(run):
    with open(os.path.join(run, "train.csv")) as file:
        return list(csv.DictReader(file))


def config(run):
    with open(os.path.join(run, "config.json")) as file:
        return json.load(file)


def test_training_is_untouched():
    """Every agent, with and without: the same checkpoint, and the same columns but for those that are added."""
    with Scratch("held_out") as s:
        data = write(s.at("x.npz"), 8, 0)
        write(s.at("x-val.npz"), 4, 1)
        agents = [a["name"] for a in json.loads(good("list", "agents", "--json"))["agents"]]
        for agent in agents:
            words = [*TRAIN, "--agent", agent, "--data", data]
            more = ["--set", "n=5"] if agent in ("dcrl", "curriculum", "td-n", "trl-n") else []
            good(*words, *more, "--out", s.at("with"))
            good(*words, *more, "--out", s.at("without"), "--val", "off")
            a, b = log(s.at("with")), log(s.at("without"))
            assert digest(checkpoints(s.at("with"))[-1]) == digest(checkpoints(s.at("without"))[-1]), agent
            added = [k for k in a[0] if k.startswith("val_")]
            losses = [k for k in b[0] if k not in ("step", "grad_norm")]
            assert set(added) - {"val_value_error"} == {"val_" + k for k in losses}, (agent, added)
            assert [{k: r[k] for k in b[0]} for r in a] == b, agent
            assert all(np.isfinite(float(r[k])) for r in a for k in added), (agent, a[-1])
            assert config(s.at("with"))["val"] == os.path.realpath(s.at("x-val.npz")) and config(s.at("without"))["val"] == "off"
            for run in "with", "without":
                shutil.rmtree(s.at(run))


def test_same_rows():
    """Threads, a resume and other seeds beside it change nothing; two seeds are measured on the same rows."""
    with Scratch("held_out") as s:
        data = write(s.at("x.npz"), 8, 0)
        held = write(s.at("other.npz"), 4, 1)
        words = [*TRAIN, "--data", data, "--val", held, "--save-every", 10, "--keep", 0]
        good(*words, "--threads", 1, "--out", s.at("one"))
        good(*words, "--threads", 2, "--seed", "0,1", "--out", s.at("both"))
        assert digests(s.at("one")) == digests(s.at("both", "seed-0"))
        os.remove(s.at("one", "DONE"))
        for path in checkpoints(s.at("one"))[2:]:
            os.remove(path)
        good("train", "--resume", s.at("one"))
        assert digests(s.at("one")) == digests(s.at("both", "seed-0"))
        # Without any training (lr 0) two seeds differ by their weights alone, and a step by nothing.
        good(*words, "--lr", 0, "--tau", 0, "--out", s.at("still"))
        rows = log(s.at("still"))
        assert all({k: v for k, v in r.items() if k.startswith("val_")} == {k: v for k, v in rows[0].items() if k.startswith("val_")} for r in rows)
        # What a run began with it keeps, wherever its folder and data lie.
        os.mkdir(s.at("a"))
        write(s.at("a", "x.npz"), 8, 0), write(s.at("a", "x-val.npz"), 4, 1)
        good(*TRAIN, "--data", s.at("a", "x.npz"), "--out", s.at("a", "run"))
        good(*TRAIN, "--data", s.at("a", "x.npz"), "--val", "off", "--out", s.at("a", "none"))
        os.rename(s.at("a"), s.at("b"))
        bad(2, ["keeps its held-out rows"], "train", "--resume", s.at("b", "run"), "--steps", 60, "--val", "off")
        bad(2, ["keeps its held-out rows"], "train", "--resume", s.at("b", "none"), "--steps", 60, "--val", held)
        for name, columns in ("run", True), ("none", False):
            assert call("train", "--resume", s.at("b", name), "--steps", 60).returncode == 0
            assert len(log(s.at("b", name))) == 6 and ("val_value_error" in log(s.at("b", name))[-1]) == columns
            assert not os.path.exists(s.at("b", name, "train.csv.kept-1"))
        write(held, 4, 2)
        os.remove(s.at("one", "DONE"))
        os.remove(checkpoints(s.at("one"))[-1])
        bad(1, ["has changed"], "train", "--resume", s.at("one"))
        os.remove(held)
        bad(1, ["held-out data", "other.npz"], "train", "--resume", s.at("one"))


def test_it_tells():
    """A clone that learns actions by heart: its loss falls on what it sees and rises on what it does not; a value of places is
    right on both."""
    with Scratch("held_out") as s:
        for name, seed in ("x.npz", 0), ("x-val.npz", 1):
            write(s.at(name), 3, seed, obs=24, noise=1.0)
        good("train", "--agent", "bc", "--data", s.at("x.npz"), "--hidden", "64,64", "--batch", 64, "--lr", 3e-3, "--steps", 600, "--log-every", 100, "--out", s.at("run"))
        first, last = log(s.at("run"))[0], log(s.at("run"))[-1]
        assert float(last["loss_bc"]) < float(first["loss_bc"]) < float(first["val_loss_bc"]) < float(last["val_loss_bc"]), (first, last)
        write(s.at("line.npz"), 8, 0), write(s.at("line-val.npz"), 8, 1)
        told = good("train", "--agent", "td", "--data", s.at("line.npz"), "--hidden", "64,64", "--batch", 128, "--lr", 1e-3, "--gamma", 0.98,
                    "--steps", 1000, "--log-every", 50, "--out", s.at("walk"))
        errors = [float(r["val_value_error"]) for r in log(s.at("walk"))]
        print("  value error:", errors)
        assert errors[-1] < 4 and errors[-1] < errors[0] / 2, errors
        assert "held out" in told or not told.strip().count("\n"), told


def test_without_environment():
    """The page names the data where there is no environment, and draws held-out rows beside those of training; what cannot be
    done says what can."""
    with Scratch("held_out") as s:
        data = write(s.at("my robot.npz"), 8, 0)
        write(s.at("my robot-val.npz"), 4, 1)
        good(*TRAIN, "--data", data, "--seed", "0,1", "--out", s.at("runs"))
        good("report", s.at("runs"), "-o", s.at("page.html"))
        page = open(s.at("page.html")).read()
        assert "<title>dcrl on my robot.npz</title>" in page and "<h1>dcrl on my robot.npz</h1>" in page
        for text in ("dcrl, held out", "step on my robot.npz", "val_value_error", "without an environment", "docs/api.md", "<dt>data set</dt>"):
            assert text in page, text
        assert "loss_dc" in page and "val_loss_dc" not in page.split('id="options"')[0], "one panel for both"
        assert "would show what was learned" not in page
        good(*TRAIN, "--data", data, "--val", "off", "--out", s.at("bare"))
        good("report", s.at("bare"), "-o", s.at("bare.html"))
        assert "To measure what was learned, hold rows out: put X-val.npz beside X.npz" in open(s.at("bare.html")).read()
        assert " on <" not in page and "step on <" not in page
        # Methods side by side, by the last error of their distances.
        good(*TRAIN, "--agent", "td-n", "--data", data, "--out", s.at("other"))
        folders = [s.at("runs", "seed-0"), s.at("runs", "seed-1"), s.at("other")]
        ends = [float(log(folder)[-1]["val_value_error"]) for folder in folders]
        good("report", s.at("runs"), s.at("other"), "-o", s.at("two.html"))
        two = open(s.at("two.html")).read().split('id="held-out"')[1].split("</section>")[0]
        means = [sum(ends[:2]) / 2, ends[2]]
        assert [f">{m:.2f}" in two for m in means] == [True, True] and two.count("number best") == 1, (means, two)
        assert "<h1>2 agents on my robot.npz</h1>" in open(s.at("two.html")).read()
        recipes = open(s.at("two.html")).read().split('id="repeat"')[1]
        assert "<small>runs</small>" in recipes and "<small>other</small>" in recipes, recipes
        told = good("report", s.at("runs"), s.at("other"), "-o", "-", "--format", "csv")
        rows = [row for row in csv.DictReader(told.splitlines()) if row["metric"] == "val_value_error"]
        assert [abs(float(row["mean"]) - m) < 1e-6 for row, m in zip(rows, means)] == [True, True], (rows, means)
        assert f"| {means[1]:.2f} | 1 |" in good("report", s.at("runs"), s.at("other"), "-o", "-", "--format", "md").split("## Held-out rows")[1]
        lines = good("report", s.at("runs"), s.at("other")).splitlines()
        assert lines[0].split() == ["error", "sd", "seeds", "method"] and lines[1].endswith("2  dcrl on my robot.npz"), lines
        assert lines[2].split() == [f"{means[1]:.2f}", "-", "1", "td-n", "on", "my", "robot.npz"], lines
        write(s.at("third.npz"), 8, 2), write(s.at("third-val.npz"), 4, 3)
        good(*TRAIN, "--data", s.at("third.npz"), "--out", s.at("third"))
        good("report", s.at("runs"), s.at("third"), "-o", s.at("sets.html"))
        assert "<h1>3 runs on 2 data sets</h1>" in open(s.at("sets.html")).read()
        for command in "eval", "map", "render":
            bad(1, ["trained on data without an environment", "dcrl report RUN -o page.html", "docs/api.md"], command, s.at("runs", "seed-0"),
                *(["-o", s.at("a.gif")] if command == "render" else []))
        bad(1, ["no run has been evaluated", "-o page.html"], "report", s.at("bare"))
        bad(2, ["nothing to evaluate in without an environment", "--env"], *TRAIN, "--data", data, "--eval-every", 10, "--out", s.at("no"))


def test_stores_and_refusals():
    with Scratch("held_out") as s:
        data = write(s.at("x.npz"), 8, 0)
        write(s.at("x-val.npz"), 4, 1)
        good("data", "convert", data, s.at("d"))
        good("data", "convert", s.at("x-val.npz"), s.at("d-val"))
        good(*TRAIN, "--data", data, "--out", s.at("file"))
        good(*TRAIN, "--data", s.at("d") + "/", "--out", s.at("store"))
        assert digests(s.at("file")) == digests(s.at("store")) and config(s.at("store"))["val"].endswith("d-val")
        write(s.at("wide.npz"), 4, 1, obs=4)
        bad(1, ["held-out data", "wide.npz", "'obs' has another size", "--val off"], *TRAIN, "--data", data, "--val", s.at("wide.npz"), "--out", s.at("no"))
        bad(1, ["held-out data", "nowhere.npz"], *TRAIN, "--data", data, "--val", s.at("nowhere.npz"), "--out", s.at("no"))
        many, few = (write(s.at(name), 4, 0, act=np.arange(4 * STATES) % n) for name, n in (("many.npz", 5), ("few.npz", 3)))
        bad(1, ["held-out data", "there is an action 4, the run has 3"], *TRAIN, "--data", few, "--val", many, "--out", s.at("no"))
        good(*TRAIN, "--data", many, "--val", few, "--out", s.at("discrete"))
        # Scales are those of the training data.
        radians = np.random.default_rng(3).uniform(-3, 3, (8 * STATES, ACT)).astype("f4")
        write(s.at("rad.npz"), 8, 0, act=radians)
        write(s.at("rad-val.npz"), 4, 1, act=radians[: 4 * STATES] * 1.1)
        good(*TRAIN, "--data", s.at("rad.npz"), "--act-scale", "auto", "--obs-scale", "on", "--out", s.at("scaled"))
        assert np.isfinite([float(v) for r in log(s.at("scaled")) for v in r.values()]).all()
        assert not os.path.exists(s.at("no", "config.json"))


if __name__ == "__main__":
    run_tests(globals())
