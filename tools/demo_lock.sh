#!/bin/sh
# make demo-lock: the paper's central claim on this CPU, small. Four ways to learn distances in combination
# locks of 64 and 128 states, two seeds each; a table, a plot (runs/demo-lock/lock.svg) and one sentence come out.
# Stopped and called again, it goes on where it was.
set -eu
cd "$(dirname "$0")/.."
echo "Learning distances in combination locks, four methods side by side (about two minutes)."
build/dcrl lock --agent dcrl,dcrl:recursion=off,trl-n:kappa=0.5,td-n --horizon 64,128 --n 4 \
    --hidden 64,64,64 --batch 128 --steps 30000 --seed 0-1 --out runs/demo-lock
cat <<'TEXT'
dcrl trains each tree from its leaves to its root; dcrl:recursion=off makes the same backups in no order.
Look at runs/demo-lock/lock.svg, then try: build/dcrl lock --help
TEXT
