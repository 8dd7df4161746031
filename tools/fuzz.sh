#!/bin/sh
# The long fuzzing run: tools/fuzz.sh RUNS, after the `fuzz` preset was built. Every target gets RUNS
# inputs, starting from its seeds and from what earlier runs learned (build-fuzz/corpus). One line a
# target; a finding prints libFuzzer's report, keeps the input in build-fuzz/ and ends with status 1.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-2000000}
found=0
for program in build-fuzz/fuzz/fuzz_*; do
    [ -x "$program" ] || { echo "fuzz: no targets in build-fuzz/fuzz: make fuzz builds them" >&2; exit 1; }
    subject=${program##*/fuzz_}
    log=build-fuzz/$subject.log
    if "$program" -runs="$runs" -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="build-fuzz/$subject-" "build-fuzz/corpus/$subject" "tests/fuzz/seeds/$subject" >"$log" 2>&1; then
        did=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
        echo "fuzz $subject: $did inputs, $speed a second, no finding"
    else
        echo "fuzz $subject: FINDING, see $log" >&2
        tail -n 40 "$log" >&2
        found=1
    fi
done
exit $found
