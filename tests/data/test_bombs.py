"""Files that lie about their size, or unpack to far more than they are: each is refused within 100 ms and 64 MB, whoever opens it.

Measured are seconds of the processor (more on a machine that is slower than others) and the largest resident memory, less what a call
takes that finds no file; and each call runs under a limit on its address space, so that what takes memory without touching it fails, too.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, call, checkpoints, good, quickest, run_tests, sanitized, slowness, words_of  # noqa: E402

SECONDS, MEMORY, ADDRESSES = 0.1, 64 << 20, 2 << 30
ENV = "pointmaze-medium-navigate-v0"
TOOL = os.path.join(os.environ["BUILD"], "tests", "tool_measure")
scratch = None
worst = {}  # of each command: seconds and bytes


def measure(*words):
    """Seconds of the processor, bytes of memory, exit status and message of a call."""
    out = scratch.at("measured")
    done = subprocess.run([TOOL, out, str(ADDRESSES >> 10), *words_of(words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (words, done)
    with open(out) as file:
        seconds, kilobytes, code = file.read().split()
    return float(seconds), int(kilobytes) << 10, int(code), done.stderr


def expect_refused(*words):
    limit = SECONDS * slowness()
    seconds, memory, code, said = quickest(lambda: measure(*words), limit)
    least = measure("data", "info", "/nowhere")[1]
    lines = said.splitlines()
    assert code == 1 and lines and all(line.startswith("dcrl: ") for line in lines), (words, code, said)
    assert seconds < limit, (words, seconds, limit, said)
    assert memory - least < MEMORY, (words, memory - least, said)
    worst[words[0]] = tuple(map(max, worst.get(words[0], (0, 0)), (seconds, memory - least)))


# ---- archives ----


def header(shape, dtype="<f4"):
    text = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zeros(start, count):
    """`count` zeros behind some bytes, deflated: a thousandth of that."""
    packer, out = zlib.compressobj(9, zlib.DEFLATED, -15), []
    out.append(packer.compress(start))
    block = bytes(1 << 20)
    for at in range(0, count, len(block)):
        out.append(packer.compress(block[: count - at]))
    crc = zlib.crc32(start)
    for at in range(0, count, len(block)):
        crc = zlib.crc32(block[: count - at], crc)
    return b"".join(out) + packer.flush(), len(start) + count, crc


def archive(path, entries, says=None):
    """A zip of (name, packed, size, crc); `says` replaces sizes in both headers."""
    body, directory = b"", b""
    for name, packed, size, crc in entries:
        name, at = name.encode() + b".npy", len(body)
        size = (says or {}).get(name.decode()[:-4], size)
        wide = struct.pack("<HHQQ", 1, 16, size, len(packed))
        common = struct.pack("<HHHHHIIIHH", 45, 0, 8, 0, 33, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(wide))
        body += b"PK\x03\x04" + common + name + wide + packed
        directory += b"PK\x01\x02\x2d\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, at) + name + wide
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    with open(path, "wb") as file:
        file.write(body + directory + end)


def plain(name, array):
    raw = header(array.shape, array.dtype.str) + array.tobytes()
    packed, size, crc = zeros(raw, 0)
    return name, packed, size, crc


def rows(n=20):
    return {"observations": np.zeros((n, 2), "f4"), "actions": np.zeros((n, 2), "f4"), "terminals": (np.arange(n) % 10 == 9).astype("f4")}


BOMB = 1 << 28  # bytes that a few hundred thousand unpack to


def archives():
    """{name: entries of an archive and sizes that it claims}"""
    good_rows = {name: plain(name, array) for name, array in rows().items()}
    swap = lambda name, start, count: list((good_rows | {name: (name, *zeros(start, count))}).values())
    yield "more-bytes-than-shape", swap("observations", header((20, 2)), BOMB), None
    yield "more-rows-than-others", swap("actions", header((BOMB // 8, 2)), BOMB), None
    yield "wide-terminals", swap("terminals", header((20, BOMB // 80)), BOMB), None
    yield "shape-without-bytes", swap("observations", header((1 << 40, 2)), 160), None
    yield "overflowing-shape", swap("observations", header((1 << 62, 1 << 62)), 160), None
    yield "huge-claim", list(good_rows.values()), {"observations": 1 << 40}
    yield "claim-in-ratio", list(good_rows.values()), {"observations": 100_000}
    yield "long-header", swap("observations", b"\x93NUMPY\x02\x00" + struct.pack("<I", BOMB - 12), BOMB), None


def test_archives():
    states = scratch.at("states.npz")
    for name, entries, says in archives():
        path = scratch.at(name + ".npz")
        archive(path, entries, says)
        assert os.path.getsize(path) < 3 << 20
        expect_refused("data", "info", path)
        expect_refused("train", "--env", ENV, "--data", path, "--out", scratch.at("never"))
        archive(states, [("qpos", *entry[1:]) if entry[0] == "observations" else entry for entry in entries],
                {"qpos": says["observations"]} if says else None)
        if name not in ("more-rows-than-others", "wide-terminals"):  # whose qpos is good
            expect_refused("env", "replay", ENV, "--in", states, "--out", scratch.at("never.npz"))
            expect_refused("render", ENV, "--states", states, "-o", scratch.at("never.png"))


# ---- stores ----


def test_stores():
    np.savez(scratch.at("good.npz"), **rows())
    good("data", "convert", scratch.at("good.npz"), scratch.at("store"))
    (name,) = [n for n in os.listdir(scratch.at("store")) if n.endswith(".json")]
    with open(scratch.at("store", name)) as file:
        text = file.read()
    for old, new in ((": 20", ": 1099511627776"), ('"width": 2', '"width": 1073741824')):
        changed = text.replace(old, new)
        if changed == text:
            continue
        bad = scratch.at("store-bad")
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(scratch.at("store"), bad)
        with open(os.path.join(bad, name), "w") as file:
            file.write(changed)
        expect_refused("data", "info", bad)
        expect_refused("train", "--env", ENV, "--data", bad, "--out", scratch.at("never"))
    for text in ("[" * 1000000, "[0," * 300000, '{"a":[' + "{}," * 300000, "{" + ",".join(f'"{i}":0' for i in range(100000)) + "}"):
        with open(os.path.join(bad, name), "w") as file:
            file.write(text)
        expect_refused("data", "info", bad)


# ---- HDF5 ----


def d4rl(edit):
    """A file of 100 rows, edited."""
    path = scratch.at("lie.hdf5")
    with h5py.File(path, "w") as file:
        for name, values in {"observations": np.zeros((100, 2), "f4"), "actions": np.zeros((100, 2), "f4"), "terminals": np.arange(100) % 50 == 49}.items():
            file[name] = values
        edit(file)
    return path


def again(file, name, *words, **more):
    del file[name]
    return file.create_dataset(name, *words, **more)


def grown(file):
    """A chunk of 128 MB of zeros, in 130 KB, of an array that claims sixteen of them."""
    for name in ("observations", "actions"):
        again(file, name, data=np.zeros((1 << 19, 1 << 8), "u1"), chunks=(1 << 19, 1 << 8), compression="gzip", maxshape=(None, None)).resize((1 << 19, 1 << 12))


def many_groups(file):
    del file["observations"]
    for number in range(20000):
        file.create_group(f"episode_{number}", track_order=False)


def deep(file):
    at = file
    for _ in range(2000):
        at = at.create_group("observations" if at is file and "observations" not in file else "g")


def test_hdf5():
    if "cannot read HDF5" in call("data", "convert", "nowhere.hdf5", "out.npz").stderr:
        return print("  this build has no HDF5")
    lies = {"rows": lambda f: [again(f, name, (1 << 34, 5), "f4", chunks=(1024, 5)) for name in ("observations", "actions")],
            "width": lambda f: again(f, "observations", (100, 1 << 40), "f4", chunks=(1, 1024)), "grown": grown, "groups": many_groups,
            "chunks": lambda f: again(f, "observations", (1 << 30, 2), "f4", chunks=(1 << 28, 2)),
            "dims": lambda f: again(f, "observations", (1,) * 32, "f4")}
    for name, edit in lies.items():
        expect_refused("data", "convert", d4rl(edit), scratch.at("no.npz"))
    path = d4rl(deep)
    with open(path, "r+b") as file:  # the size of what the root holds
        file.seek(40)
        file.write(b"\xff" * 24)
    expect_refused("data", "convert", path, scratch.at("no.npz"))
    assert not os.path.exists(scratch.at("no.npz"))


# ---- run folders ----


def openers(run):
    yield "eval", run, "--episodes", 1
    yield "map", run, "--task", 1
    yield "render", run, "-o", scratch.at("never.gif")
    yield "train", "--resume", run


def safetensors(text, tail=b"", n=None):
    return struct.pack("<Q", len(text) if n is None else n) + text + tail


def weights():
    """Files of weights that lie."""
    entry = lambda shape, size: {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}
    return {"long-header": safetensors(b"{}", n=1 << 62), "longer-than-file": safetensors(b"{}" + b" " * 100, n=99_000_000),
            "huge-tensor": safetensors(json.dumps({"actor/0/w": entry([1 << 40, 1 << 20], 1 << 62)}).encode()),
            "overflow": safetensors(json.dumps({"actor/0/w": entry([1 << 62, 1 << 62], 0)}).encode()),
            "many-tensors": safetensors(json.dumps({f"t{i}": entry([0], 0) for i in range(10000)}).encode()),
            "deep": safetensors(b"[" * 2_000_000), "wide": safetensors(b'{"a":[' + b"0," * 400_000 + b"0]}"),
            "wide-by-far": safetensors(b'{"a":[' + b"0," * 20_000_000 + b"0]}"),
            "metadata": safetensors(b'{"__metadata__":{' + b",".join(b'"k%d":""' % i for i in range(60000)) + b"}}")}


def test_checkpoints():
    shutil.copytree(scratch.at("run"), scratch.at("bad"))
    run = scratch.at("bad")
    os.remove(os.path.join(run, "DONE"))
    (path,) = checkpoints(run)
    for content in weights().values():
        with open(path, "wb") as file:
            file.write(content)
        for words in openers(run):
            expect_refused(*words)


def test_experts():
    expert, training = scratch.at("ant.safetensors"), scratch.at("trained.safetensors")
    for content in weights().values():
        for path in (expert, training + ".state"):
            with open(path, "wb") as file:
                file.write(content)
        expect_refused("expert", "eval", expert)
        expect_refused("gen", "antmaze-medium-navigate", "--expert", expert, "-o", scratch.at("never.npz"))
        expect_refused("expert", "train", "ant", "-o", training, "--set", "envs=1", "--set", "replay=1000", "--set", "random=100", "--set", "hidden=8", "--resume")


def test_configs():
    shutil.copytree(scratch.at("run"), scratch.at("configs"))
    run = scratch.at("configs")
    os.remove(os.path.join(run, "DONE"))
    path = os.path.join(run, "config.json")
    texts = {"deep": "[" * 1_000_000, "wide": "[0" + ",0" * 500_000 + "]", "objects": "[{}" + ",{}" * 330_000 + "]",
             "keys": "{" + ",".join(f'"k{i}":0' for i in range(90000)) + "}", "same": "{" + ",".join('"k":0' for _ in range(150000)) + "}",
             "text": '{"agent":"' + "x" * 1_000_000 + '"}'}
    for name, text in texts.items():
        with open(path, "w") as file:
            file.write(text)
        for words in (*openers(run), ("report", run, "-o", scratch.at("never.html"))):
            expect_refused(*words)
    with open(path, "w") as file:
        file.truncate(1 << 40)  # nothing on the disk
    for words in (*openers(run), ("report", run, "-o", scratch.at("never.html"))):
        expect_refused(*words)


def test_logs():
    run = scratch.at("logs")
    for name, text in (("train.csv", "step" + ",x" * 100000 + "\n"), ("train.csv", "step\n" + "\n" * 3_000_000), ("eval.csv", "step,overall_success\n" + "1,0.5\n" * 400_000),
                       ("train.csv", None), ("eval.csv", None), ("result.json", None)):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(scratch.at("run"), run)
        with open(os.path.join(run, name), "w") as file:
            file.write(text or "")
            if text is None:
                file.truncate(1 << 40)
        expect_refused("report", run, "-o", scratch.at("never.html"))
        if name == "eval.csv":
            expect_refused("eval", run, "--episodes", 1)


def prepare():
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 2)
    good("train", "--env", ENV, "--data", scratch.at("data.npz"), "--hidden", "16,16", "--batch", 16, "--steps", 5, "--threads", 1,
         "--out", scratch.at("run"))


if __name__ == "__main__":
    if sanitized():
        print("skipped: a sanitizer needs terabytes of addresses, more than the limit here")
        sys.exit(0)
    with Scratch("bombs") as scratch:
        prepare()
        run_tests(globals())
        for name, (seconds, memory) in worst.items():
            print(f"  {name}: at most {seconds * 1000:.0f} ms, {memory >> 20} MB")
