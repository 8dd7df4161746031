#!/bin/sh
# gcc -fanalyzer over src/ and cli/, with the flags of the release build (make first). It takes minutes, so CI does
# without; clang's analyzer is part of tools/lint.sh. What it finds is fixed, or answered in
# tools/analyze.txt; a finding without an answer fails.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --one ]; then # SOURCE: its findings, as "file warning", each once
    ninja -C build -t compdb | python3 -c '
import json, shlex, subprocess, sys
source = sys.argv[1]
all_of_it = (e for e in json.load(sys.stdin) if e["file"].endswith("/" + source))
command = next((e for e in all_of_it if "tests/" not in e["output"]), None)
if not command:
    sys.exit(0)  # of the CUDA backend or the simulator, which this build is without
words = [w for w in shlex.split(command["command"]) if w != "ccache"]
words[words.index("-o") + 1] = "/dev/null"
words += ["-O1", "-Wno-error", "-fanalyzer", "-D__clang_analyzer__", "-MF", "/dev/null"]  # the last but one: base/status.h
told = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
if told.returncode:
    sys.exit(told.stderr)
found = {line.split("[-Wanalyzer-")[1].rstrip("]") for line in told.stderr.splitlines() if "warning:" in line and "[-Wanalyzer-" in line}
for name in sorted(found):
    print(source, name)
' "$2"
    exit
fi

known=$(mktemp)
trap 'rm -f "$known"' EXIT
grep -v '^#' tools/analyze.txt | cut -d: -f1 | sort >"$known"
if git ls-files 'src/*.c' 'cli/*.c' | xargs -P "$(nproc)" -n 1 sh tools/analyze.sh --one | sort | comm -23 - "$known" | grep .; then
    echo "analyze: fix these, or answer them in tools/analyze.txt; gcc -fanalyzer tells more" >&2
    exit 1
fi
echo "analyze: clean ($(wc -l <"$known") findings answered in tools/analyze.txt)"
