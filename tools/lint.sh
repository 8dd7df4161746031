#!/bin/sh
# Everything that reads the code without running it: formatting, layering, hygiene, clang-tidy.
# clang-tidy (checks in .clang-tidy) reads every source of src/ and cli/ with the flags of the clang
# preset; a file that passed is not read again until it, a header or the checks change.
set -eu
cd "$(dirname "$0")/.."
stamps=build-clang/tidy

if [ "${1:-}" = --one ]; then # HEADERS SOURCE: one file, for xargs below
    clang-tidy --quiet -p build-clang "$3" 2>/dev/null || exit 1
    echo "$2 $(cksum <"$3")" >"$stamps/$(echo "$3" | tr / _)"
    exit 0
fi

git ls-files -z '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format --dry-run -Werror
echo "format: clean"
python3 tools/check_layers.py
python3 tools/check_lengths.py
sh tools/check_tree.sh

cmake --preset clang --log-level=WARNING >/dev/null
cmake --build --preset clang --target dcrl
mkdir -p $stamps
headers=$({ git ls-files -co --exclude-standard '*.h' '*.def' | sort | xargs cat; cat .clang-tidy; } | cksum)
list=$(for source in $(git ls-files -co --exclude-standard 'src/*.c' 'cli/*.c'); do
    stamp=$stamps/$(echo "$source" | tr / _)
    [ "$(cat "$stamp" 2>/dev/null)" = "$headers $(cksum <"$source")" ] || echo "$source"
done)
[ -z "$list" ] || echo "$list" | xargs -P "$(nproc)" -n 1 sh tools/lint.sh --one "$headers"
echo "clang-tidy: clean ($(echo $list | wc -w) files read)"
