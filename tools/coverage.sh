#!/bin/sh
# What of the sources the tests reach, by llvm-cov, in a build of its own (build-coverage/).
#
#     tools/coverage.sh [REGEX]   every file of src/ by the test-suite (or by the tests that match), least first, and
#                                 all together without CUDA; what nothing reached: build-coverage/uncovered.txt
#     tools/coverage.sh fuzz      every reader by the corpus of its fuzz target: the seeds, and what fuzzing learned
#                                 (build-fuzz/corpus)
set -eu
cd "$(dirname "$0")/.."
profiles=$PWD/build-coverage/profiles
cmake --preset coverage --log-level=WARNING >/dev/null
rm -rf "$profiles"
mkdir -p "$profiles"
if [ "${1:-}" = fuzz ]; then
    cmake --build --preset coverage --target fuzzers
    # Target and the sources of its reader.
    while read -r target sources; do
        program=build-coverage/fuzz/fuzz_$target
        corpus=tests/fuzz/seeds/$target
        [ ! -d "build-fuzz/corpus/$target" ] || corpus="$corpus build-fuzz/corpus/$target"
        inputs=$(LLVM_PROFILE_FILE=$profiles/$target.profraw "$program" $corpus 2>&1 | tail -n 1)
        llvm-profdata merge -o "$profiles/$target.profdata" "$profiles/$target.profraw"
        echo "$target: $inputs"
        llvm-cov export -summary-only -instr-profile="$profiles/$target.profdata" "$program" $sources |
            .venv/bin/python tools/coverage_table.py
    done <<END
npy src/data/npy.c
npz src/data/npz.c src/data/layout.c src/data/dataset.c
hdf5 src/data/hdf5.c
store src/data/store_index.c
json src/base/json.c
config src/base/options.c
safetensors src/data/safetensors.c
checkpoint src/train/checkpoint.c src/train/pick.c src/rollout/actor.c src/api/policy.c src/rollout/export_c.c src/rollout/export_onnx.c
held_out src/train/held_out.c
logs src/train/folder.c
resume src/train/folder.c src/api/setup.c src/train/run.c
expert src/env/expert.c
report src/report/runs.c src/report/csv.c src/report/table.c src/report/compare.c src/report/curves.c src/report/html.c
lock src/report/lock_report.c
states src/env/states.c src/env/recorded.c
gen cli/gen_set.c
END
else
    cmake --build --preset coverage
    # Processes of the same program add to the same few files.
    LLVM_PROFILE_FILE=$profiles/%4m.profraw ctest --preset coverage ${1:+-R "$1"} || echo "coverage: some tests failed" >&2
    find "$profiles" -name '*.profraw' -size +0 >"$profiles/list"
    llvm-profdata merge -o "$profiles/all.profdata" --failure-mode=all -f "$profiles/list"
    objects=$(find build-coverage/tests build-coverage/fuzz -maxdepth 1 -type f -perm -u+x ! -name '*.so' | sed 's/^/-object /')
    set -- build-coverage/dcrl -object build-coverage/libdcrl.so $objects
    llvm-cov export -summary-only -instr-profile="$profiles/all.profdata" "$@" src 2>/dev/null |
        .venv/bin/python tools/coverage_table.py
    llvm-cov show -instr-profile="$profiles/all.profdata" -show-line-counts-or-regions=0 "$@" src 2>/dev/null |
        grep -E '^/|\|      0\|' >build-coverage/uncovered.txt || true
    echo "what nothing reached: build-coverage/uncovered.txt"
fi
