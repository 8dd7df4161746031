"""`dcrl expert train`: the same bytes for any number of threads, and after a stop; what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from checkpoint_file import File  # noqa: E402
from drive import STOPPED, Scratch, bad, digest, good, run_tests, words_of  # noqa: E402

ROBOTS = ["ant", "antball", "humanoid"]
SMALL = "--steps 900 --set envs=12 --set random=300 --set eval_every=450 --set hidden=24,16 --set actor_hidden=16,24 --set batch=32 --set updates=4 --set eval_episodes=1"


def train(robot, path, *more):
    return good("expert", "train", robot, "-o", path, *SMALL.split(), *more)


def test_threads():
    with Scratch("threads") as scratch:
        for robot in ROBOTS:
            paths = [scratch.at(f"{robot}-{threads}.safetensors") for threads in (1, 3)]
            for threads, path in zip((1, 3), paths):
                told = json.loads(train(robot, path, "--seed", 5, "--threads", threads, "--json"))
                assert told["robot"] == robot and told["steps"] >= 900 and told["updates"] > 0
            assert digest(paths[0]) == digest(paths[1]), robot
            assert not os.path.exists(paths[0] + ".state")
        train("ant", scratch.at("other.safetensors"), "--seed", 6)
        assert digest(scratch.at("other.safetensors")) != digest(scratch.at("ant-1.safetensors"))


def stop(words, when):
    """Run until a file is there, then stop it."""
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not os.path.exists(when):
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=300)
    return run.returncode, stderr


def test_resume():
    """Stopped after the first evaluation, in a replay that has begun to forget, and resumed with another number of threads."""
    with Scratch("resume") as scratch:
        for robot in ["ant", "humanoid"]:
            whole, parts = scratch.at(f"{robot}.safetensors"), scratch.at(f"{robot}-parts.safetensors")
            more = ["--set", "replay=1000", "--steps", 1400]
            train(robot, whole, *more)
            for _ in range(20):  # until it is stopped in time
                code, stderr = stop(words_of(["expert", "train", robot, "-o", parts, *SMALL.split(), *more, "--threads", 2]), parts)
                if code != 0:
                    break
                os.remove(parts)
            assert code == STOPPED and "--resume" in stderr, (code, stderr)
            bad(2, "another training", "expert", "train", robot, "-o", parts, *SMALL.split(), *more, "--set", "lr=1e-3", "--resume")
            train(robot, parts, *more, "--threads", 1, "--resume")
            assert digest(whole) == digest(parts), robot


def test_what_lies_beside():
    """Files beside the expert that are not this training's stay as they are, and a stopped training is not begun over."""
    with Scratch("beside") as scratch:
        path, private = scratch.at("ant.safetensors"), scratch.at("private")
        for name in (path + ".trial", private):
            with open(name, "w") as file:
                file.write("mine")
        os.symlink(private, path + ".tmp.1.0")
        code, stderr = stop(words_of(["expert", "train", "ant", "-o", path, *SMALL.split(), "--steps", 100000]), path)
        assert code == STOPPED, stderr
        bad(2, ["--resume", "ant.safetensors.state"], "expert", "train", "ant", "-o", path, *SMALL.split())
        os.rename(path + ".state", scratch.at("kept"))
        for place in (lambda at: os.symlink(scratch.at("kept"), at), os.mkfifo):
            place(path + ".state")
            bad(1, "ant.safetensors.state", "expert", "train", "ant", "-o", path, *SMALL.split(), "--resume")
            os.remove(path + ".state")
        good("expert", "train", "ant", "-o", path, *SMALL.split())
        for name in (path + ".trial", private):
            with open(name) as file:
                assert file.read() == "mine"
        assert len(os.listdir(scratch.path)) == 5, os.listdir(scratch.path)
        os.mkfifo(scratch.at("pipe"))
        bad(2, "pipe", "expert", "train", "ant", "-o", scratch.at("pipe"), *SMALL.split())


def test_errors():
    with Scratch("errors") as scratch:
        path = scratch.at("x.safetensors")
        bad(2, ["antbal", "antball"], "expert", "train", "antbal", "-o", path)
        bad(2, "robot", "expert", "train", "-o", path)
        bad(2, "--out", "expert", "train", "ant")
        bad(2, ["relable", "relabel"], "expert", "train", "ant", "-o", path, "--set", "relable=1")
        bad(2, "replay", "expert", "train", "ant", "-o", path, "--set", "replay=1000", "--set", "random=5000")
        bad(2, "relabel", "expert", "train", "antball", "-o", path, "--set", "relabel=0.5")
        bad(2, "actor_hidden", "expert", "train", "ant", "-o", path, "--set", "actor_hidden=2048")
        bad(2, ["random", "10000"], "expert", "train", "ant", "-o", path, "--steps", 10000)  # all of them
        bad(1, "nowhere", "expert", "train", "ant", "-o", scratch.at("nowhere", "x.safetensors"))
        bad(2, "tf32", "expert", "train", "ant", "-o", path, "--set", "precision=tf32")
        bad(2, ["sub-command", "train"], "expert", "trian", "ant")
        bad(1, "x.safetensors.state", "expert", "train", "ant", "-o", path, "--resume")
        bad(1, "x.safetensors", "expert", "eval", path)
        with open(path + ".state", "wb") as file:
            file.write(b"no state at all")
        bad(1, "x.safetensors.state", "expert", "train", "ant", "-o", path, "--resume")


def test_hostile_states():
    """States with the right hash and impossible numbers are refused, by the file's name."""
    with Scratch("states") as scratch:
        path = scratch.at("ant.safetensors")
        words = ["expert", "train", "ant", "-o", path, *SMALL.split(), "--threads", 1]
        code, stderr = stop(words_of([*words, "--steps", 100000]), path)
        assert code == STOPPED, stderr
        state = File(path + ".state")
        whole = dict(state.tensors)
        spoilt = [("counts", k, x) for k in range(4) for x in (np.nan, np.inf, 1e300)] + [("counts", k, x) for k in range(3) for x in (-1, 0.5, 1e15)]
        spoilt += [(name, 0, x) for name in ("robots", "live", "ema", "adam_m", "adam_v", "obs", "mask") for x in (np.nan, -np.inf)]
        for name, place, x in spoilt:
            entry, content = whole[name]
            if name == "counts" and place == 3 and x == 1e300:
                continue  # no worth that was ever reached, but a number
            numbers = np.frombuffer(content, "<f8" if entry["dtype"] == "F64" else "<f4").copy()
            numbers[place] = x
            state.tensors = {**whole, name: (entry, numbers.tobytes())}
            state.write(path + ".state", True)
            bad(1, "ant.safetensors.state", *words, "--steps", 100000, "--resume")


def test_eval():
    with Scratch("eval") as scratch:
        path = scratch.at("ant.safetensors")
        train("ant", path)
        words = ["expert", "eval", path, "--episodes", 5, "--steps", 150]
        one, two = (good(*words, "--json", "--threads", threads) for threads in (1, 3))
        assert one == two
        told = json.loads(one)
        assert told["robot"] == "ant" and told["accepted"] is False
        assert set(told["scores"]) == {"noise 0", "noise 0.2"} and len(told["bands"]) >= 5
        assert 0 <= told["scores"]["noise 0.2"]["step"] < 1
        told = json.loads(good(*words, "--json", "--noise", 0.5))
        assert told["noise"] == 0.5 and set(told["scores"]) == {"noise 0", "noise 0.5"}
        text = good(*words)
        assert "MISSED" in text and "NOT inside" in text and told["hash"] in text


if __name__ == "__main__":
    run_tests(globals())
