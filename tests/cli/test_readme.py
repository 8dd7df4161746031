"""The README's first screen names every method and every environment that the program has."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import good, run_tests  # noqa: E402

README = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")


def first_screen():
    with open(README) as file:
        return file.read().split("\n![")[0]


def test_methods():
    named = re.findall(r"`([a-z-]+)`", first_screen())
    agents = [a["name"] for a in json.loads(good("list", "agents", "--json"))["agents"]]
    assert len(agents) >= 7 and set(agents) <= set(named), set(agents) - set(named)


def test_environments():
    """`family` in the first column, its variant in the second."""
    rows = [line.split("|")[1:3] for line in first_screen().splitlines() if line.startswith("|")]
    for env in json.loads(good("list", "envs", "--json"))["envs"]:
        family, _, variant = env["name"].removesuffix("-v0").partition("-")
        found = [variants for names, variants in rows if f"`{family}" in names]
        assert len(found) == 1 and (not variant or re.search(rf"\b{variant}\b", found[0])), env["name"]


if __name__ == "__main__":
    run_tests(globals())
