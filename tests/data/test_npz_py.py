"""npz files against numpy, both ways, and malformed files against `dcrl data info`.

Arrays are drawn by one seed for these sources (fresh.py); a failure prints DCRL_SEED=..., which repeats it. The C side is
tests/data/tool_npz.c and the dcrl program itself.
"""
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np
from numpy.lib import format as npy_format

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import fresh  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
DCRL = os.environ.get("DCRL", BUILD + "/dcrl")
TOOL = BUILD + "/tests/tool_npz"
SEED = fresh.seed()
MUTANTS = int(os.environ.get("MUTANTS", "1500"))
rng = np.random.default_rng(SEED)

DTYPES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]


def random_array(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4)
        return np.asarray(values).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, size=shape)).astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True))


def random_shape():
    ndim = int(rng.integers(0, 5))
    return tuple(int(n) for n in rng.integers(0 if rng.random() < 0.2 else 1, 9, size=ndim))


def random_arrays():
    arrays = {f"x{i}": random_array(t, random_shape()) for i, t in enumerate(DTYPES)}
    arrays["large"] = random_array(rng.choice(DTYPES), (int(rng.integers(50000, 300000)), 3))
    arrays["empty"] = np.zeros((0, 4), "f4")
    arrays["scalar"] = np.array(rng.normal())
    return arrays


# ---- numpy writes, we read


def raw_npz(arrays, method=zipfile.ZIP_STORED, force_zip64=False, version=None, pipe=False, comment=b""):
    """An npz file with choices that numpy.savez does not offer."""

    class Pipe(io.RawIOBase):  # cannot seek, so zipfile writes data descriptors
        def __init__(self):
            self.data = bytearray()

        def writable(self):
            return True

        def write(self, b):
            self.data += bytes(b)
            return len(b)

    f = Pipe() if pipe else io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        z.comment = comment
        for name, a in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy")
            entry.compress_type = method
            with z.open(entry, "w", force_zip64=force_zip64) as g:
                npy_format.write_array(g, np.asarray(a), version=version, allow_pickle=False)
    return bytes(f.data) if pipe else f.getvalue()


def numpy_files(arrays):
    f = io.BytesIO()
    np.savez(f, **arrays)
    yield "savez", f.getvalue()
    f = io.BytesIO()
    np.savez_compressed(f, **arrays)
    yield "savez_compressed", f.getvalue()
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for version in ((1, 0), (2, 0), (3, 0)):
            yield f"{method} {version}", raw_npz(arrays, method, version=version)
        yield f"{method} zip64", raw_npz(arrays, method, force_zip64=True)
        yield f"{method} pipe", raw_npz(arrays, method, pipe=True)
        yield f"{method} pipe zip64", raw_npz(arrays, method, pipe=True, force_zip64=True)
        yield f"{method} comment", raw_npz(arrays, method, comment=b"PK\x05\x06" * 20)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def check_read(arrays, path, folder):
    out = subprocess.run([TOOL, "read", path, folder], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert len(lines) == len(arrays)
    for i, line in enumerate(lines):
        name, dtype, *shape = line.split()
        want = np.asarray(arrays[name])
        assert np.dtype(dtype) == want.dtype and tuple(map(int, shape)) == want.shape, line
        load = lambda ending, t: np.fromfile(f"{folder}/{i}.{ending}", t).reshape(want.shape)
        assert same(load("raw", want.dtype), want), line
        with np.errstate(over="ignore"):
            assert same(load("f4", "f4"), want.astype("f4")), line
        assert same(load("f8", "f8"), want.astype("f8")), line


def test_read(folder):
    path = folder + "/in.npz"
    for round in range(3):
        arrays = random_arrays()
        for name, data in numpy_files(arrays):
            open(path, "wb").write(data)
            try:
                check_read(arrays, path, folder)
            except AssertionError as e:
                raise AssertionError(f"{name}: {e}")


# ---- we write, numpy reads


def write_with_tool(arrays, level, chunk, path, folder):
    with open(folder + "/spec", "w") as spec:
        for i, (name, a) in enumerate(arrays.items()):
            np.asarray(a).tofile(f"{folder}/{i}.src")
            turns = chunk if a.ndim else 0
            print(name, a.dtype, turns, f"{folder}/{i}.src", *a.shape, file=spec)
    out = subprocess.run([TOOL, "write", path, str(level), folder + "/spec"], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr


def test_write(folder):
    path = folder + "/out.npz"
    for level in (0, 1, 6, 9):
        for chunk in (0, 1, 7, 1000):
            arrays = random_arrays()
            if chunk == 1:
                del arrays["large"]
            write_with_tool(arrays, level, chunk, path, folder)
            with np.load(path) as f:
                assert list(f) == list(arrays)
                for name, a in arrays.items():
                    assert same(f[name], a), (name, level, chunk)
            with zipfile.ZipFile(path) as z:
                assert z.testzip() is None
                for info in z.infolist():
                    assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert subprocess.run([sys.executable, "-m", "zipfile", "-t", path],
                                  capture_output=True).returncode == 0
            check_read(arrays, path, folder)


# ---- data sets


def random_dataset(rows=60, obs="f4", act="f4"):
    ends = np.zeros(rows, "?")
    ends[np.r_[np.arange(7, rows - 2, 8), rows - 1]] = True
    observations = random_array(obs, (rows, 3)) if np.dtype(obs).kind == "f" else random_array(obs, (rows, 2, 2))
    return dict(observations=observations, actions=rng.uniform(-1.5, 1.5, (rows, 2)).astype(act),
                terminals=ends, qpos=rng.normal(size=(rows, 4)))


def info(path, *flags, **kwargs):
    return subprocess.run([DCRL, "data", "info", path, *flags], capture_output=True, timeout=60, **kwargs)


def test_info(folder):
    path = folder + "/data.npz"
    hashes = set()
    data = random_dataset()
    for name, content in list(numpy_files(data)) + [("shuffled", raw_npz(dict(reversed(data.items()))))]:
        open(path, "wb").write(content)
        out = info(path, "--json")
        assert out.returncode == 0 and out.stderr == b"", out.stderr
        got = json.loads(out.stdout)
        lengths = np.diff(np.r_[-1, np.flatnonzero(data["terminals"])])
        assert got["rows"] == 60 and got["trajectories"] == len(lengths)
        assert (got["length_min"], got["length_median"], got["length_max"]) == (
            lengths.min(), np.median(lengths), lengths.max())
        assert got["obs_dim"] == 3 and got["act_dim"] == 2
        assert got["obs_min"] == data["observations"].min() and got["obs_max"] == data["observations"].max()
        assert got["act_min"] == data["actions"].min() and got["act_max"] == data["actions"].max()
        arrays = {a["name"]: a for a in got["arrays"]}
        for key, a in data.items():
            assert arrays[key]["dtype"] == str(a.dtype) and arrays[key]["shape"] == list(a.shape)
            assert arrays[key]["bytes"] == a.nbytes
        hashes.add(got["hash"])
        text = info(path).stdout.decode()
        assert got["hash"] in text and "float32" in text
    assert len(hashes) == 1
    # The same values in a wider type are the same content; other values are not.
    wide = dict(data, observations=data["observations"].astype("f8"))
    open(path, "wb").write(raw_npz(wide))
    assert json.loads(info(path, "--json").stdout)["hash"] in hashes
    data["observations"][59, 2] += 1
    open(path, "wb").write(raw_npz(data))
    assert json.loads(info(path, "--json").stdout)["hash"] not in hashes


def test_usage():
    for args, status, text in [
        (["data", "--help"], 0, b"usage: dcrl data info"),
        (["data"], 2, b"sub-command is missing"),
        (["data", "inof", "x"], 2, b"'info'"),
        (["data", "info", "x", "--jsno"], 2, b"'--json'"),
        (["data", "info"], 2, b"path is missing"),
        (["data", "info", "a", "b"], 2, b"second path"),
        (["data", "info", "/nowhere/x.npz"], 1, b"/nowhere/x.npz"),
        (["data", "info", "/"], 1, b"(/)"),
    ]:
        out = subprocess.run([DCRL, *args], capture_output=True)
        assert out.returncode == status, (args, out)
        told = out.stdout if status == 0 else out.stderr
        assert text in told, (args, told)
        assert (out.stderr == b"") == (status == 0) and (out.stdout == b"") == (status != 0)
        assert status == 0 or (out.stderr.count(b"\n") == 1 and out.stderr.startswith(b"dcrl: ")), out.stderr


# ---- malformed files


class Limits:
    """Address space and time of a child; a sanitizer needs terabytes of the first, so it is tried."""

    def __init__(self, path):
        self.on = True
        self.on = info(path, preexec_fn=self.apply).returncode == 0

    def apply(self):
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.on:
            resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))


def check_survives(path, limits, what):
    out = info(path, preexec_fn=limits.apply)
    # A mutation may turn an extra array into one that is skipped with a warning: that is no error.
    out.stderr = b"".join(l for l in out.stderr.splitlines(True) if not l.startswith(b"dcrl: warning: "))
    tell = f"{what}: exit {out.returncode}, {out.stderr[-500:]!r}"
    assert out.returncode in (0, 1), tell
    if out.returncode:
        assert out.stdout == b"" and out.stderr.count(b"\n") == 1 and out.stderr.startswith(b"dcrl: "), tell
    else:
        assert out.stderr == b"", tell
    return out


def records(data):
    """Offsets of all zip records in a file."""
    for signature in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"):
        at = data.find(signature)
        while at >= 0:
            yield at
            at = data.find(signature, at + 1)


def mutate(data):
    """One malformed variant, and what was done."""
    b = bytearray(data)
    kind = rng.integers(0, 6)
    if kind == 0:
        n = int(rng.integers(0, len(b)))
        return bytes(b[:n]), f"cut to {n}"
    if kind == 1:  # single bits anywhere
        for at in rng.integers(0, len(b), size=rng.integers(1, 4)):
            b[at] ^= 1 << int(rng.integers(0, 8))
        return bytes(b), "bits"
    if kind == 2:  # a field of a zip record gets an extreme value
        at = int(rng.choice(list(records(data)))) + int(rng.integers(4, 56))
        size = int(rng.choice([1, 2, 4, 8]))
        value = int(rng.choice([0, 1, 0x7F, 0xFF])).to_bytes(1, "little") * size
        b[at:at + size] = value
        return bytes(b), f"field at {at}"
    if kind == 3:  # the text of an npy header
        at = data.find(b"\x93NUMPY")
        if at >= 0:
            b[at + int(rng.integers(6, 90))] = int(rng.choice(list(b"0123456789(),'{}<>| fFuV\x00\xff")))
        return bytes(b), "npy header"
    if kind == 4:  # a piece moved or repeated
        i, j = sorted(int(x) for x in rng.integers(0, len(b), size=2))
        to = int(rng.integers(0, len(b)))
        return bytes(b[:to] + b[i:j] + b[to:]), f"repeat {i}:{j} at {to}"
    i, j = sorted(int(x) for x in rng.integers(0, len(b), size=2))
    return bytes(b[:i] + b[j:]), f"remove {i}:{j}"


def fix_crc(data):
    """Make the checksums right again, so that damage gets past them where it can."""
    b = bytearray(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for info in z.infolist():
                at = info.header_offset
                start = at + 30 + sum(struct.unpack("<HH", b[at + 26:at + 30]))
                packed = bytes(b[start:start + info.compress_size])
                plain = zlib.decompress(packed, -15) if info.compress_type == 8 else packed
                crc = struct.pack("<I", zlib.crc32(plain))
                old = struct.pack("<I", info.CRC)
                b = bytearray(bytes(b).replace(old, crc))
    except Exception:
        pass
    return bytes(b)


def stored_entry(name, content, crc=None):
    """Local header and content of a stored entry, and a function that makes its directory record."""
    crc = zlib.crc32(content) if crc is None else crc
    common = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0x21, crc, len(content), len(content), len(name), 0)
    local = b"PK\x03\x04" + common + name + content
    central = lambda at: b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, at) + name
    return local, central


def end_record(directory, count, at):
    return b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), at, 0)


def npy(a):
    f = io.BytesIO()
    npy_format.write_array(f, a)
    return f.getvalue()


def bombs():
    """Files that promise far more than they hold."""
    inner, inner_central = stored_entry(b"b.npy", npy(np.zeros(4, "u1")))
    outer, outer_central = stored_entry(b"a.npy", npy(np.frombuffer(inner, "u1")))
    directory = outer_central(0) + inner_central(outer.find(inner))
    yield "overlap", outer + directory + end_record(directory, 2, len(outer)), b"overlap"

    header = npy(np.zeros(0, "u1")).replace(b"(0,)", b"(1152921504606846976,)".ljust(4))
    local, central = stored_entry(b"observations.npy", header)
    yield "shape", local + central(0) + end_record(central(0), 1, len(local)), b"observations"

    many = end_record(b"", 65535, 0)
    yield "count", many, b"dcrl: "

    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("observations.npy", npy(np.zeros(1 << 20, "u1")))
    data = f.getvalue()  # the declared size becomes 4000 times the packed one
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        old = struct.pack("<I", z.infolist()[0].file_size)
    yield "ratio", data.replace(old, struct.pack("<I", 1 << 31)), b"impossible size"

    big = dict(observations=np.zeros((300000, 400), "i1"), actions=np.zeros((300000, 2), "f4"),
               terminals=np.arange(300000) % 100 == 99)
    yield "too large", raw_npz(big, zipfile.ZIP_DEFLATED), b"memory"  # 480 MB as float32: past the limit


def test_bombs(folder, limits):
    path = folder + "/bomb.npz"
    for what, data, message in bombs():
        if what == "too large" and not limits.on:
            continue
        open(path, "wb").write(data)
        out = check_survives(path, limits, what)
        assert out.returncode == 1 and message in out.stderr, (what, out.stderr)


def test_mutants(folder, limits):
    path = folder + "/mutant.npz"
    seeds = [d for _, d in numpy_files(random_dataset())]
    write_with_tool(random_dataset(obs="u1"), 0, 7, path, folder)
    seeds.append(open(path, "rb").read())
    write_with_tool(random_dataset(obs="f8"), 1, 7, path, folder)
    seeds.append(open(path, "rb").read())
    passed = 0
    for i in range(MUTANTS):
        data, what = mutate(seeds[int(rng.integers(len(seeds)))])
        if rng.random() < 0.3:
            data = fix_crc(data)
        open(path, "wb").write(data)
        passed += check_survives(path, limits, f"mutant {i}, {what}").returncode == 0
    print(f"{MUTANTS} malformed files, {passed} of them harmless")


def main():
    with tempfile.TemporaryDirectory(prefix="dcrl-npz-") as folder:
        test_read(folder)
        test_write(folder)
        test_info(folder)
        test_usage()
        open(folder + "/good.npz", "wb").write(raw_npz(random_dataset()))
        limits = Limits(folder + "/good.npz")
        test_bombs(folder, limits)
        test_mutants(folder, limits)
    if limits.on:
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert peak < 600 << 10, f"{peak} KiB at peak"


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        print(f"DCRL_SEED={SEED}", file=sys.stderr)
        raise
