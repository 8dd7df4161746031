#!/bin/sh
# make paper-smoke: every table and figure of the paper at scale smoke, from nothing to the page; told are the time and
# the page, and an error is a cell that is neither done nor missing.
set -eu
cd "$(dirname "$0")/.."
dcrl=${DCRL:-build/dcrl}
out=${PAPER_OUT:-build/paper-smoke}
rm -rf "$out"
start=$(date +%s)
"$dcrl" paper run all --scale smoke --out "$out"
echo "paper-smoke: $(($(date +%s) - start)) s; $(cat "$out"/*.csv | grep -c ',done,') cells done, $(cat "$out"/*.csv | grep -c ',missing,') missing"
if grep -E ',(begun|to do),' "$out"/*.csv; then
    echo "paper-smoke: these are not done" >&2
    exit 1
fi
