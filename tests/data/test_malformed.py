"""A thousand malformed data sets, files and stores, through `dcrl data info` and `dcrl train`: each is taken or gets
exit status 1 with exactly one line `dcrl: ...`; never a signal, a hang, a second line or half an answer.

Half of the mutations are blind (truncated, flipped, spliced bytes), half know the format and keep its checksums
right, so that what they break is read: headers of arrays, directories of archives, the index of a store, values.
"""

import collections
import concurrent.futures
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch, good, run_tests  # noqa: E402

COUNT = 1000
ROWS = 404


def valid():
    """A maze's data, as published: 4 trajectories of 101 states; and a column of bytes."""
    sizes = {"observations": 2, "actions": 2, "qpos": 2, "qvel": 2}
    arrays = {k: np.random.uniform(-1, 1, (ROWS, n)).astype(np.float32) for k, n in sizes.items()}
    return arrays | {"terminals": np.arange(ROWS) % 101 == 100, "frames": np.random.randint(0, 256, (ROWS, 2, 3)).astype(np.uint8)}


def packed(arrays):
    out = io.BytesIO()
    random.choice([np.savez, np.savez_compressed])(out, **arrays)
    return out.getvalue()


# ---- blind ----


def truncate(raw):
    return raw[: random.randrange(len(raw))]


def flip(raw):
    raw = bytearray(raw)
    near = random.choice([len(raw), 200, 400])  # anywhere, or in a header or the directory
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        at = random.randrange(min(near, len(raw)))
        raw[at if random.random() < 0.5 else -1 - at] ^= 1 << random.randrange(8)
    return bytes(raw)


def splice(raw):
    a, b, n = random.randrange(len(raw)), random.randrange(len(raw)), random.randrange(1, 300)
    return raw[:a] + random.choice([b"", raw[b : b + n], random.randbytes(n), b"\0" * n]) + raw[a + random.choice([0, n]) :]


BLIND = [truncate, flip, splice]

# ---- knowing the format ----


def header_edit():
    """An array's header says something else than its bytes; the archive's checksums are right."""
    arrays, out = valid(), io.BytesIO()
    target = random.choice(list(arrays))
    edits = [(b"(404", random.choice([b"(405", b"(0", b"(-4", b"(99999999999", b"(4040", b"(18446744073709551616", b"(404.", b"(2, 202"])),
             (b"404, 2)", random.choice([b"404, 3)", b"404,)", b"404, 0)", b"404, 2, 1)", b"2, 404)", b"404, 4611686018427387904)"])),
             (b"<f4", random.choice([b">f4", b"<f8", b"<f2", b"<c8", b"|O", b"|S4", b"<U1", b"<f16", b"|b1", b"|u1", b"<i4", b"zzz", b""])),
             (b"False", random.choice([b"True", b"None", b"0"])), (b"NUMPY", random.choice([b"NUMPX", b"NUMPY\x09"])),
             (b"{", random.choice([b"", b"{{", b"[", b"(" * 300])), (b"'shape'", random.choice([b"'shope'", b"'descr'", b"shape", b"'sh"]))]
    with zipfile.ZipFile(out, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as file:
        for name, values in arrays.items():
            raw = io.BytesIO()
            np.save(raw, values)
            raw = raw.getvalue()
            if name == target:
                for old, new in random.sample(edits, random.choice([1, 1, 2])):
                    raw = raw[:128].replace(old, new, 1) + raw[128:]
                raw = random.choice([raw, raw, raw[:-4], raw + b"1234", raw[: random.randrange(140)]])
            file.writestr(name + random.choice([".npy", ".npy", ".npy", ""]) if name == target else name + ".npy", raw)
    return out.getvalue()


def directory_edit():
    """A field of an archive's directory or of a local header."""
    raw = bytearray(packed(valid()))
    mark = random.choice([b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"])
    at = raw.find(mark, random.randrange(len(raw)) if mark == b"PK\x01\x02" else 0)
    at = at if at >= 0 else raw.find(mark)
    offset, size = random.choice([(4, 2), (6, 2), (8, 2), (10, 2), (14, 4), (18, 4), (20, 4), (22, 4), (24, 4), (26, 2), (28, 2), (30, 2), (42, 4), (12, 4), (16, 4)])
    value = random.choice([0, 1, 8, 12, 99, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, len(raw), random.randrange(1 << 32)])
    room = min(size, len(raw) - at - offset)
    raw[at + offset : at + offset + room] = struct.pack("<Q", value)[:room]
    return bytes(raw)


def spoil(values, wrong):
    values = values.astype(np.float32)
    values[tuple(random.randrange(n) for n in values.shape)] = wrong
    return values


def ends_at(*rows):
    ends = np.zeros(ROWS, bool)
    ends[list(rows)] = True
    return ends


def value_edit():
    """A well-formed archive whose arrays are no data set, or hardly one."""
    a = valid()
    k = random.choice(["observations", "actions", "qpos", "frames"])
    n = random.randrange(ROWS)
    edits = [
        lambda: a.update(terminals=random.choice([ends_at(), ~ends_at(), ends_at(0), ends_at(ROWS - 2), ends_at(0, ROWS - 1), ends_at(n, ROWS - 1), ends_at(n, (n + 1) % ROWS, ROWS - 1)])),
        lambda: a.update(terminals=a["terminals"].astype(random.choice([np.float64, np.int8, "S1", "U3", complex])) if random.random() < 0.5 else a["terminals"] * random.choice([2, -1, 0.5, np.nan])),
        lambda: a.update(terminals=random.choice([a["terminals"][:, None], a["terminals"][:-1], a["terminals"][:0], np.array(True)])),
        lambda: a.update({k: spoil(a[k], random.choice([np.nan, np.inf, -np.inf, 3e38, 2]))}),
        lambda: a.update({k: a[k].astype(random.choice(["f8", ">f4", "f2", "i8", "u1", "?", "S3", "U2", "c16", "O", "M8[s]", "f4,f4"]))}),
        lambda: a.update({k: random.choice([a[k].T, a[k][:-1], a[k][:0], a[k][:, :0], a[k][0], a[k].ravel(), a[k][:, :, None, None], a[k][0, 0], np.asfortranarray(a[k])])}),
        lambda: a.update({random.choice(["x" * 300, "a/b", "..", "obs", "act", "\u00e9", "", "observations.npy"]): np.zeros((ROWS, random.choice([0, 1, 5])), np.float32)}),
        lambda: a.pop(random.choice(list(a))),
        lambda: a.clear(),
        lambda: a.update({k: np.array([{"a": 1}] * ROWS, dtype=object)}),
        lambda: [a.update({name: v[:m] for name, v in a.items()}) for m in [random.choice([0, 1, 2, 3])]],
        lambda: a.update({k: np.broadcast_to(a[k].reshape(ROWS, -1)[:1, :1], (ROWS, 5000)).copy()}),
    ]
    random.choice(edits)()
    return packed(a)


KNOWING = [header_edit, directory_edit, value_edit]

# ---- stores ----


def break_store(store):
    """One thing wrong with a store that was right."""
    files = sorted(os.listdir(store))
    path = os.path.join(store, random.choice(files))
    kind = random.randrange(4)
    if kind == 0:
        with open(os.path.join(store, "index.json")) as file:
            index = file.read()
        numbers = [i for i, c in enumerate(index) if c.isdigit()]
        with open(os.path.join(store, "index.json"), "w") as file:
            at = random.choice(numbers)
            file.write(random.choice([index[:at] + random.choice(["9", "-1", "0", "1e9", "null", "1.5", "99999999999999999999"]) + index[at + 1 :],
                                      index.replace(random.choice(["obs", "act", "frames", "f32", "rows", "version", "float32", "uint8", "trajectories"]), random.choice(["..", "x", "", "obs", "a/b", "uint8", "float32"]), 1),
                                      index[: random.randrange(len(index))], index + "}", json.dumps([index]), "{}"]))
        return
    with open(path, "rb") as file:
        raw = file.read()
    if kind == 1:
        os.remove(path)
        random.choice([lambda: None, lambda: os.mkdir(path), lambda: os.symlink("nowhere", path)])()
        return
    if kind == 2:
        raw = random.choice(BLIND)(raw)
    elif path.endswith(".f32"):
        raw = spoil(np.frombuffer(raw, np.float32), random.choice([np.nan, np.inf, 7])).tobytes()
    else:
        at = random.randrange(len(raw) // 8) * 8
        raw = raw[:at] + struct.pack("<q", random.choice([-1, 0, 1, 2, ROWS, 1 << 40, -(1 << 63)])) + raw[at + 8 :]
    with open(path, "wb") as file:
        file.write(raw)


# ---- judging ----


def judge(*words):
    """0, perhaps with warnings (an array that is no part of a data set, columns of very different scale), or 1 with one line."""
    done = subprocess.run([DCRL, *map(str, words)], capture_output=True, timeout=60)
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if not line.startswith(("dcrl: warning: left out: ", "dcrl: warning: columns of "))]
    fine = not lines if done.returncode == 0 else done.returncode == 1 and len(lines) == 1 and lines[0].startswith("dcrl: ")
    assert fine, (words, done.returncode, done.stderr[-2000:])
    return done.returncode


TRAIN = ["--hidden", "4", "--batch", 4, "--steps", 1, "--threads", 1]


def check(scratch, number, path):
    """Both commands. What `info` refuses, training refuses; training may refuse more (NaN)."""
    run = scratch.at(f"run{number}")
    info, train = judge("data", "info", path), judge("train", *TRAIN, "--data", path, "--out", run)
    shutil.rmtree(run, ignore_errors=True)
    assert train == 1 or info == 0 or os.path.isdir(path), (path, info, train)  # of a store, only `info` reads every value
    (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
    return info, train


def make(scratch, number):
    path = scratch.at(f"{number}.npz")
    if number % 4 == 3:
        store = scratch.at(f"store{number}")
        shutil.copytree(scratch.at("store"), store)
        break_store(store)
        return "store", store
    mutation = random.choice(BLIND if number % 4 == 0 else KNOWING)
    with open(path, "wb") as file:
        file.write(mutation(packed(valid())) if mutation in BLIND else mutation())
    return mutation.__name__, path


def test_malformed():
    np.random.seed(random.randrange(1 << 32))
    with Scratch("malformed") as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        with open(scratch.at("good.npz"), "wb") as file:
            file.write(packed(valid()))
        good("data", "convert", scratch.at("good.npz"), scratch.at("store"))
        shutil.copytree(scratch.at("store"), scratch.at("copy"))
        assert check(scratch, "good", scratch.at("good.npz")) == check(scratch, "copy", scratch.at("copy")) == (0, 0)
        cases = [(name, pool.submit(check, scratch, n, path)) for n in range(COUNT) for name, path in [make(scratch, n)]]
        seen = collections.defaultdict(collections.Counter)
        for name, done in cases:
            seen[name][done.result()] += 1
    for name, counts in sorted(seen.items()):
        print(f"  {name}: {counts[1, 1]} refused, {counts[0, 1]} in training alone, {counts[1, 0]} by info alone, {counts[0, 0]} taken")
        assert counts[1, 1] > len(counts), name  # mutations do break things


if __name__ == "__main__":
    run_tests(globals())
