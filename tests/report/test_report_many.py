"""`dcrl report` of many runs and of wide configs: the time grows with what is read, whatever the runs have in common.

Each shape is timed as it is and four times as large, in seconds of the processor (more on a machine that is slower than others); four times
as much may take eight times as long (a square takes 16, a cube 64). Runs that differ in one option: a thousand a second, so ten thousand in ten. Other shapes
have bootstraps or wider tables, and get three times that.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, SMALL, Scratch, good, quickest, run_tests, slowness, words_of

RUNS = 120
LIMIT = 1e-3  # seconds of the processor a run
CONFIG = None
TASKS = "step,overall_success,task1_success,task2_success,task3_success,task4_success,task5_success,episodes,seed\n"
scratch = None


def make(folder, **options):
    os.makedirs(folder)
    files = {"config.json": json.dumps(CONFIG | options), "DONE": "", "timing.csv": "step,seconds,steps_per_second\n100,1,100\n200,2,110\n",
             "train.csv": "step,loss_dc,grad_norm\n" + "".join(f"{i}0,{1 / i:.6g},1\n" for i in range(1, 21)),
             "eval.csv": TASKS + "".join(f"{i}00,0.5,0.5,0.5,0.5,0.5,0.5,75,0\n" for i in range(1, 4))}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def cost(*words):
    """Seconds of the processor, and bytes of memory, of a call that must succeed."""
    pid = os.posix_spawn(DCRL, words_of(words), os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


SHAPES = {"one option": lambda i: {"alpha": 0.1 + i / 1000},
          "seeds": lambda i: {"seed": i},
          "seeds of methods": lambda i: {"alpha": 0.1 + i // 4 / 1000, "seed": i % 4},
          "environments": lambda i: {"env": f"place-{i}"},
          "methods": lambda i: {"agent": f"method-{i}"},
          "methods and environments": lambda i: {"agent": f"method-{i}", "env": f"place-{i}"},
          "keys": lambda i: {f"key{i}": i}}


def make_shape(name, count):
    folder = scratch.at(f"{name} {count}")
    for i in range(count):
        make(os.path.join(folder, f"r{i}"), **SHAPES[name](i))
    return folder


def test_many_runs():
    for name in SHAPES:
        few, many = (make_shape(name, count) for count in (RUNS, 4 * RUNS))
        for form in ("html", "csv"):
            report = lambda folder: cost("report", folder, "-o", scratch.at("out." + form))
            least, _ = min(report(few) for _ in range(2))
            limit = min(4 * RUNS * LIMIT * (1 if name == "one option" else 3) * slowness(), 8 * max(least, 0.02))
            seconds, _ = quickest(lambda: report(many), limit)
            print(f"  {name}: {form} {least:.3f} and {seconds:.3f} s", flush=True)
            assert seconds < limit, (name, form, least, seconds, limit)


def test_too_large_tables():
    """What no page can show is told, and the numbers are in the CSV."""
    folder = scratch.at("wide")
    for i in range(800):
        make(os.path.join(folder, f"r{i}"), agent=f"method-{i}", env=f"place-{i}")
    limit = 3 * slowness()
    seconds, memory = quickest(lambda: cost("report", folder, "-o", scratch.at("wide.html")), limit)
    with open(scratch.at("wide.html")) as file:
        page = file.read()
    assert len(re.findall("800 rows and 800 columns are more than a page can show", page)) == 2, len(page)
    assert seconds < limit and memory < 256 << 20, (seconds, limit, memory)
    assert good("report", folder, "--format", "csv", "-o", "-").count("overall_success") == 800


def test_wide_config():
    """Configs of 0.9 MB: many options, one long one."""
    for name, option in (("options", {f"some_option_{i:06}": i for i in range(36000)}), ("text", {"some": "x" * 900000})):
        for i in range(2):
            make(scratch.at(name, f"r{i}"), **option, alpha=0.1 + i)
        assert os.path.getsize(scratch.at(name, "r0", "config.json")) > 800000
        limit = 2 * slowness()
        seconds, memory = quickest(lambda: cost("report", scratch.at(name), "-o", scratch.at("x.html")), limit)
        print(f"  {name}: {seconds:.2f} s, {memory >> 20} MB")
        assert seconds < limit and memory < 256 << 20, (name, seconds, limit, memory)


def prepare():
    global CONFIG
    good("train", *SMALL, "--steps", 1, "--out", scratch.at("run"))
    with open(scratch.at("run", "config.json")) as file:
        CONFIG = json.load(file) | {"data": "a.npz"}


if __name__ == "__main__":
    with Scratch("many") as scratch:
        prepare()
        run_tests(globals())
