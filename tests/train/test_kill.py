"""kill -9 at any moment costs at most the steps since the last save.

Runs with a save every few steps, on a real disk where a save takes its time, are killed 60 times: as they start, at
random moments, just after a save, and within a write, where the process is stopped until a file with a temporary name
is met (a fast disk has none at most moments).
After each kill the same thing is done as a user or a job script would do: resume, or give the start
command again if there is no config.json yet. A resume must go on from the newest checkpoint that stood in
the folder, without a warning, and in the end the bytes are those of a run that was not killed.

The other commands (tests/commands.py, and larger ones) are killed too: after each kill whatever stands under its final
name is whole, and the same command, given again, ends in the files of an undisturbed one and leaves nothing else.

DCRL_KILLS is the number of kills in all (tools/torture.sh kill).
"""

import collections
import fcntl
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from commands import Case, Inputs, cases, latest, read, snapshot  # noqa: E402
from checkpoint_file import File  # noqa: E402
from drive import SMALL, Scratch, call, complaints, digests, good, newest_step, paused, run_tests, spawn, went_on_at  # noqa: E402
from drive import words_of  # noqa: E402

KILLS = int(os.environ.get("DCRL_KILLS", 120))
FLAGS = ["train", *SMALL, "--agent", "dcrl", "--set", "n=8", "--steps", 1500, "--log-every", 7, "--save-every", 10]


def command(folder):
    """What goes on with a run in any state, and whether it is a resume."""
    if os.path.exists(os.path.join(folder, "config.json")):
        return ["train", "--resume", folder], True
    return [*FLAGS, "--out", folder], False


def leftovers(folder, pid="*"):
    return glob.glob(os.path.join(folder, f"*.tmp.{pid}.*"))


def check_resumed(out, before):
    """A process that came so far as to say where it goes on."""
    if " goes on at step " in out:
        assert went_on_at(out) >= before, (out, before)


def await_write(process, folder):
    """Leave the process stopped while one of its files has its temporary name, or ended if none was met."""
    while process.poll() is None:
        if leftovers(folder, process.pid) and paused(process):
            if leftovers(folder, process.pid):
                return
            process.send_signal(signal.SIGCONT)


def await_save(process, folder):
    before = newest_step(folder)
    while process.poll() is None and newest_step(folder) == before:
        time.sleep(0.001)


def await_moment(process, folder):
    time.sleep(random.choice([0.005, 0.03, 0.1, 0.25]) * random.random())


AIMS = [await_moment, await_write, await_moment, await_save]


def kill_once(folder, seen, wait):
    """Start or resume, kill after that wait; False if the run was done by then."""
    before = newest_step(folder)
    words, resumed = command(folder)
    process = spawn(*words)
    wait(process, folder)
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
    seen["within a write"] += bool(leftovers(folder, process.pid))
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
        while kills < KILLS // 2:
            runs += 1
            folder = scratch.at(f"run{runs}")
            killed = kill_once(folder, seen, lambda *_: None)  # as it starts
            while killed and kills < KILLS // 2:
                kills += 1
                killed = kill_once(folder, seen, AIMS[kills % len(AIMS)])
            finish(folder, want)
        print(f"  {kills} kills in {runs} runs:", ", ".join(f"{seen[k]} {k}" for k in seen))
        assert seen["after a step was saved"] and seen["before the first save"] and seen["within a write"]


# Larger than the cases that faults go over: files of many writes, parts, shards.
def larger(inputs):
    here = {"cwd": inputs.path}
    good("gen", "pointmaze-medium-navigate", "--episodes", 20, "-o", "large.npz", "--threads", 1, **here)
    good("data", "convert", "large.npz", "large", "--rows-per-shard", 2048, **here)

    def needs(name):
        return lambda folder: inputs.copy(folder, name)

    return [
        Case("gen-large", lambda folder: None, "gen", "pointmaze-medium-navigate", "--episodes", 20, "-o", "made.npz", "--threads", 1),
        Case("gen-parts-large", lambda folder: None, "gen", "cube-single-play", "--episodes", 140, "--rows", 3, "-o", "made.npz"),
        Case("gen-walker-large", lambda folder: None, "gen", "antmaze-medium-navigate", "--episodes", 140, "--rows", 6, "-o", "made.npz"),
        Case("to-store-large", needs("large.npz"), "data", "convert", "large.npz", "made", "--rows-per-shard", 2048),
        Case("to-npz-large", needs("large"), "data", "convert", "large", "made.npz"),
    ]


KILLED = ["seeds", "train-eval", "train-held-out", "train-live", "resume", "go-on", "to-store", "hdf5", "eval", "map", "export-onnx", "sweep",
          "sweep-again", "expert", "paper"]


def launch(words, folder):
    return subprocess.Popen(words_of(words), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_case(case, folder):
    """To its end; the files, and the seconds."""
    os.mkdir(folder)
    case.fill(folder)
    start = time.time()
    process = launch(case.words, folder)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, (case.name, err)
    return snapshot(folder), time.time() - start


def await_children(folder):
    """Processes of a killed `dcrl paper` save and end by themselves; until then they hold its lock."""
    lock = os.path.join(folder, "paper", "lock")
    if os.path.exists(lock):
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def check_whole(case, folder, begun, want):
    """What has its final name has its final bytes, or those that it began with; of logs, a beginning."""
    for name, value in snapshot(folder).items():
        inside_store = name.startswith("made/") and not os.path.exists(os.path.join(folder, "made/index.json"))
        if inside_store or name not in want or value in (want[name], begun.get(name)):
            continue
        if case.name == "expert":  # the best so far
            file = File(os.path.join(folder, name))
            assert file.metas["hash"] == file.fit_hash(), name
            continue
        assert name.endswith("train.csv") or name.endswith("eval.csv"), (case.name, name, "is half a file")
        assert read(os.path.join(folder, name)).count(b"step") == 1, (case.name, name)


def kill_case(case, scratch, number, want, seconds):
    """Kill it again and again until it was done by then; how many kills."""
    folder, kills = scratch.at(f"{case.name}-{number}"), 0
    os.mkdir(folder)
    case.fill(folder)
    begun = snapshot(folder)
    while True:
        process = launch(case.way_back(folder), folder)
        time.sleep(random.random() * seconds * random.choice([0.2, 1, 1]))
        process.kill()
        _, err = process.communicate()
        await_children(folder)
        assert process.returncode in (0, -9), (case.name, process.returncode, err)
        check_whole(case, folder, begun, want)
        if process.returncode == 0 or kills == 3:
            break
        kills += 1
    process = launch(case.way_back(folder), folder)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0 and not complaints(err), (case.name, kills, err)
    now = snapshot(folder)
    different = {name for name in {*latest(now), *latest(want)} if latest(now).get(name) != latest(want).get(name)}
    if case.name.startswith(("to-npz", "hdf5", "export", "expert")):  # a single file among others': nothing is removed there
        different = {name for name in different if not re.match(r"\w+\.\w+(\.state)?\.tmp\.", name)}
    assert not different, (case.name, kills, different)
    shutil.rmtree(folder)
    return kills


def test_every_command():
    with Scratch("kill") as memory, Scratch("kill", disk=True) as scratch:
        inputs = Inputs(memory)
        chosen = [case for case in cases(inputs) if case.name in KILLED] + larger(inputs)
        measures = [run_case(case, memory.at(case.name)) for case in chosen]
        most, told = KILLS // 2, collections.Counter()
        number = 0
        while sum(told.values()) < most:
            number += 1
            for case, (want, seconds) in zip(chosen, measures):
                if sum(told.values()) < most:
                    told[case.name] += kill_case(case, scratch, number, want, seconds)
            if KILLS >= 1000:
                print(f"  {sum(told.values())} kills so far", flush=True)
        print(f"  {sum(told.values())} kills:", ", ".join(f"{name} {count}" for name, count in told.items()))


if __name__ == "__main__":
    run_tests(globals())
