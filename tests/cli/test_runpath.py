"""Neither the program nor the library looks for libraries in the current folder: no element of a RUNPATH is empty or relative."""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(os.environ["BUILD"]).resolve()


def check_elements(file):
    listing = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", listing):
        for part in path.split(":"):
            assert part.startswith(("/", "$ORIGIN")), (file, path)


def check_planted_library(program):
    """Broken libraries in the current folder must not be opened."""
    train = "train --env lock-64 --hidden 8 --batch 8 --steps 1 --threads 1 --out run".split()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libdeflate.so.0", "libz.so.1"):
            Path(folder, name).write_text("not a library")
        for words in (["--version"], train):
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


if shutil.which("readelf"):
    for built in (BUILD / "dcrl", *BUILD.glob("libdcrl.so*")):
        check_elements(built)
check_planted_library(BUILD / "dcrl")
