"""The cost model of docs/performance.md: its tables are what bench/costs.py prints, and what it is fitted to stands in the documents.

What the program counts is held against what can be done by hand: a network's layers, and shares of nominal FLOPs that others measured.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/performance.md").read_text()
BEGIN, END = "<!-- printed by bench/costs.py -->\n", "\n<!-- until here -->"


def load():
    spec = importlib.util.spec_from_file_location("costs", ROOT / "bench/costs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page():
    printed = subprocess.run([sys.executable, ROOT / "bench/costs.py"], check=True, capture_output=True, text=True).stdout.strip()
    assert PAGE.count(BEGIN) == PAGE.count(END) == 1
    before, rest = PAGE.split(BEGIN)
    there, after = rest.split(END)
    for ours, theirs in zip(printed.splitlines(), there.strip().splitlines()):
        assert ours == theirs, f"bench/costs.py prints\n{ours}\nand docs/performance.md has\n{theirs}"
    assert printed == there.strip()
    return before + after


def test_inputs(page, costs):
    for work, method, _, rate in costs.MEASURED + costs.APART:
        assert f"{rate:,}" in page, f"{rate} ({work}, {method}) is no figure of docs/performance.md"
    assert f"({costs.MPS:,})" in page
    lab = (ROOT / "docs/lab/data.md").read_text()
    assert "6,144 rows in 0.2 s" in lab and costs.READS == 6144 / 0.2
    for spent, _, _ in costs.FED.values():
        assert f"{spent} us" in page


def count(*words):
    found = subprocess.run([os.environ["DCRL"], "bench", "train", "--part", "count", *words], check=True, capture_output=True, text=True).stdout
    return json.loads(found)


def test_counts():
    """bc at the standard work: one network of 3 x 512 and 8 outputs on 29 + 29 numbers, 1,024 rows, all trained."""
    c = count("--work", "standard", "--agent", "bc", "--set", "rep=")
    sizes = [29 + 29, 512, 512, 512, 8]
    layers = list(zip(sizes, sizes[1:]))
    assert c["weights"] == sum((n + 1) * m for n, m in layers), c["weights"]
    linear = next(op for op in c["ops"] if op["op"] == "linear")
    forward = 2 * 1024 * sum(n * m for n, m in layers)
    assert linear["nodes"] == c["products"] == 4 and c["chain"] == 8
    assert linear["flops"] == [forward, 2 * forward - 2 * 1024 * sizes[0] * sizes[1]]  # data need no gradient
    half = count("--work", "standard", "--agent", "bc", "--set", "rep=", "--set", "batch=512")
    assert half["weights"] == c["weights"] and half["batch_bytes"] * 2 == c["batch_bytes"]


def main():
    costs = load()
    test_inputs(test_page(), costs)
    test_counts()


if __name__ == "__main__":
    main()
