"""Experts in numpy, with the bits of `dcrl`: float32 numbers, each sum in the order of inputs. And made-up ones."""

import os
import subprocess

import numpy as np
from safetensors.numpy import load_file

F = np.float32


def made_up(robot, seed, path):
    """A file with made-up weights, by build/tests/tool_expert."""
    subprocess.run([os.path.join(os.environ["BUILD"], "tests", "tool_expert"), robot, str(seed), path], check=True)
    return path


def exponential(x):
    x = np.clip(x, F(-87), F(88))
    shifted = x * F(1.44269504) + F(12582912)
    k = shifted - F(12582912)
    r = x - k * F(0.693359375)
    r = r + k * F(2.12194440e-4)
    p = np.full_like(x, F(1.38888889e-3))
    for c in [8.33333333e-3, 4.16666667e-2, 1.66666667e-1, 0.5, 1, 1]:
        p = p * r + F(c)
    return p * ((shifted.view(np.uint32) << np.uint32(23)) + np.uint32(0x3F800000)).view(F)


def gelu(x):
    return x / (F(1) + exponential(-(F(1.59576912) * x * (F(1) + F(0.044715) * x * x))))


def tanh(x):
    t = exponential(F(-2) * np.abs(x))
    return np.copysign((F(1) - t) / (F(1) + t), x)


class Expert:
    def __init__(self, path):
        self.tensors = load_file(path)
        self.count = sum(name.endswith("/w") for name in self.tensors)

    def normalised(self, layer, x):
        if f"{layer}/scale" not in self.tensors:
            return x
        count = F(len(x))
        centred = x - np.cumsum(x)[-1] / count
        rate = F(1) / np.sqrt(np.cumsum(centred * centred)[-1] / count + F(1e-6))
        return centred * rate * self.tensors[f"{layer}/scale"] + self.tensors[f"{layer}/bias"]

    def act(self, obs):
        x = np.asarray(obs, dtype=F)
        for layer in range(self.count):
            y = self.tensors[f"{layer}/b"].copy()
            for value, row in zip(x, self.tensors[f"{layer}/w"]):
                y += value * row
            last = layer == self.count - 1
            x = tanh(y) if last else self.normalised(layer, gelu(y))
        return x
