"""An installed tree on its own: staged with DESTDIR, moved, and used where neither the build folder nor deps/ can be seen.

The headers must compile alone as C and C++, the library must show exactly what they declare, and the example must build in
a folder of its own, with CMake and with pkg-config, and drive the policy of a run that the installed program trained.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ["BUILD"]).resolve()
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
SOURCE = Path(CACHE["CMAKE_HOME_DIRECTORY"])


def run(*words, code=0, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def install(folder):
    """Staged under one path, configured for another, moved to a third."""
    run("cmake", "--install", BUILD, "--prefix", "/opt/dcrl", env={**os.environ, "DESTDIR": str(folder / "stage")})
    tree = folder / "moved here"
    shutil.move(folder / "stage/opt/dcrl", tree)
    return tree


def check_headers(tree):
    names = sorted(p.name for p in (tree / "include/dcrl").iterdir())
    assert "dcrl.h" in names and len(names) == 7, names
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", tree / "include", "-"]
    for name in names:
        text = f"#include <dcrl/{name}>\nint main(void) {{ return 0; }}\n"
        run("cc", "-std=c99", "-x", "c", *strict, input=text)
        run("c++", "-std=c++11", "-x", "c++", *strict, input=text)


def check_symbols(tree):
    """The library shows what the headers declare, and nothing else."""
    headers = "".join(p.read_text() for p in (tree / "include/dcrl").iterdir())
    declared = set(re.findall(r"^DCRL_API [\w ]+?\*?\b(dcrl_\w+)\(", headers, re.M))
    listing = run("nm", "-D", "--defined-only", tree / "lib/libdcrl.so")
    shown = {line.split()[-1] for line in listing.splitlines()}
    assert declared and shown == declared, shown ^ declared


def check_paths(tree):
    for file in [tree / "bin/dcrl", *(tree / "lib").glob("libdcrl.so*")]:
        for path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", run("readelf", "-d", file)):
            assert path.startswith("$ORIGIN"), (file, path)  # a CUDA toolkit may stand behind
            assert not any(part.startswith((str(BUILD), str(SOURCE), CACHE["DEPS"])) for part in path.split(":")), path
    for file in [*(tree / "lib/cmake").rglob("*.cmake"), *(tree / "lib/pkgconfig").iterdir()]:
        text = file.read_text()
        assert str(BUILD) not in text and str(SOURCE) not in text and "/opt/dcrl" not in text, file
    talk = ("bash-completion/completions/dcrl", "zsh/site-functions/_dcrl", "fish/vendor_completions.d/dcrl.fish", "man/man1/dcrl.1")
    assert all((tree / "share" / name).stat().st_size > 200 for name in talk)
    licences = {p.name for p in (tree / "share/doc/dcrl").iterdir()}
    assert {"LICENSE", "LICENSE.mujoco", "LICENSE.ogbench"} <= licences, licences


def hidden():
    """Words before a command that cover the build folder and deps/ with empty ones, where the system lets us."""
    folders = sorted({str(BUILD), str(Path(CACHE["DEPS"]).resolve())})
    script = "".join(f"mount -t tmpfs none '{f}' && " for f in folders) + 'exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", script, "sh"]
    works = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if works else []


def check_experts(tree, folder):
    """The program of the tree takes the tree's experts: those of the repository, and no other."""
    ours, theirs = ({p.name for p in place.glob("*.safetensors")} for place in [SOURCE / "configs/experts", tree / "share/dcrl/experts"])
    assert ours == theirs, ours ^ theirs
    for name in theirs:
        os.rename(tree / "share/dcrl/experts" / name, folder / name)
    told = run(tree / "bin/dcrl", "gen", "antmaze-medium-stitch", "--episodes", 1, "-o", folder / "ant.npz", code=1)
    assert str(tree / "share/dcrl/experts/ant.safetensors") in os.path.normpath(told.replace("/bin/..", "")), told
    for name in theirs:
        os.rename(folder / name, tree / "share/dcrl/experts" / name)


def train(tree, folder, cover):
    dcrl, env = tree / "bin/dcrl", "pointmaze-medium-navigate-oraclerep-v0"
    run(*cover, dcrl, "gen", "pointmaze-medium-navigate", "-o", folder / "maze.npz", "--episodes", 4)
    run(*cover, dcrl, "train", "--env", env, "--data", folder / "maze.npz", "--hidden", "16,16", "--batch", 16,
        "--steps", 20, "--threads", 1, "--out", folder / "run")
    run(*cover, dcrl, "eval", folder / "run", "--episodes", 1, "--json")


def build_example(tree, folder):
    """The example from the installed tree, built in two ways."""
    shutil.copytree(tree / "share/doc/dcrl/examples/drive", folder / "drive")
    run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={tree}", cwd=folder / "drive")
    run("cmake", "--build", "build", cwd=folder / "drive")
    env = {**os.environ, "PKG_CONFIG_PATH": str(tree / "lib/pkgconfig")}
    line = re.search(r"^//\s+(cc drive\.c .*)$", (folder / "drive/drive.c").read_text(), re.M).group(1)
    if " " in str(tree):  # the line is for paths that a shell leaves whole
        shorter = folder / "plain"
        shorter.symlink_to(tree)
        env["PKG_CONFIG_PATH"] = str(shorter / "lib/pkgconfig")
    run("sh", "-c", line, cwd=folder / "drive", env=env)
    return [folder / "drive/build/drive", folder / "drive/drive"]


def check_data_is_its_own(tree, program, folder):
    """A description that is missing in the tree is missing, whatever deps/ holds."""
    robot = tree / "share/dcrl/ogbench/locomaze/assets/point.xml"
    robot.rename(robot.with_suffix(".away"))
    error = run(program, folder / "run", code=1)
    assert "drive: " in error and "moved here" in error and "point.xml" in error, error
    env = {**os.environ, "DCRL_OGBENCH": str(Path(CACHE["DEPS"]) / "ogbench")}
    assert "task 5" in run(program, folder / "run", env=env)


def main():
    if CACHE.get("DCRL_SANITIZE") or CACHE.get("MUJOCO_LIB", "").endswith("NOTFOUND"):
        print("skipped: the example needs a build with MuJoCo and without sanitizers")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree, cover = install(folder), hidden()
        check_headers(tree)
        check_symbols(tree)
        check_paths(tree)
        check_experts(tree, folder)
        train(tree, folder, cover)
        programs = build_example(tree, folder)
        told = [run(*cover, program, folder / "run") for program in programs]
        assert told[0] == told[1] and re.fullmatch(r"(task \d: (there|lost) after \d+ steps\n){5}", told[0]), told
        assert "usage" in run(programs[0], code=2)
        assert "drive: " in run(programs[0], folder / "nowhere", code=1)
        check_data_is_its_own(tree, programs[1], folder)
    print("installed, moved, " + ("build and deps hidden" if cover else "build and deps in sight"))


sys.exit(main())
