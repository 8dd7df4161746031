"""The README names every method and every environment that the program has before its first picture; its commands have the flags that it
writes, and what they make is ignored by git. docs/agents.md names every option of every method."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, good, run_tests  # noqa: E402

README = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")


def first_screen():
    with open(README) as file:
        return file.read().split("\n![")[0]


def test_methods():
    named = re.findall(r"`([a-z-]+)`", first_screen())
    agents = [a["name"] for a in json.loads(good("list", "agents", "--json"))["agents"]]
    assert len(agents) >= 7 and set(agents) <= set(named), set(agents) - set(named)


def test_options():
    with open(os.path.join(os.path.dirname(README), "docs", "agents.md")) as file:
        named = re.findall(r"`([a-z_]+)", file.read())
    for agent in json.loads(good("list", "agents", "--json"))["agents"]:
        options = {option["name"] for option in agent["options"]}
        assert options and options <= set(named), (agent["name"], options - set(named))


def test_environments():
    """`family` in the first column, its variant in the second; of visual environments the family."""
    rows = [line.split("|")[1:3] for line in first_screen().splitlines() if line.startswith("|")]
    for env in json.loads(good("list", "envs", "--json"))["envs"]:
        family, _, variant = env["name"].removesuffix("-v0").partition("-")
        if family == "visual":
            variant = variant.partition("-")[0]
        found = [variants for names, variants in rows if f"`{family}" in names]
        assert len(found) == 1 and (not variant or re.search(rf"\b{variant}\b", found[0])), env["name"]


def commands():
    """Every line of the README that calls the program, as words."""
    with open(README) as file:
        blocks = re.findall(r"^```\n(.*?)^```", file.read(), re.S | re.M)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("build/dcrl ")]


def test_commands():
    """Options of training pass its checks, flags of other commands are those that completion offers."""
    assert len(commands()) > 12
    for words in commands():
        flags = [word for word in words if word.startswith("--")]
        if words[0] == "train" and "--resume" not in words:
            for value in ("dcrl", "td-n") if "dcrl,td-n" in words else (None,):  # a sweep has no dry run
                one = [value if word == "dcrl,td-n" else re.sub(r"(=[\d.]+),.*", r"\1", word) for word in words]
                good(*one, "--dry-run")
        elif words[-1] != "--help":
            of = words[:2] if words[0] == "data" and words[1] == "convert" else words[:1]
            offered = {line.split("\t")[0] for line in good("complete", *of, "--").splitlines()}
            assert set(flags) <= offered, (words, set(flags) - offered)


def test_ignored():
    """A clone in which all of it was run has nothing new for git."""
    if not shutil.which("git"):
        print("  skipped: there is no git")
        return
    with Scratch("readme") as scratch:
        subprocess.run(["git", "init", "-q", scratch.path], check=True)
        shutil.copy(os.path.join(os.path.dirname(README), ".gitignore"), scratch.path)
        made = []
        for words in commands():
            made += [words[k + 1] for k, word in enumerate(words) if word in ("-o", "--out")]
            made += words[3:] if words[:2] == ["data", "convert"] else []
        made += [name.replace(".npz", "-val.npz") for name in made] + ["build/dcrl", "deps/stamp", ".venv/stamp", ".packages/env", "runs/demo/report.html"]
        assert {"pointmaze.npz", "report.html", "way.gif", "policy.c", "robot.npz"} <= set(made), made
        for name in made:
            path = scratch.at(name)
            os.makedirs(path if name.endswith("/") else os.path.dirname(path), exist_ok=True)
            if not os.path.isdir(path):
                open(path, "w").close()
            elif not os.listdir(path):
                open(os.path.join(path, "file"), "w").close()
        told = subprocess.run(["git", "-C", scratch.path, "status", "--short", "--untracked-files=all"], capture_output=True, text=True, check=True)
        assert told.stdout == "?? .gitignore\n", told.stdout


if __name__ == "__main__":
    run_tests(globals())
