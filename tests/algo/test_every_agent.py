"""Every agent that `dcrl list agents` names has what CONTRIBUTING.md asks of a method.

A comparison with JAX: a file of its own, test_NAME_parity.py, or a case in one of the two files of the methods that share
algo/backup.c. A card: a heading in docs/agents.md. Presets: a section in standard.json and in long.json, or a place among
those of the paper's own methods, to which the presets speak as a whole; and a row in tests/train/test_presets.py, which
holds the published values.
"""
import json
import os
import re
import subprocess
import sys

DCRL = os.environ.get("DCRL", "build/dcrl")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SHARED = {"test_jax_parity.py": r'^    \("([a-z-]+)", "', "test_value_parity.py": r'\bagent="([a-z-]+)"'}
PAPER = {"dcrl", "curriculum", "trl", "trl-n", "td", "td-n", "mc"}  # one family: a preset's own members are theirs

sys.path.insert(0, os.path.join(HERE, "..", "train"))
import test_presets  # noqa: E402


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as text:
        return text.read()


def compared():
    names = {name for file, pattern in SHARED.items() for name in re.findall(pattern, read(HERE, file), re.M)}
    for file in os.listdir(HERE):
        own = re.fullmatch(r"test_(\w+)_parity\.py", file)
        if own and "parity.main(" in read(HERE, file):
            names |= set(re.findall(r'\bMethod\("([a-z-]+)"', read(HERE, file)))
    return names


def carded():
    return {name for line in re.findall(r"^## (.+)$", read(ROOT, "docs", "agents.md"), re.M) for name in line.split(", ")}


def preset(file):
    """Methods of which each task of a file of presets says something, itself or in what it is like."""
    presets = json.loads(read(ROOT, "configs", file + ".json"))

    def sections(name):
        own = presets[name]
        return {k for k, v in own.items() if isinstance(v, dict)} | (sections(own["like"]) if "like" in own else set())

    return PAPER | set.intersection(*(sections(name) for name, p in presets.items() if "env" in p))


def main():
    agents = {a["name"] for a in json.loads(subprocess.check_output([DCRL, "list", "agents", "--json"]))["agents"]}
    lists = {
        "a comparison with JAX (tests/algo)": compared(),
        "a card (docs/agents.md)": carded(),
        "presets (configs/standard.json)": preset("standard"),
        "presets (configs/long.json)": preset("long"),
        "values to compare its presets with (tests/train/test_presets.py)": set(test_presets.AGENTS) | set(test_presets.OTHERS) | set(test_presets.TRIANGLES),
    }
    for what, names in lists.items():
        assert agents <= names, f"without {what}: {', '.join(sorted(agents - names))}"
    assert PAPER <= agents and not PAPER & set(test_presets.OTHERS)
    print(f"{len(agents)} agents, each with {len(lists)} of {len(lists)}")


main()
