"""Stores against numpy: npz -> store -> npz keeps every array, a store gives the same samples and the same
trained bytes as the file it came from, several files follow each other, and what is broken gets one clear line.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch, bad, call, checkpoints, digests, good, run_tests  # noqa: E402

CLIP = np.float32(1 - 1e-5)


def make(path, rows, seed, packed=False, **more):
    rng = np.random.default_rng(seed)
    cuts = np.cumsum(rng.integers(2, 200, rows))
    terminals = np.zeros(rows, bool)
    terminals[cuts[cuts < rows - 1] - 1] = True
    terminals[-1] = True
    if terminals[-2]:
        terminals[-2] = False
    arrays = {
        "observations": rng.standard_normal((rows, 3, 2), dtype=np.float32),
        "actions": rng.uniform(-0.999, 0.999, (rows, 4)).astype(np.float32),
        "terminals": terminals,
        "button_states": rng.integers(-100, 100, (rows, 2)),
        "qvel": rng.standard_normal((rows,)).astype(np.float32),
        **more,
    }
    (np.savez_compressed if packed else np.savez)(path, **arrays)
    return arrays


def same(path, arrays):
    with np.load(path) as file:
        assert set(file.files) == set(arrays), file.files
        for name in file.files:
            assert file[name].dtype == arrays[name].dtype, name
            assert np.array_equal(file[name], arrays[name]), name


def hash_of(path):
    return json.loads(good("data", "info", path, "--json"))["hash"]


def test_round_trip():
    with Scratch("store") as s:
        for rows, shard in (10, 1024), (1024, 1024), (1025, 1024), (5000, 1024), (5000, 2048), (70001, 65536):
            for packed in False, True:
                arrays = make(s.at("a.npz"), rows, rows, packed)
                good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", shard)
                index = json.load(open(s.at("d", "index.json")))
                assert sum(index["shards"]) == rows and len(index["shards"]) == -(-rows // shard)
                parts = [np.fromfile(s.at("d", f"obs-{i:05d}.f32"), "<f4") for i in range(len(index["shards"]))]
                assert np.array_equal(np.concatenate(parts), arrays["observations"].ravel())
                good("data", "convert", s.at("d"), s.at("b.npz"), "--level", int(packed))
                same(s.at("b.npz"), arrays)
                assert hash_of(s.at("a.npz")) == hash_of(s.at("d")) == hash_of(s.at("b.npz")) == index["hash"]
                shutil.rmtree(s.at("d"))


def test_types():
    """Floats of other sizes become float32 and are clipped as a load would; whole numbers come back as they were."""
    with Scratch("store") as s:
        rng = np.random.default_rng(3)
        more = {
            "actions": rng.uniform(-1, 1, (600, 2)) * 1.0009,
            "half": rng.standard_normal((600, 1)).astype(np.float16),
            "small": rng.integers(0, 255, (600, 7)).astype(np.uint8),
            "wide": rng.integers(-(1 << 20), 1 << 20, (600, 1, 3)).astype(np.int32),
        }
        arrays = make(s.at("a.npz"), 600, 1, **more)
        good("data", "convert", s.at("a.npz"), s.at("d"))
        good("data", "convert", s.at("d"), s.at("b.npz"))
        arrays["actions"] = np.clip(arrays["actions"].astype(np.float32), -CLIP, CLIP)
        arrays["half"] = arrays["half"].astype(np.float32)
        same(s.at("b.npz"), arrays)
        discrete = make(s.at("e.npz"), 600, 1, actions=rng.integers(0, 6, 600))
        good("data", "convert", s.at("e.npz"), s.at("e"))
        good("data", "convert", s.at("e"), s.at("f.npz"))
        same(s.at("f.npz"), discrete)


def test_units():
    """Actions that are not within [-1, 1] in any of the files stay as they are in all of them, and the index says so."""
    with Scratch("store") as s:
        near, far = (make(s.at(f"{i}.npz"), 3000, i, actions=np.random.default_rng(i).uniform(-x, x, (3000, 2)).astype(np.float32))
                     for i, x in enumerate((1.0005, 3)))
        good("data", "convert", s.at("0.npz"), s.at("1.npz"), s.at("d"), "--rows-per-shard", 1024)
        whole = {name: np.concatenate([near[name], far[name]]) for name in near}
        np.savez(s.at("all.npz"), **whole)
        good("data", "convert", s.at("d"), s.at("b.npz"))
        same(s.at("b.npz"), whole)
        index = json.load(open(s.at("d", "index.json")))
        low, high = float(whole["actions"].min()), float(whole["actions"].max())
        assert index["actions"] == [low, high]
        for name in "all.npz", "d":
            info = json.loads(good("data", "info", s.at(name), "--json"))
            assert (info["act_min"], info["act_max"], info["hash"]) == (low, high, index["hash"]), info
            assert info["needs_act_scale"] and not info["wants_obs_scale"], info
            assert f"from {low:.6g} to {high:.6g}" in good("data", "info", s.at(name))
            bad(1, ["not within [-1, 1]", f"{high:.4g}", "--act-scale auto"], "train", "--data", s.at(name), "--steps", 2, "--out", s.at("run"))
        for broken in [1], [3, -3], [-1, 1], [0, "3"], [0, 1e300], 3:
            with open(s.at("d", "index.json"), "w") as file:
                json.dump({**index, "actions": broken}, file)
            bad(1, ["'actions' is", s.at("d")], "data", "info", s.at("d"))


def test_timeouts():
    """D4RL's timeouts end trajectories on both ways in, as the end of each file with timeouts does."""
    with Scratch("store") as s:
        rng = np.random.default_rng(1)
        terminals, timeouts = (rng.permutation(9000) < 20 for _ in range(2))
        for flags in terminals, timeouts:  # no trajectory of a single row
            flags[:4] = flags[-4:] = False
        ends = terminals | timeouts
        timeouts[1:] &= ~ends[:-1]
        terminals[1:] &= ~ends[:-1]
        make(s.at("a.npz"), 9000, 0, terminals=terminals, timeouts=timeouts)
        info = json.loads(good("data", "info", s.at("a.npz"), "--json"))
        assert info["trajectories"] == 1 + (terminals | timeouts).sum() > 20 and "timeouts" not in info["columns"]
        good("data", "convert", s.at("a.npz"), s.at("d"))
        assert hash_of(s.at("d")) == info["hash"]
        good("data", "convert", s.at("d"), s.at("b.npz"))
        assert hash_of(s.at("b.npz")) == info["hash"]
        good("data", "convert", s.at("a.npz"), s.at("a.npz"), s.at("e"))
        assert json.loads(good("data", "info", s.at("e"), "--json"))["trajectories"] == 2 * info["trajectories"]
        make(s.at("none.npz"), 20, 0, terminals=np.zeros(20))
        for words in ("info", s.at("none.npz")), ("convert", s.at("none.npz"), s.at("f")):
            assert "set terminals" not in bad(1, ["no trajectory ends", "last row of every episode", "timeouts"], "data", *words)


def pictures(rows, seed=0, **more):
    rng = np.random.default_rng(seed)
    return {"observations": rng.integers(0, 256, (rows, 8, 9, 3)).astype(np.uint8), "keys": rng.integers(0, 256, rows).astype(np.uint8), **more}


def test_pictures():
    """uint8 arrays are bytes on disk, in numpy and back in an .npz; only actions are not."""
    with Scratch("store") as s:
        for packed in False, True:
            arrays = make(s.at("a.npz"), 9000, 1, packed, **pictures(9000, actions=np.arange(9000).astype(np.uint8) % 7))
            bad(1, ["4096"], "data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 1024)
            good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 4096)
            index = json.load(open(s.at("d", "index.json")))
            types = {c["name"]: (c["dtype"], c["shape"], c["source"]) for c in index["columns"]}
            assert types["obs"] == ("uint8", [8, 9, 3], "uint8") and types["keys"] == ("uint8", [], "uint8"), types
            assert types["act"] == ("float32", [], "uint8") and types["qvel"] == ("float32", [], "float32"), types
            parts = [np.fromfile(s.at("d", f"obs-{i:05d}.u8"), np.uint8) for i in range(3)]
            assert np.array_equal(np.concatenate(parts), arrays["observations"].ravel())
            assert os.path.getsize(s.at("d", "keys-00000.u8")) == 4096 and not os.path.exists(s.at("d", "obs-00000.f32"))
            good("data", "convert", s.at("d"), s.at("b.npz"), "--level", int(packed))
            same(s.at("b.npz"), arrays)
            infos = [json.loads(good("data", "info", s.at(name), "--json")) for name in ("a.npz", "d", "b.npz")]
            for info in infos:
                assert (info["obs_type"], info["obs_dim"], info["obs_min"], info["obs_max"]) == ("uint8", 216, 0, 255), info
                assert (info["act_type"], info["act_max"], info["hash"]) == ("float32", 6, index["hash"]), info
            assert {a["name"]: a["dtype"] for a in infos[1]["arrays"]}["obs"] == "uint8"
            assert "216 values per row, uint8, from 0 to 255" in good("data", "info", s.at("d"))
            assert good("sample", "--data", s.at("a.npz")) == good("sample", "--data", s.at("d"))
            shutil.rmtree(s.at("d"))


def test_memory():
    """Pictures take their bytes of memory, not four times as much."""
    with Scratch("store", disk=True) as s:
        make(s.at("a.npz"), 20000, 0, observations=np.zeros((20000, 64, 64, 3), np.uint8))
        words = [DCRL, "data", "info", s.at("a.npz"), "--json"]
        most = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
                               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *words], capture_output=True, text=True, check=True)
        size = os.path.getsize(s.at("a.npz")) / 1024
        assert int(most.stdout) < 2.5 * size, (most.stdout, size)  # the mapped file counts too


def test_old_store():
    """A store from before there were bytes: uint8 pictures lie there as float32, and stay so."""
    with Scratch("store") as s:
        arrays = make(s.at("a.npz"), 3000, 0, **pictures(3000))
        floats = {k: v.astype(np.float32) if v.dtype == np.uint8 else v for k, v in arrays.items()}
        np.savez(s.at("f.npz"), **floats)
        good("data", "convert", s.at("f.npz"), s.at("d"))
        path = s.at("d", "index.json")
        index = json.load(open(path))
        for column in index["columns"]:
            assert column["dtype"] == "float32"
            if column["name"] in ("obs", "keys"):
                column["source"] = "uint8"
        with open(path, "w") as file:
            json.dump(index, file)
        info = json.loads(good("data", "info", s.at("d"), "--json"))
        assert info["obs_type"] == "float32" and info["hash"] == hash_of(s.at("f.npz")) != hash_of(s.at("a.npz"))
        good("data", "convert", s.at("d"), s.at("b.npz"))
        same(s.at("b.npz"), arrays)


def test_broken_bytes():
    """What an index may not say of columns of bytes."""
    with Scratch("store") as s:
        make(s.at("a.npz"), 9000, 0, **pictures(9000))
        good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 4096)
        path = s.at("d", "index.json")
        index = json.load(open(path))
        act = next(i for i, c in enumerate(index["columns"]) if c["name"] == "act")
        obs = next(i for i, c in enumerate(index["columns"]) if c["name"] == "obs")
        for place, new, words in [
            (("columns", act, "dtype"), "uint8", "actions are no bytes"),
            (("columns", obs, "dtype"), "float32", "obs-00000.f32"),
            (("columns", obs, "dtype"), "int8", "columns of int8 cannot be read yet"),
            (("columns", obs, "shape"), [8, 9, 4], "obs-00000.u8"),
            (("shards",), [4096, 1024, 3880], "whole pages"),
        ]:
            with open(path, "w") as file:
                json.dump(set_at(index, place, new), file)
            bad(1, [words, s.at("d")], "data", "info", s.at("d"))
            bad(1, [words, s.at("d")], "sample", "--data", s.at("d"))


def test_several():
    with Scratch("store") as s:
        parts = [make(s.at(f"{i}.npz"), rows, i, packed=i % 2 == 0) for i, rows in enumerate([1000, 3, 5000, 1024])]
        whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        np.savez(s.at("all.npz"), **whole)
        good("data", "convert", *[s.at(f"{i}.npz") for i in range(4)], s.at("d"), "--rows-per-shard", 2048)
        assert hash_of(s.at("d")) == hash_of(s.at("all.npz"))
        good("data", "convert", s.at("d"), s.at("back.npz"))
        same(s.at("back.npz"), whole)
        make(s.at("other.npz"), 50, 0, extra=np.zeros(50))
        bad(1, ["'extra'", "0.npz", "other.npz"], "data", "convert", s.at("0.npz"), s.at("other.npz"), s.at("x"))
        bad(1, ["'extra'", "0.npz", "other.npz"], "data", "convert", s.at("other.npz"), s.at("0.npz"), s.at("x"))
        make(s.at("wide.npz"), 50, 0, qvel=np.zeros((50, 2), np.float32))
        bad(1, ["'qvel'", "wide.npz"], "data", "convert", s.at("0.npz"), s.at("wide.npz"), s.at("x"))
        assert not os.path.exists(s.at("x"))


def test_same_numbers():
    """Samples and trained bytes do not depend on where the rows lie."""
    with Scratch("store") as s:
        make(s.at("a.npz"), 9000, 5, packed=True)
        good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 1024)
        for stream in "dc", "prop":
            words = ["sample", "--stream", stream, "--count", 50000, "--data"]
            assert good(*words, s.at("a.npz")) == good(*words, s.at("d"))
        train = ["train", "--agent", "dcrl", "--hidden", "32,32", "--batch", 64, "--steps", 60, "--save-every", 20, "--data"]
        for name in "a.npz", "d":
            good(*train, s.at(name), "--out", s.at("run-" + name))
        assert digests(s.at("run-a.npz")) == digests(s.at("run-d"))
        # And after a resume, when the sampler that prefetches has to catch up.
        os.remove(s.at("run-d", "DONE"))
        os.remove(checkpoints(s.at("run-d"))[-1])
        assert " goes on at step 40 " in good("train", "--resume", s.at("run-d"))
        assert digests(s.at("run-a.npz")) == digests(s.at("run-d"))


def test_refused_conversions():
    with Scratch("store") as s:
        make(s.at("a.npz"), 100, 0)
        good("data", "convert", s.at("a.npz"), s.at("d"))
        bad(1, ["something is there already", s.at("d")], "data", "convert", s.at("a.npz"), s.at("d"))
        bad(1, ["something is there already"], "data", "convert", s.at("a.npz"), s.at("a.npz", "x"))
        bad(1, ["a folder cannot be converted into a folder"], "data", "convert", s.at("d"), s.at("e"))
        bad(1, ["not a folder"], "data", "convert", s.at("a.npz"), s.at("b.npz"))
        bad(1, ["cannot open", "none.npz"], "data", "convert", s.at("none.npz"), s.at("e"))
        bad(2, ["several inputs"], "data", "convert", s.at("d"), s.at("d"), s.at("b.npz"))
        bad(2, ["an input or the output is missing"], "data", "convert", s.at("a.npz"))
        bad(2, ["multiple of 1024"], "data", "convert", s.at("a.npz"), s.at("e"), "--rows-per-shard", 1500)
        bad(2, ["1024"], "data", "convert", s.at("a.npz"), s.at("e"), "--rows-per-shard", 10)
        bad(2, ["did you mean 'convert'?"], "data", "convrt", s.at("a.npz"), s.at("e"))
        make(s.at("nan.npz"), 100, 0, actions=np.full((100, 2), np.nan, np.float32))
        bad(1, ["NaN", "'actions'", "row 0", "nan.npz"], "data", "convert", s.at("nan.npz"), s.at("e"))
        make(s.at("open.npz"), 100, 0, terminals=np.zeros(100))
        bad(1, ["no trajectory ends", "open.npz"], "data", "convert", s.at("open.npz"), s.at("e"))
        make(s.at("short.npz"), 100, 0, terminals=np.ones(100))
        bad(1, ["a single row"], "data", "convert", s.at("short.npz"), s.at("e"))
        make(s.at("name.npz"), 100, 0, **{"a b": np.zeros(100)})
        bad(1, ["'a b'", "rename"], "data", "convert", s.at("name.npz"), s.at("e"))
        assert not os.path.exists(s.at("e")), os.listdir(s.at("e"))
        assert sorted(os.listdir(s.at("d"))) == sorted(
            ["index.json", "trajectories.i64"] + [f"{c}-00000.f32" for c in ("obs", "act", "button_states", "qvel")])


def test_stop():
    """SIGTERM leaves nothing; SIGKILL leaves a folder that is refused as unfinished."""
    with Scratch("store", disk=True) as s:
        make(s.at("a.npz"), 1_500_000, 0, qpos=np.random.default_rng(0).standard_normal((1_500_000, 30), dtype=np.float32))
        for number in signal.SIGTERM, signal.SIGKILL:
            for _ in range(20):  # until one comes in time
                process = subprocess.Popen([DCRL, "data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", "65536"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                while process.poll() is None and not os.path.exists(s.at("d", "obs-00001.f32")):
                    time.sleep(0.001)
                process.send_signal(number)
                error = process.communicate()[1]
                assert process.returncode in (0, 75, -number), (process.returncode, error)
                if process.returncode != 0:
                    break
                shutil.rmtree(s.at("d"))
            assert process.returncode == (75 if number == signal.SIGTERM else -number), (process.returncode, error)
            if number == signal.SIGTERM:
                assert "stopped" in error and not os.path.exists(s.at("d")), error
        assert not os.path.exists(s.at("d", "index.json"))
        bad(1, ["no finished store", s.at("d")], "data", "info", s.at("d"))
        bad(1, ["no finished store", s.at("d")], "sample", "--data", s.at("d"))


def set_at(value, path, new):
    """A copy of nested lists and objects with one place replaced (or removed)."""
    if not path:
        return new
    copy = value.copy()
    if len(path) == 1 and new is set_at:
        del copy[path[0]]
    else:
        copy[path[0]] = set_at(value[path[0]], path[1:], new)
    return copy


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


WRONG = [None, True, -1, 0, 1, 1023, 1.5, 2**31, 2**62, 2**63, 10**30, "", "x", "../x", "obs", "uint8", "\0", [], [1, 2], {}, [[]], {"a": 1}]


def index_edits(index, count):
    all_places = list(places(index))
    for _ in range(count):
        path = random.choice(all_places)
        new = random.choice([*WRONG, set_at]) if path else random.choice(WRONG)
        edited = set_at(index, path, new)
        if edited != index:
            yield path, new, edited


def harmless(path, new):
    """Edits that leave a store whole: another type of origin, two values per row in another shape."""
    return path[-1:] in (("source",), ("terminals",)) and new == "uint8" or path[-1:] == ("shape",) and new == [1, 2]


def test_broken_index():
    """Edits of every place of the index, and bytes flipped and cut: one line, status 1."""
    with Scratch("store") as s:
        make(s.at("a.npz"), 5000, 0)
        good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 1024)
        path = s.at("d", "index.json")
        text = open(path, "rb").read()
        index = json.loads(text)
        taken = 0
        for place, new, edited in index_edits(index, 220):
            with open(path, "w") as file:
                json.dump(edited, file)
            done = call("data", "info", s.at("d"))
            if done.returncode == 0:
                assert harmless(place, new), (place, new)
                taken += 1
                continue
            line = bad(1, s.at("d"), "data", "info", s.at("d"))
            if "do not match the hash" not in line:  # a column less is for info alone to find
                bad(1, s.at("d"), "sample", "--data", s.at("d"))
        assert taken < 40
        for _ in range(100):
            broken = bytearray(text)
            if random.random() < 0.5:
                broken = broken[: random.randrange(len(broken) - 2)]
            else:
                broken[random.randrange(len(broken))] ^= 1 << random.randrange(8)
            with open(path, "wb") as file:
                file.write(broken)
            done = call("data", "info", s.at("d"))
            if done.returncode == 0:  # a blank that became another one
                assert json.loads(broken) == index, broken
            else:
                assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr


def test_broken_files():
    with Scratch("store") as s:
        make(s.at("a.npz"), 5000, 0)
        good("data", "convert", s.at("a.npz"), s.at("d"), "--rows-per-shard", 1024)
        names = sorted(os.listdir(s.at("d")))
        for name in names:
            path = s.at("d", name)
            with open(path, "rb") as file:
                bytes_ = file.read()
            for change in bytes_[:-1], bytes_ + b"\0", b"", bytes_[: len(bytes_) // 2], None, "folder", "pipe":
                os.remove(path)
                if change == "folder":
                    os.mkdir(path)
                elif change == "pipe":
                    os.mkfifo(path)
                elif change is not None:
                    with open(path, "wb") as file:
                        file.write(change)
                if name != "index.json" or change != bytes_[:-1]:  # that was its last newline
                    for words in ["data", "info", s.at("d")], ["sample", "--data", s.at("d"), "--count", 10]:
                        bad(1, s.at("d"), *words)
                    bad(1, s.at("d"), "data", "convert", s.at("d"), s.at("b.npz"))
                os.rmdir(path) if change == "folder" else os.path.lexists(path) and os.remove(path)
                with open(path, "wb") as file:
                    file.write(bytes_)
        assert not os.path.exists(s.at("b.npz"))
        # One bit of a value: info reads and tells; the sampler never looks at it.
        with open(s.at("d", "obs-00002.f32"), "r+b") as file:
            file.seek(777)
            byte = file.read(1)[0]
            file.seek(777)
            file.write(bytes([byte ^ 1]))
        bad(1, ["do not match the hash", s.at("d")], "data", "info", s.at("d"))
        # A table that does not ascend.
        for edit in lambda t: t[::-1], lambda t: t * 0, lambda t: t - 1, lambda t: t + 2**62, lambda t: np.sort(t)[::-1] * -1:
            table = np.fromfile(s.at("d", "trajectories.i64"), "<i8")
            edit(table).tofile(s.at("d", "trajectories.i64"))
            bad(1, ["the table of trajectories", s.at("d")], "sample", "--data", s.at("d"))
            table.tofile(s.at("d", "trajectories.i64"))


if __name__ == "__main__":
    run_tests(dict(globals()))
