"""Safetensors against the reference implementation, Python's `safetensors`, in both directions.

The library is called through ctypes (build/tests/libinside.so). Files that Python writes must read here with the same
names, types, shapes and bytes; files written here must load in Python; and for a few thousand damaged files both
must agree on what may be opened, where we are allowed to be stricter only in the ways listed in ALLOWED.
"""
import ctypes as C
import json
import os
import struct
import sys
import tempfile

import numpy as np
import safetensors
from safetensors import numpy as st

path = os.path.join(os.environ.get("BUILD", "build"), "tests", "libinside.so")
if any(word in open(path, "rb").read() for word in (b"__asan_init", b"__tsan_init")):
    print("skipped: a library under this sanitizer cannot be loaded into Python")
    sys.exit(0)
lib = C.CDLL(path)
NAMES = ["F32", "F64", "I32", "I64", "U8", "BOOL", "F16", "BF16", "I8", "I16", "U16", "U32", "U64"]
NUMPY = {"F32": "f4", "F64": "f8", "I32": "i4", "I64": "i8", "U8": "u1", "BOOL": "?", "F16": "f2", "I8": "i1",
         "I16": "i2", "U16": "u2", "U32": "u4", "U64": "u8"}


class Tensor(C.Structure):
    _fields_ = [("name", C.c_char_p), ("dtype", C.c_int), ("ndim", C.c_int), ("shape", C.c_int64 * 8),
                ("bytes", C.c_void_p), ("size", C.c_size_t)]


class Meta(C.Structure):
    _fields_ = [("key", C.c_char_p), ("value", C.c_char_p)]


class File(C.Structure):
    _fields_ = [("tensors", C.POINTER(Tensor)), ("by_name", C.c_void_p), ("count", C.c_size_t),
                ("metas", C.POINTER(Meta)), ("meta_count", C.c_size_t), ("rest", C.c_size_t * 32)]


lib.dc_error.restype = C.c_char_p
lib.dc_st_find.restype = C.POINTER(Tensor)
lib.dc_st_meta_get.restype = C.c_char_p
lib.dc_st_dtype_name.restype = C.c_char_p


def read_here(path):
    """(tensors as {name: array}, metadata) or None if the file is refused."""
    f = File()
    if lib.dc_st_open(C.byref(f), os.fsencode(path)) != 0:
        return None
    tensors = {}
    for i in range(f.count):
        t = f.tensors[i]
        raw = C.string_at(t.bytes, t.size)
        shape = tuple(t.shape[: t.ndim])
        found = lib.dc_st_find(C.byref(f), t.name)
        assert found and found.contents.bytes == t.bytes
        name = NAMES[t.dtype]
        assert lib.dc_st_dtype_name(t.dtype).decode() == name
        tensors[t.name.decode()] = np.frombuffer(raw, NUMPY.get(name, "u2")).reshape(shape)
    metas = {f.metas[i].key.decode(): f.metas[i].value.decode() for i in range(f.meta_count)}
    for key, value in metas.items():
        assert lib.dc_st_meta_get(C.byref(f), key.encode()).decode() == value
    lib.dc_st_close(C.byref(f))
    return tensors, metas


def write_here(path, tensors, metas):
    keep = [np.ascontiguousarray(a).reshape(a.shape) for a in tensors.values()]
    rows = (Tensor * max(1, len(keep)))()
    kinds = {np.dtype(v): k for k, v in NUMPY.items()}
    for row, name, a in zip(rows, tensors, keep):
        row.name, row.dtype, row.ndim = name.encode(), NAMES.index(kinds[a.dtype]), a.ndim
        row.shape[: a.ndim] = a.shape
        row.bytes, row.size = a.ctypes.data, a.nbytes
    pairs = (Meta * max(1, len(metas)))(*[Meta(k.encode(), v.encode()) for k, v in metas.items()])
    status = lib.dc_st_write(os.fsencode(path), rows, C.c_size_t(len(keep)), pairs, C.c_size_t(len(metas)))
    assert status == 0, lib.dc_error()


def same(a, b):
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    for k in a:
        assert a[k].dtype == b[k].dtype and a[k].shape == b[k].shape, k
        assert a[k].tobytes() == b[k].tobytes(), k


def sample(rng):
    tensors = {}
    shapes = [(), (1,), (0,), (3, 0, 2), (2, 3), (5, 1, 4), (1,) * 8, (1000,)]
    for i, code in enumerate(NUMPY.values()):
        for shape in shapes:
            raw = rng.integers(0, 2 if code == "?" else 256, int(np.prod(shape)) * np.dtype(code).itemsize, np.uint8)
            tensors[f"net/é{i}/\"{len(shape)}\"\n{shape}"] = raw.view(code).reshape(shape)
    return tensors, {"agent": "dcrl", "empty": "", "tricky \u20ac\U0001f600": "\"\\\n\x01"}


def both_ways(folder):
    tensors, metas = sample(np.random.default_rng(0))
    theirs, ours = os.path.join(folder, "py.safetensors"), os.path.join(folder, "c.safetensors")
    st.save_file(tensors, theirs, metas)
    got = read_here(theirs)
    assert got, lib.dc_error()
    same(got[0], tensors)
    assert got[1] == metas
    write_here(ours, tensors, metas)
    same(st.load_file(ours), tensors)
    with safetensors.safe_open(ours, "numpy") as f:
        assert f.metadata() == metas
        for k in tensors:
            assert f.get_tensor(k).tobytes() == tensors[k].tobytes()
    got = read_here(ours)
    assert got and list(got[0]) and got[1] == metas
    same(got[0], tensors)
    first = open(ours, "rb").read()
    write_here(ours, tensors, metas)
    assert open(ours, "rb").read() == first, "not deterministic"
    (n,) = struct.unpack("<Q", first[:8])
    assert n % 8 == 0 and list(json.loads(first[8 : 8 + n]))[1:] == list(tensors), "not in the order given"
    write_here(ours, {}, {})
    assert st.load_file(ours) == {}
    st.save_file({}, theirs)
    assert read_here(theirs) == ({}, {})
    return len(tensors)


# What the reference takes and we refuse, by the words of our refusal.
ALLOWED = [b"stands twice", b"dimensions", b"\\u0000", b"levels", b"unknown dtype", b"malformed shape", b"not all text"]


def damaged(folder, rounds):
    """Flip, cut and splice bytes of small files; the two readers must agree."""
    rng = np.random.default_rng(1)
    path = os.path.join(folder, "x.safetensors")
    good = st.save({"a": np.arange(3, dtype="f4"), "b": np.zeros((2, 2), "i1"), "c": np.zeros(0, "i8")}, {"k": "v"})
    counts = {True: 0, False: 0, "stricter": 0}
    for _ in range(rounds):
        data = bytearray(good)
        for _ in range(rng.integers(1, 3)):
            at = int(rng.integers(0, min(len(data), 230)))
            kind = rng.integers(0, 4)
            if kind == 0:
                data[at] = int(rng.integers(0, 256))
            elif kind == 1:
                data[at] = ord(rng.choice(list('0123456789"{}[],: -.eE')))
            elif kind == 2:
                del data[at]
            else:
                data[at:at] = bytes([data[at]])
        if rng.integers(0, 2):  # keep the length right, so that damage gets past the first check
            n = len(data) - 8 - 16
            data[:8] = struct.pack("<Q", n)
        with open(path, "wb") as f:
            f.write(data)
        try:
            with safetensors.safe_open(path, "numpy") as f:
                theirs = {k: f.get_tensor(k) for k in f.keys()}
        except Exception:
            theirs = None
        ours = read_here(path)
        if ours and theirs is None:
            raise SystemExit(f"taken here, refused by the reference: {bytes(data)!r}")
        if theirs is not None and ours is None:
            words = lib.dc_error()
            assert any(a in words for a in ALLOWED), (words, bytes(data))
            counts["stricter"] += 1
            continue
        if ours:
            same(ours[0], theirs)
        counts[bool(ours)] += 1
    return counts


with tempfile.TemporaryDirectory() as folder:
    n = both_ways(folder)
    counts = damaged(folder, 5000)
    assert counts[True] > 20 and counts[False] > 1000, counts
    print(f"safetensors {safetensors.__version__}: {n} tensors both ways; damaged files: {counts}")
