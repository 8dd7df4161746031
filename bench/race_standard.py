"""Training speed on the sizes of a maze against another program, in turns on the same machine: dcrl, peer, dcrl, peer, ...

The peer is a command that trains the same work (`dcrl bench train --help` tells its sizes) and prints lines with
"X steps/s"; the last one counts. Prints every round, then one JSON line with the medians and their ratio. Leave the machine
alone meanwhile.
usage: race_standard.py "python peer.py standard --modes fixed" [--work standard|long] [--precision fp32|bf16] [--rounds 3] [--seconds 8]
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys

DCRL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "dcrl")


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", help="command; --seconds N is added to it")
    parser.add_argument("--work", choices=["standard", "long"], default="standard")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of dcrl's products")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    seconds, ours, peers, last = ["--seconds", str(args.seconds)], [], [], {}
    for r in range(args.rounds):
        last = json.loads(run([DCRL, "bench", "train", "--work", args.work, "--precision", args.precision, "--json", *seconds]))
        ours.append(last["steps_per_second"])
        told = re.findall(r"([\d.]+) steps/s", run([*shlex.split(args.peer), *seconds]))
        if not told:
            sys.exit(f"the peer told no steps/s ({args.peer})")
        peers.append(float(told[-1]))
        print(f"round {r + 1}: dcrl {ours[-1]:.2f}, peer {peers[-1]:.2f} steps/s", file=sys.stderr, flush=True)
    a, b = statistics.median(ours), statistics.median(peers)
    print(json.dumps({"bench": f"race_{args.work}", "precision": last["precision"], "dcrl_steps_per_second": a, "peer_steps_per_second": b, "ratio": round(a / b, 3),
                      "threads": last["threads"], "linear_gflops": last["linear_gflops"], "alone_gflops": last["alone_gflops"]}))


main()
