"""What comparisons with the Python package `ogbench` share: new random numbers in every run, recorded draws, replay."""

import random
from fractions import Fraction

import numpy as np

from drive import good


def generator():
    return np.random.default_rng(random.randrange(1 << 62))


def fused(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def length(x):
    """As BLAS computes it where it has fused multiply-add; another last bit of a humanoid's first quaternion is 1e-6 after 100 steps."""
    total = 0.0
    for value in x:
        total = fused(value, value, total)
    return np.sqrt(total)


def padded(lists):
    """Draws of several starts. One too many would meet a NaN, and the results would show it."""
    out = np.full((len(lists), max(1, *map(len, lists))), np.nan)
    for row, values in zip(out, lists):
        row[: len(values)] = values
    return out


def replay(scratch, name, **arrays):
    np.savez(scratch.at("in.npz"), **arrays)
    good("env", "replay", name, "--in", scratch.at("in.npz"), "--out", scratch.at("out.npz"))
    with np.load(scratch.at("out.npz")) as file:
        return dict(file)


def error(a, b):
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0))


# What the Python side changes or what only names files.
NOT_MODEL = {"vis", "opt", "stat", "paths", "npaths", "signature", "nbuffer"}


def same_fields(ours, theirs, name, skip=lambda field: False):
    seen = 0
    for field in dir(theirs):
        if field.startswith("_") or field in NOT_MODEL or skip(field):
            continue
        a, b = getattr(ours, field), getattr(theirs, field)
        if isinstance(b, (np.ndarray, int, float, bytes)):
            assert np.array_equal(a, b), (name, field)
            seen += 1
    return seen
