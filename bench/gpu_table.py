"""Measures on a GPU what bench/gpu.sh tells of, and prints one table.

    BIN=dcrl TESTS=dir PEERS=dir python gpu_table.py [--quick] [--only PART,...] [--seconds T] [--budget T] [--sanitize] [--json FILE]

Parts, in the order in which they run:

    long      4x1024, flow policy, batch 1024, n 100, observations 69, actions 21, goals 2 (humanoidmaze-giant's sizes)
    standard  3x512, DDPG+BC policy, batch 1024, n 25, observations 29, actions 8, goals 2 (antmaze-large's)
    lock      3x512, batch 512, n 64, H 2048, 11 bits per state: one seed, and eight seeds in one process
    slots     standard with 16, 128, 1024 and 4096 trees in flight
    eval      a flow policy plays pointmaze-medium: GPU beside the cores
    checks    test_gpu_graph, test_gpu_actor and test_gpu; with --sanitize also under memcheck, and two steps of training
              under racecheck, which is too slow for tests
    ceilings  PEERS/gpu_ceilings.py: matrix rates and copies that the GPU reaches alone

--quick ends within four minutes, JAX's compiling included: shorter times, JAX at bf16 alone and without its `fixed` mode,
no ceilings; a part for which no time is left says so. --budget sets such an end for a full run. Raw figures go to --json (one object
a row). --device cpu tries the script where there is no GPU: all of dcrl's rows are fp32 then.

What is timed. dcrl: `bench train --out`, which is the loop of `dcrl train` with logs in a run folder (a row every 1000
steps); checkpoints are kept out of the rate and timed once, evaluation is a row of its own. Eight seeds: `dcrl train --seed 0-7` itself,
stopped after the time, steps of all seeds from their timing.csv without the first row. The peer prints steps per second of `host` (numpy samples
each batch, as the published code does), `fixed` (one batch again and again) and `device` (sampling and 100 updates in one
scan). "best" is the largest of those that were run.

Where the two differ, sizes being equal (networks per step: five of the critic, two of them trained; one trained of the oracle
critic; one trained actor, and for DDPG+BC the oracle critic once more for the actor's gradient; the lock has one network in
place of two members, and no oracle and actor):
  - dcrl checks every gradient for NaN, sums eight or so metrics and logs them; the peer computes no metric.
  - dcrl draws tree nodes leaves first from slots, and goals by the paper's shares. The peer does so in `host` (without
    current goals, the actor's goals being the critic's); in `device` it draws pairs without trees, and in `fixed` nothing.
  - bf16: dcrl keeps activations and copies of matrices in bf16; the peer keeps float32 and multiplies in bf16.
  - The lock: dcrl takes distances up to n as known when it composes, the peer those of one step.
  - The peer computes all rows. dcrl's own layers (bf16, widths of 128 and more) leave out tiles of children whose span is
    known, so TFLOP/s are nominal there: of all rows, as the peer has them.
  - dcrl's eight seeds are compared with the peer's one: it has no way to train several.
"""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN, TESTS, PEERS = (os.environ.get(k, "") for k in ("BIN", "TESTS", "PEERS"))
PARTS = ["long", "standard", "lock", "slots", "eval", "checks", "ceilings"]
QUICK_BUDGET = 225  # seconds of all
NEVER = "1000000000"

# ---- arithmetic of a step ----

SIZES = {
    "long": dict(obs=69, act=21, rep=2, hidden=[1024] * 4, batch=1024, flow=True),
    "standard": dict(obs=29, act=8, rep=2, hidden=[512] * 3, batch=1024, flow=False),
    "lock": dict(bits=11, hidden=[512] * 3, batch=512),
}


def products(widths):
    """Multiplications of a row: forward, gradient of inputs (but of the network's own), gradient of weights."""
    each = [a * b for a, b in zip(widths, widths[1:])]
    return sum(each), sum(each[1:]), sum(each)


def flops(work):
    s = SIZES[work]
    if work == "lock":
        ahead, dx, dw = products([2 * s["bits"], *s["hidden"], 1])
        return 2 * s["batch"] * (5 * ahead + 2 * (dx + dw))
    goal = s["obs"] + s["rep"]
    ahead, dx, dw = products([2 * s["obs"] + s["act"], *s["hidden"], 1])
    total = 2 * (5 * ahead + 2 * (dx + dw))
    ahead, dx, dw = products([goal + s["act"], *s["hidden"], 1])
    total += 2 * (ahead + dx + dw)
    if not s["flow"]:
        total += 2 * (ahead + dx + s["act"] * s["hidden"][0])
    ahead, dx, dw = products([goal + (s["act"] + 1 if s["flow"] else 0), *s["hidden"], s["act"]])
    return 2 * s["batch"] * (total + ahead + dx + dw)


# ---- processes ----


class Clock:
    """What is left of the time for everything."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self, most):
        return min(most, self.end - time.monotonic())


def our_environment():
    folder = os.path.join(os.path.dirname(os.path.abspath(BIN)), "lib")
    paths = [folder] if os.path.isdir(folder) else []
    paths += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    return dict(os.environ, LD_LIBRARY_PATH=":".join(paths)) if paths else dict(os.environ)


class Failed(Exception):
    """A command that gave no figure; its text is what the table tells."""


def call(words, seconds, ours=True, stop=signal.SIGKILL, fine=(0,)):
    """Standard output of a command. After `seconds` it gets the signal `stop`."""
    if seconds < 3:
        raise Failed("no time left")
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=our_environment() if ours else None)
    late = False
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = True
        process.send_signal(stop)
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    if late and stop == signal.SIGKILL:
        done = Failed(f"not done after {seconds:.0f} s")
        done.out = out
        raise done
    if process.returncode not in fine and not late:
        lines = [x for x in (err + out).strip().splitlines() if x.strip()]
        ours_first = [x for x in lines if x.startswith("dcrl: ")] or lines or ["nothing told"]
        raise Failed(f"exit {process.returncode}: {ours_first[-1][:160]}")
    return out


def caption():
    """What was measured, and on what."""
    told = []
    for words in ([BIN, "--version"], ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]):
        try:
            told += call(words, 20).strip().splitlines()[:1]
        except (Failed, OSError):
            told.append(f"{words[0]} tells nothing")
    return ", ".join([*told, time.strftime("%Y-%m-%d")])


# ---- the table ----


class Table:
    HEAD = ["row", "precision", "dcrl", "unit", "TFLOP/s", "checkpoint s", "JAX host", "JAX best", "x host", "x best", "note"]

    def __init__(self, path):
        self.rows = []
        self.file = open(path, "w") if path else None

    def add(self, row, precision="", **figures):
        self.rows.append(dict(row=row, precision=precision, **figures))
        if self.file:
            print(json.dumps(self.rows[-1]), file=self.file, flush=True)
        print(f"{row} {precision} {figures}", file=sys.stderr, flush=True)

    def show(self):
        lines = [self.HEAD] + [[cell(r, h) for h in self.HEAD] for r in self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.HEAD))]
        lines.insert(1, ["-" * w for w in widths])
        for line in lines:
            print("| " + " | ".join(text.ljust(w) for text, w in zip(line, widths)) + " |")


def number(x):
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 100 else f"{x:.2f}" if abs(x) >= 0.1 else f"{x:.4f}"


def cell(row, head):
    peers = row.get("peers") or {}
    best = max(peers, key=peers.get) if peers else None
    rate = row.get("dcrl")
    if head == "JAX host":
        return number(peers["host"]) if "host" in peers else ""
    if head == "JAX best":
        return f"{number(peers[best])} ({best})" if best else ""
    if head == "x host":
        return f"{rate / peers['host']:.2f}" if rate and "host" in peers else ""
    if head == "x best":
        return f"{rate / peers[best]:.2f}" if rate and best else ""
    value = row.get({"TFLOP/s": "tflops", "checkpoint s": "save"}.get(head, head), "")
    return number(value) if isinstance(value, float) else str(value)


# ---- parts ----


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.count = args, folder, 0
        self.clock = Clock(args.budget or (QUICK_BUDGET if args.quick else 1e9))
        self.seconds = args.seconds or (1.5 if args.quick else 5)
        self.table = Table(args.json)
        self.seen, self.trouble = {}, {}  # of the peer, by (config, precision): {mode: steps/s}, and what went wrong

    def place(self):
        self.count += 1
        return os.path.join(self.folder, str(self.count))

    def where(self, precision):
        return ["--device", self.args.device, "--precision", self.taken(precision)]

    def taken(self, precision):
        """What dcrl multiplies in when this was asked for."""
        return precision if self.args.device == "cuda" else "fp32"

    def tell(self, name, config, precision, figures, peers=True):
        """A row with the peer's figures, and with why some of them are missing."""
        key = (config, precision)
        notes = filter(None, [figures.pop("note", ""), self.trouble.get(key, "") if peers else ""])
        rates = self.seen.get(key, {}) if peers else {}
        self.table.add(name, self.taken(precision), peers=rates, note="; ".join(notes), **figures)

    def train(self, work, precision, *sets):
        """One of dcrl's rows: {dcrl, save, tflops}, or a note."""
        words = [BIN, "bench", "train", "--work", work, *self.where(precision), "--seconds", self.seconds]
        words += ["--json", "--out", self.place(), "--set", f"save_every={NEVER}"]
        for pair in sets:
            words += ["--set", pair]
        try:
            told = json.loads(call(words, self.clock.left(60 + self.seconds)))
        except Failed as failure:
            return dict(note=str(failure))
        rate = told["steps_per_second"]
        return dict(dcrl=rate, unit="steps/s", save=told.get("save_seconds", 0.0), tflops=rate * flops(work) * 1e-12)

    def peer(self, config, precision):
        """Run the peer, once a size and precision."""
        key = (config, precision)
        left_out = not PEERS or self.args.no_peers or (self.args.quick and precision != "bf16")
        if left_out or key in self.seen:
            return
        modes = "host,device" if self.args.quick else "host,fixed,device"
        words = [sys.executable, os.path.join(PEERS, "jax_dcrl.py"), config, "--precision", precision.replace("fp32", "f32")]
        words += ["--seconds", 2.5 if self.args.quick else 8, "--modes", modes]
        try:
            out = call(words, self.clock.left(60 if self.args.quick else 300), ours=False)
        except Failed as failure:
            out = getattr(failure, "out", "")
            self.trouble[key] = f"JAX: {failure}"
        told = re.findall(r"^(\w+) (\w+) (\w+) ([\d.]+) steps/s$", out, re.M)
        self.seen[key] = {mode: float(rate) for _, mode, _, rate in told}

    def race(self, name, work, precision):
        figures = self.train(work, precision)
        self.peer(work, precision)
        self.tell(name, work, precision, figures)

    def long(self):
        for precision in ("bf16", "tf32"):
            self.race("long", "long", precision)

    def standard(self):
        for precision in ("bf16", "tf32", "fp32"):
            self.race("standard", "standard", precision)

    def lock(self):
        for precision in ("bf16", "tf32"):
            self.race("lock, one seed", "lock", precision)
            self.tell("lock, eight seeds", "lock", precision, self.seeds(precision))

    def seeds(self, precision):
        out = self.place()
        words = [BIN, "train", "--env", "lock-2048", "--agent", "dcrl", "--seed", "0-7", *self.where(precision)]
        words += ["--steps", NEVER, "--save-every", NEVER, "--out", out]
        try:
            call(words, self.clock.left(self.seconds + 6), stop=signal.SIGINT)
        except Failed as failure:
            return dict(note=str(failure))
        rates = []
        for path in glob.glob(os.path.join(out, "seed-*", "timing.csv")):
            rows = [[float(x) for x in line.split(",")] for line in open(path).read().splitlines()[1:]]
            if len(rows) > 1:
                rates.append((rows[-1][0] - rows[0][0]) / (rows[-1][1] - rows[0][1]))
        if len(rates) != 8:
            return dict(note=f"{len(rates)} of 8 seeds told two rows of timing.csv")
        return dict(dcrl=sum(rates), unit="steps/s", tflops=sum(rates) * flops("lock") * 1e-12, note="all seeds together")

    def slots(self):
        for slots in (16, 128, 1024, 4096):
            figures = self.train("standard", "bf16", f"slots={slots}")
            self.tell(f"standard, {slots} slots", "standard", "bf16", figures, peers=slots == 128)

    def eval(self):
        data, episodes = os.path.join(self.folder, "maze.npz"), 3 if self.args.quick else 15
        try:
            call([BIN, "gen", "pointmaze-medium-navigate", "-o", data, "--episodes", 40], self.clock.left(60))
        except Failed as failure:
            return self.table.add("eval", note=str(failure))
        for policy, hidden in (("ddpgbc", "512,512,512"), ("rejection", "512,512,512"), ("rejection", "1024,1024,1024,1024")):
            self.play(data, policy, hidden, episodes)

    def play(self, data, policy, hidden, episodes):
        run, name = self.place(), f"eval {policy} {len(hidden.split(','))}x{hidden.split(',')[0]}"
        words = [BIN, "train", "--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", data, "--hidden", hidden, *self.where("tf32")]
        words += ["--batch", 256, "--steps", 200, "--set", f"policy={policy}", "--out", run]
        ways = [("cuda", "fp32"), ("cuda", "tf32"), ("cpu", "fp32")]
        if self.args.quick:  # the cores take minutes for a flow
            ways = ways[:2] if policy == "rejection" else [ways[0], ways[2]]
        ways = [w for w in ways if self.args.device == "cuda" or w[0] == "cpu"]
        try:
            call(words, self.clock.left(60))
        except Failed as failure:
            return self.table.add(name, note=str(failure))
        for device, precision in ways:
            words = [BIN, "eval", run, "--device", device, "--precision", precision, "--episodes", episodes, "--json"]
            try:
                told = json.loads(call(words, self.clock.left(40 if self.args.quick else 400)))
                note = f"{told['episodes']} episodes, success {100 * told['overall_success']:.0f} %"
                self.table.add(f"{name}, {device}", precision, dcrl=told["seconds"], unit="s", note=note)
            except Failed as failure:
                self.table.add(f"{name}, {device}", precision, note=str(failure))

    def checks(self):
        for test in ("test_gpu_graph", "test_gpu_actor", "test_gpu"):
            path = os.path.join(TESTS, test)
            self.check(test, [path])
            for name in self.names(path) if self.args.sanitize else ():  # one by one: all together take too long
                self.check(f"{test} {name}, memcheck", self.under("memcheck", path, name))
        if self.args.sanitize:
            self.races()

    def under(self, tool, *words):
        return ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *words]

    def races(self):
        data = os.path.join(self.folder, "few.npz")
        works = [("lock", ["--env", "lock-64", "--set", "n=8"])]
        try:
            call([BIN, "gen", "pointmaze-medium-navigate", "-o", data, "--episodes", 4], self.clock.left(60))
            for policy in ("ddpgbc", "rejection"):
                maze = ["--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", data, "--set", f"policy={policy}"]
                works.append((policy, maze))
        except Failed as failure:
            self.table.add("two steps of mazes, racecheck", note=str(failure))
        for name, words in works:
            for precision in ("tf32", "bf16"):
                sizes = ["--hidden", "256,256", "--batch", 128, "--steps", 2, "--log-every", 1]
                run = [BIN, "train", *words, *sizes, *self.where(precision), "--out", self.place()]
                self.check(f"two steps of {name} in {precision}, racecheck", self.under("racecheck", *run))

    def names(self, path):
        """The tests of a program, by the names that stand in it."""
        with open(path, "rb") as file:
            return sorted({n.decode() for n in re.findall(rb"\0(test_[a-z_]+)(?=\0)", file.read())})

    def check(self, name, words):
        program = shutil.which(words[0])
        if not program:
            return self.table.add(name, note=f"{words[0]} is not here")
        start = time.monotonic()
        try:
            out = call([program, *words[1:]], self.clock.left(550))
        except Failed as failure:
            self.failed = self.failed or "not done" not in str(failure) and "no time" not in str(failure)
            return self.table.add(name, note=str(failure))
        skipped = re.findall(r"^\[  SKIPPED \] (\w+)$", out, re.M)
        note = "passed" if not skipped else "SKIPPED: " + ", ".join(sorted(set(skipped)))
        self.table.add(name, dcrl=time.monotonic() - start, unit="s", note=note)

    failed = False

    def ceilings(self):
        if self.args.quick or not PEERS or self.args.no_peers:
            return
        try:
            out = call([sys.executable, os.path.join(PEERS, "gpu_ceilings.py")], self.clock.left(200), ours=False)
        except Failed as failure:
            return self.table.add("ceilings", note=str(failure))
        for line in out.splitlines():
            self.table.add("ceiling", note=line.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="all within four minutes")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    parser.add_argument("--seconds", type=float, help="of each of dcrl's rows (5, quick: 1.5)")
    parser.add_argument("--budget", type=float, help="seconds for everything (quick: 225)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--sanitize", action="store_true", help="run the tests under compute-sanitizer too")
    parser.add_argument("--no-peers", action="store_true", help="dcrl alone")
    parser.add_argument("--json", help="file for the raw figures")
    args = parser.parse_args()
    unknown = [part for part in args.only.split(",") if part not in PARTS]
    if unknown:
        sys.exit(f"gpu_table.py: unknown part {unknown[0]}: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="dcrl_gpu_") as folder:
        bench = Bench(args, folder)
        try:
            for part in PARTS:
                if part in args.only.split(","):
                    getattr(bench, part)()
        finally:
            print(caption() + "\n")
            bench.table.show()
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
