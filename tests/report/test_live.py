"""`dcrl train --report --tensorboard`: the page of a run at work, and events beside the CSV, read here byte by byte.

Events are records of a length, the bytes, and CRC-32C of both; each is a message of protocol buffers. Their values are those of
train.csv, timing.csv and eval.csv. The package tensorboard, which reads them too where it is there, is no package of the tests.
"""

import csv
import glob
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, call, good, run_tests, words_of  # noqa: E402

ENV = "pointmaze-medium-navigate-oraclerep-v0"
scratch = None


def flags(*more):
    return ["train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", 16, "--batch", 16, "--steps", 60, "--log-every", 10,
            "--eval-every", 20, "--eval-episodes", 1, *more]


def rows(path):
    with open(path) as file:
        return {int(row["step"]): row for row in csv.DictReader(file)}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """(number, value) of a message; a message within it stays bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    out = []
    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4, 2: None}.get(key & 7, 0)
        if key & 7 == 0:
            out.append((key >> 3, varint()))
            continue
        size = varint() if size is None else size
        raw, at = data[at : at + size], at + size
        assert len(raw) == size
        out.append((key >> 3, struct.unpack("<d", raw)[0] if key & 7 == 1 else struct.unpack("<f", raw)[0] if key & 7 == 5 else raw))
    return out


def events(path):
    with open(path, "rb") as file:
        data = file.read()
    at, out = 0, []
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + n]
        assert struct.unpack_from("<I", data, at + 8)[0] == crc32c(data[at : at + 8]) and len(body) == n
        assert struct.unpack_from("<I", data, at + 12 + n)[0] == crc32c(body)
        at += 16 + n
        out.append(dict(fields(body)))
    return out


def values(path):
    """{(tag, step): value}, and the step from which earlier files are void."""
    first, start, *rest = events(path)
    assert first[3] == b"brain.Event:2" and dict(fields(start[7])) == {1: 1}
    assert all(abs(event[1] - time.time()) < 3600 for event in rest)
    found = {}
    for event in rest:
        for number, value in fields(event[5]):
            part = dict(fields(value))
            assert number == 1 and set(part) == {1, 2}
            found[part[1].decode(), event[2]] = part[2]
    return found, start[2]


def wanted(run):
    out = {}
    for group, name in (("train", "train.csv"), ("timing", "timing.csv"), ("eval", "eval.csv")):
        for step, row in rows(os.path.join(run, name)).items():
            out.update({(f"{group}/{key}", step): float(x) for key, x in row.items() if key not in ("step", "together", "episodes", "seed")})
    return out


def same(found, want):
    assert set(found) == set(want), set(found) ^ set(want)
    for key, x in want.items():
        assert abs(found[key] - x) <= 1e-6 * max(1, abs(x)) + (0.06 if key[0].startswith("timing") else 0), (key, found[key], x)


def by_package(run):
    """What TensorBoard itself makes of a run's folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    told = EventAccumulator(run, size_guidance={"scalars": 0})
    told.Reload()
    return {(tag, event.step): event.value for tag in told.Tags()["scalars"] for event in told.Scalars(tag)}


def test_events():
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 10)
    out = scratch.at("events")
    good(*flags("--seed", "0-1", "--tensorboard", "--out", out))
    for seed in (0, 1):
        run = os.path.join(out, f"seed-{seed}")
        (path,) = glob.glob(os.path.join(run, "events.out.tfevents.*"))
        found, start = values(path)
        same(found, wanted(run))
        assert start == 1 and ("eval/task5_success", 60) in found and ("train/loss_dc", 10) in found
    good("train", "--resume", run, "--steps", 80, "--tensorboard")
    old, new = sorted(glob.glob(os.path.join(run, "events.out.tfevents.*")), key=os.path.getmtime)
    (before, _), (after, start) = values(old), values(new)
    assert start == 61 and {step for _, step in after} == {70, 80}
    same(before | after, wanted(run))
    if importlib.util.find_spec("tensorboard"):
        same(by_package(run), wanted(run))
        print("  TensorBoard reads the same")
    good(*flags("--out", scratch.at("plain")))
    assert not glob.glob(scratch.at("plain", "*tfevents*")) and not os.path.exists(scratch.at("plain", "report.html"))


def test_page():
    """While the run is at work the page loads itself again; at the end, or after a stop, it is what dcrl report writes."""
    run = scratch.at("page")
    page = os.path.join(run, "report.html")
    words = flags("--report", "--out", run)
    words[words.index("--steps") + 1] = 100000
    process = subprocess.Popen(words_of(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(page):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    with open(page) as file:
        text = file.read()
    assert text.count('<meta http-equiv="refresh" content="30">') == 1 and "still training" in text and text.endswith("</html>\n")
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 75 and "stopped at step" in error, error
    with open(page) as file:
        assert file.read() == good("report", run, "-o", "-")
    os.remove(page)
    os.mkdir(page)  # nothing can be written there
    done = call("train", "--resume", run, "--steps", len(rows(os.path.join(run, "train.csv"))) * 10 + 200, "--report")
    assert done.returncode == 0 and "warning: no report.html" in done.stderr and "trained dcrl" in done.stdout, done


if __name__ == "__main__":
    with Scratch("live") as scratch:
        run_tests(globals())
