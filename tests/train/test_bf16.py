"""Products in bf16 on the CPU: the same bytes for any number of threads and after a stop, near fp32 in what is learned, and on a
processor without them fp32 with a warning.
"""

import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, digests, run_tests  # noqa: E402

LOCK = "train --env lock-64 --agent dcrl --set n=8 --hidden 96,64 --batch 256 --log-every 50 --save-every 100 --keep 0".split()
STEPS = 400
MISSING = "does not multiply bf16"


def train(run, precision, *more, steps=STEPS):
    done = call(*LOCK, "--set", f"precision={precision}", "--steps", steps, "--out", run, *more)
    assert done.returncode == 0, done
    return done.stderr


def losses(run):
    with open(os.path.join(run, "train.csv")) as file:
        return [float(row["loss_dc"]) for row in csv.DictReader(file)]


def test_bytes():
    with Scratch("bf16") as scratch:
        one, three, broken, plain = (scratch.at(n) for n in ("one", "three", "broken", "plain"))
        told = train(one, "bf16", "--threads", 1)
        train(three, "bf16", "--threads", 3)
        assert digests(one) == digests(three)
        os.makedirs(broken)
        train(broken, "bf16", "--threads", 2)
        for name in ("DONE", *(f"step-{n:010d}.safetensors" for n in (300, 400))):
            os.remove(os.path.join(broken, name))
        done = call("train", "--resume", broken)
        assert done.returncode == 0 and digests(broken) == digests(one), done
        train(plain, "fp32")
        same = losses(plain) == losses(one)
        assert same == (MISSING in told), told
        off = max(abs(a - b) / b for a, b in zip(losses(one), losses(plain)))
        print(f"  losses within {off:.2%} of fp32")
        assert off < 0.05, (losses(one), losses(plain))


def test_refused():
    with Scratch("bf16") as scratch:
        bad(2, ["tf32", "precision=fp32 or bf16"], *LOCK, "--set", "precision=tf32", "--steps", 1, "--out", scratch.at("run"))


if __name__ == "__main__":
    run_tests(globals())
