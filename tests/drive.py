"""What the scripts that drive `dcrl` share: calling it, checking an error, small runs, and their bytes.

A script under tests/<stage>/ gets here with `sys.path.insert(0, ...)`; ctest sets DCRL to the program.
"""

import glob
import hashlib
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import fresh

DCRL = os.environ["DCRL"]
STOPPED = 75  # exit status of what a signal stopped
SMALL = ["--env", "lock-64", "--hidden", "16,16", "--batch", 32, "--threads", 1]


def words_of(words):
    return [DCRL, *map(str, words)]


def call(*words, **more):
    return subprocess.run(words_of(words), capture_output=True, text=True, timeout=300, **more)


def good(*words, **more):
    """A call that must succeed; returns its standard output."""
    done = call(*words, **more)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout


def bad(code, texts, *words, **more):
    """A call that must fail with this code and one line that holds every text; returns the line."""
    done = call(*words, **more)
    return check_error(done.returncode, done.stderr, code, texts, words)


def complaints(stderr):
    """Lines of standard error other than the progress that a slow run tells every ten seconds."""
    return [line for line in stderr.splitlines() if not re.match(r"\[[#.]{20}\] |(step|evaluating|playing|drawing) \d+/\d+ |\d+ of \d+ (runs|data sets|stores|maps) done", line)]


def check_error(returncode, stderr, code, texts, words):
    lines = complaints(stderr)
    assert returncode == code, (words, returncode, stderr)
    assert len(lines) == 1 and lines[0].startswith("dcrl: "), (words, stderr)
    for text in [texts] if isinstance(texts, str) else texts:
        assert text in lines[0], (words, text, lines[0])
    return lines[0]


def checkpoints(run):
    """Finished checkpoints, oldest first."""
    return sorted(glob.glob(os.path.join(glob.escape(run), "step-*.safetensors")))


def step_of(path):
    return int(os.path.basename(path)[5:15])


def newest_step(run):
    found = checkpoints(run)
    return step_of(found[-1]) if found else 0


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def digests(run):
    """What must not depend on how often a run was stopped."""
    last = checkpoints(run)[-1]
    return os.path.basename(last), digest(last), digest(os.path.join(run, "train.csv"))


def spawn(*words):
    return subprocess.Popen(words_of(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def await_handler(process):
    """Wait until the process catches every signal that stops it, or has ended."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as status:
            caught = [line for line in status if line.startswith("SigCgt:")]
        if caught and all(int(caught[0].split()[1], 16) >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)):
            return
        time.sleep(0.001)


def state_of(process):
    """R: it runs or would, S: it sleeps, T: it is stopped, and so on."""
    with open(f"/proc/{process.pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def paused(process):
    """Stop the process where it is; False if it has ended."""
    process.send_signal(signal.SIGSTOP)
    while process.poll() is None:
        if state_of(process) == "T":
            return True
    return False


def progress(what, *words):
    """The lines that a call rewrites in place on a terminal, until one starts with `what`; then it is stopped, which must
    leave the last one wiped and one complaint."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words_of(words), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    told, stopped = b"", False
    while True:
        if not select.select([ours], [], [], 60)[0]:
            process.kill()
        try:
            told += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not stopped and b"\r\x1b[K" + what.encode() in told:
            process.send_signal(signal.SIGTERM)
            stopped = True
    os.close(ours)
    assert process.wait(timeout=60) == STOPPED, (words, told)
    first, *lines, last = told.decode().split("\r\x1b[K")
    assert first == "" and last.startswith("dcrl: ") and last.count("\n") == 1, (words, told)
    assert lines[-1].startswith(what) and not any("\n" in line for line in lines), (words, told)
    return lines


def went_on_at(stdout):
    """The step that `dcrl train --resume` says it goes on at."""
    first = stdout.splitlines()[0]
    assert " goes on at step " in first, stdout
    return int(first.split(" goes on at step ")[1].split()[0])


def stops(count):
    """How often to stop a run: `count`, of 72 in all tests together, or as large a part of DCRL_STOPS (tools/torture.sh resume)."""
    return max(1, round(count * int(os.environ.get("DCRL_STOPS", 72)) / 72))


def slowness():
    """How many times as long as the machine that limits of time were set on this one takes now for the same work; at least 1."""
    times = []
    for _ in range(5):
        start = time.process_time()
        sum(i * i % 7 for i in range(100_000))
        times.append(time.process_time() - start)
    return max(1, sorted(times)[2] / 0.0035)


def quickest(measure, limit, tries=10):
    """The least of some measurements, whose first number is seconds: one, and more while it is over the limit, since whatever else a machine
    does makes none of them shorter."""
    best = measure()
    for _ in range(tries - 1):
        if best[0] < limit:
            break
        best = min(best, measure())
    return best


def memory_folder():
    """Where files lie in memory, if the machine has that and room there for any test; a container may have 64 MB."""
    shm = "/dev/shm"
    return shm if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 2 << 30 else None


class Scratch:
    """A folder for one script; in memory where that is possible, since many runs mean many syncs."""

    def __init__(self, name, disk=False):
        self.path = tempfile.mkdtemp(prefix=f"dcrl_{name}_", dir=None if disk else memory_folder())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def at(self, *names):
        return os.path.join(self.path, *names)


def sanitized():
    """Whether the build has a sanitizer, whose library cannot be loaded into Python, and which needs terabytes of addresses."""
    with open(os.path.join(os.environ["BUILD"], "CMakeCache.txt")) as file:
        return any(line.startswith("DCRL_SANITIZE:") and line.strip()[-1] != "=" for line in file)


def run_tests(scope):
    """Run every test_* function of a script in order, with its time; the seed is printed to repeat a failure."""
    seed = fresh.seed()
    print(f"DCRL_SEED={seed}", flush=True)
    random.seed(seed)
    start = time.time()
    for name, test in list(scope.items()):
        if name.startswith("test_") and callable(test):
            before = time.time()
            test()
            print(f"{name}: {time.time() - before:.1f} s", flush=True)
    print(f"all: {time.time() - start:.1f} s")
    sys.stdout.flush()
