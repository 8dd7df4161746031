"""Several seeds in one process: every member has the bytes of its single run, whatever happens to the others.

Members are compared with single runs file by file (timing.csv apart), after a straight run, after stops and kills, from
unequal steps, with evaluations on the way, and beside a member that meets NaN.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import SMALL, STOPPED, Scratch, await_handler, bad, call, check_error, checkpoints, complaints, digest, good, run_tests  # noqa: E402
from drive import spawn, stops, went_on_at  # noqa: E402

SEEDS = (0, 1, 2)
STEPS = 1500
LOCK = [*SMALL, "--steps", STEPS, "--log-every", 70, "--save-every", 200, "--set", "n=8"]


def files(run):
    """Everything in a run folder that is a function of config and seed."""
    all_files = {name: digest(os.path.join(run, name)) for name in os.listdir(run) if name != "timing.csv"}
    if "config.json" in all_files:  # less where the data lies as seen from the folder
        with open(os.path.join(run, "config.json")) as file:
            all_files["config.json"] = {key: value for key, value in json.load(file).items() if key != "data_from_run"}
    return all_files


def state(run):
    """The same, less what depends on where a run was stopped: older checkpoints."""
    last = os.path.basename(checkpoints(run)[-1])
    return {name: value for name, value in files(run).items() if not name.startswith("step-") or name == last}


def member(run, seed):
    return os.path.join(run, f"seed-{seed}")


def expect(run, singles, look=files):
    for seed, single in singles.items():
        assert look(member(run, seed)) == look(single), (run, seed)


def train_singles(scratch, name, flags, seeds=SEEDS):
    singles = {seed: scratch.at(f"{name}-{seed}") for seed in seeds}
    for seed, run in singles.items():
        good("train", *flags, "--seed", seed, "--out", run)
    return singles


def write_data(path, rows=20_000, length=50, huge=None):
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((rows, 5), dtype=np.float32)
    if huge:
        observations[777] = huge
    terminals = np.zeros(rows, np.float32)
    terminals[length - 1 :: length] = 1
    np.savez(path, observations=observations, actions=rng.uniform(-1, 1, (rows, 2)).astype("f4"), terminals=terminals)
    return path


def test_equal():
    with Scratch("population") as scratch:
        run, singles = scratch.at("run"), train_singles(scratch, "lock", LOCK)
        assert f"trained dcrl to step {STEPS} in {run} (3 seeds)" in good("train", *LOCK, "--seed", "0-2", "--out", run)
        expect(run, singles)
        assert len({digest(os.path.join(member(run, seed), "train.csv")) for seed in SEEDS}) == 3
        assert "is done already" in good("train", "--resume", run)
        # A list, other threads, more members beside those that are there.
        more = scratch.at("more")
        good("train", *LOCK, "--seed", "2,0", "--out", more)
        assert sorted(os.listdir(more)) == ["seed-0", "seed-2"]
        good("train", *LOCK, "--seed", "1", "--out", member(more, 1))
        expect(more, singles)


def test_shared_data():
    with Scratch("population") as scratch:
        flags = ["--data", write_data(scratch.at("data.npz")), "--hidden", "16,16", "--batch", 32, "--steps", 300, "--save-every", 70,
                 "--log-every", 30, "--threads", 2]
        # Goals that are columns of the data as they stand, and goals that are copied out of it.
        for number, rep in enumerate(("1,2", "1,1,2,2")):
            run, singles = scratch.at(f"run{number}"), train_singles(scratch, f"maze{number}", [*flags, "--rep", rep])
            good("train", *flags, "--rep", rep, "--seed", "0-2", "--out", run)
            expect(run, singles)


def stop_once(run, delay, kill):
    """Train in a process of its own and stop it; whether it was still training."""
    process = spawn("train", *LOCK, "--seed", "0-2", "--out", run) if not os.path.exists(run) else spawn("train", "--resume", run)
    await_handler(process)
    time.sleep(delay)
    process.kill() if kill else process.terminate()
    _, err = process.communicate(timeout=120)
    if process.returncode == 0:
        return False
    if not kill:
        check_error(process.returncode, err, STOPPED, ["stopped at step ", f"dcrl train --resume {run}"], "stop")
    return all(os.path.exists(os.path.join(member(run, seed), "timing.csv")) for seed in SEEDS)


def test_stops():
    with Scratch("population") as scratch:
        start = time.time()
        singles = train_singles(scratch, "lock", LOCK)
        seconds, hits = time.time() - start, 0
        for attempt in range(8 * stops(8) + 100):  # seconds are of the runs one by one, and of another moment
            run = scratch.at(f"run{attempt}")
            if not stop_once(run, random.random() * seconds, attempt % 2):
                continue
            hits += 1
            if attempt % 3 == 0:
                stop_once(run, random.random() * seconds / 2, attempt % 2)
            good("train", "--resume", run)
            expect(run, singles, state)
            if hits == stops(8):
                return
        raise AssertionError(f"only {hits} stops came while it trained")


def test_not_begun():
    """Stopped while it begins: folders are there, some without a config.json. Resume begins those, to the bytes of single runs."""
    with Scratch("population") as scratch:
        singles = train_singles(scratch, "lock", LOCK)
        data = ["--data", write_data(scratch.at("data.npz")), "--hidden", "16,16", "--batch", 32, "--steps", 200, "--save-every", 70]
        mazes = train_singles(scratch, "maze", data)
        for number, (begun, flags, want) in enumerate((((0,), LOCK, singles), ((2,), LOCK, singles), ((0, 1), LOCK, singles), ((1,), data, mazes))):
            run = scratch.at(f"run{number}")
            for seed in SEEDS:
                os.makedirs(member(run, seed))
                if seed in begun:
                    with open(os.path.join(want[seed], "config.json")) as file:
                        text = file.read()
                    with open(os.path.join(member(run, seed), "config.json"), "w") as file:
                        file.write(text)
            assert went_on_at(good("train", "--resume", run)) == 0
            expect(run, want)
        # None has begun: the first command does.
        run = scratch.at("none")
        for seed in SEEDS:
            os.makedirs(member(run, seed))
        bad(1, "not a run folder", "train", "--resume", run)
        good("train", *LOCK, "--seed", "0-2", "--out", run)
        expect(run, singles)


def kill_at_calls(scratch, call_name, want):
    """A population killed at its Nth call of this kind, for every N until it trains; how many kills left it unfinished."""
    number, kills = 0, 0
    while number < 20:
        number += 1
        run = scratch.at(f"{call_name}{number}")
        words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call_name}:signal=KILL:when={number}", os.environ["DCRL"], "train",
                 *map(str, LOCK), "--seed", "0-2", "--out", run]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0:
            break
        if not os.path.isdir(run) or not any(os.path.exists(os.path.join(member(run, s), "config.json")) for s in SEEDS):
            good("train", *LOCK, "--seed", "0-2", "--out", run)
        else:
            good("train", "--resume", run)
            kills += 1
        expect(run, want, state)
        shutil.rmtree(run)
    return kills


def test_killed_while_it_begins():
    if not shutil.which("strace"):
        print("no strace here")
        return
    with Scratch("population") as scratch:
        singles = train_singles(scratch, "lock", LOCK)
        print(f"  {kill_at_calls(scratch, 'rename', singles)} kills after the first member began")


def test_unequal_steps():
    with Scratch("population") as scratch:
        run, singles = scratch.at("run"), train_singles(scratch, "lock", LOCK)
        good("train", *LOCK, "--seed", "0-2", "--out", run)
        for seed, gone in ((0, 1), (1, 3), (2, 2)):
            for path in checkpoints(member(run, seed))[-gone:]:
                os.remove(path)
            os.remove(os.path.join(member(run, seed), "DONE"))
        # All three checkpoints of seed 1 are gone: it begins again.
        assert went_on_at(good("train", "--resume", run)) == 0
        expect(run, singles, state)
        # Only those that are not done go on.
        os.remove(os.path.join(member(run, 1), "DONE"))
        before = files(member(run, 0))
        assert went_on_at(good("train", "--resume", run)) == STEPS
        assert files(member(run, 0)) == before and os.path.exists(os.path.join(member(run, 1), "DONE"))


def test_evaluations():
    with Scratch("population") as scratch:
        good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 20)
        flags = ["--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", scratch.at("data.npz"), "--hidden", "32,32", "--batch", 64,
                 "--steps", 90, "--save-every", 50, "--log-every", 40, "--eval-every", 40, "--eval-episodes", 1]
        run, singles = scratch.at("run"), train_singles(scratch, "maze", flags, (3, 4))
        out = good("train", *flags, "--seed", "3-4", "--out", run)
        for seed in (3, 4):
            told = [line for line in out.splitlines() if line.startswith(f"seed {seed}, step ")]
            assert [int(line.split()[3][:-1]) for line in told] == [40, 80, 90], out
        expect(run, singles)
        assert os.path.exists(os.path.join(member(run, 3), "eval.csv"))


def test_nan():
    """A member that meets NaN ends with its error; the others go on to their bytes, and the exit is 1."""
    with Scratch("population") as scratch:
        data = write_data(scratch.at("data.npz"), huge=3e38)
        flags = ["--data", data, "--hidden", "16,16", "--batch", 32, "--log-every", 7, "--save-every", 10, "--threads", 1,
                 "--set", "policy=none", "--set", "n=8"]
        seeds, meets = range(4), {}
        for seed in seeds:
            line = bad(1, " at step ", "train", *flags, "--steps", 5000, "--seed", seed, "--out", scratch.at(f"long{seed}"))
            meets[seed] = int(line.split(" at step ")[1].split()[0])
        order = sorted(seeds, key=meets.get)
        first, steps = order[0], (meets[order[0]] + meets[order[1]]) // 2
        assert meets[first] <= steps < meets[order[1]], meets
        flags += ["--steps", steps]
        singles = train_singles(scratch, "single", flags, order[1:])
        run = scratch.at("run")
        done = call("train", *flags, "--seed", "0-3", "--out", run)
        said = complaints(done.stderr)
        assert done.returncode == 1 and len(said) == 2, done
        assert said[0].startswith(f"dcrl: warning: seed {first} stops: NaN or Inf in the value of ")
        assert said[1].startswith(f"dcrl: 1 of 4 runs failed; seed {first}: NaN or Inf in the value of ")
        assert f" at step {meets[first]} " in said[1] and " is intact)" in said[1]
        expect(run, singles)
        assert not os.path.exists(os.path.join(member(run, first), "DONE"))
        # Going on meets the same number again, and no other member trains.
        bad(1, f" at step {meets[first]} ", "train", "--resume", run)
        expect(run, singles)


def test_refused():
    with Scratch("population") as scratch:
        run = scratch.at("run")
        bad(2, ["two runs are the same", "seed 1"], "train", *LOCK, "--seed", "0-2,1", "--out", run)
        bad(2, ["seeds are given twice", "seed=4"], "train", *LOCK, "--seed", "0-2", "--set", "seed=4", "--out", run)
        bad(2, ["seeds", "(0-64)"], "train", *LOCK, "--seed", "0-64", "--out", run)
        bad(2, ["seeds", "(x)"], "train", *LOCK, "--seed", "x", "--out", run)
        assert not os.path.exists(run)
        small = [*SMALL, "--steps", 20]
        good("train", *small, "--seed", "0-1", "--out", run)
        bad(2, "run with lr=0.0003, not 0.1", "train", *small, "--seed", "1-2", "--lr", 0.1, "--out", run)
        bad(2, "holds runs of seeds (2)", "train", *small, "--out", run)
        assert not os.path.exists(member(run, 2))
        # Members of one population are alike.
        shutil.rmtree(member(run, 1))
        good("train", *small, "--seed", 1, "--lr", 0.1, "--out", member(run, 1))
        for seed in (0, 1):
            os.remove(os.path.join(member(run, seed), "DONE"))
        bad(1, ["seed 1 has other options", "on its own"], "train", "--resume", run)
        single = scratch.at("single")
        good("train", *small, "--out", single)
        bad(2, "holds a run already", "train", *small, "--seed", "0-1", "--out", single)


if __name__ == "__main__":
    run_tests(globals())
