"""`dcrl report`: the page through a real HTML parser, the numbers against numpy, and damaged runs.

Runs are real where they can be (a small lock sweep, a small training run) and written by hand where the
evaluator's file is needed: eval.csv with success between 0 and 1.
"""

import base64
import csv
import io
import json
import os
import random
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, Scratch, bad, good, run_tests

VOID = {"meta", "br", "img"}
HOSTILE = '<script>alert("x")</script> & \'quoted\' | `a` *b* ü'
TASKS = [f"task{t}_success" for t in range(1, 6)]
scratch = None


class Page(HTMLParser):
    """Checks nesting and what may stand in the page; keeps its text, ids and figures."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.labels, self.images = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert tag not in ("script", "link", "iframe", "object", "base", "form"), tag
        for name, value in attrs.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "srcset", "action", "data"):
                assert value.startswith("data:image/svg+xml;base64,"), (tag, value[:80])
                self.images.append(base64.b64decode(value.split(",", 1)[1], validate=True))
        if attrs.get("role") == "img" and tag == "div":
            assert attrs.get("aria-label"), "a figure without words"
            self.labels.append(attrs["aria-label"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-4:])
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)

    def words(self):
        return " ".join(" ".join(self.text).split())


def page_of(*runs, more=()):
    out = scratch.at("page.html")
    good("report", *runs, "-o", out, *more)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n")
    without = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|@import", without), "the page refers to something outside"
    return Page(text), text


def make_run(folder, env, agent, seed, evals, prefix="", **options):
    """A run folder: `evals` is (rows, tasks) of success fractions, or None for a run without eval.csv."""
    os.makedirs(folder)
    config = {"agent": agent, "env": env, "data": "", "steps": 1000, "seed": seed, "n": 0, "order": "up", **options}
    config.update(data_hash=f"{seed:016x}", build="0.1.0-test")
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "train.csv"), "w") as file:
        file.write("step,loss_dc,grad_norm\n")
        file.writelines(f"{i * 10},{1 / i:.6g},{1 + seed}\n" for i in range(1, 51))
    with open(os.path.join(folder, "timing.csv"), "w") as file:
        file.write("step,seconds,steps_per_second\n100,1.0,100.0\n200,2.0,110.0\n300,9.0,12.5\n")
    if evals is not None:
        with open(os.path.join(folder, "eval.csv"), "w") as file:
            names = ["overall_success"] + TASKS[: evals.shape[1]]
            file.write(",".join(["step"] + [prefix + name for name in names] + ["episodes", "seed"]) + "\n")
            for i, row in enumerate(evals):
                cells = [repr(float(x)) for x in (row.mean(), *row)]
                file.write(",".join([str(100 * (i + 1)), *cells, "75", str(seed)]) + "\n")
    open(os.path.join(folder, "DONE"), "w").close()
    return folder


def fresh(*names):
    path = scratch.at(*names)
    shutil.rmtree(path, ignore_errors=True)
    return path


def scores(*runs):
    rows = list(csv.DictReader(io.StringIO(good("report", *runs, "--format", "csv", "-o", "-"))))
    return {(row["env"], row["agent"], row["metric"]): row for row in rows}


def legends(text):
    """Name, colour and dashes of every entry in a figure's legend, and of every row of a table that has a key."""
    entry = r'stroke="(#\w+)" stroke-width="2"( stroke-dasharray="[\d ]+")?/>\n<(?:circle|path)[^>]*fill="(#\w+)"[^>]*/>\n'
    found = re.findall(entry + r'(?:</svg>|<text[^>]*>)([^<]+)<', text)
    assert all(line == fill for line, _, fill, _ in found)
    return [(name, line, dashes) for line, dashes, _, name in found]


# --- numpy's side ---


def philox(seed, stream, step, index):
    """First word of Philox4x32-10, vectorised over step and index."""
    step, index = np.broadcast_arrays(np.uint64(step), np.uint64(index))
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = index & low, step & low, step >> np.uint64(32), np.full_like(index, stream)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c2 = (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & low, p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0


def iqm(values, axis=-1):
    values = np.sort(values, axis=axis)
    cut = values.shape[axis] // 4
    return np.take(values, range(cut, values.shape[axis] - cut), axis=axis).mean(axis=axis)


def interval(values, choose):
    """95 % of the IQM of (seeds, tasks) when `choose` (resamples, tasks, seeds) says which seeds were drawn."""
    tasks = np.arange(values.shape[1])[None, :, None]
    draws = values[choose, tasks].reshape(len(choose), -1)
    return np.percentile(iqm(draws), [2.5, 97.5])


def bootstrap(values, resamples=10000):
    seeds, tasks = values.shape
    words = philox(0, 32, np.arange(resamples)[:, None], np.arange(seeds * tasks)[None])
    choose = (words * np.uint64(seeds) >> np.uint64(32)).astype(int).reshape(resamples, tasks, seeds)
    theirs = np.random.default_rng(random.randrange(1 << 30)).integers(0, seeds, choose.shape)
    return interval(values, choose), interval(values, theirs)


def close(text, value):
    assert abs(float(text) - value) <= 1e-9 * max(1, abs(value)), (text, value)


def test_numbers_equal_numpy():
    rng = np.random.default_rng(random.randrange(1 << 30))
    folder = fresh("numbers")
    evals = {s: rng.integers(0, 16, (7, 5)) / 15 for s in range(4)}
    for s, x in evals.items():
        make_run(os.path.join(folder, f"a{s}"), "maze-v0", "dcrl", s, x, prefix="evaluation/" if s % 2 else "")
    table = scores(folder)
    values = 100 * np.stack([x[-3:].mean(axis=0) for x in evals.values()])
    for t, name in enumerate(TASKS):
        row = table["maze-v0", "dcrl", name]
        close(row["mean"], values[:, t].mean())
        close(row["sd"], values[:, t].std(ddof=1))
        close(row["iqm"], iqm(values[:, t]))
    row = table["maze-v0", "dcrl", "overall_success"]
    close(row["mean"], values.mean())
    close(row["sd"], values.mean(axis=1).std(ddof=1))
    close(row["iqm"], iqm(values.reshape(-1)))
    ours, theirs = bootstrap(values)
    close(row["iqm_low"], ours[0])
    close(row["iqm_high"], ours[1])
    assert np.abs(ours - theirs).max() < 0.1 * (theirs[1] - theirs[0]), (ours, theirs)
    assert row["seeds"] == "4" and row["paper_mean"] == ""
    close(table["maze-v0", "dcrl", "steps_per_second"]["mean"], 100)
    markdown = good("report", folder, "--format", "md", "-o", "-")
    assert f"**{values.mean():.1f} ± {values.mean(axis=1).std(ddof=1):.1f}**" in markdown, markdown
    page, _ = page_of(folder)
    assert f"{values.mean():.1f} ± {values.mean(axis=1).std(ddof=1):.1f}" in page.words()


def test_groups_and_paper():
    folder = fresh("groups")
    x = np.full((3, 5), 0.8)
    for s in range(2):
        make_run(os.path.join(folder, f"a{s}"), "humanoidmaze-giant-navigate-oraclerep-v0", "dcrl", s, x)
        make_run(os.path.join(folder, f"b{s}"), "humanoidmaze-giant-navigate-oraclerep-v0", "dcrl", s, x, order="down")
        make_run(os.path.join(folder, f"c{s}"), "humanoidmaze-giant-navigate-oraclerep-v0", "dcrl", s, x, n=8)
        make_run(os.path.join(folder, f"d{s}"), "humanoidmaze-medium-navigate-oraclerep-v0", "dcrl", s, x[:1])
    table = scores(folder)
    env = "humanoidmaze-giant-navigate-oraclerep-v0"
    assert table[env, "dcrl", "overall_success"]["paper_mean"] == "93"
    assert table[env, "dcrl", "task1_success"]["paper_mean"] == "91"
    assert table[env, "dcrl:order=down", "overall_success"]["paper_mean"] == "18"
    assert table[env, "dcrl:n=8", "overall_success"]["paper_mean"] == ""
    assert table["humanoidmaze-medium-navigate-oraclerep-v0", "dcrl", "overall_success"]["paper_mean"] == ""
    # How the policy is extracted is a setting of the environment: the label tells it, the paper's figure stays.
    rejected = make_run(os.path.join(folder, "e"), env, "dcrl", 0, x, policy="none")
    assert scores(rejected)[env, "dcrl:policy=none", "overall_success"]["paper_mean"] == "93"
    shutil.rmtree(rejected)
    page, _ = page_of(folder)
    for text in ("93 ± 3", "1B transitions", "Some run has only 1 evaluation", "for seed in 0 1; do dcrl train"):
        assert text in page.words(), text
    # A variant alone is still no plain dcrl.
    alone = scores(*(os.path.join(folder, f"b{s}") for s in range(2)))
    assert (env, "dcrl:order=down", "overall_success") in alone
    twin = make_run(os.path.join(folder, "again"), env, "dcrl", 0, x)
    bad(1, ["again", "same run"], "report", folder, "-o", "-")
    shutil.rmtree(twin)
    assert scores(folder, os.path.join(folder, "a0"), folder + "//") == table  # one folder, many names


def test_paper_file():
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "configs", "paper.json")) as file:
        paper = json.load(file)
    methods, rows, figures = set(), set(), 0
    for table in paper["tables"]:
        assert table["goals"] in ("plain", "oraclerep") and table["source"] and re.fullmatch(r"\d+[kM]", table["steps"]), table
        for row in table["rows"]:
            key = table["source"], row["env"]
            assert key not in rows and row["data"], key
            rows.add(key)
            for method, figure in row["figures"].items():
                tasks = figure if isinstance(figure, dict) else {"overall": figure}
                assert all(len(v) <= 2 and 0 <= v[0] <= 100 and 0 <= v[-1] <= 100 for v in tasks.values()), (key, method)
                means = [tasks[f"task{t}"][0] for t in range(1, 6) if f"task{t}" in tasks]
                # The paper's own rows agree to rounding, but for this one.
                odd = row["env"] == "cube-quadruple-play" and method == "td-n"
                assert not means or abs(sum(means) / 5 - tasks["overall"][0]) <= 1.01 or odd, (row["env"], method)
                methods.add(method)
                figures += 1
            if "benchmark" in table["source"]:  # OGBench's table: all of its methods on each data set
                assert list(row["figures"]) == ["bc", "gcivl", "iql", "qrl", "crl", "hiql"], row
    assert len(rows) == 5 + 1 + 1 + 54 and figures == 5 * 14 + 5 + 8 + 54 * 6 and "hbc" in methods
    assert '"tables"' not in good("list", "presets", "--json")


def wilson(part, count, z=1.959963984540054):
    middle, half = part + z * z / 2 / count, z * np.sqrt(part * (1 - part) / count + (z / 2 / count) ** 2)
    return 100 * max(0, (middle - half) / (1 + z * z / count)), 100 * min(1, (middle + half) / (1 + z * z / count))


def test_compare():
    """Methods on tasks: intervals by hand, published figures of the same goals alone, marks where they lie outside."""
    folder, rng = fresh("compare"), np.random.default_rng(7)
    medium, puzzle = "pointmaze-medium-navigate-v0", "puzzle-3x3-play-v0"
    three = [np.clip(rng.normal(mean, 0.02, (4, 5)), 0, 1) for mean in (0.50, 0.53, 0.56)]
    for s, x in enumerate(three):
        make_run(os.path.join(folder, f"iql{s}"), medium, "iql", s, x, transitions=1_000_000)
    for s in range(2):  # seeds that agree
        make_run(os.path.join(folder, f"qrl{s}"), medium, "qrl", s, np.full((3, 5), 0.2), transitions=1_000_000)
    make_run(os.path.join(folder, "hiql"), medium, "hiql", 0, np.full((3, 5), 0.9), transitions=500_000)
    make_run(os.path.join(folder, "oracle"), medium.replace("-v0", "-oraclerep-v0"), "iql", 0, np.full((3, 5), 0.9))
    make_run(os.path.join(folder, "puzzle"), puzzle, "iql", 0, np.full((2, 5), 0.96))
    make_run(os.path.join(folder, "giant"), "humanoidmaze-giant-navigate-v0", "dcrl", 0, np.full((3, 5), 0.9))
    make_run(os.path.join(folder, "100m"), "cube-quadruple-play-100m-oraclerep-v0", "hiql", 0, np.full((3, 5), 0.6))
    table = {key: row for key, row in scores(folder).items() if key[2] == "overall_success"}
    row = table[medium, "iql", "overall_success"]
    means = 100 * np.array([x[-3:].mean() for x in three])
    half = 4.302652730 * means.std(ddof=1) / np.sqrt(3)
    assert abs(float(row["low"]) - (means.mean() - half)) < 1e-6 and abs(float(row["high"]) - (means.mean() + half)) < 1e-6
    assert row["over"] == "seeds" and row["beyond"] == "no" and row["paper_mean"] == "53" and row["paper_data"] == "1M"
    assert row["steps"] == "400" and row["transitions"] == "1000000" and row["paper_source"] == "OGBench's benchmark table"
    for agent, part, episodes, beyond in (("qrl", 0.2, 450, "below"), ("hiql", 0.9, 225, "above")):
        row = table[medium, agent, "overall_success"]
        low, high = wilson(part, episodes)
        assert row["over"] == "episodes" and abs(float(row["low"]) - low) < 1e-6 and abs(float(row["high"]) - high) < 1e-6, row
        assert row["beyond"] == beyond, row
    # Two evaluations of 75 episodes; the published 95 lies inside.
    row = table[puzzle, "iql", "overall_success"]
    assert abs(float(row["low"]) - wilson(0.96, 150)[0]) < 1e-6 and row["beyond"] == "no" and row["transitions"] == "", row
    # Kinds of goals do not mix: the paper's figures are of oraclerep, OGBench's of whole observations.
    for env, agent in ((medium.replace("-v0", "-oraclerep-v0"), "iql"), ("humanoidmaze-giant-navigate-v0", "dcrl")):
        assert table[env, agent, "overall_success"]["paper_mean"] == table[env, agent, "overall_success"]["beyond"] == ""
    assert table["cube-quadruple-play-100m-oraclerep-v0", "hiql", "overall_success"]["paper_mean"] == "62"
    page, _ = page_of(folder)
    words = page.words()
    for part in ("Methods and tasks", "published 82 ± 5 ▼ -62.0", "90.0 published 79 ± 5 1 seed", "iql, oraclerep", "published 53 ± 8 3 seeds",
                 "1 seed, 300 steps, data 500k", "OGBench's benchmark table; data of 1M, 1M steps"):
        assert part in words, part
    assert "published 93" not in words
    markdown = good("report", folder, "--format", "md", "-o", "-")
    assert "| 20.0 [16.6, 23.9]<br>published 82 ± 5 ▼ -62.0<br>2 seeds, 300 steps, data 1M" in markdown, markdown
    assert "| **90.0**<br>published 79 ± 5<br>1 seed" in markdown and "**20.0" not in markdown and "**5" not in markdown, markdown
    text = good("report", folder)
    assert text.isascii() and re.search(r"\n  qrl +20\.0 +\[16\.6, 23\.9\] episodes +82 \+- 5 +-62\.0 \* +2 +300 +1M\n", text), text
    assert max(map(len, text.splitlines())) < 120
    told = json.loads(good("report", folder, "-o", scratch.at("compare.html"), "--json"))
    assert told["file"] == scratch.at("compare.html") and os.path.isfile(told["file"]) and told["runs"] == 10 and told["groups"] == 7, told
    of = {(row["env"], row["agent"]): row for row in told["table"]}
    assert abs(of[medium, "qrl"]["success"] - 20) < 1e-9 and of[medium, "qrl"]["over"] == "episodes" and of[medium, "iql"]["over"] == "seeds"
    assert good("report", folder, "-o", scratch.at("compare.csv"), "--quiet") == ""
    # A single method on a single task has nothing to be set side by side with.
    assert "Methods and tasks" not in page_of(os.path.join(folder, "hiql"))[0].words()


def test_preset_is_no_variant():
    """What an environment's preset says is a setting of that environment: published figures are of it."""
    folder = fresh("usual")
    x = np.full((3, 5), 0.9)
    long = {"actor_layernorm": True, "goal_law": "uniform", "policy": "ddpgbc", "kappa": 0.9}
    env = "puzzle-4x5-play-oraclerep-v0"
    one = make_run(os.path.join(folder, "a"), env, "iql", 0, x, **long)
    assert scores(one)[env, "iql", "overall_success"]["paper_mean"] == "20"
    other = make_run(os.path.join(folder, "b"), "antmaze-large-navigate-oraclerep-v0", "iql", 0, x, **long)
    assert ("antmaze-large-navigate-oraclerep-v0", "iql:actor_layernorm=on:goal_law=uniform", "overall_success") in scores(other)


def test_lock_and_train():
    sweep, run = fresh("sweep"), fresh("run")
    good("lock", "--agent", "dcrl,dcrl:recursion=off,td-n", "--horizon", "16,32", "--n", 4, "--hidden", "16,16",
         "--batch", 32, "--steps", 200, "--seed", "0-1", "--out", sweep)
    good("train", *SMALL, "--steps", 60, "--log-every", 20, "--out", run)
    page, text = page_of(sweep, run)
    words = page.words()
    for part in ("accumulated error A(H)", "dcrl:recursion=off", "dcrl lock --agent td-n --horizon 32 --seed 0,1",
                 "steps per second", "loss_prop", "lock-64", "13 runs on 3 environments"):
        assert part in words, part
    assert "�" not in text
    # One colour and one marker for a method in all figures, keys of tables included; lines and dots of held-out rows as well.
    style = {}
    for name, colour, line in legends(text):
        assert style.setdefault(name, (colour, line)) == (colour, line), (name, style)
    assert len(style) == len(set(style.values())) == 3 and len(legends(text)) > 6, style
    table = scores(sweep, run)
    with open(os.path.join(sweep, "td-n-H32-s0", "result.json")) as one, open(
        os.path.join(sweep, "td-n-H32-s1", "result.json")
    ) as two:
        pair = [json.load(file)["accumulated_error"] for file in (one, two)]
    close(table["lock-32", "td-n", "accumulated_error"]["mean"], np.mean(pair))
    close(table["lock-32", "td-n", "accumulated_error"]["sd"], np.std(pair, ddof=1))
    # The command on the page gives the same run.
    command = re.search(r"dcrl train --env lock-64[^�]*?--out \S+", words).group(0).split()
    again = fresh("again")
    command[-1] = again
    good(*command[1:])
    for name in ("train.csv",):
        with open(os.path.join(run, name)) as old, open(os.path.join(again, name)) as new:
            assert old.read() == new.read()
    svg = ET.fromstring(good("report", sweep, "--format", "svg", "-o", "-"))
    assert svg.tag.endswith("svg") and "loss_dc" in "".join(svg.itertext())


def test_curves():
    """From step 0, overall and by task; words of seeds only where there are some; the run's name and steps."""
    folder = fresh("curves")
    x = np.array([[0.2, 0.4, 0.6, 0.8, 1.0]] * 3)
    one = make_run(os.path.join(folder, "mine"), "maze-v0", "dcrl", 0, x)
    page, text = page_of(one)
    words = page.words()
    assert "maze-v0, each task" in words and "mine · 300 steps" in words, words
    panels = [part for part in text.split("<figure>")[1:] if "against steps" in part]
    titles = [re.search("<figcaption>([^<]+)<", part).group(1) for part in panels]
    assert titles == ["maze-v0", "task1", "task2", "task3", "task4", "task5", "loss_dc", "grad_norm"], titles
    for part in panels:
        assert '<line x1="72" y1="276" x2="72" y2="281" stroke="#888"/>\n<text x="72" y="295" text-anchor="middle" fill="#555">0</text>' in part, part
    assert "Band" not in words and "IQM" not in words and "95 % interval" not in words
    # Each figure of a loss has its sentence, under it.
    assert "Error of a segment's value against the target composed from its two halves." in words
    make_run(os.path.join(folder, "other"), "maze-v0", "dcrl", 1, x)
    words = page_of(folder)[0].words()
    assert "Band" in words and "IQM" in words and "curves · 300 steps" in words, words
    svg = good("report", folder, "--format", "svg", "-o", "-")
    assert "prefers-color-scheme: dark" in svg and text.count("prefers-color-scheme: dark") == 2


def test_header():
    """Name, time over all goes, device, best and last evaluation as means over seeds, episodes of each."""
    folder = fresh("header")
    for s, x in enumerate(([0.2, 0.9, 0.4], [0.4, 0.7, 0.4])):
        run = make_run(os.path.join(folder, "ant", f"seed-{s}"), "maze-v0", "dcrl", s, np.tile(np.array(x)[:, None], 5),
                       device="cuda", arithmetic="NVIDIA <H200>")
    with open(os.path.join(run, "timing.csv"), "w") as file:  # resumed after 4000 s
        file.write("step,seconds,steps_per_second\n100,1500,1\n200,4000,1\n300,3500,1\n")
    page, text = page_of(folder)
    words = page.words()
    for part in ("dcrl report · ant ", "best evaluation, step 200 80.0 %", "last evaluation, step 300 40.0 %", "episodes each 75",
                 "device cuda (NVIDIA <H200>)", "training, longest run 2 h 5 min", "ant · 300 steps"):
        assert part in words, (part, words[-1500:])
    alone = page_of(run)[0].words()
    assert "best evaluation, step 200 70.0 %" in alone and "training 2 h 5 min" in alone and " 1 runs" not in alone, alone[-1500:]
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("held.npz"), "--episodes", 6)
    good("train", "--data", scratch.at("held.npz"), "--val", scratch.at("held.npz"), "--hidden", 8, "--batch", 8, "--steps", 20,
         "--log-every", 10, "--out", fresh("held"))
    with open(scratch.at("held", "train.csv")) as file:
        errors = [float(row["val_value_error"]) for row in csv.DictReader(file)]
    words = page_of(scratch.at("held"))[0].words()
    assert f"last held-out error, step 20 {errors[-1]:.1f} steps" in words and f" {min(errors):.1f} steps" in words, words[-1500:]


def test_throughput():
    """Seeds that train together share a process: its rate is what a machine does."""
    out = fresh("together")
    good("train", *SMALL, "--steps", 40, "--log-every", 20, "--seed", "0-2", "--out", out)
    rates = []
    for s in range(3):
        with open(os.path.join(out, f"seed-{s}", "timing.csv")) as file:
            rows = list(csv.DictReader(file))
        assert [row["together"] for row in rows] == ["3", "3"], rows
        rates.append(np.median([3 * float(row["steps_per_second"]) for row in rows]))
    assert abs(float(next(iter(scores(out).values()))["mean"]) - np.mean(rates)) < 1e-6 * np.mean(rates)
    # A run of an earlier program goes on with the columns that it has.
    old = os.path.join(out, "seed-1", "timing.csv")
    with open(old, "w") as file:
        file.write("step,seconds,steps_per_second\n20,1.000,20.0\n40,2.000,20.0\n")
    good("train", "--resume", os.path.join(out, "seed-1"), "--steps", 60)
    with open(old) as file:
        lines = file.read().splitlines()
    assert lines[:3] == ["step,seconds,steps_per_second", "20,1.000,20.0", "40,2.000,20.0"] and len(lines) == 4 and lines[3].count(",") == 2
    assert not [name for name in os.listdir(os.path.join(out, "seed-1")) if ".kept" in name]


def test_sentences():
    """Whatever a method logs has a sentence on the page."""
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("small.npz"), "--episodes", 6)
    folder, seen = fresh("sentences"), set()
    kinds = [["--agent", a["name"]] for a in json.loads(good("list", "agents", "--json"))["agents"]]
    kinds += [["--agent", "iql", "--set", "policy=rejection"], ["--agent", "iql", "--set", "policy=awr"],
              ["--agent", "tdp", "--set", "far=pairs"]]
    for k, words in enumerate(kinds):
        run = os.path.join(folder, str(k))
        good("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", scratch.at("small.npz"), *words, "--hidden", 8,
             "--batch", 8, "--steps", 2, "--log-every", 1, "--out", run)
        with open(os.path.join(run, "train.csv")) as file:
            seen |= set(file.readline().strip().split(",")) - {"step"}
    _, text = page_of(folder)
    told = set(re.findall(r"<figcaption>([^<]+)</figcaption><p>[^<]+</p>", text))
    assert seen == told and len(seen) > 15, seen ^ told


def test_same_bytes():
    folder = fresh("bytes")
    rng = np.random.default_rng(3)
    for s in range(3):
        make_run(os.path.join(folder, f"a{s}"), "maze-v0", "dcrl", s, rng.random((4, 5)))
    for form in ("html", "svg", "csv", "md"):
        first = good("report", folder, "--format", form, "-o", "-")
        assert first == good("report", folder, "--format", form, "-o", "-")
        out = scratch.at("by-name." + form)
        assert "3 runs in 1 group" in good("report", folder, "-o", out)
        with open(out) as file:
            assert file.read() == first, form
    locale = {**os.environ, "LC_ALL": "de_DE.UTF-8"}
    assert good("report", folder, "-o", "-", env=locale) == good("report", folder, "-o", "-")


def test_hostile_names():
    folder = fresh("<i>runs & co")
    x = np.full((2, 5), 0.5)
    one = make_run(os.path.join(folder, "a"), HOSTILE, "dcrl", 0, x, order=HOSTILE)
    make_run(os.path.join(folder, "b"), HOSTILE, HOSTILE, 0, x, data=HOSTILE, extra=["1", HOSTILE, None], deep={"a": {}})
    with open(os.path.join(one, "map-<b>x.svg"), "w") as file:
        file.write("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    with open(os.path.join(one, "train.csv"), "w") as file:
        file.write('step,<b>"loss"\n1,2\n2,3\n')
    page, text = page_of(folder, more=["--title", HOSTILE])
    assert "<script" not in text and "<i>runs" not in text and "<b>" not in text
    assert HOSTILE in page.words() and page.images and b"alert(1)" in page.images[0]
    table = good("report", folder, "--format", "csv", "-o", "-")
    assert {row["env"] for row in csv.DictReader(io.StringIO(table))} == {HOSTILE}
    markdown = good("report", folder, "--format", "md", "-o", "-")
    assert "<script" not in markdown
    for part in markdown.split("\n\n"):
        assert not part.startswith("|") or len({line.count("|") for line in part.splitlines()}) == 1, part
    svg = ET.fromstring(good("report", folder, "--format", "svg", "-o", "-"))
    assert "success (%)" in "".join(svg.itertext()) and "loss" not in "".join(svg.itertext())


def test_missing_files():
    folder = fresh("missing")
    x = np.full((3, 5), 0.5)
    for s, gone in enumerate((["train.csv"], ["timing.csv", "DONE"], ["eval.csv"], ["train.csv", "timing.csv", "eval.csv"])):
        run = make_run(os.path.join(folder, f"a{s}"), "maze-v0", "dcrl", s, x)
        for name in gone:
            os.remove(os.path.join(run, name))
    page, _ = page_of(folder)
    assert "still training 1" in " ".join(page.words().split()) or "1 still training" in page.words()
    assert scores(folder)["maze-v0", "dcrl", "overall_success"]["seeds"] == "2"
    last = os.path.join(folder, "a3")
    page, _ = page_of(last)
    assert "±" not in page.words(), "one seed has no deviation"
    assert "1 run trained, none evaluated yet." in page.words()
    bad(1, "no curves", "report", last, "-o", scratch.at("x.svg"))
    with open(os.path.join(last, "eval.csv"), "w") as file:  # a header alone: not evaluated yet
        file.write("step,overall_success\n")
    page_of(last)


def test_damaged_files():
    folder = fresh("damaged")
    run = make_run(os.path.join(folder, "a"), "maze-v0", "dcrl", 0, np.full((3, 5), 0.5))
    cases = {
        "config.json": [("{", "at line 1"), ("[]", "config.json:1:"), ('{"env": "a", "agent": "b"}', "seed"), ("", "config.json")],
        "train.csv": [("", "train.csv:1:"), ("a,b\n1,2\n", "'step'"), ("step,x\n1,2\n3\n", "train.csv:3:"),
                      ("step,x\n1,2,3\n", "train.csv:2:"), ("step,x\n1,zwei\n", "column 2 (x)"), ("step,x\n1,2", "was cut"),
                      ("step,x\n2,1\n2,1\n", "train.csv:3: steps must rise"), ("step,step\n1,2\n", "same name"),
                      ("step,\xff\n", "train.csv:1:"), ("step" + ",x" * 300 + "\n", "train.csv:1:"), ("step,x\n\n1,2\n", "train.csv:2:"),
                      ("step,x\nnan,1\n", "train.csv:2:"), ("step,x\n1,1e999\n", "train.csv:2:"), ("step,x\n1,0x1p3\n", "train.csv:2:")],
        "eval.csv": [("step,task1_success\n1,0.5\n", "overall_success"), ("step,overall_success\n1,1.5\n", "eval.csv:2:"),
                     ("step,overall_success\n1,nan\n", "between 0 and 1"), ("step,overall_success\n1,-0.1\n", "eval.csv:2:")],
        "result.json": [("{}", "result.json"), ("null", "result.json"), ("{\n  x", "at line 2")],
    }
    for name, texts in cases.items():
        path = os.path.join(run, name)
        before = open(path, "rb").read() if os.path.exists(path) else None
        for text, part in texts:
            with open(path, "wb") as file:
                file.write(text.encode("latin-1"))
            bad(1, [part, name], "report", folder, "-o", scratch.at("never.html"))
        if before is None:
            os.remove(path)
        else:
            with open(path, "wb") as file:
                file.write(before)
    # Any cut or flip of a log either reads or is one line.
    path = os.path.join(run, "eval.csv")
    whole = open(path, "rb").read()
    for _ in range(60):
        damaged = bytearray(whole[: random.randrange(len(whole))]) if random.random() < 0.5 else bytearray(whole)
        if damaged:
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        with open(path, "wb") as file:
            file.write(damaged)
        try:
            good("report", folder, "-o", "-", "--format", "md")
        except AssertionError:
            bad(1, "eval.csv", "report", folder, "-o", "-", "--format", "md")
    assert not os.path.exists(scratch.at("never.html"))


def test_usage():
    empty = fresh("empty")
    os.makedirs(empty)
    bad(2, "run folder is missing", "report", "-o", "x.html")
    bad(1, ["no run in", empty], "report", empty)
    bad(2, "format", "report", empty, "-o", "x", "--format", "pdf")
    bad(2, "unknown", "report", empty, "-o", "x", "--colour")
    bad(1, ["no run in", empty], "report", empty, "-o", "x.html")
    bad(1, "cannot open", "report", scratch.at("nowhere"), "-o", "x.html")
    bad(1, "cannot open", "report", __file__, "-o", "x.html")
    run = make_run(fresh("one"), "maze-v0", "dcrl", 0, None)
    bad(1, "nowhere", "report", run, "-o", scratch.at("nowhere", "x.html"))
    bad(1, "no run has been evaluated", "report", run)
    assert "usage: dcrl report" in good("report", "--help")


if __name__ == "__main__":
    with Scratch("report") as scratch:
        run_tests(globals())
