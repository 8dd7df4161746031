"""The Python package without environments: data sets, training with callbacks, policies, errors."""

import csv
import gc
import os
import re
import signal
import threading
import time

from package import SIMULATES, SOURCE

import numpy as np

import dcrl
from dcrl import _lib
from drive import Scratch, good, run_tests, slowness

ROWS, LENGTH = 640, 16
SMALL = dict(batch=16, hidden=(16, 16), n=4, threads=1, log_every=1)


def walks(dtype=np.float32):
    """Each trajectory goes right by 0.2 a step."""
    rows = np.arange(ROWS)
    observations = np.stack([0.2 * (rows % LENGTH), rows // LENGTH], 1).astype(dtype)
    actions = np.tile(np.array([1, 0], np.float32), (ROWS, 1))
    return observations, actions, rows % LENGTH == LENGTH - 1


def refused(kind, text, call, *words, **named):
    try:
        call(*words, **named)
    except kind as error:
        assert isinstance(error, dcrl.Error) and re.search(text, str(error)), (text, str(error))
    else:
        raise AssertionError(f"no {kind.__name__} from {call}")


def test_prototypes():
    """Every function of the headers is bound, with as many arguments as it takes."""
    headers = "".join(path.read_text() for path in (SOURCE / "include/dcrl").iterdir())
    declared = dict(re.findall(r"^DCRL_API [\w ]+?\*?\b(?:dcrl_)(\w+)\(([^;]*)\);", headers, re.M))
    bound = {name: takes for name, _, takes in _lib.PROTOTYPES}
    assert set(declared) == set(bound), set(declared) ^ set(bound)
    for name, words in declared.items():
        count = 0 if words.strip() == "void" else words.count(",") + 1
        assert count == len(bound[name]), (name, words)


def test_arrays():
    observations, actions, ends = walks()
    data = dcrl.Dataset.from_arrays(observations, actions, ends)
    assert data.rows == ROWS and list(data) == ["observations", "actions"] and data.choices == 0
    assert np.shares_memory(data["observations"], observations)
    assert np.array_equal(data.starts, np.arange(0, ROWS + 1, LENGTH))
    assert np.allclose(data["actions"], actions, atol=2e-5) and data["actions"].shape == actions.shape
    assert not data["actions"].flags.writeable
    kept = data["actions"]
    del data
    gc.collect()
    assert np.isfinite(kept).all()  # an array keeps its data set alive
    wide = dcrl.Dataset.from_arrays(walks(float)[0], actions.tolist(), ends.astype(int))
    assert np.array_equal(wide["observations"], observations)
    refused(ValueError, r"\(640, 2\).*\(639, 2\)", dcrl.Dataset.from_arrays, observations, actions[1:], ends)
    refused(ValueError, "the last trajectory has no end", dcrl.Dataset.from_arrays, observations[:-1], actions[:-1], ends[:-1])
    observations[7] = np.nan
    refused(ValueError, "row 7", dcrl.Dataset.from_arrays, observations, actions, ends)


def test_files():
    observations, actions, ends = walks()
    with Scratch("files") as scratch:
        pictures = np.arange(ROWS * 12, dtype=np.uint8).reshape(ROWS, 2, 2, 3)
        np.savez(scratch.at("a.npz"), observations=observations, actions=actions, terminals=ends, pictures=pictures)
        data = dcrl.Dataset(scratch.at("a.npz"))
        assert np.array_equal(data["observations"], observations) and np.array_equal(data["pictures"], pictures)
        np.savez(scratch.at("b.npz"), observations=observations, actions=(np.arange(ROWS) % 3)[:, None], terminals=ends)
        assert dcrl.Dataset(scratch.at("b.npz")).choices == 3
        refused(OSError, "nowhere.npz", dcrl.Dataset, scratch.at("nowhere.npz"))


def test_training():
    """Rows are those of train.csv; a run that a callback stopped goes on to the same bytes."""
    data = dcrl.Dataset.from_arrays(*walks())
    with Scratch("training") as scratch:
        rows = []
        policy = dcrl.train(scratch.at("whole"), data, agent="dcrl", steps=12, callback=rows.append, **SMALL)
        with open(scratch.at("whole", "train.csv")) as file:
            written = list(csv.DictReader(file))
        assert [int(w["step"]) for w in written] == [r["step"] for r in rows] == list(range(1, 13))
        for row, line in zip(rows, written):
            names = [name for name in line if name != "step"]
            assert names and all(abs(row[name] - float(line[name])) <= 1e-6 * abs(row[name]) for name in names), (row, line)
        assert policy.step == 12
        run = dcrl.Run(scratch.at("parts"), data, agent="dcrl", steps=12, **SMALL)
        assert run.train(lambda row: row["step"] == 5) is False and run.step == 5
        run.close()
        refused(ValueError, "in its memory: hand them in again", dcrl.Run.resume, scratch.at("parts"))
        again = dcrl.Run.resume(scratch.at("parts"), data)
        assert again.step == 5 and again.train() is True and again.step == 12
        with open(scratch.at("whole", "step-0000000012.safetensors"), "rb") as a, open(scratch.at("parts", "step-0000000012.safetensors"), "rb") as b:
            assert a.read() == b.read()
        assert again.policy(step=5).step == 5
        refused(ValueError, "holds a run", dcrl.train, scratch.at("whole"), data, **SMALL)
        refused(ValueError, "batch", dcrl.train, scratch.at("none"), data, batsh=3)


def test_stopping():
    """An exception of a callback and Ctrl-C save, stop, and are raised; then the run goes on."""

    def complain(row):
        raise KeyError("mine")

    data = dcrl.Dataset.from_arrays(*walks())
    with Scratch("stopping") as scratch:
        run = dcrl.Run(scratch.at("run"), data, agent="dcrl", steps=10**7, save_every=10**7, **{**SMALL, "log_every": 100})
        try:
            run.train(complain)
        except KeyError as error:
            assert error.args == ("mine",)
        else:
            raise AssertionError("the callback's exception was lost")
        assert run.step == 100 and os.path.exists(scratch.at("run", "step-0000000100.safetensors"))
        for callback in (None, lambda row: None):
            before = run.step
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                run.train(callback)
            except KeyboardInterrupt:
                assert run.step > before
            else:
                raise AssertionError("Ctrl-C was lost")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        threading.Timer(0.3, run.stop).start()
        assert run.train() is False


def test_policy():
    data, rng = dcrl.Dataset.from_arrays(*walks()), np.random.default_rng(0)
    with Scratch("policy") as scratch:
        policy = dcrl.train(scratch.at("run"), data, agent="dcrl", steps=20, **SMALL)
        assert (policy.obs_size, policy.goal_size, policy.act_size, policy.env) == (2, 2, 2, "")
        obs, goals = rng.normal(size=(2, 300, 2)).astype(np.float32)
        actions = policy.act(obs, goals)
        assert actions.shape == (300, 2) and actions.dtype == np.float32 and np.abs(actions).max() <= 1
        for r in (0, 7, 299):
            one = policy.act(obs[r], goals[r].astype(float))
            assert one.shape == (2,) and np.allclose(one, actions[r], atol=1e-5)
        assert np.allclose(policy.act(obs, goals[0]), policy.act(obs, np.tile(goals[0], (300, 1))))
        assert policy.act(obs[:0], goals[:0]).shape == (0, 2)
        assert policy.act([0.5, 1], (1, 1)).shape == (2,)
        steps = policy.distance(obs, goals)
        assert steps.shape == (300,) and np.isfinite(steps).all()
        assert np.allclose(policy.distance(obs, goals, actions), steps)
        refused(ValueError, r"\(299, 2\).*\(300, 2\)", policy.distance, obs, goals, actions[1:])
        assert abs(policy.distance(obs[3], goals[3]) - steps[3]) < 1e-3 * steps[3]
        refused(ValueError, r"\(3,\).*\(n, 2\)", policy.act, obs[0, [0, 1, 0]], goals[0])
        refused(ValueError, "5 observations and 4 goals", policy.act, obs[:5], goals[:4])
        refused(ValueError, "goal 0", policy.act, obs[0], [np.nan, 0])
        refused(ValueError, "NUL", dcrl.Policy, scratch.at("run\0other"))
        refused(ValueError, "number of threads", dcrl.Policy, scratch.at("run"), threads=2**32 + 1)
        refused(ValueError, "number of episodes", policy.evaluate, "pointmaze-medium-v0", episodes=2**32 + 1)
        refused(ArithmeticError, "NaN or Inf", policy.act, [3e38, -3e38], [0, 0])
        imitator = dcrl.train(scratch.at("bc"), data, agent="bc", steps=2, **{k: v for k, v in SMALL.items() if k != "n"})
        refused(NotImplementedError, "bc learns no distance", imitator.distance, obs, goals)
        assert policy.choices == 0 and all((bound == limit).all() for bound, limit in zip(policy.action_range, (-1, 1)))
        policy.close()
        refused(ValueError, "policy is NULL", policy.act, obs[0], goals[0])
        refused(ValueError, "policy is NULL", policy.act, obs, goals)
        refused(ValueError, "no checkpoint of step 3", dcrl.Policy, scratch.at("run"), step=3)


def test_actions_of_any_range():
    observations, actions, ends = walks()
    data = dcrl.Dataset.from_arrays(observations, 3 * actions - 1, ends)
    assert data["actions"].max() == 2
    with Scratch("range") as scratch:
        refused(ValueError, "act_scale|act-scale", dcrl.train, scratch.at("a"), data, agent="bc", steps=2, batch=16, hidden=(8,))
        policy = dcrl.train(scratch.at("b"), data, agent="bc", steps=2, batch=16, hidden=(8,), act_scale=(-1, 2))
        low, high = policy.action_range
        assert (low == -1).all() and (high == 2).all()
        taken = policy.act(observations[:50] * 100, observations[:50])
        assert taken.min() >= -1 and taken.max() <= 2


def test_discrete_actions():
    """One of three directions: of x, of y, or none. The goal says which."""
    rng = np.random.default_rng(0)
    taken = np.repeat(rng.integers(0, 3, 40), 16)
    observations = np.cumsum(np.eye(3)[taken][:, :2].reshape(40, 16, 2), 1).reshape(-1, 2).astype(np.float32)
    with Scratch("discrete") as scratch:
        np.savez(scratch.at("a.npz"), observations=observations, actions=taken[:, None], terminals=np.arange(640) % 16 == 15)
        assert dcrl.Dataset(scratch.at("a.npz")).choices == 3
        policy = dcrl.train(scratch.at("run"), scratch.at("a.npz"), agent="dcrl", steps=1500, batch=64, hidden=(32, 32), n=4, threads=1, alpha=1)
        assert policy.choices == policy.act_size == 3
        here = np.full((2, 2), 4.0)
        assert policy.choose(here, [[9, 4], [4, 9]]).tolist() == [0, 1] and policy.choose(here[0], [9, 4]) == 0
        steps = policy.distance(here, [[9, 4], [4, 9]], np.array([0, 1]))
        assert np.array_equal(steps, policy.distance(here, [[9, 4], [4, 9]], np.eye(3)[:2]))
        refused(ValueError, "0 to 3", policy.distance, here, here, [0, 3])
        real = dcrl.train(scratch.at("real"), dcrl.Dataset.from_arrays(*walks()), agent="bc", steps=1, batch=16, hidden=(8,))
        refused(ValueError, "real numbers", real.choose, here, here)


def test_one_row_is_quick():
    """The package itself costs a microsecond, and networks little more than reading their weights."""
    data = dcrl.Dataset.from_arrays(*walks())
    with Scratch("quick") as scratch:
        policy = dcrl.train(scratch.at("run"), data, agent="dcrl", steps=1, **{**SMALL, "hidden": (256, 256, 256)})
        obs, goal, best, limit = np.zeros(2, np.float32), np.ones(2), 1.0, 30e-6 * slowness()
        for _ in range(100):
            start = time.perf_counter()
            for _ in range(50):
                policy.act(obs, goal)
            best = min(best, (time.perf_counter() - start) / 50)
        print(f"  {best * 1e6:.1f} us")
        assert best < limit, (best, limit)


def test_evaluation():
    if not SIMULATES:
        return
    with Scratch("evaluation") as scratch:
        good("gen", "pointmaze-medium-navigate", "-o", scratch.at("maze.npz"), "--episodes", 4)
        scores = []
        more = dict(env="pointmaze-medium-navigate-oraclerep-v0", eval_every=10, eval_episodes=1)
        policy = dcrl.train(
            scratch.at("run"), scratch.at("maze.npz"), steps=20, on_score=lambda *told: scores.append(told), **more, **SMALL
        )
        assert policy.env == "pointmaze-medium-navigate-oraclerep-v0" and [step for step, _ in scores] == [10, 20]
        score = policy.evaluate(episodes=3, seed=5)
        out = good("eval", scratch.at("run"), "--episodes", 3, "--seed", 5, "--json")
        assert abs(float(re.search(r'"overall_success": ([\d.]+)', out).group(1)) - score.overall) < 1e-6
        assert [float(x) for x in re.search(r'"task_success": \[(.*?)\]', out).group(1).split(",")] == [round(t, 6) for t in score.tasks]
        assert policy.evaluate(episodes=1) == scores[-1][1]
        asked = []  # a callback may ask the same policy
        here = np.zeros(policy.obs_size), np.zeros(policy.goal_size)
        assert policy.evaluate(episodes=1, progress=lambda *_: asked.append(policy.act(*here))) == scores[-1][1]
        assert asked and np.isfinite(asked).all()
        refused(dcrl.Interrupted, "stopped", policy.evaluate, progress=lambda done, total: done > 0)
        refused(ValueError, "antmaze-medium", policy.evaluate, "antmaze-medium-v0")


run_tests(globals())
