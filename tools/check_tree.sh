#!/bin/sh
# Hygiene of what is tracked: no path of somebody's machine, no package registry's address, no large or
# generated file, no text without a final newline. (Patterns carry [brackets] so as not to find themselves.)
set -eu
cd "$(dirname "$0")/.."
bad=0
complain() {
    echo "tree: $1" >&2
    bad=1
}

if git grep -nIE '(^|[^A-Za-z0-9_.-])/(hom[e]|roo[t]|wor[k]|User[s]|mn[t])/[A-Za-z0-9_]' -- . ':!LICENSE' >&2; then
    complain "a path of one machine in a tracked file"
fi
if git grep -nIiE 'py[p]i\.org|python[h]osted|files\.py[t]hon|deb\.deb[i]an\.org|index-ur[l]|[a-z0-9.-]+-docker\.pk[g]' >&2; then
    complain "a package registry's address in a tracked file; set-up uses what the system is configured for"
fi
for file in $(git ls-files); do
    [ -f "$file" ] || continue
    [ "$(wc -c <"$file")" -le 1000000 ] || complain "$file is larger than 1 MB"
    case $file in
    tests/fuzz/seeds/*) ;; # any bytes
    *.o | *.so | *.a | *.pyc | build/*) complain "$file is made by a build" ;;
    *.c | *.h | *.cu | *.py | *.sh | *.md | *.json | *.txt | *.def)
        [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || complain "$file does not end with a newline" ;;
    esac
done
[ $bad = 0 ] && echo "tree: $(git ls-files | wc -l) tracked files, clean"
exit $bad
