"""make demo in small: tools/demo.sh from nothing to its page, stopped once in between, and called again when done.

The sentence at its end must hold the figures of eval.csv, not some that were true once.
"""

import csv
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch, run_tests  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def start(out, **more):
    env = {**os.environ, "DCRL": os.path.abspath(DCRL), "DEMO_OUT": out, "DEMO_DATA": "20", "DEMO_EPISODES": "1", **more}
    return subprocess.Popen(["sh", os.path.join(ROOT, "tools", "demo.sh")], env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (out, err)
    return out


def check(out, steps):
    text = finish(start(out, DEMO_STEPS=str(steps)))
    runs = [name for name in os.listdir(out) if name.startswith("dcrl-")]
    (run,) = [os.path.join(out, r) for r in runs if f'"steps": {steps},' in open(os.path.join(out, r, "config.json")).read()]
    with open(os.path.join(run, "eval.csv")) as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [steps * k // 5 for k in range(1, 6)], rows
    said = re.search(r"After (\d+) steps \(\d+:\d\d of training\) dcrl reaches the goal in (\d+) of (\d+) episodes \((\d+) %\)", text)
    last = rows[-1]
    overall = float(last["overall_success"])
    assert [int(x) for x in said.groups()] == [steps, round(5 * overall), int(last["episodes"]), round(100 * overall)], (text, last)
    tasks = [float(last[f"task{t}_success"]) for t in range(1, 6)]
    named = re.search(r"task (\d) is its best \((\d+) %\), task (\d) its worst \((\d+) %\)", text)
    assert (named is None) == (len(set(tasks)) == 1), (text, tasks)
    if named:
        best, high, worst, low = map(int, named.groups())
        assert tasks[best - 1] == max(tasks) and tasks[worst - 1] == min(tasks)
        assert [high, low] == [round(100 * max(tasks)), round(100 * min(tasks))]
    assert os.path.join(out, "report.html") in text
    with open(os.path.join(out, "report.html")) as file:
        page = file.read()
    assert page.count("data:image/svg+xml;base64,") == 5 and "Learning curves" in page
    assert len([e for e in ET.parse(os.path.join(out, "map.svg")).iter() if e.get("class") == "maze"]) == 5
    return text


def test_from_nothing():
    text = check(scratch.at("demo"), 50)
    for part in ("1. Data: 20 episodes", "2. Training: 50 steps", "step 50: success", "3. Pictures"):
        assert part in text, text


def test_again():
    assert "done already" in check(scratch.at("demo"), 50)
    assert "done already" not in check(scratch.at("demo"), 55)  # another setting is another run


def test_stopped():
    for number in range(10):  # until it is stopped while it trains
        out = scratch.at(f"stopped-{number}")
        process = start(out, DEMO_STEPS="100")
        while process.poll() is None and not any("eval.csv" in files for _, _, files in os.walk(out)):
            time.sleep(0.005)
        if process.poll() is not None:
            continue
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
        if any("DONE" in files for _, _, files in os.walk(out)):
            continue
        assert process.returncode != 0
        assert "goes on at step" in check(out, 100)
        return
    raise AssertionError("it was done before it could be stopped")


if __name__ == "__main__":
    with Scratch("demo") as scratch:
        run_tests(globals())
