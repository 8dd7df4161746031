"""The experts that come with the program lie inside the bands that were set before they were trained, and say how
they came to be."""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import good, run_tests  # noqa: E402

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "configs", "experts")


def test_bands():
    found = sorted(glob.glob(os.path.join(FOLDER, "*.safetensors")))
    assert "ant.safetensors" in map(os.path.basename, found)
    for path in found:
        told = json.loads(good("expert", "eval", path, "--episodes", 20, "--steps", 300, "--json"))
        print(told["robot"], {noise: {k: v for k, v in scores.items() if k in ("speed", "ends", "step", "reach", "up")} for noise, scores in told["scores"].items()})
        assert told["accepted"], told
        with open(os.path.join(FOLDER, "README.md")) as file:
            assert told["hash"] in file.read(), "its row in README.md is of another file"


if __name__ == "__main__":
    run_tests(globals())
