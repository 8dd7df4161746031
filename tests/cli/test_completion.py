"""Completion: what `dcrl complete` offers comes from the lists and option tables; the scripts are taken by their shells; help, version and the man
page are where people look for them."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, bad, good, run_tests  # noqa: E402

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def offered(*words):
    return [line.split("\t")[0] for line in good("complete", *words).splitlines()]


def test_words():
    commands = re.findall(r"^COMMAND\((\w+)", open(os.path.join(ROOT, "cli", "commands.def")).read(), re.M)
    assert offered("") == offered() == commands
    assert offered("tr") == ["train"] and offered("zz") == []
    assert offered("train", "--eval") == ["--eval-every", "--eval-episodes"]
    assert offered("train", "pointmaze-large", "--out", "x", "--devi") == ["--device"]
    assert offered("train", "--device", "") == ["cpu", "cuda"] and offered("train", "--device", "cu") == ["cuda"]
    assert "pointmaze-large" in offered("train", "") and "standard" not in offered("train", "")
    assert "hiql" in offered("train", "--agent", "") and {"antmaze-giant-v0", "visual-scene-v0"} <= set(offered("train", "--env", ""))
    assert "--precision" in offered("bench", "train", "--pre") and offered("nope", "--x") == []
    assert offered("help", "") == commands and offered("help", "exp") == ["expert", "export"]
    assert offered("data", "") == ["info", "convert", "draw", "rewards"]
    assert offered("paper", "") == ["list", "run"] and "n-step" in offered("paper", "run", "") and "n-step" in offered("paper", "run", "slots", "")
    assert offered("paper", "run", "slots", "--sc") == ["--scale", "--scales"]
    for command in commands:  # each answers by its table and does nothing else
        assert all(word.startswith("--") for word in offered(command, "--")), command


def test_shells():
    bash = "source <($DCRL completion bash); COMP_WORDS=($DCRL train --log); COMP_CWORD=2; _dcrl; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", bash], env={**os.environ, "DCRL": DCRL}, capture_output=True, text=True)
    assert done.stdout == "--log-every\n" and not done.stderr, done
    for shell in ("zsh", "fish"):
        script = good("completion", shell)
        assert "complete" in script
        if shutil.which(shell):
            assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0
    bad(2, "which shell (csh)", "completion", "csh")


def test_help():
    assert good() == good("--help") == good("-h") == good("help")
    assert good("help", "train") == good("train", "--help") and good("help", "bench", "train") == good("bench", "train", "--help")
    assert good("-V") == good("--version")
    bad(2, "did you mean 'train'?", "help", "trian")
    page = subprocess.run(["sh", os.path.join(ROOT, "tools", "man.sh"), DCRL], capture_output=True, text=True)
    assert page.returncode == 0 and ".SH TRAIN" in page.stdout and "\\-\\-eval\\-every" in page.stdout
    if shutil.which("man"):
        shown = subprocess.run(["man", "--warnings", "-l", "-"], input=page.stdout, capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "200"})
        assert shown.returncode == 0 and "--eval-every" in shown.stdout and not shown.stderr, shown.stderr


if __name__ == "__main__":
    run_tests(globals())
