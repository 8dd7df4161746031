"""dcrl map: pictures of a run's maze that any SVG reader takes, with what they promise in them.

A small run on pointmaze-medium is trained and drawn. The value behind every pixel is compared with numpy: the policy and
the critic are evaluated here from the checkpoint's weights, at the same places, and the colours looked up in the PNG's
palette must rise with the distances. Walls, routes, marks, titles and the number of arrivals are read back from the SVG.
"""

import base64
import io
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ET
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, checkpoints, good, run_tests, step_of  # noqa: E402

ENV = "pointmaze-medium-navigate-oraclerep-v0"
NS = "{http://www.w3.org/2000/svg}"
MEDIUM = ["11111111", "10011001", "10010001", "11000111", "10010001", "10100101", "10001001", "11111111"]
GOALS = [(6, 6), (1, 6), (4, 2), (6, 1), (1, 1)]
STARTS = [(1, 1), (6, 1), (5, 3), (6, 5), (2, 6)]
FINE = 8


def weights(path):
    with open(path, "rb") as file:
        raw = file.read()
    n = int.from_bytes(raw[:8], "little")
    out = {}
    for name, entry in json.loads(raw[8 : 8 + n]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            a, b = entry["data_offsets"]
            out[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], np.float32).reshape(entry["shape"]).astype(float)
    return out


def mlp(w, net, member, x):
    layer = 0
    while True:
        x = x @ w[f"{net}/{layer}/w"][member] + w[f"{net}/{layer}/b"][member].reshape(-1)
        if f"{net}/{layer + 1}/w" not in w:
            return x
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        x = x * w[f"{net}/{layer}/scale"][member].reshape(-1) + w[f"{net}/{layer}/bias"][member].reshape(-1)
        layer += 1


def xy_of(cell):
    return np.array([4.0 * cell[1] - 4, 4.0 * cell[0] - 4])


def predicted(w, gamma, goal):
    """Steps by numpy at every place of the grid, NaN in walls."""
    rows, cols = len(MEDIUM) * FINE, len(MEDIUM[0]) * FINE
    r, c = np.mgrid[0:rows, 0:cols].reshape(2, -1)
    places = np.stack([-6 + 4 * (c + 0.5) / FINE, -6 + 4 * (r + 0.5) / FINE], axis=1)
    x = np.concatenate([places, np.tile(xy_of(goal), (len(places), 1))], axis=1)
    action = np.clip(mlp(w, "actor", 0, x), -1, 1)
    logit = np.minimum(*(mlp(w, "oracle_critic", m, np.concatenate([x, action], axis=1))[:, 0] for m in range(2)))
    steps = -np.logaddexp(0, -logit) / np.log(gamma)
    free = np.array([MEDIUM[i // FINE][j // FINE] == "0" for i, j in zip(r, c)])
    return np.where(free, steps, np.nan).reshape(rows, cols)


def decode_png(raw):
    """Palette indices of an unfiltered 8-bit PNG, and the palette; every checksum is checked."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(raw):
        n = int.from_bytes(raw[at : at + 4], "big")
        kind, body = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + n]
        assert zlib.crc32(kind + body) == int.from_bytes(raw[at + 8 + n : at + 12 + n], "big"), kind
        parts[kind] = body
        at += 12 + n
    width, height = int.from_bytes(parts[b"IHDR"][:4], "big"), int.from_bytes(parts[b"IHDR"][4:8], "big")
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any() and b"IEND" in parts
    return rows[:, 1:], np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)


def parse(path):
    assert os.path.getsize(path) < 300_000, path
    with open(path) as file:
        text = file.read()
    assert "<script" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    return ET.fromstring(text)


def mazes(root):
    return [e for e in root.iter(NS + "svg") if e.get("class") == "maze"]


def image_of(maze):
    data = next(maze.iter(NS + "image")).get("href")
    assert data.startswith("data:image/png;base64,")
    return decode_png(base64.b64decode(data.split(",", 1)[1], validate=True))


def points(line):
    pairs = re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", line.get("d"))
    assert line.get("d").count("M") == 1  # nothing teleports here
    return np.array(pairs, float)


def test_train():
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 40)
    good("train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", "32,32", "--batch", 64, "--steps", 900,
         "--eval-every", 300, "--eval-episodes", 3, "--out", scratch.at("run"))
    out = good("map", scratch.at("run"), "--episodes", 3)
    assert out.splitlines() == [f"wrote {scratch.at('run', f'map-task{t}.svg')}" for t in range(1, 6)], out


def test_values():
    w = weights(checkpoints(scratch.at("run"))[-1])
    want = [predicted(w, 0.99, goal) for goal in GOALS]
    most = max(1, np.nanmax(want))
    for t in range(5):
        (maze,) = mazes(parse(scratch.at("run", f"map-task{t + 1}.svg")))
        pixels, palette = image_of(maze)
        free = np.isfinite(want[t])
        assert pixels.shape == want[t].shape and (pixels[free] > 0).all()
        shown = (pixels[free].astype(float) - 1) / 254 * most
        assert np.abs(shown - want[t][free]).max() < most / 254, (t, np.abs(shown - want[t][free]).max(), most)
        inner = ~free & (np.pad(free, 1)[1:-1, 1:-1] == 0)
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                inner &= ~np.roll(free, (dr, dc), (0, 1))
        assert (pixels[inner] == 0).all()  # nothing is claimed about walls
        light = palette[1:].astype(int) @ [299, 587, 114]
        assert (np.diff(light) <= 600).all() and light[0] > 4 * light[-1]  # bright is near


def test_elements():
    with open(scratch.at("run", "eval.csv")) as file:
        last = file.read().splitlines()[-1].split(",")
    for t in range(5):
        root = parse(scratch.at("run", f"map-task{t + 1}.svg"))
        words = " ".join(root.itertext())
        (maze,) = mazes(root)
        reached = [e for e in maze.iter(NS + "path") if e.get("class") == "way reached"]
        missed = [e for e in maze.iter(NS + "path") if e.get("class") == "way missed"]
        assert len(reached) + len(missed) == 3 and len(reached) == round(3 * float(last[2 + t])), (t, last)
        assert f"{len(reached)} of 3 reach the goal" in words and f"Task {t + 1}" in words and ENV in words
        assert all(e.get("stroke-dasharray") for e in missed) and not any(e.get("stroke-dasharray") for e in reached)
        for line in reached + missed:
            p = points(line)
            assert np.abs(p[0] - xy_of(STARTS[t])).max() <= 1.2
            cells = np.floor((p + 6) / 4).astype(int)
            assert all(MEDIUM[i][j] == "0" for j, i in cells), (t, p)  # no route leads through a wall
        for line in reached:
            assert np.hypot(*(points(line)[-1] - xy_of(GOALS[t]))) <= 1 + np.sqrt(2) + 0.01
        # y goes up, as in pictures of `dcrl render`: everything drawn lies in one mirrored group, inside the view.
        (group,) = maze
        assert group.get("transform") == "scale(1,-1)" and len(group) > 4
        left, low, wide, high = map(float, re.split("[ ,]", maze.get("viewBox")))
        for x, y in [xy_of((0, 0)) + 1, xy_of((len(MEDIUM) - 1, len(MEDIUM[0]) - 1)) - 1]:
            assert left < x < left + wide and low < -y < low + high, (x, y, maze.get("viewBox"))
        assert abs(low + high / 2 + (len(MEDIUM) - 3) * 2) < 1e-9  # the middle of the maze, turned
        crosses = [e for e in maze.iter(NS + "path") if e.get("class") == "cross missed"]
        assert len(crosses) == len(missed)
        (start,) = maze.iter(NS + "circle")
        assert [float(start.get("cx")), float(start.get("cy"))] == list(xy_of(STARTS[t]))
        assert len([e for e in maze.iter(NS + "path") if e.get("class") == "mark goal"]) == 1
        (wall,) = [e for e in maze.iter(NS + "path") if e.get("class") == "wall"]
        runs = re.findall(r"M(-?\d+),(-?\d+)h(\d+)v4h-(\d+)z", wall.get("d"))
        walls = {((int(y) + 6) // 4, (int(x) + 6) // 4 + k) for x, y, n, _ in runs for k in range(int(n) // 4)}
        assert walls == {(i, j) for i, row in enumerate(MEDIUM) for j, c in enumerate(row) if c == "1"}
        assert "predicted steps" in words and "reached" in words and "missed" in words


def test_one_file():
    out = scratch.at("some.svg")
    assert good("map", scratch.at("run"), "--task", "5,1", "-o", out) == f"wrote {out}\n"
    root = parse(out)
    words = " ".join(root.itertext())
    assert len(mazes(root)) == 2 and words.index("Task 5") < words.index("Task 1") and "of 5 reach" in words
    whole = scratch.at("whole.svg")
    for threads in (1, 2):
        good("map", scratch.at("run"), "-o", whole, "--threads", threads)
        with open(whole) as file:
            text = file.read()
        assert len(mazes(ET.fromstring(text))) == 5
        before = text if threads == 1 else before
        assert text == before, "the picture depends on the number of threads"
    with io.open(whole, "rb") as file:
        assert file.read(5) == b"<svg "


def test_report():
    page = good("report", scratch.at("run"), "-o", "-")
    assert page.count("data:image/svg+xml;base64,") == 5 and f"{ENV} · dcrl · seed 0" in page
    with open(scratch.at("run", "map-task1.svg"), "rb") as file:
        assert base64.b64encode(file.read()).decode() in page


def test_other_robots():
    """A robot with more than a place: whole observations as goals, and its xy alone replaced."""
    rng, rows = np.random.default_rng(0), 40
    for env, obs, act in (("antmaze-medium-v0", 29, 8), ("antsoccer-arena-oraclerep-v0", 42, 8)):
        data, run = scratch.at("other.npz"), scratch.at(env)
        np.savez(data, observations=rng.normal(size=(rows, obs)).astype(np.float32),
                 actions=rng.uniform(-1, 1, (rows, act)).astype(np.float32), terminals=(np.arange(rows) % 20 == 19).astype(np.float32))
        good("train", "--env", env, "--data", data, "--hidden", 8, "--batch", 8, "--steps", 3, "--out", run)
        good("map", run, "--task", 2, "--episodes", 1)
        (maze,) = mazes(parse(os.path.join(run, "map-task2.svg")))
        pixels, _ = image_of(maze)
        assert (pixels > 0).any()


def test_rejection():
    """A policy that draws candidates: its map is asked for in the same way, and does not depend on threads."""
    run, texts = scratch.at("rejection"), set()
    good("train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", 16, "--batch", 16, "--steps", 20, "--out", run,
         "--set", "policy=rejection", "--set", "samples=4", "--set", "flow_steps=2")
    for threads in (1, 2):
        good("map", run, "--task", 3, "--episodes", 1, "--threads", threads)
        texts.add(open(os.path.join(run, "map-task3.svg")).read())
    assert len(texts) == 1 and len(mazes(ET.fromstring(texts.pop()))) == 1


def test_errors():
    run, lock, none = scratch.at("run"), scratch.at("lock"), scratch.at("none")
    bad(2, "one run folder", "map")
    bad(1, "not a run folder", "map", scratch.at())
    bad(2, "task", "map", run, "--task", 6)
    bad(2, "task", "map", run, "--task", "")
    bad(2, ["no checkpoint of step 7"], "map", run, "--step", 7)
    bad(1, "nowhere", "map", run, "-o", scratch.at("nowhere", "x.svg"))
    good("train", "--env", "lock-32", "--hidden", 8, "--batch", 8, "--steps", 2, "--out", lock)
    bad(2, ["lock-32 has no tasks to play or to draw", "dcrl lock"], "map", lock)
    bad(2, "lock-32 has no tasks to play or to draw", "eval", lock)
    good("train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", 8, "--batch", 8, "--steps", 2, "--out", none,
         "--set", "policy=none")
    bad(1, "no policy", "map", none)
    moved = scratch.at("moved")
    shutil.copytree(run, moved)
    path = os.path.join(moved, "config.json")
    with open(path) as file:
        config = json.load(file)
    for change, text in (({"env": "antmaze-medium-v0"}, '"env": "'), ({"env": ""}, "without an environment")):
        with open(path, "w") as file:
            json.dump({**config, **change}, file)
        bad(1, text, "map", moved, "--step", step_of(checkpoints(moved)[-1]))
    # The discount is that of the checkpoint: another one in the config or in the checkpoint is refused.
    with open(path, "w") as file:
        json.dump({**config, "gamma": 0.5}, file)
    bad(1, '"gamma": 0.99, which config.json does not say', "map", moved, "--step", step_of(checkpoints(moved)[-1]))
    with open(path, "w") as file:
        json.dump(config, file)
    newest = checkpoints(moved)[-1]
    with open(newest, "rb") as file:
        content = file.read()
    word = b'\\"gamma\\": 0.9'
    assert content.count(word) == 2
    with open(newest, "wb") as file:
        file.write(content.replace(word, word[:-1] + b"8"))
    bad(1, "is damaged", "map", moved, "--step", step_of(newest))
    assert "usage: dcrl map" in good("map", "--help")


if __name__ == "__main__":
    with Scratch("map") as scratch:
        run_tests(globals())
