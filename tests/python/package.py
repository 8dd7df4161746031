"""What the tests of the Python package share: the package of this checkout over the library of this build."""

import os
import re
import sys
from pathlib import Path

BUILD = Path(os.environ["BUILD"]).resolve()
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
SOURCE = Path(CACHE["CMAKE_HOME_DIRECTORY"])
SIMULATES = "MUJOCO_LIB" in CACHE and not CACHE["MUJOCO_LIB"].endswith("NOTFOUND")

if CACHE.get("DCRL_SANITIZE"):
    print("skipped: a sanitizer's library cannot be loaded into Python")
    sys.exit(0)

os.environ["DCRL_LIBRARY"] = str(BUILD / "libdcrl.so")
os.environ["DCRL_PROGRAM"] = os.environ["DCRL"]
sys.path.insert(0, str(SOURCE / "python"))
sys.path.insert(0, str(SOURCE / "tests"))
