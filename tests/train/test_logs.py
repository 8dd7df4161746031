"""Logs that a run did not leave as they are: kept and told, never shortened in silence.

train.csv and timing.csv with other line ends, another header, a garbled row, bytes of a power cut or rows in disorder are put
aside whole, with one warning that names file and line, and the run goes on with the rows before. A row that a kill cut and rows
that come again are no damage. An eval.csv with such a line is refused before anything is played, and stays as it is.
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, Scratch, bad, call, complaints, good, run_tests  # noqa: E402

ROWS = list(range(5, 41, 5))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def steps_of(text):
    return [int(line.split(b",")[0]) for line in text.splitlines()[1:]]


def garble(number):
    def damage(text):
        lines = text.splitlines(keepends=True)
        lines[number] = b"?" + lines[number][1:]
        return b"".join(lines)
    return damage


def swap(text):
    lines = text.splitlines(keepends=True)
    lines[2], lines[3] = lines[3], lines[2]
    return b"".join(lines)


def fields(text):
    lines = text.splitlines(keepends=True)
    lines[4] = lines[4][:-1] + b",1\n"
    return b"".join(lines)


def emptied(text):
    lines = text.splitlines(keepends=True)
    lines[4] = lines[4][: lines[4].rindex(b",") + 1] + b"\n"
    return b"".join(lines)


def padded(text):
    lines = text.splitlines(keepends=True)
    lines[4] = b"00" + lines[4]
    return b"".join(lines)


# What is done to the file, the line that is named, the rows up to step 20 that are left.
DAMAGE = {
    "line ends": (lambda text: text.replace(b"\n", b"\r\n"), 1, []),
    "header": (lambda text: b"x" + text, 1, []),
    "column": (lambda text: text.replace(b"step,", b"number,"), 1, []),
    "no text": (lambda text: b"\0" * len(text), 1, []),
    "row": (garble(2), 3, [5]),
    "row to come": (garble(6), 7, [5, 10, 15, 20]),
    "disorder": (swap, 4, [5, 15]),
    "fields": (fields, 5, [5, 10, 15]),
    "empty field": (emptied, 5, [5, 10, 15]),
    "zeros": (padded, 5, [5, 10, 15]),
    "power cut": (lambda text: text[:-30] + b"\0" * 40 + b"\n", None, [5, 10, 15, 20]),
    "notes": (lambda text: text + b"# here lr was lowered\n", 10, [5, 10, 15, 20]),
}
HARMLESS = {
    "cut row": lambda text: text[:-3],
    "later rows": lambda text: text,
    "nothing": lambda text: text[: len(text.splitlines(keepends=True)[0])],
    "empty": lambda text: b"",
}


def go_back(run):
    for name in ("DONE", "step-0000000040.safetensors"):
        os.remove(os.path.join(run, name))


def test_damaged(scratch):
    whole = read(os.path.join(scratch.at("run"), "train.csv"))
    assert steps_of(whole) == ROWS
    for log in ("train.csv", "timing.csv"):
        for name, (damage, line, left) in DAMAGE.items():
            run = scratch.at("damaged")
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(scratch.at("run"), run)
            path = os.path.join(run, log)
            damaged = damage(read(path))
            for time in (1, 2):
                go_back(run)
                write(path, damaged)
                done = call("train", "--resume", run)
                told = complaints(done.stderr)
                assert done.returncode == 0 and len(told) == 1, (log, name, done)
                found = re.match(rf"dcrl: warning: {re.escape(path)}:(\d+) is no line .* kept as {re.escape(path)}\.kept-{time},", told[0])
                assert found and line in (None, int(found[1])), (log, name, line, told)
                assert read(f"{path}.kept-{time}") == damaged, (log, name)
                assert steps_of(read(path)) == left + [25, 30, 35, 40], (log, name)
            if log == "train.csv" and left == [5, 10, 15, 20]:
                assert read(path) == whole, name
        good("report", run, "-o", scratch.at("page.html"))


def test_harmless(scratch):
    for name, change in HARMLESS.items():
        run = scratch.at("harmless")
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(scratch.at("run"), run)
        go_back(run)
        for log in ("train.csv", "timing.csv"):
            write(os.path.join(run, log), change(read(os.path.join(run, log))))
        done = call("train", "--resume", run)
        assert done.returncode == 0 and not complaints(done.stderr), (name, done)
        assert not [kept for kept in os.listdir(run) if ".kept" in kept], name


def test_evaluations(scratch):
    env, run = "pointmaze-medium-navigate-oraclerep-v0", scratch.at("maze")
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 20)
    good("train", *SMALL[2:], "--env", env, "--data", scratch.at("data.npz"), "--steps", 30, "--eval-every", 10, "--eval-episodes", 1,
         "--keep", 0, "--out", run)
    path = os.path.join(run, "eval.csv")
    whole = read(path)
    assert steps_of(whole) == [10, 20, 30]
    for damage, text in ((garble(2), f"{path}:3 "), (swap, f"{path}:4 "), (lambda text: text.replace(b"\n", b"\r\n"), "other columns"),
                         (lambda text: text + b"mine\n", f"{path}:5 ")):
        damaged = damage(whole)
        write(path, damaged)
        bad(1, [text, "move it away"], "eval", run, "--episodes", 1)
        os.remove(os.path.join(run, "DONE"))
        bad(1, [text, "move it away"], "train", "--resume", run)
        assert read(path) == damaged
        write(path, whole)
        good("train", "--resume", run)
        assert read(path) == whole


if __name__ == "__main__":
    with Scratch("logs") as folder:
        good("train", *SMALL, "--steps", 40, "--log-every", 5, "--save-every", 20, "--out", folder.at("run"))
        run_tests({name: (lambda test=test: test(folder)) for name, test in globals().items() if name.startswith("test_")})
