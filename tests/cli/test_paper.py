"""dcrl paper: what it lists, tells before it begins, makes, goes on with, and refuses.

The experiments run at a scale of their own, tiny: 12 updates of networks of 8 on a small maze, so that a whole table takes
seconds. `make paper-smoke` runs every experiment at scale smoke.
"""

import csv
import html.parser
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import STOPPED, Scratch, await_handler, bad, digests, good, run_tests, sanitized, spawn  # noqa: E402

NAMES = ["long-horizon", "standard", "ogbench", "n-step", "accumulation", "strategies", "strategies-cube", "ablations", "targets", "kappa-dc", "kappa-prop",
         "slots", "value-map", "calvin", "calvin-pixels", "pixels"]
TINY = {"says": "as small as can be", "steps": 12, "seeds": 2, "batch": 8, "hidden": [8, 8], "evaluations": 2, "episodes": 1, "data": 200, "rows": 21,
        "values": {"n": [1, 25], "horizon": [16, 32]}, "lock": {"n": 4, "hidden": [8, 8], "batch": 8, "steps": 20},
        "instead": {"humanoidmaze-giant": "pointmaze-medium", "pointmaze-large": "pointmaze-medium", "scene": "pointmaze-medium"},
        "only": {"pixels": {"tasks": ["visual-cube-single"], "methods": ["hiql"], "steps": 2, "seeds": 1, "evaluations": 1}, "ablations": {"tasks": ["pointmaze-large", "scene"]}, "ogbench": {"tasks": ["pointmaze-medium"], "methods": ["qrl", "sharsa"]}, "strategies": {"methods": ["trl:lambda=0", "dcrl:order=down", "dcrl"]}}}


def write(scratch, scales, name="scales.json"):
    with open(scratch.at(name), "w") as file:
        file.write(scales if isinstance(scales, str) else json.dumps(scales))
    return scratch.at(name)


def tiny(scratch, **more):
    return ["--scale", "tiny", "--scales", write(scratch, {"tiny": {**TINY, **more}}, f"scales{len(more)}.json")]


def rows_of(out, name):
    with open(os.path.join(out, name + ".csv")) as file:
        return list(csv.DictReader(file))


class Links(html.parser.HTMLParser):
    """Every link of a page, and whether its elements are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.links, self.open = [], []
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.links += [value for key, value in attributes if key == "href"]
        if tag not in ("meta", "br", "img", "rect", "line", "circle", "path", "polyline", "polygon", "use"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag in ("rect", "line", "circle", "path", "polyline", "polygon", "use"):
            return
        assert self.open.pop() == tag, tag


def page_of(out):
    with open(os.path.join(out, "index.html")) as file:
        page = file.read()
    for link in Links(page).links:
        assert re.search(f'id="{link[1:]}"', page) if link[0] == "#" else os.path.exists(os.path.join(out, link)), link
    return page


def all_digests(out):
    """Of every run: its last checkpoint and log."""
    return {os.path.relpath(base, out): digests(base) for base, _, names in os.walk(os.path.join(out, "runs")) if "config.json" in names}


def test_list():
    told = good("paper", "list")
    listed = json.loads(good("paper", "list", "--json"))["experiments"]
    assert [e["name"] for e in listed] == NAMES and all(name in told for name in NAMES)
    assert all(e["says"].endswith(".") and e["found"].endswith(".") and e["tasks"] and e["methods"] for e in listed)
    assert {e["name"] for e in listed if "missing" in e} == {"calvin", "calvin-pixels"} and told.count("missing: ") == 2
    agents = {agent["name"] for agent in json.loads(good("list", "agents", "--json"))["agents"]}
    assert {method.split(":")[0] for e in listed for method in e["methods"]} <= agents


def test_dry_run():
    with Scratch("paper") as scratch:
        out = scratch.at("out")
        for scale in ("smoke", "small", "medium", "paper"):
            told = json.loads(good("paper", "run", "all", "--scale", scale, "--out", out, "--dry-run", "--json"))
            assert told["runs"] == told["to_do"] > 50 and told["updates"] > 0 and told["bytes"] > 1e6 and told["seconds"] > 1, told
            missing = {(m["experiment"], m["task"]) for m in told["missing"]}
            assert ("calvin", "calvin") in missing
        assert {d["name"]: d["rows"] for d in told["data"]}["puzzle-4x6-play-v0"] >= 1e9
        text = good("paper", "run", "n-step", "--scale", "smoke", "--out", out, "--dry-run")
        for word in ("n-step", "pointmaze-medium-navigate-v0", "updates", "disk", "time", "12 to do"):
            assert word in text, (word, text)
        assert not os.path.exists(out)


def test_whole_goals():
    """Goals are whole observations, whatever the preset's are, and OGBench's figures stand beside; runs are not those of other experiments."""
    with Scratch("paper") as scratch:
        out = scratch.at("out")
        good("paper", "run", "ogbench", *tiny(scratch), "--out", out)
        rows = rows_of(out, "ogbench")
        assert [(r["method"], r["published"], r["published_goals"], r["state"]) for r in rows] == [("qrl", "82", "", "done"), ("sharsa", "", "", "done")], rows
        for row in rows:
            assert row["runs"].startswith("runs/ogbench/"), row
            with open(os.path.join(out, row["runs"], "seed-0", "config.json")) as file:
                assert json.load(file)["env"] == "pointmaze-medium-navigate-v0"


def test_pictures():
    """A task from pictures, beside OGBench's figure where the paper's is not known."""
    if sanitized():
        return print("test_pictures: skipped, convolutions take minutes with a sanitizer")
    with Scratch("paper") as scratch:
        out = scratch.at("out")
        good("paper", "run", "pixels", *tiny(scratch), "--out", out)
        rows = rows_of(out, "pixels")
        assert [(r["task"], r["method"], r["published"], r["state"]) for r in rows] == [("visual-cube-single", "hiql", "89", "done")], rows


def test_small_sets():
    """Sets of so few episodes that none are for validation are made once."""
    with Scratch("paper") as scratch:
        words = ["paper", "run", "ogbench", *tiny(scratch, data=60), "--only-data", "--out", scratch.at("out")]
        good(*words)
        made = {name: os.stat(scratch.at("out", "data", name)).st_mtime_ns for name in os.listdir(scratch.at("out", "data"))}
        good(*words)
        assert made and {name: os.stat(scratch.at("out", "data", name)).st_mtime_ns for name in made} == made, made


def test_tables():
    """A table, curves and maps in one folder; a second call has nothing to do; another name joins."""
    with Scratch("paper") as scratch:
        out, scale = scratch.at("out"), tiny(scratch)
        told = good("paper", "run", "strategies", "accumulation", "value-map", "calvin", *scale, "--out", out)
        assert "4 experiments" in told, told
        page = page_of(out)
        for word in ("Divide-and-conquer strategies", "pointmaze-medium", "35.4", "NVIDIA L40S", "data:image/svg+xml", "≠"):
            assert word in page, word
        rows = rows_of(out, "strategies")
        assert [r["method"] for r in rows] == ["trl:lambda=0", "dcrl:order=down", "dcrl"] and {r["state"] for r in rows} == {"done"}
        assert [(r["published"], r["published_steps_per_second"]) for r in rows] == [("54", "110"), ("18", "82"), ("93", "84")]
        assert {r["differs"] for r in rows} == {"task, data, steps, network, batch, seeds"} and {r["rows"] for r in rows} == {"200"}
        assert all(float(r["steps_per_second"]) > 0 and 0 <= float(r["success"]) <= 100 and r["seeds"] == "2" for r in rows)
        locks = rows_of(out, "accumulation")
        assert len(locks) == 12 and all(float(r["error"]) >= 0 for r in locks) and {r["value"] for r in locks} == {"16", "32"}
        assert {r["state"] for r in rows_of(out, "calvin")} == {"missing"}
        before = all_digests(out)
        start = time.time()
        good("paper", "run", "strategies", *scale, "--out", out)
        assert all_digests(out) == before and len(page_of(out)) == len(page), time.time() - start
        good("paper", "run", "ablations", *scale, "--out", out)
        rows = rows_of(out, "ablations")
        assert {(r["task"], r["trained"], r["state"]) for r in rows} == {("pointmaze-large", "pointmaze-medium", "done"), ("scene", "pointmaze-medium", "done")}
        assert "stand-in: pointmaze-medium" in page_of(out) and "193" in page_of(out)
        assert "5 experiments" in good("paper", "run", "calvin", *scale, "--out", out) and "Ablations" in page_of(out)
        bad(2, ["another scale", "--out"], "paper", "run", "strategies", "--scale", "smoke", "--out", out)


def test_kill_and_go_on():
    with Scratch("paper", disk=True) as scratch:
        words = ["paper", "run", "strategies", *tiny(scratch, steps=400)]
        start = time.time()
        good(*words, "--out", scratch.at("whole"))
        seconds, kills = time.time() - start, 0
        for number in range(40):
            if number >= 6 and kills:
                break
            process = spawn(*words, "--out", scratch.at("killed"))
            time.sleep(random.random() * min(1, seconds))
            process.send_signal(random.choice([signal.SIGKILL, signal.SIGTERM]))
            _, err = process.communicate(timeout=120)
            assert process.returncode in (0, -signal.SIGKILL, -signal.SIGTERM, STOPPED), (process.returncode, err)
            kills += process.returncode != 0
            if not kills:  # all done already: from the start
                shutil.rmtree(scratch.at("killed"))
        good(*words, "--out", scratch.at("killed"))
        assert kills and all_digests(scratch.at("killed")) == all_digests(scratch.at("whole"))
        a, b = (rows_of(scratch.at(name), "strategies") for name in ("whole", "killed"))
        for row in [*a, *b]:
            del row["steps_per_second"]
        assert a == b
        strays = [name for _, _, names in os.walk(scratch.at("killed")) for name in names if ".tmp." in name or ".part" in name]
        assert not strays, strays


def test_stop():
    with Scratch("paper") as scratch:
        words = ["paper", "run", "strategies", *tiny(scratch, steps=2_000_000), "--jobs", 2, "--out", scratch.at("out")]
        process = spawn(*words)
        await_handler(process)
        deadline = time.time() + 60
        while time.time() < deadline and not os.path.exists(scratch.at("out", "runs", "pointmaze-medium", "trl,lambda=0", "seed-0", "config.json")):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode == STOPPED and "the same command goes on" in err, (process.returncode, err)
        assert os.path.exists(scratch.at("out", "index.html"))


def test_slurm():
    """The scripts are scripts, and tasks run one by one give what one command gives."""
    with Scratch("paper") as scratch:
        scale = tiny(scratch)
        words = ["paper", "run", "strategies", *scale, "--out", scratch.at("array dir")]
        assert "3 runs" in good(*words, "--slurm")
        folder = scratch.at("array dir", "slurm")
        assert sorted(os.listdir(folder)) == ["data.sh", "page.sh", "runs.sh", "submit.sh"]
        for name in os.listdir(folder):
            assert subprocess.run(["bash", "-n", os.path.join(folder, name)], capture_output=True).returncode == 0, name
        with open(os.path.join(folder, "runs.sh")) as file:
            assert "#SBATCH --array=0-2\n" in file.read()
        tasks = [subprocess.Popen([os.path.join(folder, "runs.sh")], env={**os.environ, "SLURM_ARRAY_TASK_ID": str(k)}, stderr=subprocess.PIPE) for k in range(3)]
        for task in tasks:
            _, err = task.communicate(timeout=300)
            assert task.returncode == 0, err
        for name in ("data.sh", "page.sh"):
            done = subprocess.run([os.path.join(folder, name)], capture_output=True, text=True)
            assert done.returncode == 0, done
        good("paper", "run", "strategies", *scale, "--out", scratch.at("one"))
        assert all_digests(scratch.at("array dir")) == all_digests(scratch.at("one"))
        assert "of 3" in page_of(scratch.at("array dir"))
        bad(2, "no task 3", *words, "--task", 3)


def test_own_data():
    with Scratch("paper") as scratch:
        good("gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 31, "-o", scratch.at("pointmaze-medium-navigate-v0.npz"))
        words = ["paper", "run", "strategies", *tiny(scratch, seeds=1), "--data", scratch.path, "--out", scratch.at("out")]
        assert "there: " + scratch.path in good(*words, "--dry-run")
        good(*words)
        assert {r["rows"] for r in rows_of(scratch.at("out"), "strategies")} == {"300"} and not os.path.exists(scratch.at("out", "data"))


def test_a_run_that_fails():
    """It takes no other with it, and the page is there."""
    with Scratch("paper") as scratch:
        words = ["paper", "run", "strategies", *tiny(scratch), "--out", scratch.at("out")]
        os.makedirs(scratch.at("out", "runs", "pointmaze-medium", "dcrl"))
        write(scratch, "{}", scratch.at("out", "runs", "pointmaze-medium", "dcrl", "config.json"))  # of another run
        bad(1, ["1 of", "dcrl.log"], *words)
        rows = rows_of(scratch.at("out"), "strategies")
        assert [r["state"] for r in rows] == ["done", "done", "to do"] and page_of(scratch.at("out"))
        os.remove(scratch.at("out", "runs", "pointmaze-medium", "dcrl", "config.json"))
        good(*words)
        assert {r["state"] for r in rows_of(scratch.at("out"), "strategies")} == {"done"}


def hostile():
    """(texts of the error, what stands in the file); the scale asked for is mine."""
    deep = "[" * 100 + "]" * 100
    yield ["not valid JSON", "scales.json"], "{"
    yield "must be an object of scales", "[]"
    yield "unknown scale 'mine'", {"other": {}}
    yield ["'steps' stands twice", "scales.json"], '{"mine": {"steps": 1, "steps": 2}}'
    yield "it must be an object", {"mine": 3}
    yield ["'stpes'", "did you mean 'steps'?"], {"mine": {"stpes": 3}}
    for value in (0, -1, 1.5, "many", None, 1e300, [3]):
        yield "steps", {"mine": {"steps": value}}
    yield ["seeds", "64"], {"mine": {"seeds": 65}}
    yield "hidden", {"mine": {"hidden": [0]}}
    yield "hidden", {"mine": {"hidden": "wide"}}
    yield "rows must be 2 or more", {"mine": {"rows": 1}}
    yield "values must be", {"mine": {"values": {"n": []}}}
    yield "values must be", {"mine": {"values": {"n": ["1"]}}}
    yield "values must be", {"mine": {"values": {"n": list(range(65))}}}
    yield "instead must be", {"mine": {"instead": {"humanoidmaze-giant": 3}}}
    yield "instead must be", {"mine": {"instead": {"humanoidmaze-giant": "a\0b"}}}
    yield ["unknown preset", "pointmaze-medium"], {"mine": {"instead": {"humanoidmaze-giant": "pointmaze-mediun"}}}
    yield "sizes must be", {"mine": {"sizes": {"cube-triple": 1.5}}}
    yield "sizes must be", {"mine": {"sizes": {"cube-triple": 0}}}
    yield "belong to an experiment", {"mine": {"tasks": ["cube-triple"]}}
    yield "only must be", {"mine": {"only": []}}
    yield ["'n-stpe'", "did you mean 'n-step'?"], {"mine": {"only": {"n-stpe": {}}}}
    yield ["n-step has no task", "scene"], {"mine": {"only": {"n-step": {"tasks": ["scene"]}}}}
    yield ["n-step has no method", "bc"], {"mine": {"only": {"n-step": {"methods": ["bc"]}}}}
    yield "it must be an object", {"mine": {"only": {"n-step": 3}}}
    yield "'only'", {"mine": {"only": {"n-step": {"only": {}}}}}
    yield "n must be", {"mine": {"lock": {"n": 0}}}
    yield "options must be a JSON object", {"mine": {"lock": 3}}
    yield "says must be", {"mine": {"says": 3}}
    yield "too many levels", '{"mine": {"steps": ' + deep + "}}"
    yield ["'standard' has no environment", "list presets"], {"mine": {"instead": {"humanoidmaze-giant": "standard"}}}
    yield "'lock-small' has no environment", {"mine": {"only": {"n-step": {"instead": {"cube-triple": "lock-small"}}}}}
    yield ["n must be", "n=-1"], {"mine": {**TINY, "values": {"n": [-1]}}}
    yield ["n must be", "n=1e+300"], {"mine": {**TINY, "values": {"n": [1e300]}}}
    yield "too long", '{"mine": {"values": {"n": [1.' + "0" * 600 + "]}}}"
    yield ["n must be", "n=1.5"], {"mine": {**TINY, "values": {"n": [1.5]}}}


def test_hostile_scales():
    with Scratch("paper") as scratch:
        for texts, scales in hostile():
            path = write(scratch, scales)
            code = 2 if "unknown scale" in texts else 1
            line = bad(code, texts, "paper", "run", "n-step", "--scale", "mine", "--scales", path, "--out", scratch.at("out"))
            assert len(line) < 500 and not os.path.exists(scratch.at("out")), line
        path = write(scratch, {"mine": {**TINY, "values": {"horizon": [3]}}})
        bad(1, "'lock-3'", "paper", "run", "accumulation", "--scale", "mine", "--scales", path, "--out", scratch.at("out"))
        with open(scratch.at("large.json"), "w") as file:
            file.write(" " * (2 << 20))
        bad(1, "large.json", "paper", "run", "n-step", "--scale", "mine", "--scales", scratch.at("large.json"), "--out", scratch.at("out"))


def test_refused():
    with Scratch("paper") as scratch:
        out = ["--out", scratch.at("out")]
        bad(2, ["'n-stepp'", "did you mean 'n-step'?"], "paper", "run", "n-stepp", *out)
        bad(2, "dcrl paper list", "paper", "run", *out)
        bad(2, "--out DIR", "paper", "run", "n-step")
        bad(2, ["'smok'", "did you mean 'smoke'?"], "paper", "run", "n-step", "--scale", "smok", *out)
        bad(2, ["(rnu)", "perhaps run"], "paper", "rnu")
        bad(2, "--dry-run", "paper", "run", "n-step", "--json", *out)
        bad(2, "nothing to run", "paper", "run", "calvin", "--slurm", *out)
        os.mkdir(scratch.at("run"))
        write(scratch, "{}", scratch.at("run", "config.json"))
        bad(2, "holds a run already", "paper", "run", "calvin", "--out", scratch.at("run"))
        os.mkdir(scratch.at("out"))
        for text in ("{", "[]", '{"settings": 3}', '{"settings": "x", "experiments": 3}'):
            write(scratch, text, scratch.at("out", "plan.json"))
            bad(1, "plan.json", "paper", "run", "calvin", *out)


if __name__ == "__main__":
    run_tests(globals())
