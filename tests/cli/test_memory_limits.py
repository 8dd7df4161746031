"""With any limit on addresses (ulimit -v) or on the stack (ulimit -s) a command does its work or ends with one line."""
import os
import re
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drive

TIGHT = range(10, 200, 5)


def limited(megabytes, *words):
    limit = megabytes << 20
    return drive.call(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def check(done, words):
    """True if it worked, False if it was refused in one line."""
    if done.returncode == 0:
        return True
    if done.returncode == 127:  # the loader has no room for libraries
        return False
    assert done.returncode == 1, (words, done.returncode, done.stderr)
    line = done.stderr.splitlines()
    assert len(line) == 1 and re.search(r"no memory|no room|could be started|failed to map|cannot allocate|cannot load", line[0]), (words, line)
    return False


def test_train_ends():
    with drive.Scratch("limits") as scratch:
        works = {}
        for megabytes in TIGHT:
            if limited(megabytes, "--version").returncode < 0:
                continue  # the system itself ends a program that it cannot map
            words = ["train", *drive.SMALL[:-1], 2, "--steps", 20, "--out", scratch.at(f"run-{megabytes}")]
            works[megabytes] = check(limited(megabytes, *words), words)
        print("works from", min((m for m in works if works[m]), default=None), "MB")
        assert works[max(works)], works
        drive.good("train", *drive.SMALL, "--steps", 20, "--out", scratch.at("free"))
        assert drive.digests(scratch.at(f"run-{TIGHT[-1]}")) == drive.digests(scratch.at("free"))


def test_threads():
    """Eight threads need little more room than one."""
    with drive.Scratch("threads") as scratch:
        words = ["train", "--env", "lock-64", "--hidden", "64,64", "--batch", 2048, "--steps", 20]
        few = ["--threads", 8, "--out", scratch.at("few")]
        assert check(limited(300, *words, *few), words)
        drive.good(*words, "--threads", 1, "--out", scratch.at("free"))
        assert drive.digests(scratch.at("few")) == drive.digests(scratch.at("free"))


def test_small_stacks():
    """A stack that may grow does; one that may not is told."""
    words = ["lock", "--agent", "dcrl", "--horizon", 16, "--n", 4, "--slots", 4, "--hidden", "8,8", "--batch", 8, "--steps", 4, "--threads", 2]
    for soft, hard in ((64, 8192), (192, 8192), (512, 512), (400, 400), (192, 192), (128, 128)):
        done = drive.call(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (soft << 10, hard << 10)))
        if hard >= 512:
            assert done.returncode == 0, (soft, hard, done)
        else:
            drive.check_error(done.returncode, done.stderr, 1, ["stack", "ulimit -s"], words)


if drive.sanitized():
    print("skipped: built with a sanitizer")
else:
    drive.run_tests(globals())
