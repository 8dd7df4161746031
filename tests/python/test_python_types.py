"""The package says that it is typed (py.typed): strict mypy finds nothing, and a user's slip is found by it."""

import subprocess
import sys

from package import SOURCE

from drive import Scratch, run_tests


def mypy(*words):
    more = ["--strict", "--cache-dir", "/dev/null"]
    return subprocess.run([sys.executable, "-m", "mypy", *more, *map(str, words)], cwd=SOURCE / "python", capture_output=True, text=True)


def test_types():
    with Scratch("types") as scratch:
        with open(scratch.at("slip.py"), "w") as file:
            file.write("import dcrl\n\npolicy = dcrl.Policy('run')\nwords: str = policy.act([0.0], [1.0])\nsteps: int = policy.step\n")
        done = mypy("dcrl", scratch.at("slip.py"))
        errors = [line for line in done.stdout.splitlines() if ": error: " in line]
        assert len(errors) == 1 and "slip.py:4" in errors[0] and "[assignment]" in errors[0], done.stdout + done.stderr


run_tests(globals())
