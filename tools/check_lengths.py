#!/usr/bin/env python3
"""No function over 60 lines (STYLE.md), except kernels: CUDA functions that run on the device.

A function's length is counted from the line of its name to its closing brace. clang-format has been over
the sources before, so a definition starts in the first column and its closing brace stands there alone.

    tools/check_lengths.py              the check: the functions that are too long, exit 1 when there are any
    tools/check_lengths.py --top N      the N longest functions
    tools/check_lengths.py --table      lines and functions by folder, as Markdown (docs/lab/sources.md)
"""
import re
import subprocess
import sys
from pathlib import Path

MOST = 60
FOLDERS = ["src", "cli", "include", "tests", "bench", "examples"]
KERNEL = re.compile(r"__global__|__device__")
NAME = re.compile(r"([A-Za-z_]\w*)\(")
# A definition's first line, in the first column; what looks like one but is none.
OTHER = re.compile(r"(typedef|struct|union|enum|extern|namespace|template)\b(?!.*\))|[#/}]")


def functions(text):
    """(name, first line from 1, lines) of every function definition."""
    lines = text.split("\n")
    first = None
    for i, line in enumerate(lines):
        if first is None:
            if line[:1].isalpha() or line[:1] == "_":
                if not OTHER.match(line):
                    first = i
        if first is not None:
            if line == "}" or (i == first and line.endswith("}")):
                head = " ".join(lines[first : i + 1]).split("{")[0]
                name = NAME.search(head)
                if name and not KERNEL.search(head):
                    yield name.group(1), first + 1, i - first + 1
                first = None
            elif line.startswith("}") or (line.endswith(";") and i == first):
                first = None  # a table or a declaration
            elif line.endswith(");") and i > first and "{" not in "".join(lines[first : i + 1]):
                first = None  # a declaration of several lines


def folder_of(name):
    parts = name.split("/")
    return "/".join(parts[:2] if parts[0] == "src" else parts[:1])


def table(lines, found):
    """Lines of each folder, and its functions by length."""
    bounds = [(1, 10), (11, 20), (21, 40), (41, MOST)]
    print("| folder | lines | " + " | ".join(f"{lo} to {hi}" for lo, hi in bounds) + " |\n|---|" + "---|" * (1 + len(bounds)))
    for folder in sorted(lines):
        own = [n for n, name, _, _ in found if folder_of(name) == folder]
        print(f"| `{folder}` | {lines[folder]:,} | " + " | ".join(str(sum(lo <= n <= hi for n in own)) for lo, hi in bounds) + " |")


def main():
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS], cwd=root, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    found, lines_of = [], {}
    for name in filter(re.compile(r"\.(c|h|cu|cuh)$").search, listed):
        path = root / name
        if path.exists():
            text = path.read_text()
            found += [(lines, name, line, f) for f, line, lines in functions(text)]
            lines_of[folder_of(name)] = lines_of.get(folder_of(name), 0) + text.count("\n")
    if not found:
        print("lengths: no function found", file=sys.stderr)
        return 1
    found.sort(reverse=True)
    if sys.argv[1:2] == ["--top"]:
        for lines, name, line, f in found[: int(sys.argv[2])]:
            print(f"{lines:4d}  {name}:{line} {f}")
        return 0
    if sys.argv[1:2] == ["--table"]:
        return table(lines_of, found)
    long = [row for row in found if row[0] > MOST]
    for lines, name, line, f in long:
        print(f"{name}:{line}: {f} has {lines} lines, {MOST} at most", file=sys.stderr)
    print(f"lengths: {len(found)} functions, {len(long)} of more than {MOST} lines, the longest {found[0][0]}")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
