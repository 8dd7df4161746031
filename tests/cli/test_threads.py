"""Runs side by side, each on two threads, stopped and continued: small, for ThreadSanitizer to watch.

Blocks are of 256 rows, so a batch of 300 gives the pool of a run two blocks of everything.
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, await_handler  # noqa: E402



def command(folder, steps):
    words = "--agent dcrl,td-n --horizon 32 --n 4 --hidden 16,16 --batch 300 --seed 0-1 --threads 8".split()
    return [DCRL, "lock", *words, "--steps", str(steps), "--out", folder]


def main():
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, "one")
        process = subprocess.Popen(command(one, 400), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        await_handler(process)
        while process.poll() is None and not glob.glob(os.path.join(one, "*", "timing.csv")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
        assert process.returncode in (0, 75) and "ThreadSanitizer" not in told, told
        done = subprocess.run(command(one, 400), capture_output=True, text=True)
        assert done.returncode == 0 and "At H = 32" in done.stdout, done.stderr
        again = subprocess.run(command(os.path.join(folder, "two"), 400), capture_output=True, text=True)
        # agent, mean, +-, deviation: the same whether stopped or not; the speed behind them is not
        cells = lambda text: [line.split()[:4] for line in text.splitlines() if line.startswith(("dcrl ", "td-n "))]
        assert len(cells(done.stdout)) == 2 and cells(done.stdout) == cells(again.stdout), (done.stdout, again.stdout)
    print("1 passed, 0 failed")


main()
