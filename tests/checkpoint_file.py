"""Checkpoints and other hashed safetensors as Python sees them, to be changed and given the hash that fits."""

import json
import struct

MASK = (1 << 64) - 1
KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def hash_of(data, seed):
    """src/base/hash.c once more."""
    lanes = [seed ^ key for key in reversed(KEYS)]
    padded = data[: len(data) // 64 * 64] + data[len(data) // 64 * 64 :].ljust(64, b"\0")
    for i, (a, b) in enumerate(struct.iter_unpack("<QQ", padded)):
        k = i % 4
        lanes[k] = (lanes[k] + fold(a ^ KEYS[k], b ^ lanes[k])) & MASK
    h = seed ^ len(data)
    for lane, key in zip(lanes, KEYS):
        h = (fold(h ^ lane, key ^ h >> 32) + lane) & MASK
    return h


class File:
    """A checkpoint as Python sees it: metadata, and tensors by place."""

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        (n,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + n])
        self.metas = header.pop("__metadata__")
        self.tensors = {}
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            start, end = entry.pop("data_offsets")
            self.tensors[name] = (entry, content[8 + n + start : 8 + n + end])

    def fit_hash(self):
        h = len(self.tensors)
        for key, value in self.metas.items():
            if key != "hash":
                for text in (key, value):
                    h = hash_of(text.encode() + b"\0", h)
        for name, (_, data) in self.tensors.items():
            h = hash_of(data, hash_of(name.encode() + b"\0", h))
        return f"{h:016x}"

    def write(self, path, fits):
        if fits:
            self.metas["hash"] = self.fit_hash()
        header, at = {"__metadata__": self.metas}, 0
        for name, (entry, data) in self.tensors.items():
            header[name] = {**entry, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in self.tensors.values()))
