#!/bin/sh
# Everything that is measured on a GPU, as one table: training at the paper's sizes beside a JAX program, evaluation,
# checkpoints, the tests, and what the machine can do at most. Builds what is missing where there are nvcc and cmake;
# elsewhere BIN names a program that was brought along. bench/gpu_table.py does the measuring and tells what the
# rows are.
#
#   bench/gpu.sh [--quick] [--only PART,...] [--seconds T] [--budget T] [--sanitize] [--json FILE]
#
#   BIN     the program; its shared libraries are looked for in lib/ beside it (default: build-cuda/dcrl, built first)
#   TESTS   folder with test_gpu, test_gpu_actor and test_gpu_graph (default: tests/ beside BIN, or BIN's own folder)
#   PEERS   folder with jax_dcrl.py and gpu_ceilings.py; without it there is nothing to compare with
#   PYTHON  for this and for the peers (default: python3)
#
# example: PEERS=peers bench/gpu.sh
#          BIN=build-h200/dcrl TESTS=build-h200 PEERS=build-h200/peers sh bench/gpu.sh --quick
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case " $* " in *" --help "* | *" -h "*) exec "${PYTHON:-python3}" "$here/gpu_table.py" --help ;; esac
if [ -z "${BIN:-}" ]; then
    for tool in nvcc cmake; do
        command -v $tool >/dev/null || [ -x /usr/local/cuda/bin/$tool ] ||
            { echo "gpu.sh: no $tool here: name a program that was built elsewhere, BIN=path/to/dcrl" >&2; exit 1; }
    done
    (cd "$here/.." && cmake --preset cuda --log-level=WARNING >/dev/null &&
        cmake --build --preset cuda --target dcrl test_gpu test_gpu_actor test_gpu_graph) >&2
    BIN=$here/../build-cuda/dcrl
fi
[ -x "$BIN" ] || { echo "gpu.sh: $BIN is no program: set BIN" >&2; exit 1; }
folder=$(dirname "$BIN")
[ -n "${TESTS:-}" ] || { TESTS=$folder; [ ! -d "$folder/tests" ] || TESTS=$folder/tests; }
export BIN TESTS
exec "${PYTHON:-python3}" "$here/gpu_table.py" "$@"
