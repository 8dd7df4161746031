"""llvm-cov's summary (export -summary-only, on standard input) as a table: the least covered file first, the sum last."""

import json
import sys


def part(counts):
    return f"{counts['covered']:6d} of {counts['count']:6d} {100 * counts['covered'] / max(counts['count'], 1):6.1f} %"


def total(rows, kind):
    return {key: sum(row[kind][key] for row in rows) for key in ("count", "covered")}


def main():
    files = json.load(sys.stdin)["data"][0]["files"]
    rows = [{"name": file["filename"].split("/src/")[-1].split("/cli/")[-1], **file["summary"]} for file in files if file["summary"]["lines"]["count"]]
    rows.sort(key=lambda row: row["lines"]["percent"])
    if len(rows) > 1:
        rows.append({"name": "in all", "lines": total(rows, "lines"), "branches": total(rows, "branches")})
    for row in rows:
        print(f"  {row['name']:36s} lines {part(row['lines'])}   branches {part(row['branches'])}")


if __name__ == "__main__":
    main()
