"""kill -9 at any moment costs at most the steps since the last save.

Runs with a save every few steps, on a real disk where a save takes its time, are killed 100 times at
random moments from the start of the process on: before config.json, before the first save, within saves.
After each kill the same thing is done as a user or a job script would do: resume, or give the start
command again if there is no config.json yet. A resume must go on from the newest checkpoint that stood in
the folder, without a warning, and in the end the bytes are those of a run that was not killed.
"""

import collections
import glob
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, Scratch, call, complaints, digests, good, newest_step, run_tests, spawn, went_on_at  # noqa: E402

KILLS = 100
FLAGS = ["train", *SMALL, "--agent", "dcrl", "--set", "n=8", "--steps", 1500, "--log-every", 7, "--save-every", 10]


def command(folder):
    """What goes on with a run in any state, and whether it is a resume."""
    if os.path.exists(os.path.join(folder, "config.json")):
        return ["train", "--resume", folder], True
    return [*FLAGS, "--out", folder], False


def leftovers(folder):
    return glob.glob(os.path.join(folder, "*.tmp.*"))


def check_resumed(out, before):
    """A process that came so far as to say where it goes on."""
    if " goes on at step " in out:
        assert went_on_at(out) >= before, (out, before)


def kill_once(folder, seen):
    """Start or resume, kill at a random moment; False if the run was done by then."""
    before = newest_step(folder)
    words, resumed = command(folder)
    process = spawn(*words)
    time.sleep(random.choice([0.005, 0.03, 0.1, 0.25]) * random.random())
    process.kill()
    out, err = process.communicate()
    # A checked build looks for leaks at its end, from another thread; killed then, that one tells it.
    told = [line for line in complaints(err) if "Unable to get registers from thread" not in line]
    assert process.returncode in (0, -9) and not told, (process.returncode, err)
    if resumed:
        check_resumed(out, before)
    assert newest_step(folder) >= before
    seen["before config.json"] += not os.path.exists(os.path.join(folder, "config.json"))
    seen["before the first save"] += newest_step(folder) == 0
    seen["within a write"] += bool(leftovers(folder))
    seen["after a step was saved"] += newest_step(folder) > before
    return process.returncode != 0


def finish(folder, want):
    before = newest_step(folder)
    words, resumed = command(folder)
    done = call(*words)
    assert done.returncode == 0 and not complaints(done.stderr), done
    if resumed and "done already" not in done.stdout:
        check_resumed(done.stdout, before)
    assert digests(folder) == want
    assert not leftovers(folder)


def test_kill():
    with Scratch("kill") as memory, Scratch("kill", disk=True) as scratch:
        good(*FLAGS, "--out", memory.at("unbroken"))
        want, kills, runs, seen = digests(memory.at("unbroken")), 0, 0, collections.Counter()
        while kills < KILLS:
            runs += 1
            folder = scratch.at(f"run{runs}")
            while kills < KILLS and kill_once(folder, seen):
                kills += 1
            finish(folder, want)
        print(f"  {kills} kills in {runs} runs:", ", ".join(f"{seen[k]} {k}" for k in seen))
        assert seen["after a step was saved"] and seen["before the first save"] and seen["within a write"]


if __name__ == "__main__":
    run_tests(globals())
