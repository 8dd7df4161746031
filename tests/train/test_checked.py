"""Every way to open a checkpoint is the same checked one: eval, map, resume, the C API and grad refuse what one of them refuses.

A small run in a maze has two checkpoints. The newest is damaged, edited, or replaced by one of another run, also with a hash
that fits. Without --step the one before is played, with a warning, and the row is that one's; with --step there is one error
and no row. A file that claims wide layers is refused before memory is taken for them.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from checkpoint_file import File  # noqa: E402
from drive import Scratch, bad, call, checkpoints, good, quickest, run_tests, sanitized, slowness, words_of  # noqa: E402

ENV = "pointmaze-medium-navigate-oraclerep-v0"
STEPS = ("step-0000000010.safetensors", "step-0000000020.safetensors")
TOOL = os.path.join(os.environ["BUILD"], "tests", "tool_measure")


def train(folder, data, *more):
    good("train", "--env", ENV, "--data", data, "--hidden", "16,16", "--batch", 16, "--steps", 20, "--save-every", 10, "--threads", 1,
         *more, "--out", folder)


def weights_changed(file, change):
    for name, (entry, data) in file.tensors.items():
        if name.startswith("actor/") and name.endswith("/w"):
            file.tensors[name] = (entry, change(np.frombuffer(data, "<f4").copy()).tobytes())


def negated(file):
    weights_changed(file, lambda w: -w)


def flipped(file):
    weights_changed(file, lambda w: (w.view("u4") ^ (np.arange(w.size) == 3).astype("u4")).view("<f4"))


def meta_edited(key, old, new):
    def edit(file):
        assert old in file.metas[key], (key, file.metas[key])
        file.metas[key] = file.metas[key].replace(old, new)
    return edit


DAMAGE = {"negated": negated, "flipped": flipped, "obs": meta_edited("method", '"obs": 2', '"obs": 3'),
          "option": meta_edited("method", '"gamma": 0.99', '"gamma": 0.98'), "lr": meta_edited("config", '"lr": 0.0003', '"lr": 0.003'),
          "seed": meta_edited("seed", "0", "1"), "env": meta_edited("env", "medium", "large")}


def expect_refused(run, text):
    """By all that open the newest checkpoint of `run`; the one before is good."""
    before = digest_rows(run)
    bad(1, text, "eval", run, "--step", 20, "--episodes", 1)
    bad(1, text, "map", run, "--step", 20, "--task", 1, "--episodes", 1)
    assert digest_rows(run) == before
    done = call("eval", run, "--episodes", 1, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["step"] == 10, done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("dcrl: warning: ") and text in done.stderr, done
    with open(os.path.join(run, "eval.csv")) as file:
        assert [line.split(",")[0] for line in file] == ["step", "10"]
    done = call("map", run, "--task", 1, "--episodes", 1)
    assert done.returncode == 0 and "an older checkpoint is tried" in done.stderr, done
    with open(os.path.join(run, "map-task1.svg")) as file:
        assert "step 10" in file.read()
    os.remove(os.path.join(run, "DONE"))
    done = call("train", "--resume", run)
    assert done.returncode == 0 and "goes on at step 10 " in done.stdout and text in done.stderr, done


def digest_rows(run):
    path = os.path.join(run, "eval.csv")
    return open(path).read() if os.path.exists(path) else ""


def copy(scratch, name):
    run = scratch.at(name)
    shutil.copytree(scratch.at("run"), run)
    return run


def test_damaged(scratch):
    for name, change in DAMAGE.items():
        run = copy(scratch, name)
        path = os.path.join(run, STEPS[1])
        file = File(path)
        assert file.fit_hash() == file.metas["hash"]
        change(file)
        file.write(path, False)
        expect_refused(run, "is damaged")


def test_other_runs(scratch):
    """Whole files with the right hash, of a run with other options or other data."""
    for name, more, text in (("seed7", ["--seed", 7], '"seed": 7'), ("lr", ["--lr", 0.01], '"lr": 0.01'),
                             ("n", ["--set", "n=7"], '"n": 7')):
        train(scratch.at("other" + name), scratch.at("data.npz"), *more)
        run = copy(scratch, "with" + name)
        shutil.copy(os.path.join(scratch.at("other" + name), STEPS[1]), run)
        expect_refused(run, f"was trained with {text}, which config.json does not say")
    train(scratch.at("otherdata"), scratch.at("more.npz"))
    run = copy(scratch, "withdata")
    shutil.copy(os.path.join(scratch.at("otherdata"), STEPS[1]), run)
    expect_refused(run, '"data_hash"')
    run = copy(scratch, "renamed")
    shutil.copy(os.path.join(run, STEPS[0]), os.path.join(run, STEPS[1]))
    expect_refused(run, "is of step 10, not of the one it is named for")


def test_edited_config(scratch):
    run = copy(scratch, "edited")
    path = os.path.join(run, "config.json")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace('"lr": 0.0003', '"lr": 0.0004'))
    for words in (("eval", run), ("map", run), ("train", "--resume", run)):
        if "train" in words:
            os.remove(os.path.join(run, "DONE"))
        done = call(*words)
        assert done.returncode == 1 and done.stderr.count("\n") == 2, done
        assert 'was trained with "lr": 0.0003, which config.json does not say' in done.stderr.splitlines()[1], done
    # What cannot change a number may be edited.
    with open(path, "w") as file:
        file.write(text.replace('"keep": 3', '"keep": 9').replace('"eval_episodes": 15', '"eval_episodes": 5'))
    good("eval", run, "--episodes", 1)


def test_api(scratch):
    if sanitized():
        print("  skipped: a sanitizer's library cannot be loaded into Python")
        return
    lib = ctypes.CDLL(os.path.join(os.environ["BUILD"], "libdcrl.so"))
    lib.dcrl_message.restype = ctypes.c_char_p
    run, policy = copy(scratch, "api"), ctypes.c_void_p()
    path = os.path.join(run, STEPS[1])
    file = File(path)
    negated(file)
    file.write(path, False)
    assert lib.dcrl_policy_open(ctypes.byref(policy), path.encode(), 1) != 0 and b"is damaged" in lib.dcrl_message()
    assert lib.dcrl_policy_open(ctypes.byref(policy), run.encode(), 1) == 0, lib.dcrl_message()
    lib.dcrl_policy_close(policy)
    negated(file)
    file.write(path, True)
    os.remove(os.path.join(run, STEPS[0]))
    assert lib.dcrl_policy_open(ctypes.byref(policy), run.encode(), 1) == 0, lib.dcrl_message()
    lib.dcrl_policy_close(policy)
    file.metas["config"] = file.metas["config"].replace('"tau": 0.005', '"tau": 0.004')
    file.write(path, True)
    assert lib.dcrl_policy_open(ctypes.byref(policy), run.encode(), 1) != 0 and b"tau" in lib.dcrl_message()


def expect_cheap(words, text):
    """Refused within 100 ms and 64 MB, beyond what a call takes that finds no folder at all."""
    if sanitized():  # which takes time and memory of its own
        done = call(*words)
        assert done.returncode == 1 and text in done.stderr, done
        return
    _, least, _ = measure("eval", "/nowhere")
    limit = 0.1 * slowness()
    seconds, peak, said = quickest(lambda: measure(*words), limit)
    assert text in said, said
    assert peak - least < 64 << 20, (words, peak, least)
    assert seconds < limit, (words, seconds, limit)


def test_grad(scratch):
    """Weights of a checkpoint are checked as such."""
    path = scratch.at("weights.safetensors")
    file = File(checkpoints(scratch.at("run"))[-1])
    negated(file)
    file.write(path, False)
    listed = json.loads(good("grad", "--agent", "bc", "--describe", "--json"))["inputs"]
    np.savez(scratch.at("batch.npz"), **{i["name"]: np.zeros({"(batch)": 3}.get(i["shape"], (3, 2)), "f4") for i in listed})
    words = ["--weights", path, "--batch", scratch.at("batch.npz"), "--out", scratch.at("g.safetensors")]
    bad(1, "is damaged", "grad", "--agent", "bc", *words)
    check_grad_devices("grad", "--agent", "bc", "--weights", checkpoints(scratch.at("run"))[-1], *words[2:], "--updates", 2)
    # Widths without their numbers.
    for shapes in (((0, 4, 8192), (0, 8192, 8192), (0, 8192, 2)), ((1, 4, 8192), (1, 1, 8192), (1, 1, 2))):
        file.metas = {}
        file.tensors = {f"actor/{i}/w": ({"dtype": "F32", "shape": list(shape)}, bytes(4 * int(np.prod(shape)))) for i, shape in enumerate(shapes)}
        file.write(path, False)
        expect_cheap(("grad", "--agent", "bc", *words), "must be (ensemble, in, out)")


def check_grad_devices(*words):
    """Where there is no GPU, or what the CPU does not do."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    out = words[words.index("--out") + 1]
    bad(1, ["no ", "--device cpu"], *words, "--device", "cuda")
    bad(1, ["no ", "--device cpu"], *words, "--set", "device=cuda")
    bad(2, ["fp32 on the CPU", "--device cuda"], *words, "--precision", "bf16")
    assert not os.path.exists(out)
    good(*words, "--device", "cpu", "--precision", "fp32")
    assert os.path.exists(out)


def measure(*words):
    """Seconds of the processor and bytes of a call that must fail; its line."""
    with tempfile.NamedTemporaryFile("r") as out:
        done = subprocess.run([TOOL, out.name, str(4 << 20), *words_of(words)], capture_output=True, text=True, timeout=60)
        seconds, kilobytes, code = out.read().split()
    assert done.returncode == 0 and code == "1", (words, done)
    return float(seconds), int(kilobytes) << 10, done.stderr


def claim_wide(file):
    wide = "[8192,8192,8192,8192]"
    for key in ("method", "config"):
        file.metas[key] = file.metas[key].replace('"hidden": [16,16]', f'"hidden": {wide}')
        assert wide in file.metas[key]
    file.metas["networks"] = file.metas["networks"].replace(",16,16,", ",8192,8192,8192,8192,")


def test_wide(scratch):
    run = copy(scratch, "wide")
    path = os.path.join(run, "config.json")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace('"hidden": [16,16]', '"hidden": [8192,8192,8192,8192]'))
    for name in STEPS:
        file = File(os.path.join(run, name))
        claim_wide(file)
        file.write(os.path.join(run, name), True)
    os.remove(os.path.join(run, "DONE"))
    for words in (("eval", run), ("eval", run, "--step", 20), ("train", "--resume", run)):
        expect_cheap(words, "another type or shape")


def prepare(scratch):
    for name, episodes in (("data", 20), ("more", 21)):
        good("gen", "pointmaze-medium-navigate", "-o", scratch.at(name + ".npz"), "--episodes", episodes)
    train(scratch.at("run"), scratch.at("data.npz"))
    assert tuple(os.path.basename(p) for p in checkpoints(scratch.at("run"))) == STEPS


if __name__ == "__main__":
    with Scratch("checked") as folder:
        prepare(folder)
        run_tests({name: (lambda test=test: test(folder)) for name, test in globals().items() if name.startswith("test_")})
