#!/bin/sh
# What takes minutes to hours and is no part of `make test`, which runs a sample of each: after `make` and with the tests
# built (cmake --build --preset release).
#
#     tools/torture.sh faults [WORDS]   every call of every kind fails, in every command, once and from then on
#                                       (WORDS: --cases train,eval --kinds memory,read --sample 20)
#     tools/torture.sh resume [200]     that many random stop points, each resumed to the bytes of an undisturbed run
#     tools/torture.sh kill [1000]      that many kill -9, over training, seeds, gen, convert, lock, eval and map
#     tools/torture.sh fuzz [2000000]   that many inputs for every reader (needs the fuzz preset)
#
# A failure prints what it was and DCRL_SEED=..., which repeats it. DCRL_BUILD: another build folder than build/.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(cd "${DCRL_BUILD:-build}" && pwd)
DCRL=$BUILD/dcrl
DCRL_SEED=${DCRL_SEED:-clock} # new numbers each time (tests/fresh.py)
export BUILD DCRL DCRL_SEED
python=$PWD/.venv/bin/python
[ -x "$python" ] && [ -x "$DCRL" ] || { echo "torture: make test builds the program and .venv first" >&2; exit 1; }
what=${1:-}
[ $# -eq 0 ] || shift
case $what in
faults) exec "$python" tests/faults/faults.py "$@" ;;
resume)
    DCRL_STOPS=${1:-200} "$python" tests/train/test_resume.py
    DCRL_STOPS=${1:-200} exec "$python" tests/train/test_population.py
    ;;
kill) DCRL_KILLS=${1:-1000} exec "$python" tests/train/test_kill.py ;;
fuzz) exec sh tools/fuzz.sh "$@" ;;
*)
    sed -n 's/^#     //p' "$0" >&2
    exit 2
    ;;
esac
