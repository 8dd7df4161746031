"""What comes from files may not speak to a terminal: no command prints a control character or bytes that are no UTF-8,
whatever names a config, an archive or a folder brings.
"""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from checkpoint_file import File  # noqa: E402
from drive import SMALL, Scratch, good, run_tests, words_of  # noqa: E402

EVIL = "a\x1b[2J\x1b]0;x\x07\x9b31m\x7f\x01b\u202e\u2066c"


def plain(*words, codes=(0,)):
    """What a call prints, both ways; every byte of it may be shown."""
    done = subprocess.run(words_of(words), capture_output=True, timeout=60)
    assert done.returncode in codes, (words, done)
    text = (done.stdout + done.stderr).decode("utf-8")  # or fails
    bad = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2066"]
    assert not bad, (words, bad, text[:400])
    return text


def edit(run, **options):
    path = os.path.join(run, "config.json")
    with open(path) as file:
        config = json.load(file)
    with open(path, "w") as file:
        json.dump(config | options, file)


def make(scratch):
    good("train", *SMALL, "--steps", 4, "--save-every", 2, "--out", scratch.at("run"))
    os.remove(scratch.at("run", "DONE"))
    return scratch.at("run")


def test_build():
    with Scratch("terminal") as scratch:
        run = make(scratch)
        edit(run, build=EVIL)
        assert "was begun by build a?[2J" in plain("train", "--resume", run)


def test_config():
    with Scratch("terminal") as scratch:
        run = make(scratch)
        for key in ("env", "agent", "lr", EVIL):
            before = open(os.path.join(run, "config.json")).read()
            edit(run, **{key: EVIL})
            assert "a?[2J" in plain("train", "--resume", run, codes=(1,))
            with open(os.path.join(run, "config.json"), "w") as file:
                file.write(before)


def test_report():
    with Scratch("terminal") as scratch:
        run = make(scratch)
        os.rename(run, scratch.at("run" + EVIL))
        run = scratch.at("run" + EVIL)
        edit(run, env=EVIL, agent=EVIL, build=EVIL, extra=EVIL)
        with open(os.path.join(run, "eval.csv"), "w") as file:
            file.write(f"step,overall_success,{EVIL}_success,task1_success,episodes\n1,0.5,0.5,0.5,5\n")
        for form in ("text", "csv", "md", "html", "svg"):
            assert "2J" in plain("report", scratch.path, "--format", form, "-o", "-"), form
        with open(os.path.join(run, "eval.csv"), "wb") as file:
            file.write(b"step,overall_success,\xff\xfe\n1,0.5,x\n")
        plain("report", scratch.path, "-o", "-", codes=(1,))


def test_expert():
    with Scratch("terminal") as scratch:
        path = scratch.at("ant.safetensors")
        expert = File(os.path.join(os.path.dirname(__file__), "..", "..", "configs", "experts", "ant.safetensors"))
        expert.metas |= {"command": EVIL, "seed": EVIL}
        expert.write(path, True)
        for more in ((), ("--json",)):
            assert "2J" in plain("expert", "eval", path, "--episodes", 1, "--steps", 5, *more) or more


def test_arrays():
    with Scratch("terminal") as scratch:
        rows = {"observations": np.zeros((20, 2), "f4"), "actions": np.zeros((20, 2), "f4"), "terminals": np.arange(20) % 10 == 9}
        np.savez(scratch.at("a.npz"), **rows)
        with zipfile.ZipFile(scratch.at("a.npz"), "a") as file:
            file.writestr(EVIL + ".npy", b"no array")
        np.savez(scratch.at("b.npz"), **rows, **{EVIL: np.zeros((20, 1), "f4")})
        with open(scratch.at("b.npz"), "rb") as file:
            raw = file.read()
        with open(scratch.at("c.npz"), "wb") as file:  # the same length, not UTF-8
            file.write(raw.replace(EVIL.encode(), b"\xff\xfe\x1b" + b"z" * (len(EVIL.encode()) - 3)))
        for name in ("b.npz", "c.npz"):
            for more in ((), ("--json",)):
                assert "31m" in plain("data", "info", scratch.at(name), *more, codes=(0, 1)) or name == "c.npz"
        assert "a?[2J" in plain("data", "info", scratch.at("a.npz"), codes=(1,))


if __name__ == "__main__":
    run_tests(globals())
