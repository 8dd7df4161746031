"""Every command under every fault: the Nth allocation, open, read, write, sync, rename, stat, close, ... fails.

A case is a command in a folder that is filled beforehand. Its run without a fault is the measure; then, for each kind of
call, call number N fails, once or from then on (tests/faults/faults.c, preloaded). What may come of it:

- exit 0, and every file and every word on standard output is as without the fault (warnings are allowed), or
- exit 1, one line on standard error, no temporary file left; then the same command again (or, of training, a resume)
  gives the files of the undisturbed run.

Anything else is a finding: a crash, a hang, an abort, another status, other bytes, litter, a way back that is barred.

    python tests/faults/faults.py [--cases A,B] [--kinds K,L] [--sample N] [--seed S]       (tools/torture.sh faults)
"""

import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from commands import Inputs, cases, latest, read, snapshot, words_told  # noqa: E402
from drive import DCRL, Scratch, complaints  # noqa: E402

LIBRARY = os.path.join(os.environ["BUILD"], "tests", "libfaults.so")
KINDS = ["memory", "map", "open", "read", "write", "sync", "rename", "stat", "close", "folder", "thread"]
LIMIT = 30  # seconds until a run counts as hanging


class Server:
    """A program that waits before its main, and runs it in a child per request."""

    def __init__(self, words, alone=False):
        env = {**os.environ, "LD_PRELOAD": LIBRARY, "FAULT_SERVER": "1", "LC_ALL": "C",
               **({"FAULT_ALONE": "1"} if alone else {})}
        self.process = subprocess.Popen([DCRL, *map(str, words)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.requests, self.answers, self.pending = self.process.stdin.fileno(), self.process.stdout.fileno(), b""

    def line(self, limit):
        until = time.time() + limit
        while b"\n" not in self.pending:
            if not select.select([self.answers], [], [], max(0, until - time.time()))[0]:
                return None
            more = os.read(self.answers, 4096)
            assert more, "the fault server ended"
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode()

    def run(self, folder, kind="none", number=0, ever=False):
        """(status as subprocess has it or "hangs", whether the fault came, calls of each kind)"""
        os.write(self.requests, f"{kind} {number} {int(ever)} {folder}\n".encode())
        pid, hangs = int(self.line(LIMIT)), False
        answer = self.line(LIMIT)
        if answer is None:
            hangs = True
            os.kill(pid, signal.SIGKILL)
            answer = self.line(LIMIT)
        status, fired, *counts = map(int, answer.split())
        return "hangs" if hangs else os.waitstatus_to_exitcode(status), fired, dict(zip(KINDS, counts))

    def close(self):
        self.process.communicate()


class Trial:
    """One case, its servers and what a run without a fault leaves."""

    def __init__(self, case, scratch):
        self.case, self.scratch, self.count = case, scratch, 0
        self.servers = {}
        folder = self.folder()
        status, _, self.calls = self.server(case.words).run(folder)
        assert status == 0 and not complaints(read(folder + ".err").decode()), (case.name, status, read(folder + ".err"))
        self.files, self.told = latest(snapshot(folder)), words_told(folder)
        self.remove(folder)

    def server(self, words):
        key = tuple(map(str, words))
        if key not in self.servers:
            self.servers[key] = Server(words, self.case.alone)
        return self.servers[key]

    def close(self):
        for server in self.servers.values():
            server.close()

    def folder(self):
        self.count += 1
        folder = self.scratch.at(f"{self.case.name}-{self.count}")
        os.mkdir(folder)
        self.case.fill(folder)
        return folder

    def remove(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for end in ".out", ".err":
            os.path.exists(folder + end) and os.remove(folder + end)

    def judge(self, folder, status):
        """What is wrong with how a run with a fault ended; None if nothing."""
        errors = complaints(read(folder + ".err").decode(errors="replace"))
        warned = [line for line in errors if line.startswith("dcrl: warning: ")]
        told = [line for line in errors if line not in warned]
        if status == 0 and not told:
            if latest(snapshot(folder)) != self.files:
                return "exit 0 with other files: " + self.difference(folder)
            return None if words_told(folder) == self.told else f"exit 0 with other words: {words_told(folder)[-200:]!r}, not {self.told[-200:]!r}"
        if status != 1:
            return f"status {status}: {' / '.join(errors)[-300:]}"
        if len(told) != 1 or not told[0].startswith("dcrl: ") or "(null)" in told[0] or len(told[0]) < 12:
            return f"not one line: {' / '.join(told)[-300:]}"
        litter = [name for name in snapshot(folder) if ".tmp." in name]
        return f"litter: {litter}" if litter else None

    def difference(self, folder):
        now = latest(snapshot(folder))
        return ", ".join(sorted(name for name in {*now, *self.files} if now.get(name) != self.files.get(name)))

    def come_back(self, folder):
        words = self.case.way_back(folder)
        status, _, _ = self.server(words).run(folder)
        errors = complaints(read(folder + ".err").decode(errors="replace"))
        if status != 0:
            return f"no way back, status {status}: {' / '.join(errors)[-300:]}"
        if latest(snapshot(folder)) != self.files:
            return "other files after the way back: " + self.difference(folder)
        return None

    def run(self, kind, number, ever):
        """(whether the call was there, what was wrong)"""
        folder = self.folder()
        status, fired, _ = self.server(self.case.words).run(folder, kind, number, ever)
        wrong = self.judge(folder, status) if fired else None
        line = " / ".join(complaints(read(folder + ".err").decode(errors="replace")))
        if not wrong and fired and status != 0:
            wrong = self.come_back(folder)
            if wrong:
                wrong += f" (after: {line})"
        self.remove(folder)
        return fired > 0, wrong


def numbers(trial, kind, sample):
    """Which calls fail: all, or `sample` of them, the first and the last always."""
    count = trial.calls[kind]
    if not sample or count <= sample:
        return range(1, count + 1)
    return sorted({1, count, *random.sample(range(1, count + 1), sample - 2)} if sample > 2 else {random.randint(1, count)})


def attack(trial, kinds, sample, tell=lambda *_: None):
    """Run the faults of one case; (runs, findings as (kind, number, ever, what))"""
    runs, findings = 0, []
    for kind in kinds:
        for number in numbers(trial, kind, sample):
            for ever in (False, True) if not sample else (random.random() < 0.5,):
                fired, wrong = trial.run(kind, number, ever)
                runs += fired
                if wrong:
                    findings.append((kind, number, "ever" if ever else "once", wrong))
                    tell(trial.case.name, *findings[-1])
    return runs, findings


def attack_all(chosen, kinds, sample, tell=lambda *_: None, slow=None, leave=()):
    """All cases; `sample` calls of each kind, `slow` of them where a case takes long (None: all)."""
    total, found = 0, []
    with Scratch("faults") as scratch:
        for case in cases(Inputs(scratch)):
            if chosen and case.name not in chosen or case.name in leave:
                continue
            start, trial = time.time(), Trial(case, scratch)
            try:
                runs, findings = attack(trial, kinds, slow if slow and case.slow else sample, tell)
            finally:
                trial.close()
            total += runs
            found += [(case.name, *finding) for finding in findings]
            calls = " ".join(f"{kind} {trial.calls[kind]}" for kind in kinds if trial.calls[kind])
            print(f"  {case.name}: {runs} faults, {len(findings)} findings, {time.time() - start:.0f} s (calls: {calls})", flush=True)
    return total, found


def attack_these(wanted):
    """(case, kind, numbers): those faults, once and from then on; the findings"""
    found = []
    with Scratch("faults") as scratch:
        inputs = Inputs(scratch)
        for name, kind, chosen in wanted:
            trial = Trial(next(case for case in cases(inputs) if case.name == name), scratch)
            try:
                for number in chosen:
                    for ever in False, True:
                        fired, wrong = trial.run(kind, number, ever)
                        found += [(name, kind, number, ever, wrong)] if wrong else []
            finally:
                trial.close()
    for finding in found:
        print("    FINDING", *finding)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=lambda text: text.split(","), default=[])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    total, found = attack_all(args.cases, args.kinds, args.sample, lambda *what: print("    FINDING", *what, flush=True))
    print(f"{total} faults, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
