"""What was linked has its guards: stack protector, checked copies, tables that are read-only before main, no executable stack."""
import os
import re
import shutil
import subprocess
from pathlib import Path

BUILD = Path(os.environ["BUILD"]).resolve()


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True).stdout


def check(file):
    dynamic, segments, symbols = readelf("-d", file), readelf("-l", file), readelf("--dyn-syms", file)
    assert re.search(r"FLAGS_1\).*\bNOW\b", dynamic), (file, "symbols are looked up late: -z now is missing")
    assert "GNU_RELRO" in segments, (file, "-z relro is missing")
    assert "Elf file type is DYN" in segments, (file, "not position-independent")
    stack = re.search(r"GNU_STACK.*", segments)
    assert stack and "E" not in stack.group().split()[-2], (file, "the stack is executable")
    assert not re.search(r"LOAD .* RWE ", segments), (file, "a segment is writable code")
    assert "__stack_chk_fail" in symbols, (file, "-fstack-protector-strong is missing")
    assert re.search(r"\b__(snprintf|memcpy)_chk\b", symbols), (file, "_FORTIFY_SOURCE is missing")


def main():
    cache = (BUILD / "CMakeCache.txt").read_text()
    sanitized = re.search(r"^DCRL_SANITIZE:\w+=(.+)$", cache, re.M)
    if sanitized or not shutil.which("readelf"):
        print("skipped:", f"built with {sanitized.group(1)}" if sanitized else "no readelf here")
        return
    for file in (BUILD / "dcrl", BUILD / "libdcrl.so"):
        check(file)
    print("1 passed, 0 failed")


main()
