"""dcrl sample and dcrl bench sample, as a script sees them: bytes, columns, order, laws, errors."""

import json
import os
import subprocess
import tempfile

import numpy as np

DCRL = os.environ["DCRL"]
LENGTHS = [30, 2, 101, 57, 9, 64]  # states of each trajectory
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
ROWS = int(STARTS[-1])


def call(*words):
    return subprocess.run([DCRL, *map(str, words)], capture_output=True)


def sample(path, stream, count, *more):
    done = call("sample", "--data", path, "--stream", stream, "--count", count, *more)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def table(text):
    head, *lines = text.decode().splitlines()
    return head, np.array([[int(x) for x in line.split(",")] for line in lines], dtype=np.int64)


def write_data(folder):
    path = os.path.join(folder, "data.npz")
    rng = np.random.default_rng(0)
    terminals = np.zeros(ROWS, np.float32)
    terminals[STARTS[1:] - 1] = 1
    np.savez(path, observations=rng.standard_normal((ROWS, 3), dtype=np.float32),
             actions=rng.uniform(-1, 1, (ROWS, 2)).astype(np.float32), terminals=terminals)
    return path


def test_bytes(path):
    for stream in "dc", "prop":
        for more in [], ["--set", "batch=100"], ["--slots", 3]:
            one = sample(path, stream, 200_000, "--threads", 1, *more)
            assert one == sample(path, stream, 200_000, "--threads", 2, *more)
            assert one != sample(path, stream, 200_000, "--threads", 2, "--seed", 1, *more)
        # A longer run starts with a shorter one, and a count may end inside a step.
        assert one.startswith(sample(path, stream, 12_345, *more))
        assert sample(path, stream, 0).count(b"\n") == 1


def check_slot(rows):
    """In the order of a slot's rows: a parent takes two children that stand there already."""
    ready = set()
    for traj, i, k, j in rows.tolist():
        assert 0 <= i <= k < j < LENGTHS[traj]
        if j - i > 1:
            children = {(traj, i, k), (traj, k, j)}
            assert i < k and children <= ready, "a parent before its children"
            ready -= children
        ready.add((traj, i, j))


def test_dc(path):
    for split in "midpoint", "random":
        for order in "up", "down":
            head, rows = table(sample(path, "dc", 60_000, "--slots", 16, "--set", f"split={split}", "--set", f"order={order}"))
            assert head == "step,slot,traj,i,k,j"
            assert np.array_equal(rows[:, 0], np.arange(60_000) // 1024)
            assert set(rows[:, 1]) == set(range(16))
            if split == "midpoint":
                assert np.array_equal(rows[:, 4], (rows[:, 3] + rows[:, 5]) // 2)
            leaves = rows[:, 5] - rows[:, 3] == 1
            assert np.array_equal(rows[leaves, 4], rows[leaves, 3])
            assert 0.45 < leaves.mean() < 0.6
            if order == "up":
                for slot in range(16):
                    check_slot(rows[rows[:, 1] == slot, 2:])


def test_prop(path):
    head, rows = table(sample(path, "prop", 200_000, "--set", "n=10", "--set", "goal_law=uniform"))
    assert head == "step,i,n,goal"
    i, n, goal = rows[:, 1:].T
    traj = np.searchsorted(STARTS, i, side="right") - 1
    last = STARTS[traj + 1] - 1
    assert (i < last).all() and np.array_equal(n, np.minimum(i + 10, last))
    counts = np.bincount(i, minlength=ROWS)
    mean = 200_000 / (ROWS - len(LENGTHS))
    assert (counts[STARTS[1:] - 1] == 0).all()
    assert abs(counts[counts > 0] - mean).max() < 6 * mean ** 0.5
    assert goal.min() == 0 and goal.max() == ROWS - 1
    expected = 0.2 + 0.3 / ROWS + 0.5 * 0  # current, or random by chance
    assert abs((goal == i).mean() - expected) < 0.005
    inside = (goal > i) & (goal <= last)
    by_chance = 0.3 * ((last - i) / ROWS).mean()
    assert abs(inside.mean() - 0.5 - by_chance) < 0.005


def test_errors(path, folder):
    bad = os.path.join(folder, "bad.npz")
    with open(bad, "wb") as file:
        file.write(b"PK nothing")
    cases = [
        (2, ["sample"]), (2, ["sample", "--dtaa", path]), (2, ["sample", "--data"]),
        (2, ["sample", "--data", path, "--stream", "x"]), (2, ["sample", "--data", path, "--count", "-1"]),
        (2, ["sample", "--data", path, "--slots", "0"]), (2, ["sample", "--data", path, "--set", "batch"]),
        (2, ["sample", "--data", path, "--set", "bacth=3"]), (2, ["sample", "--data", path, "--set", "batch=0"]),
        (2, ["sample", "--data", path, "--stream", "prop", "--set", "goal_random=0.9"]),
        (2, ["sample", "--data", path, "word"]), (2, ["sample", "--data", path, "-x"]),
        (2, ["sample", "--data", path, "--set", "split=max"]), (2, ["sample", "--data", path, "--json"]),
        (2, ["bench"]), (2, ["bench", "smaple"]), (2, ["bench", "sample", "--second", "1"]),
        (1, ["sample", "--data", os.path.join(folder, "none.npz")]), (1, ["sample", "--data", bad]),
    ]
    for code, words in cases:
        done = call(*words)
        assert done.returncode == code, (words, done)
        assert not done.stdout, words
        error = done.stderr.decode()
        assert error.startswith("dcrl: ") and error.count("\n") == 1 and error.endswith("\n"), (words, error)
    assert "did you mean '--data'" in call("sample", "--dtaa", path).stderr.decode()
    assert "did you mean 'batch'" in call("sample", "--data", path, "--set", "bacth=3").stderr.decode()


def test_full_disk(path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([DCRL, "sample", "--data", path, "--count", "100000"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1


def test_help():
    for words in ["sample"], ["bench"], ["bench", "sample"]:
        done = call(*words, "--help")
        assert done.returncode == 0 and done.stdout.startswith(b"usage: dcrl " + words[0].encode()) and not done.stderr


def test_bench():
    done = call("bench", "sample", "--json", "--seconds", "0.05")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    small, large = out["horizons"]
    assert (small["steps"], large["steps"]) == (1000, 1_000_000)
    assert small["bytes"] == large["bytes"] == out["bytes"]
    assert out["nodes_per_second"] > 1e6


with tempfile.TemporaryDirectory() as scratch:
    data = write_data(scratch)
    test_bytes(data)
    test_dc(data)
    test_prop(data)
    test_errors(data, scratch)
    test_full_disk(data)
    test_help()
    test_bench()
print("ok")
