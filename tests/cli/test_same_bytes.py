"""Where and how a command runs does not show in what it makes: threads, settings of other libraries' threads, languages, umask, a home that cannot be written."""
import glob
import os
import stat
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drive

# Blocks are of 256 rows: a batch of 1,100 has five, so that eight threads do not all get one, and a thread more than one.
TRAIN = ["train", "--hidden", "24,16", "--batch", 1100, "--steps", 6, "--save-every", 3, "--env", "lock-64"]


def made_by(folder, words, env=None, umask=0o022, **more):
    """Digests of what a command writes into a folder."""
    done = drive.call(*words, env={**os.environ, **(env or {})}, preexec_fn=lambda: os.umask(umask), **more)
    assert done.returncode == 0, (words, env, done.stderr)
    files = sorted(Path(folder).rglob("*"))
    return {f.name: drive.digest(f) for f in files if f.is_file() and f.name not in ("timing.csv", "config.json")}


def train(scratch, name, threads, **more):
    run = scratch.at(name)
    made = made_by(run, [*TRAIN, "--threads", threads, "--out", run], **more)
    assert {"train.csv", "step-0000000003.safetensors", "step-0000000006.safetensors"} <= set(made), made
    return made


def test_threads():
    with drive.Scratch("threads") as scratch:
        want = train(scratch, "one", 1)
        for threads in range(2, 9):
            assert train(scratch, f"t{threads}", threads) == want, threads


def languages():
    """What this machine has; a name that it has not must do no harm either."""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    commas = [n for n in listed if n.startswith(("de_", "fr_", "tr_"))]
    return ["C", "POSIX", "C.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "nowhere", *commas[:3]]


def test_surroundings():
    with drive.Scratch("surroundings") as scratch:
        home = scratch.at("home")
        os.mkdir(home, 0o500)
        want = train(scratch, "plain", 2)
        around = [{"OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n} for n in ("3", "x")]
        around += [{"LC_ALL": name, "LANG": name, "LC_NUMERIC": name} for name in languages()]
        around += [{"HOME": home}, {"HOME": "/nowhere", "TMPDIR": "/nowhere"}, {"TZ": "Asia/Kathmandu"}]
        for k, env in enumerate(around):
            assert train(scratch, f"around-{k}", 2, env=env) == want, env
        assert os.listdir(home) == []


def test_umask():
    """Bytes do not depend on it, and modes are what it leaves."""
    with drive.Scratch("umask") as scratch:
        want = train(scratch, "plain", 1)
        for umask in (0o077, 0o000, 0o027):
            name = f"mask-{umask:o}"
            assert train(scratch, name, 1, umask=umask) == want, umask
            for path in glob.glob(scratch.at(name, "*")):
                mode = stat.S_IMODE(os.stat(path).st_mode)
                assert mode & umask == 0 and mode & 0o600 == 0o600, (path, oct(mode))


def test_data_and_reports():
    """gen, convert and report, too: with another number of threads, in another language, with another umask."""
    with drive.Scratch("data") as scratch:
        want = {}
        for k, (env, umask) in enumerate([({}, 0o022), ({"LC_ALL": languages()[-1], "OMP_NUM_THREADS": "4"}, 0o077)]):
            folder = scratch.at(f"data-{k}")
            os.mkdir(folder)
            gen = made_by(folder, ["gen", "lock-64", "-o", f"{folder}/lock.npz"], env, umask)
            store = made_by(f"{folder}/store", ["data", "convert", f"{folder}/lock.npz", f"{folder}/store"], env, umask)
            maze = made_by(folder, ["gen", "pointmaze-medium-navigate", "--episodes", 4, "--rows", 30, "--threads", 1 + 3 * k, "-o", f"{folder}/maze.npz"], env, umask)
            want = want or (gen, store, maze)
            assert (gen, store, maze) == want, env


drive.run_tests(globals())
