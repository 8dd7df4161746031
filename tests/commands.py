"""Every command as a case: a folder filled beforehand, the words, the way back after a stop, and the files it leaves.

Faults (tests/faults/) and kills (tests/train/test_kill.py) go over the same list.
"""

import collections
import csv
import glob
import json
import os
import re
import shutil

import h5py
import numpy as np

from drive import checkpoints, digest, good

NET = ["--hidden", "8,8", "--batch", 8, "--threads", 1]
LOCK = ["train", "--env", "lock-16", *NET, "--set", "n=4", "--steps", 10, "--log-every", 3, "--save-every", 4]
MAZE = ["train", "--env", "pointmaze-medium-navigate", "--data", "maze.npz", *NET, "--set", "n=4", "--steps", 6, "--log-every", 2,
        "--save-every", 3]
LIVE = ["--report", "--tensorboard"]
EXPERT = ["expert", "train", "ant", "-o", "ant.safetensors", "--steps", 120, "--threads", 1, *[word for pair in (
    "envs=6", "random=24", "replay=1000", "eval_every=60", "save_every=48", "hidden=8", "actor_hidden=8,8", "batch=8", "updates=2", "eval_episodes=1")
    for word in ("--set", pair)]]
SWEEP = ["--agent", "td-n,dcrl", "--horizon", 16, "--n", 4, "--slots", 4, "--hidden", "8,8", "--batch", 8, "--steps", 4, "--threads", 1]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def without_times(path):
    """What of a file is a function of the command alone."""
    if path.endswith("result.json"):
        result = json.loads(read(path))
        return str({key: result[key] for key in result if key not in ("seconds", "steps_per_second")})
    if path.endswith("config.json"):
        return str({**json.loads(read(path)), "data": None, "val": None})  # absolute paths
    if os.path.basename(path) == "index.html":
        return re.sub(rb'class="rate">[^<]*<', b"", read(path))
    if path.endswith(".csv") and b",steps_per_second," in read(path):
        with open(path) as file:
            return str([{**row, "steps_per_second": None} for row in csv.DictReader(file)])
    if path.endswith("report.html"):  # of a run or a sweep, with its times
        page = read(path)
        return page.startswith(b"<!DOCTYPE html>") and page.endswith(b"</html>\n")
    return digest(path)


def snapshot(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            # What a clock decides, and what the runs of a sweep said.
            if name != "timing.csv" and not name.startswith("events.out.tfevents.") and not name.endswith(".log"):
                path = os.path.join(base, name)
                found[os.path.relpath(path, folder)] = without_times(path)
    return found


def words_told(folder):
    text = read(folder + ".out").decode(errors="replace")
    return re.sub(r'\d+(\.\d+)? s\b|(?<=seconds": )[^,}]+|(?<=per_second": )[^,}]+| +\d+$', "", text, flags=re.M)  # a table's row ends with a rate


def latest(files):
    """Which older checkpoints are kept depends on where a run was stopped."""
    found = collections.defaultdict(list)
    for name in files:
        if re.fullmatch(r"step-\d+\.safetensors", os.path.basename(name)):
            found[os.path.dirname(name)].append(name)
    old = {name for names in found.values() for name in sorted(names)[:-1]}
    return {name: value for name, value in files.items() if name not in old}


PAPER = {"steps": 6, "seeds": 1, "batch": 8, "hidden": [8, 8], "evaluations": 1, "episodes": 1, "data": 40, "rows": 11, "values": {"horizon": [16]},
         "lock": {"n": 4, "hidden": [8, 8], "batch": 8, "steps": 4}, "instead": {"humanoidmaze-giant": "pointmaze-medium"},
         "only": {"strategies": {"methods": ["dcrl"]}, "accumulation": {"methods": ["td-n"]}}}


def paper_scale(folder):
    with open(os.path.join(folder, "scales.json"), "w") as file:
        json.dump({"least": PAPER}, file)


class Case:
    def __init__(self, name, fill, *words, back=None, alone=False, slow=False):
        """alone: the libraries that draw, and HDF5, call the C library, too. slow: takes part of a second."""
        self.name, self.fill, self.words, self.back, self.alone, self.slow = name, fill, words, back, alone, slow

    def way_back(self, folder):
        """The words that go on after a stop: a resume where there is something to go on with."""
        shutil.rmtree(os.path.join(folder, "made"), ignore_errors=True)  # as the error says: no store is replaced
        begun = self.back and glob.glob(os.path.join(folder, "run", "**", "config.json"), recursive=True) + glob.glob(os.path.join(folder, "*.state"))
        return self.back if begun else self.words


class Inputs:
    """What commands read, made once."""

    def __init__(self, scratch):
        self.path = scratch.at("inputs")
        os.mkdir(self.path)
        here = {"cwd": self.path}
        good("gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 20, "-o", "maze.npz", "--threads", 1, **here)
        good("data", "convert", "maze.npz", "store", **here)
        good(*MAZE, "--out", "run", **here)
        good("eval", "run", "--episodes", 1, "--step", 3, "--threads", 1, **here)
        self.starts()
        self.grad()
        self.hdf5()
        good(*LOCK, "--out", "lock", **here)
        good("lock", *SWEEP, "--out", "sweep", **here)
        good(*EXPERT, **here)

    def starts(self):
        with np.load(os.path.join(self.path, "maze.npz")) as maze:
            np.savez(os.path.join(self.path, "starts.npz"), qpos=maze["qpos"][:2].astype("f8"), qvel=maze["qvel"][:2].astype("f8"),
                     actions=np.zeros((2, 3, 2)))
        rest = np.r_[0, 0, 0.6, 1, np.zeros(11)].astype("f4")
        np.savez(os.path.join(self.path, "ant.npz"), qpos=np.tile(rest, (3, 1)), terminals=np.arange(3) == 2)

    def grad(self):
        rng = np.random.default_rng(0)
        shapes = {"state": (4, 2), "state_action": (4, 2), "goal": (4, 2)}
        np.savez(os.path.join(self.path, "batch.npz"), **{k: rng.standard_normal(s).astype("f4") for k, s in shapes.items()})
        good("train", "--env", "pointmaze-medium-navigate", "--data", "maze.npz", *NET, "--agent", "bc", "--steps", 1, "--out", "bc", cwd=self.path)
        os.rename(checkpoints(os.path.join(self.path, "bc"))[0], os.path.join(self.path, "weights.safetensors"))
        shutil.rmtree(os.path.join(self.path, "bc"))

    def hdf5(self):
        rows = 60
        with h5py.File(os.path.join(self.path, "d4rl.hdf5"), "w") as file:
            for name, values in {"observations": np.arange(rows * 2).reshape(rows, 2).astype("f4"), "actions": np.zeros((rows, 2), "f4"),
                                 "rewards": np.zeros(rows, "f4"), "terminals": np.zeros(rows, bool), "timeouts": np.arange(rows) % 20 == 19,
                                 "infos/qpos": np.zeros((rows, 3))}.items():
                file.create_dataset(name, data=values, compression="gzip")

    def copy(self, folder, *names):
        for name in names:
            at, to = os.path.join(self.path, name), os.path.join(folder, name)
            if os.path.isdir(at):
                shutil.copytree(at, to, symlinks=True)
            else:
                shutil.copy(at, to)

    def half_run(self, folder):
        """A run that stopped after its checkpoint of step 8, with log rows beyond it."""
        self.copy(folder, "lock")
        run = os.path.join(folder, "run")
        os.rename(os.path.join(folder, "lock"), run)
        os.remove(os.path.join(run, "DONE"))
        os.remove(checkpoints(run)[-1])

    def done_run(self, folder):
        self.copy(folder, "lock")
        os.rename(os.path.join(folder, "lock"), os.path.join(folder, "run"))

    def half_sweep(self, folder):
        self.copy(folder, "sweep")
        for member in sorted(os.listdir(os.path.join(folder, "sweep")))[:1]:
            os.remove(os.path.join(folder, "sweep", member, "result.json"))


def cases(inputs):
    def needs(*names):
        return lambda folder: inputs.copy(folder, *names)

    def nothing(folder):
        pass

    resume = ["train", "--resume", "run", "--threads", 1]
    return [
        Case("train", nothing, *LOCK, "--out", "run", back=resume),
        Case("train-maze", needs("maze.npz"), *MAZE, "--out", "run", back=resume),
        Case("train-store", needs("store"), *[w if w != "maze.npz" else "store" for w in MAZE], "--out", "run", back=resume),
        Case("train-eval", needs("maze.npz"), *MAZE, "--eval-every", 3, "--eval-episodes", 1, "--out", "run", back=resume, slow=True),
        Case("seeds", nothing, *LOCK, "--seed", "0-1", "--out", "run", back=resume),
        Case("train-held-out", needs("maze.npz", "maze-val.npz"), *MAZE, "--out", "run", back=resume),
        Case("train-live", needs("maze.npz"), *MAZE, "--eval-every", 3, "--eval-episodes", 1, "--out", "run", *LIVE, back=[*resume, *LIVE], slow=True),
        Case("train-sweep", nothing, *LOCK[:-1], 4, "--agent", "dcrl,td-n", "--jobs", 1, "--out", "runs", slow=True),
        Case("resume", inputs.half_run, *resume),
        Case("go-on", inputs.done_run, *resume, "--steps", 14),
        Case("go-on-command", inputs.done_run, *LOCK, "--steps", 14, "--out", "run"),
        Case("dry-run", nothing, *LOCK, "--dry-run"),
        Case("gen", nothing, "gen", "pointmaze-medium-navigate", "--episodes", 10, "--rows", 8, "--threads", 1, "-o", "made.npz"),
        Case("gen-parts", nothing, "gen", "cube-single-play", "--episodes", 10, "--rows", 4, "--threads", 1, "-o", "made.npz", slow=True),
        Case("gen-lock", nothing, "gen", "lock-16", "-o", "made.npz"),
        Case("to-store", needs("maze.npz"), "data", "convert", "maze.npz", "made"),
        Case("to-npz", needs("store"), "data", "convert", "store", "made.npz"),
        Case("hdf5", needs("d4rl.hdf5"), "data", "convert", "d4rl.hdf5", "made.npz", alone=True),
        Case("info", needs("maze.npz"), "data", "info", "maze.npz"),
        Case("info-store", needs("store"), "data", "info", "store", "--json"),
        Case("sample", needs("maze.npz"), "sample", "--data", "maze.npz", "--count", 3),
        Case("replay", needs("starts.npz"), "env", "replay", "pointmaze-medium-v0", "--in", "starts.npz", "--out", "made.npz", "--threads", 1),
        Case("sample-agent", needs("maze.npz"), "sample", "--data", "maze.npz", "--agent", "hiql", "--count", 3),
        Case("model", nothing, "env", "model", "pointmaze-medium-v0", "--out", "made.mjb"),
        Case("draw", needs("ant.npz"), "data", "draw", "ant.npz", "visual-antmaze-medium", "--threads", 1, "-o", "made.npz", alone=True, slow=True),
        Case("rewards", needs("maze.npz"), "data", "rewards", "maze.npz", "pointmaze-medium-singletask-v0", "-o", "made.npz"),
        Case("grad", needs("weights.safetensors", "batch.npz"), "grad", "--agent", "bc", "--weights", "weights.safetensors", "--batch", "batch.npz",
             "--updates", 2, "--out", "made.safetensors"),
        Case("eval", needs("run"), "eval", "run", "--episodes", 1, "--threads", 1, slow=True),
        Case("eval-two", needs("run"), "eval", "run", "run", "--episodes", 1, "--threads", 1, "--json", slow=True),
        Case("map", needs("run"), "map", "run", "--episodes", 1, "--task", 2, "--threads", 1, slow=True),
        Case("export-c", needs("run"), "export", "run", "-o", "made.c"),
        Case("export-onnx", needs("run"), "export", "run", "-o", "made.onnx"),
        Case("render-run", needs("run"), "render", "run", "--task", 2, "--episodes", 1, "--at", 0, "--width", 16, "--height", 16, "--threads", 1,
             "-o", "made.png", alone=True, slow=True),
        Case("render", needs("maze.npz"), "render", "pointmaze-medium-v0", "--data", "maze.npz", "--episode", 1, "--width", 16, "--height", 16,
             "--threads", 1, "-o", "made.png", alone=True, slow=True),
        Case("expert", nothing, *EXPERT, back=[*EXPERT, "--resume"], slow=True),
        Case("expert-eval", needs("ant.safetensors"), "expert", "eval", "ant.safetensors", "--episodes", 1, "--steps", 4, "--threads", 1, slow=True),
        Case("sweep", nothing, "lock", *SWEEP, "--out", "sweep"),
        Case("sweep-again", inputs.half_sweep, "lock", *SWEEP, "--out", "sweep"),
        Case("paper", paper_scale, "paper", "run", "strategies", "accumulation", "--scales", "scales.json", "--scale", "least", "--threads", 1,
             "--out", "paper", slow=True),
        Case("paper-list", nothing, "paper", "list", "--names"),
        Case("paper-tell", paper_scale, "paper", "run", "strategies", "--scales", "scales.json", "--scale", "least", "--out", "paper", "--dry-run"),
        Case("report", needs("run", "sweep"), "report", "run", "sweep", "-o", "made.html"),
        Case("report-out", needs("run", "sweep"), "report", "run", "sweep", "-o", "-"),
        Case("report-csv", needs("run"), "report", "run", "-o", "made.csv"),
        Case("report-table", needs("run"), "report", "run"),
        Case("report-svg", needs("run"), "report", "run", "-o", "made.svg"),
        Case("list", nothing, "list", "agents", "--json"),
        Case("completion", nothing, "completion", "bash"),
        Case("bench", nothing, "bench", "sample", "--seconds", 0.01, "--json"),
    ]
