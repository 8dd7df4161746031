"""Training speed against JAX, in turns on the same machine: dcrl bench train, JAX, dcrl, JAX, ...

Prints every round, then one JSON line with the medians and their ratio. Leave the machine alone meanwhile.
usage: race_lock.py [--precision fp32|bf16] [--rounds 3] [--seconds 5] [--peer "command that prints '... X steps/s'"]
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of dcrl's products; JAX has float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--peer", default=f"{sys.executable} {HERE}/jax_lock.py")
    args = parser.parse_args()
    ours, peers, last = [], [], {}
    for r in range(args.rounds):
        last = json.loads(run([f"{HERE}/../build/dcrl", "bench", "train", "--work", "lock", "--precision", args.precision, "--json", "--seconds", str(args.seconds)]))
        ours.append(last["steps_per_second"])
        peers.append(float(re.findall(r"([\d.]+) steps/s", run(shlex.split(args.peer) + ["--seconds", str(args.seconds)]))[-1]))
        print(f"round {r + 1}: dcrl {ours[-1]:.1f}, peer {peers[-1]:.1f} steps/s", file=sys.stderr, flush=True)
    a, b = statistics.median(ours), statistics.median(peers)
    print(json.dumps({"bench": "race_lock", "precision": last["precision"], "dcrl_steps_per_second": a, "peer_steps_per_second": b, "ratio": round(a / b, 3),
                      "linear_gflops": last["linear_gflops"], "alone_gflops": last["alone_gflops"]}))


main()
