"""A disk that fills up while a run saves: one line, exit 1, nothing lost; with room again it goes on.

Two disks that are really full: a small tmpfs (where this script may mount one) that keeps all checkpoints
until they no longer fit, and a limit on the size of a file (ulimit -f) that stops the first checkpoint.
"""

import os
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, Scratch, bad, checkpoints, digests, good, newest_step, run_tests, went_on_at  # noqa: E402

FLAGS = ["train", *SMALL, "--agent", "dcrl", "--set", "n=8", "--steps", 3000, "--log-every", 70, "--save-every", 110,
         "--keep", 0]


def unbroken(scratch):
    good(*FLAGS, "--out", scratch.at("unbroken"))
    return digests(scratch.at("unbroken"))


def check_intact(run):
    """The log has whole rows only as far as a resume will need them; nothing half-written stays."""
    assert not [name for name in os.listdir(run) if ".tmp." in name]
    assert not os.path.exists(os.path.join(run, "DONE"))


def test_full():
    with Scratch("full") as scratch:
        want = unbroken(scratch)
        disk = scratch.at("disk")
        os.mkdir(disk)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", disk], capture_output=True, text=True)
        if done.returncode != 0:
            print("  skipped: no tmpfs can be mounted here:", done.stderr.strip())
            return
        try:
            fill_up(disk, want)
        finally:
            subprocess.run(["umount", "-l", disk], check=True)


def fill_up(disk, want):
    ballast, run = os.path.join(disk, "ballast"), os.path.join(disk, "run")
    with open(ballast, "wb") as file:
        file.write(bytes(400 << 10))
    line = bad(1, [run, "No space left on device", "free some space"], *FLAGS, "--out", run)
    print("  ", line)
    saved = newest_step(run)
    assert 0 < saved < 3000
    check_intact(run)
    # Still full: the same again, and nothing is lost by trying.
    bad(1, [run, "No space left"], "train", "--resume", run)
    assert newest_step(run) >= saved
    os.remove(ballast)
    for path in checkpoints(run)[:-2]:  # the user makes room
        os.remove(path)
    subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
    assert went_on_at(good("train", "--resume", run)) >= saved
    assert digests(run) == want


def test_limit():
    def limit(size):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    with Scratch("limit") as scratch:
        want, run = unbroken(scratch), scratch.at("run")
        size = os.path.getsize(checkpoints(scratch.at("unbroken"))[0])
        print("  ", bad(1, [run, "File too large", "ulimit -f"], *FLAGS, "--out", run, preexec_fn=limit(size - 1)))
        assert newest_step(run) == 0
        check_intact(run)
        assert went_on_at(good("train", "--resume", run)) == 0
        assert digests(run) == want
        # The log may hit the limit too; config.json, which comes first, is smaller.
        size = os.path.getsize(scratch.at("unbroken", "config.json")) + 100
        assert size < os.path.getsize(scratch.at("unbroken", "train.csv"))
        shutil.rmtree(run)
        bad(1, [run, "File too large"], *FLAGS, "--save-every", 10000, "--out", run, preexec_fn=limit(size))
        with open(os.path.join(run, "train.csv")) as file:
            assert len(file.read()) == size
        good("train", "--resume", run)
        assert digests(run) == want


if __name__ == "__main__":
    run_tests(globals())
