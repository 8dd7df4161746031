#!/bin/sh
# The long fuzzing run: tools/fuzz.sh RUNS [TARGET...], after the `fuzz` preset was built. Every target gets RUNS
# inputs, starting from its seeds and from what earlier runs learned (build-fuzz/corpus). One line a
# target; a finding prints libFuzzer's report, keeps the input in build-fuzz/ and ends with status 1.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-2000000}
[ $# -eq 0 ] || shift
found=0
# Where memory came from is not recorded: a finding is run again to tell (its input is kept).
export ASAN_OPTIONS="malloc_context_size=0:quarantine_size_mb=4:check_printf=0:strict_string_checks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
[ $# -gt 0 ] || set -- $(ls tests/fuzz/fuzz_*.c | sed 's/.*fuzz_\(.*\)\.c/\1/')
for subject; do
    program=build-fuzz/fuzz/fuzz_$subject
    [ -x "$program" ] || { echo "fuzz: there is no $program: make fuzz builds it" >&2; exit 1; }
    log=build-fuzz/$subject.log
    words=
    [ ! -f "tests/fuzz/$subject.dict" ] || words=-dict=tests/fuzz/$subject.dict
    if "$program" -runs="$runs" $words -entropic=0 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
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
