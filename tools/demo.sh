#!/bin/sh
# make demo: the paper's central claim on this CPU, small. Four ways to learn distances in a combination
# lock, two seeds each; a table, a plot (runs/demo) and one sentence come out.
set -eu
cd "$(dirname "$0")/.."
exec build/dcrl lock --agent dcrl,dcrl:recursion=off,trl-n,td-n --horizon 256 --n 8 \
    --hidden 64,64,64 --batch 128 --steps 20000 --seed 0-1 --out runs/demo
