"""Stopping a run and resuming it gives the same bytes as never having stopped it.

A short run is stopped by SIGINT, SIGTERM or SIGUSR1 at random moments, for every kind of state that a
checkpoint carries: closed-form trees, explicit trees, trees that follow the critic, i.i.d. rows, other
thread counts. The last checkpoint and train.csv are compared by SHA-256 with the unbroken run's.
"""

import os
import random
import signal
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, STOPPED, Scratch, await_handler, call, digests, good, newest_step, run_tests, spawn, went_on_at  # noqa: E402
from drive import bad, check_error, complaints, stops  # noqa: E402

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
PERIODS = ["--log-every", 270, "--save-every", 1100]  # neither divides the other, nor the steps


def flags(steps, *more):
    return ["train", *SMALL, "--steps", steps, *PERIODS, *more]


def pace(steps, *more):
    """That many steps, or what this build does in half a second if it is slow (sanitizers, a busy machine)."""
    with Scratch("pace") as scratch:
        _, seconds = unbroken(scratch.at("run"), 1000, *more)
    return min(steps, max(1200, int(500 / seconds)))


def unbroken(folder, steps, *more):
    """Digests of a run that is not stopped, and the seconds it took."""
    start = time.time()
    assert "trained" in good(*flags(steps, *more), "--out", folder)
    assert os.path.exists(os.path.join(folder, "DONE"))
    return digests(folder), time.time() - start


def stop(process, delay, number):
    """Signal a run after `delay` seconds of training; the step it stopped at, or None if it was done."""
    await_handler(process)
    time.sleep(delay)
    process.send_signal(SIGNALS[number % len(SIGNALS)])
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        return None
    line = check_error(process.returncode, err, STOPPED, ["stopped at step ", "dcrl train --resume "], "stop")
    return int(line.split("stopped at step ")[1].split(";")[0])


def finish(folder, stopped, *more):
    done = call("train", "--resume", folder, *more)
    assert done.returncode == 0 and not complaints(done.stderr), done
    assert went_on_at(done.stdout) == stopped
    return digests(folder)


def stop_and_finish(scratch, name, want, seconds, number, steps, more, resume=()):
    """One run, stopped once; whether the stop came in time."""
    folder = scratch.at(f"{name}{number}")
    process = spawn(*flags(steps, *more), "--out", folder)
    stopped = stop(process, random.random() * seconds, number)
    if stopped is not None:
        assert 1 <= stopped < steps and not os.path.exists(os.path.join(folder, "DONE"))
        assert finish(folder, stopped, *resume) == want, (name, "stopped at", stopped)
    assert digests(folder) == want
    return stopped is not None


def stop_often(scratch, name, count, steps, more, resume=()):
    steps = pace(steps, *more)
    want, seconds = unbroken(scratch.at(name), steps, *more)
    hits = tries = 0
    while hits < count:
        tries += 1
        assert tries <= 12 * count + 40, f"{name}: only {hits} of {tries} signals came while it trained"
        hits += stop_and_finish(scratch, name, want, seconds, tries, steps, more, resume)
    return f"{hits} stops in {tries} runs of {steps} steps"


def test_random_stops():
    with Scratch("resume") as scratch:
        print("  dcrl:", stop_often(scratch, "dcrl", stops(20), 10_000, ["--agent", "dcrl", "--set", "n=8"]))


VARIANTS = {
    "td-n": ["--agent", "td-n", "--set", "n=8"],
    "trl": ["--agent", "trl"],
    "trl-n": ["--agent", "trl-n", "--set", "n=8"],
    "random": ["--set", "n=8", "--set", "split=random"],
    "max": ["--set", "n=8", "--set", "split=max", "--set", "rebuild_every=170", "--set", "slots=8"],
    "down": ["--set", "n=8", "--set", "order=down"],
    "iid": ["--set", "n=8", "--set", "recursion=off"],
    "alone": ["--set", "propagation=off", "--set", "split=random"],
    "softmax after": ["--set", "form=value", "--set", "n=8", "--set", "policy_after=500"],
}


def test_every_kind_of_state():
    with Scratch("resume") as scratch:
        for name, more in VARIANTS.items():
            print(f"  {name}:", stop_often(scratch, name, stops(2), 2_500 if name == "max" else 6_000, more))


# The value form with everything on: oracle critic, policy, mapped shards. Each names what a checkpoint must carry for it.
VALUE = {
    "ddpgbc": ["--set", "n=5"],
    "flow": ["--set", "policy=rejection", "--set", "goal_law=uniform"],
    "policy after": ["--set", "policy_after=400", "--set", "order=down"],
    "max": ["--set", "split=max", "--set", "rebuild_every=130", "--set", "slots=4"],
    "random": ["--set", "split=random", "--set", "propagation=off", "--set", "policy=none"],
    "iid": ["--set", "recursion=off", "--set", "targets=ema*online"],
    "curriculum": ["--agent", "curriculum", "--set", "delta=30"],
    "trl": ["--agent", "trl", "--set", "lambda=0.7"],
    "mc": ["--agent", "mc"],
}


def maze_flags(scratch):
    """A small maze in shards; what stands later on a command line overrides SMALL."""
    store = scratch.at("store")
    if not os.path.exists(store):
        good("gen", "pointmaze-medium-navigate", "--episodes", 12, "-o", scratch.at("maze.npz"))
        good("data", "convert", scratch.at("maze.npz"), store, "--rows-per-shard", 2048)
        assert os.path.exists(os.path.join(store, "obs-00001.f32"))
    return ["--env", "pointmaze-medium-oraclerep-v0", "--data", store]


def test_value_form():
    with Scratch("resume") as scratch:
        base = maze_flags(scratch)
        for name, more in VALUE.items():
            print(f"  {name}:", stop_often(scratch, name, stops(2), 1_500, [*base, *more]))


def test_value_form_killed():
    """kill -9 between two saves: what came after the last one is done again, to the same bytes."""
    with Scratch("resume") as scratch:
        more = [*maze_flags(scratch), "--set", "split=max", "--set", "rebuild_every=130", "--set", "slots=4", "--save-every", 90]
        steps = pace(1_500, *more)
        want, seconds = unbroken(scratch.at("unbroken"), steps, *more)
        killed = 0
        for attempt in range(60):
            folder = scratch.at(f"killed{attempt}")
            process = spawn(*flags(steps, *more), "--out", folder)
            await_handler(process)
            time.sleep((0.2 + 0.7 * random.random()) * seconds)
            process.kill()
            process.communicate()
            if process.returncode == 0 or newest_step(folder) == 0:
                continue
            killed += 1
            assert went_on_at(good("train", "--resume", folder)) > 0 and digests(folder) == want
            if killed == 2:
                return
        raise AssertionError(f"only {killed} kills came while it trained")


def test_policies():
    with Scratch("resume") as scratch:
        rng, rows = np.random.default_rng(random.randrange(1 << 30)), 200
        data = scratch.at("data.npz")
        np.savez(data, observations=rng.normal(size=(rows, 2)).astype("f4"), actions=rng.uniform(-1, 1, (rows, 2)).astype("f4"),
                 terminals=(np.arange(rows) % 50 == 49).astype("f4"))
        flow = ["--env", "pointmaze-medium-navigate-v0", "--data", data, "--set", "policy=rejection"]
        print("  flow:", stop_often(scratch, "flow", stops(2), 3_000, flow))
        print("  flow after:", stop_often(scratch, "late", stops(3), 3_000, flow + ["--set", "policy_after=600"]))


def test_other_threads():
    with Scratch("resume") as scratch:
        wide = ["--agent", "dcrl", "--set", "n=8", "--batch", 256, "--hidden", "64,64"]
        print("  threads:", stop_often(scratch, "threads", stops(3), 1_500, wide, resume=["--threads", 2]))


def await_row(process, folder, after):
    """Wait until train.csv has a row of a later step, or the process has ended."""
    path = os.path.join(folder, "train.csv")
    while process.poll() is None:
        if os.path.exists(path):
            with open(path) as file:
                steps = [line.split(",")[0] for line in file.read().split("\n")[1:-1]]
            if steps and int(steps[-1]) > after:
                return
        time.sleep(0.001)


def test_stop_twice():
    with Scratch("resume") as scratch:
        steps = 4 * pace(7_500)
        want, _ = unbroken(scratch.at("once"), steps)
        for attempt in range(10):
            folder = scratch.at(f"twice{attempt}")
            process = spawn(*flags(steps), "--out", folder)
            await_row(process, folder, 0)
            first = stop(process, 0, 0)
            process = spawn("train", "--resume", folder)
            await_row(process, folder, first or steps)
            second = stop(process, 0, 1)
            if first is not None and second is not None:
                break
        assert first < second < steps
        assert finish(folder, second) == want


def test_finished():
    with Scratch("resume") as scratch:
        folder = scratch.at("run")
        want, _ = unbroken(folder, 500)
        before = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)}
        assert "is done already" in good("train", "--resume", folder)
        assert before == {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)}
        # A process that died between its last save and DONE.
        os.remove(os.path.join(folder, "DONE"))
        assert went_on_at(good("train", "--resume", folder)) == 500
        assert digests(folder) == want and os.path.exists(os.path.join(folder, "DONE"))


def test_one_process_a_folder():
    with Scratch("resume") as scratch:
        folder = scratch.at("run")
        process = spawn(*flags(300_000), "--out", folder)
        try:
            while not os.path.exists(os.path.join(folder, "timing.csv")):
                time.sleep(0.01)
            bad(1, [folder, "another process"], "train", "--resume", folder)
            assert stop(process, 0, 0) is not None
        finally:
            process.kill()


if __name__ == "__main__":
    run_tests(globals())
