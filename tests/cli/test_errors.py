"""Wrong calls, as a newcomer makes them: one line on standard error that names the value or file and what to
do about it, exit status 2 for the command line and 1 for the world. And what --json, --help and a standard
output that cannot be written promise.
"""

import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, Scratch, bad, call, checkpoints, digests, good, run_tests, words_of  # noqa: E402

LOCK = ["train", "--env", "lock-16", "--hidden", "8,8", "--batch", 8, "--steps", 20, "--threads", 1]
TRAIN = [*LOCK, "--out", "new"]
LONG = "a" * 300
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a machine without a GPU, whatever this one has

# (exit status, texts of the line, words). Paths are relative to a folder that set_up fills.
CALLS = [
    # Commands.
    (2, ["(trian)", "did you mean 'train'?"], ["trian"]),
    (2, ["(zzzzzzz)", "dcrl --help"], ["zzzzzzz"]),
    (2, ["(inf)", "did you mean 'info'?"], ["data", "inf"]),
    (2, ["'agnts'", "did you mean 'agents'?"], ["list", "agnts"]),
    (2, "envs|agents|presets", ["list"]),
    (2, "did you mean 'train'?", ["bench", "trian"]),
    # Flags.
    (2, ["--evn", "did you mean '--env'?"], ["train", "--evn", "lock-16"]),
    (2, ["--zzzzzz", "--help"], ["train", "--zzzzzz"]),
    (2, "did you mean '--json'?", ["data", "info", "good.npz", "--jsn"]),
    (2, "did you mean '--horizon'?", ["lock", "--horizn", 16]),
    (1, "bc has no distances", ["lock", "--agent", "bc:form=value", "--horizon", 16, "--steps", 20]),
    (2, ["iql learns from actions", "form=value"], ["lock", "--agent", "iql", "--horizon", 16, "--steps", 20, "--hidden", "8,8", "--batch", 8]),
    (2, ["--env", "a value is missing"], ["train", "--env"]),
    (2, ["--env", "a value is missing"], ["train", "--env", "--out", "new"]),
    (2, ["(-x)", "--help"], [*TRAIN, "-x"]),
    (2, ["--log-every must be", "(0)"], [*TRAIN, "--log-every", 0]),
    (2, ["--save-every must be", "(x)"], [*TRAIN, "--save-every=x"]),
    (2, ["--dry-run must be on or off", "(maybe)"], [*TRAIN, "--dry-run=maybe"]),
    (2, "did you mean '--quiet'?", ["gen", "lock-16", "-o", "new.npz", "--quit"]),
    (2, ["--data", "missing"], ["sample"]),
    (2, ["--out", "missing"], ["gen", "lock-16"]),
    (2, "--out RUN", LOCK),
    (2, "--out RUN", [*LOCK, "--out", ""]),
    (2, "(x)", ["lock", "x"]),
    (2, "--set key=value", [*TRAIN, "--set", "n"]),
    (2, "--act-scale must be off, auto or LOW,HIGH", [*TRAIN, "--act-scale", "3,-3"]),
    (2, " act_scale must be off", [*TRAIN, "--set", "act_scale=3,-3"]),
    (2, ["act_scale must be off", "(obs_scale)"], [*TRAIN, "--set", "act_scale=obs_scale", "--set", "obs_scale=on"]),
    (2, ["leave --eval-every out", "without an environment"], ["train", "--data", "good.npz", "--eval-every", 10, "--out", "new"]),
    # Names.
    (2, ["'lok-16'", "did you mean 'lock-16'?"], ["train", "--env", "lok-16", "--out", "new"]),
    (2, ["'lock-3'", "4 to 1048576"], ["train", "--env", "lock-3", "--out", "new"]),
    (2, ["'lock-16x'", "lock-512"], ["gen", "lock-16x", "-o", "new.npz"]),
    (2, ["'maze'", "dcrl list envs"], ["train", "--env", "maze", "--out", "new"]),
    (2, ["lock-99999999999999999999", "4 to 1048576"], ["train", "--env", "lock-99999999999999999999", "--out", "new"]),
    (2, ["'dcr'", "did you mean 'dcrl'?"], [*TRAIN, "--agent", "dcr"]),
    (2, ["'nothing'", "dcrl list agents"], [*TRAIN, "--agent", "nothing"]),
    (2, ["'lock-papr'", "did you mean 'lock-paper'?"], ["train", "lock-papr", "--out", "new"]),
    (2, ["'zzzzzzzz'", "dcrl list presets"], ["train", "zzzzzzzz", "--out", "new"]),
    (2, ["'splt'", "did you mean 'split'?"], [*TRAIN, "--set", "splt=max"]),
    (2, ["'zzzzzzzz'", "dcrl list agents"], [*TRAIN, "--set", "zzzzzzzz=1"]),
    (2, ["'n'", "agent trl"], [*TRAIN, "--agent", "trl", "--set", "n=3"]),
    (2, ["(middle)", "midpoint, random, max"], [*TRAIN, "--set", "split=middle"]),
    (2, ["(gpu)", "cpu, cuda"], [*TRAIN, "--device", "gpu"]),
    (2, "--agent", [*TRAIN, "--set", "agent=trl"]),
    (2, "there is nothing to train on", ["train", "--out", "new"]),
    (1, ["no ", "--device cpu"], [*TRAIN, "--device", "cuda"]),
    (1, ["no ", "--device cpu"], ["lock", "--horizon", 16, "--steps", 5, "--device", "cuda"]),
    # Values.
    *[(2, ["steps", f"({v})", "between 1 and 1e12"], [*TRAIN, "--steps", v])
      for v in ["0", "-1", "nan", "1e400", "1.5", "", "abc", "99999999999999999999", " 5", "0x10"]],
    *[(2, ["lr", f"({v})", "between 0 and 10"], [*TRAIN, "--lr", v]) for v in ["-1", "nan", "inf", "1e400", "11", ""]],
    *[(2, ["hidden", f"({v})", "between 1 and 8192"], [*TRAIN, "--hidden", v]) for v in ["0", "8,,8", "8,", "x", "9999"]],
    (2, ["hidden", "at most 16"], [*TRAIN, "--hidden", ",".join(["8"] * 17)]),
    (2, ["batch", "(0)"], [*TRAIN, "--set", "batch=0"]),
    (2, ["kappa_prop", "(2)"], [*TRAIN, "--set", "kappa_prop=2"]),
    (2, ["threads", "(5000)"], [*TRAIN, "--threads", 5000]),
    (2, ["out", "255", "(300)"], [*LOCK, "--out", LONG]),
    (2, ["split=max needs recursion=on"], [*TRAIN, "--set", "recursion=off", "--set", "split=max"]),
    (2, ["seeds", "(x)", "--seed 0-2"], ["lock", "--seed", "x"]),
    (2, ["seeds", "(3-1)"], ["lock", "--seed", "3-1"]),
    (2, ["seeds", "(0-99999)"], ["lock", "--seed", "0-99999"]),
    (2, ["horizon", "(3)"], ["lock", "--horizon", 3]),
    (2, ["(recursion)", "name:key=value"], ["lock", "--agent", "dcrl:recursion"]),
    (2, ["two runs are the same", "dcrl"], ["lock", "--agent", "dcrl,td-n,dcrl"]),
    (2, ["two runs are the same", "seed 1"], ["lock", "--seed", "0-2,1"]),
    (2, "--horizon", ["lock", "--set", "env=lock-64"]),
    (2, "--seed", ["lock", "--set", "seed=5"]),
    (2, ["count", "(-3)"], ["sample", "--data", "good.npz", "--count", -3]),
    # Files.
    (1, ["(nope.npz)", "No such file", "check the path"], ["train", "--data", "nope.npz", "--out", "new"]),
    (1, ["(folder)", "no finished store"], ["train", "--data", "folder", "--out", "new"]),
    (1, ["(text)", "not an npz file", "numpy.savez"], ["train", "--data", "text", "--out", "new"]),
    (1, ["cut.npz"], ["train", "--data", "cut.npz", "--out", "new"]),
    (1, ["terminals"], ["data", "info", "poor.npz"]),
    (1, "(nope)", ["data", "info", "nope"]),
    (1, "(nope)", ["sample", "--data", "nope"]),
    (2, ["(folder)", "give FILE.npz"], ["gen", "lock-16", "-o", "folder"]),
    (1, ["(nowhere/x.npz)", "No such file"], ["gen", "lock-16", "-o", "nowhere/x.npz"]),
    (1, ["(text/", "a file, not a folder"], [*LOCK, "--out", "text"]),
    (1, ["(text/sub/", "a file, not a folder"], [*LOCK, "--out", "text/sub"]),
    (1, "(nope)", ["train", "--config", "nope", "--out", "new"]),
    (1, "(folder)", ["train", "--config", "folder", "--out", "new"]),
    (1, ["(text)", "JSON"], ["train", "--config", "text", "--out", "new"]),
    (1, ["array.json", "object"], ["train", "--config", "array.json", "--out", "new"]),
    (1, ["agent.json", "'zz'"], ["train", "--config", "agent.json", "--out", "new"]),
    (1, ["key.json", "did you mean 'steps'?"], ["train", "--config", "key.json", "--out", "new"]),
    (1, ["value.json", "steps", "(0)"], ["train", "--config", "value.json", "--out", "new"]),
    # Runs.
    (2, ["run holds a run with lr=0.0003, not 0.1", "--out"], [*LOCK, "--out", "run", "--lr", 0.1]),
    (1, ["nowhere is not a run folder"], ["train", "--resume", "nowhere"]),
    (1, ["folder is not a run folder"], ["train", "--resume", "folder"]),
    (1, ["(text/config.json)"], ["train", "--resume", "text"]),
    (2, "--resume RUN", ["train", "--resume", ""]),
    (2, ["(map.png)", ".svg"], ["map", "run", "-o", "map.png"]),
    (2, ["(page.pdf)", "--format"], ["report", "run", "-o", "page.pdf"]),
    (2, ["--json and -o - both print"], ["report", "run", "-o", "-", "--json"]),
    # Names that do not say what to write.
    (2, ["(new.txt)", "give FILE.npz"], ["gen", "lock-16", "-o", "new.txt"]),
    (2, ["(.npz)", "give FILE.npz"], ["gen", "lock-16", "-o", ".npz"]),
    (2, ["(new.txt)", "give FILE.npz, or FOLDER/"], ["gen", "pointmaze-medium-navigate", "-o", "new.txt"]),
    (2, ["(new.foo)", "give FILE.npz, or FOLDER/"], ["data", "convert", "good.npz", "new.foo"]),
    (2, ["(new.csv)", "give FILE.npz"], ["data", "rewards", "good.npz", "pointmaze-medium-singletask", "-o", "new.csv"]),
    (2, ["(new.webm)", "give FILE.gif, FILE.mp4, FILE.png, or FOLDER/"], ["render", "pointmaze-medium-v0", "-o", "new.webm"]),
    (2, ["(new.txt)", "give FILE.mjb"], ["env", "model", "pointmaze-medium-v0", "-o", "new.txt"]),
    (2, ["(new.txt)", "give FILE.npz"], ["env", "replay", "pointmaze-medium-v0", "--in", "good.npz", "-o", "new.txt"]),
    (2, ["(policy.bin)", "policy.onnx"], ["export", "run", "-o", "policy.bin"]),
    (2, "keeps its batch", ["train", "--resume", "run", "--batch", 7]),
    (2, "takes no preset", ["train", "--resume", "run", "--set", "n=3"]),
    (2, "takes no preset", ["train", "--resume", "run", "--out", "new"]),
]


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def write_data(path, rows=100):
    terminals = np.zeros(rows, np.float32)
    terminals[24::25] = 1
    np.savez(path, observations=np.arange(rows * 2, dtype=np.float32).reshape(rows, 2) / rows,
             actions=np.zeros((rows, 1), np.float32), terminals=terminals)


def set_up(scratch):
    os.chdir(scratch.path)
    os.mkdir("folder")
    write("text", "neither JSON, nor npz, nor HDF5\n")
    write("array.json", "[1]")
    write("agent.json", '{"agent": "zz"}')
    write("key.json", '{"stepz": 3}')
    write("value.json", '{"steps": 0}')
    write_data("good.npz")
    np.savez("poor.npz", observations=np.zeros((4, 2), np.float32), actions=np.zeros((4, 1), np.float32))
    with open("good.npz", "rb") as whole, open("cut.npz", "wb") as cut:
        cut.write(whole.read()[:-50])
    good(*LOCK, "--out", "run")


def test_calls():
    with Scratch("errors") as scratch:
        set_up(scratch)
        before = sorted(os.listdir("."))
        for code, texts, words in CALLS:
            line = bad(code, texts, *words)
            assert len(line) < 400, line
        assert sorted(os.listdir(".")) == before, "a wrong call left something behind"
        os.chdir("/")
        print(f"  {len(CALLS)} wrong calls")


def test_unreadable():
    if os.geteuid() == 0:
        print("  as root: run as the user nobody")
    with Scratch("errors") as scratch:
        set_up(scratch)
        os.chmod(scratch.path, 0o755)
        os.chmod("good.npz", 0)
        os.chmod("folder", 0o555)
        os.chmod("run/config.json", 0)
        more = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        try:
            good("list", "agents", **more)
        except (AssertionError, PermissionError) as why:
            print("  skipped: nobody may not run the program here:", why)
            return
        finally:
            os.chdir("/")
        at = {"cwd": scratch.path, **more}
        bad(1, ["(good.npz)", "Permission denied", "check the permissions"], "data", "info", "good.npz", **at)
        bad(1, ["(folder/new)", "Permission denied"], *LOCK, "--out", "folder/new", **at)
        bad(1, ["(run/config.json)", "Permission denied"], "train", "--resume", "run", **at)


# What happened to config.json, and what the line must say.
CONFIGS = [
    (lambda text: "", "JSON"),
    (lambda text: text[: len(text) // 2], "JSON"),
    (lambda text: "[" + text + "]", "agent is missing"),
    (lambda text: text.replace('"agent": "dcrl"', '"agent": "dcr"'), "did you mean 'dcrl'?"),
    (lambda text: text.replace('"agent": "dcrl"', '"agent": 3'), "agent is missing"),
    (lambda text: text.replace('"agent": "dcrl",', ""), "agent is missing"),
    (lambda text: text.replace('"steps": 20', '"steps": 0'), "steps"),
    (lambda text: text.replace('"steps": 20', '"steps": "many"'), "steps"),
    (lambda text: text.replace('"steps": 20', '"steps": [20]'), "steps"),
    (lambda text: text.replace('"steps": 20', '"steps": 1e400'), "JSON"),
    (lambda text: text.replace('"steps"', '"stebs"'), "did you mean 'steps'?"),
    (lambda text: text.replace('"data_hash": "', '"data_hash": "0'), "has changed"),
    (lambda text: text.replace('"data_hash"', '"hash"'), "'hash'"),
    (lambda text: text.replace('"build"', '"seed"'), "seed"),
    (lambda text: text.replace('"hidden": [8, 8]', '"hidden": [8, 9]').replace('"hidden": [8,8]', '"hidden": [8,9]'), "hidden"),
    (lambda text: text.replace('"seed": 0', '"seed": 1'), "has changed"),
    (lambda text: text.replace('"batch": 8', '"batch": 9'), "batch"),
    (lambda text: text.replace("lock-16", "lock-17"), "has changed"),
    (lambda text: text.replace("lock-16", "lok-16"), "did you mean 'lock-16'?"),
    (lambda text: text + "}", "JSON"),
    (lambda text: "\0" + text, "JSON"),
]


def test_broken_config():
    with Scratch("errors") as scratch:
        run = scratch.at("run")
        good(*LOCK, "--out", run)
        os.remove(os.path.join(run, "DONE"))
        path = os.path.join(run, "config.json")
        with open(path) as file:
            text = file.read()
        for number, (change, says) in enumerate(CONFIGS):
            changed = change(text)
            assert changed != text, f"config change {number} changes nothing"
            write(path, changed)
            done = call("train", "--resume", run)
            lines = done.stderr.splitlines()
            assert done.returncode == 1 and len(lines) == 1, (number, done)
            assert says in lines[0] and run in lines[0], (number, says, lines)
        write(path, text.replace('"build": "', '"build": "old '))
        done = call("train", "--resume", run)
        assert done.returncode == 0 and "dcrl: warning: " in done.stderr and "build" in done.stderr, done


def test_changed_data():
    with Scratch("errors") as scratch:
        data, run = scratch.at("data.npz"), scratch.at("run")
        write_data(data)
        good("train", "--data", data, *LOCK[3:], "--out", run)
        os.remove(os.path.join(run, "DONE"))
        write_data(data, rows=125)
        bad(1, [run, "has changed", "restore the data set"], "train", "--resume", run)
        os.remove(data)
        bad(1, [data, "is not at", "--data PATH"], "train", "--resume", run)
        write_data(data)
        good("train", "--resume", run)


def test_broken_checkpoints():
    with Scratch("errors") as scratch:
        run = scratch.at("run")
        good(*LOCK, "--save-every", 8, "--out", run)
        want = digests(run)
        os.remove(os.path.join(run, "DONE"))
        oldest, middle, newest = checkpoints(run)
        for path in middle, newest:
            os.truncate(path, 1000)
        done = call("train", "--resume", run)
        lines = done.stderr.splitlines()
        assert done.returncode == 0 and len(lines) == 2 and digests(run) == want, done
        for line, path in zip(lines, [newest, middle]):
            assert line.startswith("dcrl: warning: ") and path in line, done.stderr
        os.remove(os.path.join(run, "DONE"))
        for path in oldest, middle, newest:
            os.truncate(path, 1000)
        done = call("train", "--resume", run)
        lines = done.stderr.splitlines()
        assert done.returncode == 1 and len(lines) == 3, done
        assert lines[2].startswith(f"dcrl: no checkpoint of {run} can be read"), done.stderr


def test_json():
    with Scratch("errors") as scratch:
        set_up(scratch)
        small = ["--hidden", "8,8", "--batch", 8, "--steps", 5]
        for words in (["list", "envs"], ["list", "agents"], ["list", "presets"], ["data", "info", "good.npz"],
                      ["lock", "--horizon", 16, *small], ["lock", "--horizon", "16,32", *small],
                      ["bench", "train", "--seconds", 0.1]):
            out = good(*words, "--json")
            assert isinstance(json.loads(out), dict) and out.endswith("}\n"), (words, out)
        bad(1, "nope", "data", "info", "nope", "--json")
        assert not call("data", "info", "nope", "--json").stdout
        os.chdir("/")


def test_help():
    top = good("--help")
    commands = [line.split()[0] for line in top.splitlines() if line.startswith("  ")]
    assert {"train", "lock", "data", "gen", "list", "sample", "bench", "grad"} <= set(commands)
    for words in [[c] for c in commands] + [["bench", "train"], ["bench", "sample"]]:
        for flag in "--help", "-h":
            text = good(*words, flag)
            assert "usage: dcrl " + " ".join(words) in text, (words, text)
            assert "example: dcrl " + " ".join(words[:1]) in text, (words, text)
    assert good("help") == good("-h") == top


def test_no_output():
    with Scratch("errors") as scratch:
        small = [*LOCK, "--out"]
        for number, words in enumerate([["list", "agents"], ["--help"], ["train", "--help"], [*small, scratch.at("full")]]):
            with open("/dev/full", "w") as full:
                done = subprocess.run(words_of(words), stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and "standard output" in done.stderr, (words, done)
            shell = [DCRL, *map(str, words[:-1]), scratch.at("closed")] if number == 3 else words_of(words)
            done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *shell], stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and "standard output" in done.stderr, (words, done)
        good(*small, scratch.at("open"))
        assert digests(scratch.at("full")) == digests(scratch.at("closed")) == digests(scratch.at("open"))


def call_closed(*words):
    return subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words_of(words)]).returncode


def test_no_streams():
    """With every stream closed, messages must not end in the run's files."""
    with Scratch("errors") as scratch:
        good(*LOCK, "--out", scratch.at("open"))
        run = scratch.at("closed")
        call_closed(*LOCK, "--save-every", 7, "--out", run)
        assert digests(run) == digests(scratch.at("open"))
        # Going on from a damaged checkpoint: a warning, and a line that tells the step.
        os.remove(os.path.join(run, "DONE"))
        os.truncate(checkpoints(run)[-1], 100)
        call_closed("train", "--resume", run)
        assert digests(run) == digests(scratch.at("open"))
        for name in os.listdir(run):
            with open(os.path.join(run, name), "rb") as file:
                text = file.read()
            assert b"dcrl: " not in text and b" goes on " not in text and b"trained " not in text, name
        assert call_closed("list", "agents") == 1


if __name__ == "__main__":
    run_tests(globals())
