"""Data of the tables with a robot arm, from our generator and from the Python package's environments and oracles.

Whole episodes: the draws that the reference makes are recorded, new ones in every run, and given to `dcrl gen`, which must
then write the same rows: states before rounding, observations, actions, states of buttons, aims, successes, ends of oracles.
The reference computes with plain arithmetic here (`tables.Plain`), since contacts of the gripper magnify a last place.
Then files: OGBench's loader, equal bytes for any number of threads, shards that go on after a stop or a kill, room on the disk.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

os.environ.setdefault("MUJOCO_GL", "disable")
import numpy as np  # noqa: E402
import ogbench  # noqa: E402
from ogbench.relabel_utils import relabel_dataset  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import DCRL, STOPPED, Scratch, bad, call, digest, good, spawn  # noqa: E402
from parity import error, padded  # noqa: E402
from tables import AIMS, NAMES, Recorder, collect, make_collector, run_plain  # noqa: E402

ROWS = 300
KINDS = ["play", "noisy"]


def in_python(name, kind, rows=ROWS):
    env = make_collector(name, rows)
    with Recorder(env) as draws:
        data = collect(name, env, kind)
    return data, draws.values


def in_c(scratch, name, kind, draws, rows=ROWS):
    np.savez(scratch.at("draws.npz"), draws=padded(draws))
    if os.path.exists(scratch.at("gen.npz")):
        os.remove(scratch.at("gen.npz"))  # a table's file is never replaced
    good("gen", f"{name}-{kind}", "--episodes", len(draws), "--rows", rows, "--draws", scratch.at("draws.npz"), "-o",
         scratch.at("gen.npz"), "--trace", scratch.at("trace.npz"))
    with np.load(scratch.at("gen.npz")) as data, np.load(scratch.at("trace.npz")) as trace:
        return dict(data), {**trace}


def differences(data, trace, theirs):
    """Largest differences of what was computed; what was decided must be equal."""
    for key in ["aim", "success", "ended"]:
        assert np.array_equal(trace[key], theirs[key]), (key, np.flatnonzero(trace[key] != theirs[key])[:5])
    if theirs["button_states"].size:
        assert np.array_equal(data["button_states"], theirs["button_states"])
    assert np.array_equal(data["terminals"], theirs["terminals"])
    floats = {k: error(data[k], theirs[k].astype(np.float32)) for k in ["observations", "actions", "qpos", "qvel"]}
    return error(trace["qpos"], theirs["qpos"]), error(trace["actions"], theirs["actions"]), floats


def check_episode(scratch, name, kind):
    theirs, draws = in_python(name, kind)
    data, trace = in_c(scratch, name, kind, [draws])
    state, action, floats = differences(data, trace, theirs)
    toggled = int(np.abs(np.diff(theirs["button_states"], axis=0)).sum()) if theirs["button_states"].size else 0
    aims = " ".join(f"{a} {int((theirs['aim'][theirs['ended']] == k).sum())}" for k, a in enumerate(AIMS) if (theirs["aim"][theirs["ended"]] == k).any())
    print(f"  {name:15s} {kind:6s} {len(draws):5d} draws  ended: {aims:42s} toggled {toggled:3d}  qpos {state:.1e}  act {action:.1e}  "
          f"float32: {max(floats.values()):.1e}")
    assert state <= 1e-8 and action <= 1e-8, (name, kind, state, action)
    assert max(floats.values()) <= 1e-5, (name, kind, floats)


def test_episodes():
    with Scratch("episodes") as scratch:
        for name in NAMES:
            for kind in KINDS:
                check_episode(scratch, name, kind)


def test_refused_draws():
    """A draw too few is noticed, a draw too many would meet a NaN."""
    with Scratch("few") as scratch:
        _, draws = in_python("puzzle-3x3", "play", 20)
        np.savez(scratch.at("draws.npz"), draws=np.array([draws[:-1]]))
        bad(1, ["takes", "draws"], "gen", "puzzle-3x3-play", "--episodes", 1, "--rows", 20, "--draws", scratch.at("draws.npz"), "-o", scratch.at("x.npz"))
        assert os.listdir(scratch.path) == ["draws.npz"]


def test_own_draws():
    """Starts and first aims of a scene by our own random numbers, against the laws they should follow (one run in a million fails)."""
    with Scratch("draws") as scratch:
        count = 1500
        good("gen", "scene-play", "--episodes", count, "--rows", 2, "--seed", random.randrange(1 << 30), "-o", scratch.at("x.npz"), "--trace", scratch.at("t.npz"))
        buttons, trace = np.load(scratch.at("x.npz"))["button_states"][::2], dict(np.load(scratch.at("t.npz")))
        assert np.all(np.abs(buttons.mean(0) - 0.5) < 5 * 0.5 / np.sqrt(count)), buttons.mean(0)
        for column, low, high in [(14, 0.3, 0.45), (15, -0.07, 0.18), (-2, -0.16, 0), (-1, 0, 0.2)]:
            at = np.sort((trace["qpos"][::2, column] - low) / (high - low))
            assert np.abs(at - (np.arange(count) + 0.5) / count).max() * np.sqrt(count) < 2.7, column
        for states in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            aims = trace["aim"][::2][np.all(buttons == states, axis=1)]
            weights = np.array([1.0, 1.0, states[0] or 0.25, states[1] or 0.25])
            wanted = len(aims) * weights / weights.sum()
            seen = np.array([(aims == k).sum() for k in range(1, 5)])
            assert ((seen - wanted) ** 2 / wanted).sum() < 33, (states, seen, wanted)


# ---- files ----


def gen(scratch, name, where, *words):
    return good("gen", name, "--rows", 21, "-o", scratch.at(where), *words)


def joined(folder, val=False):
    """Arrays of all files of a folder, in order."""
    names = [n for n in sorted(os.listdir(folder)) if n.endswith(".npz") and n.endswith("-val.npz") == val]
    files = [dict(np.load(os.path.join(folder, n))) for n in names]
    return {k: np.concatenate([f[k] for f in files]) for k in files[0]}, len(files)


def test_loader():
    """Every set, play or noisy, is taken by OGBench's loader in its three forms, and by ours."""
    with Scratch("loader") as scratch:
        for name in NAMES:
            full = f"{name}-{random.choice(KINDS)}"
            gen(scratch, f"{full}-v0", "data", "--episodes", 10, "--shards", 1)
            for form in ["", "oraclerep-", f"singletask-task{random.randint(1, 5)}-"] if name in ("cube-double", "scene", "puzzle-4x4") else [""]:
                env, train, val = ogbench.make_env_and_datasets(f"{full}-{form}v0", dataset_dir=scratch.at("data"), add_info=True)
                env.reset()
                table = env.unwrapped
                assert train["observations"].shape == (200, *env.observation_space.shape) and val["actions"].shape == (20, 5), full
                assert train["terminals"].sum() == 10 and train["observations"].dtype == np.float32
                assert train["qpos"].shape == (200, table.model.nq) and train["qvel"].shape == (200, table.model.nv)
                states = np.load(scratch.at("data", f"{full}-v0.npz"))
                if "cube" in name:
                    assert "button_states" not in states
                else:
                    assert states["button_states"].dtype == np.int64 and states["button_states"].shape == (210, table._num_buttons)
            told = json.loads(good("data", "info", scratch.at("data", f"{full}-v0.npz"), "--json"))
            assert told["trajectories"] == 10 and told["rows"] == 210, told


def test_rows_are_consistent():
    """A row's observation is that of its state, and stored actions lead from row to row."""
    with Scratch("rows") as scratch:
        for name in ["cube-double", "scene", "puzzle-3x3"]:
            gen(scratch, f"{name}-noisy", f"{name}.npz", "--episodes", 2, "--seed", random.randrange(1 << 30))
            data = dict(np.load(scratch.at(f"{name}.npz")))
            obs, qpos = data["observations"], data["qpos"]
            assert np.array_equal(obs[:, :6], qpos[:, :6]) and np.array_equal(obs[:, 6:12], data["qvel"][:, :6])
            if "button_states" in data:
                first = 28 if name == "scene" else 19
                count = data["button_states"].shape[1]
                assert np.array_equal(obs[:, first + 1 : first + 4 * count : 4], data["button_states"])
            assert np.all(np.abs(data["actions"]) <= 1) and np.array_equal(np.flatnonzero(data["terminals"]), [20, 41])


def test_threads():
    with Scratch("threads") as scratch:
        name = random.choice(["cube-triple-noisy", "scene-play", "puzzle-4x5-play"])
        for threads, seed in [(1, 3), (2, 3), (5, 3), (2, 4)]:
            gen(scratch, name, f"{threads}-{seed}", "--episodes", 20, "--threads", threads, "--seed", seed)
        for file in [f"{name}-v0.npz", f"{name}-v0-val.npz"]:
            digests = [digest(scratch.at(folder, file)) for folder in ["1-3", "2-3", "5-3", "2-4"]]
            assert digests[0] == digests[1] == digests[2] != digests[3], name


def test_shards():
    """However many shards, the same episodes; what is there is not made again; another set is not mixed in."""
    with Scratch("shards") as scratch:
        words = ["--episodes", 30, "--seed", 5]
        gen(scratch, "cube-single-play", "one", *words)
        gen(scratch, "cube-single-play", "many", *words, "--shards", 4)
        for val in [False, True]:
            (one, _), (many, count) = joined(scratch.at("one"), val), joined(scratch.at("many"), val)
            assert count == (3 if val else 4), count  # three episodes for validation
            assert all(np.array_equal(one[k], many[k]) for k in one), val
        again = ["gen", "cube-single-play", "--rows", 21, "-o", scratch.at("many"), *words, "--shards", 4]
        done = call(*again)
        assert "nothing to do" in done.stdout and done.stderr == "", done
        facts = scratch.at("many", "cube-single-play-v0.gen.json")
        with open(facts) as f:
            text = f.read()
        for build, warns in [(re.sub('"build": "[^"]*"', '"build": "of yesterday"', text), True), (text.splitlines()[0] + "\n", False)]:
            with open(facts, "w") as f:
                f.write(build)  # without a build: as files were before it was told
            done = call(*again)
            assert done.returncode == 0 and ("begun by build of yesterday" in done.stderr) == warns, done
        os.remove(scratch.at("many", "cube-single-play-v0-002.npz"))
        before = {n: os.stat(scratch.at("many", n)).st_mtime_ns for n in os.listdir(scratch.at("many"))}
        told = gen(scratch, "cube-single-play", "many", *words, "--shards", 4)
        assert told.count("wrote") == 1 and "-002.npz" in told, told
        assert all(os.stat(scratch.at("many", n)).st_mtime_ns == t for n, t in before.items())
        assert all(np.array_equal(one[k], joined(scratch.at("many"), True)[0][k]) for k in one)
        for more in [["--seed", 6], ["--episodes", 31], ["--shards", 5], ["--rows", 22]]:
            rest = {"--episodes": 30, "--seed": 5, "--shards": 4, "--rows": 21, more[0]: more[1]}
            bad(1, ["another set", ".gen.json"], "gen", "cube-single-play", "-o", scratch.at("many"), *[w for p in rest.items() for w in p])
        told = gen(scratch, "cube-single-play-100m-v0", "large", "--episodes", 2, "--shards", 2)
        assert "large/cube-single-play-100m-v0-001.npz" in told, told
        bad(2, "shards", "gen", "cube-single-play", "--episodes", 3, "--shards", 4, "-o", scratch.at("few"))


def interrupted(words, ready, how):
    """Start a command, and stop it as soon as something is there."""
    process = subprocess.Popen([DCRL, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not ready() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(how)
    _, told = process.communicate()
    return process.returncode, told


def stopped_and_killed(scratch, words, parts):
    """A set that was begun, stopped, gone on with and killed; False if it was done before, on a machine too busy to look at it in time."""
    for name in os.listdir(scratch.path):
        if name.startswith("broken"):
            os.remove(scratch.at(name))
    code, told = interrupted([*words, "-o", scratch.at("broken.npz")], parts, signal.SIGTERM)
    if code == 0:
        return False
    assert code == STOPPED and "the same command goes on" in told, (code, told)
    first = {n: digest(scratch.at(n)) for n in parts()}
    assert first and not os.path.exists(scratch.at("broken.npz"))
    code, _ = interrupted([*words, "-o", scratch.at("broken.npz")], lambda: len(parts()) > len(first), signal.SIGKILL)
    assert code in (0, -signal.SIGKILL), code
    if code == 0 or len(parts()) == len(first):
        return False
    assert all(digest(scratch.at(n)) == d for n, d in first.items())
    return True


def test_stops():
    """Stopped by a signal or killed, a set goes on with what is there, and its bytes are those of an unbroken one."""
    with Scratch("stops") as scratch:
        words = ["gen", "cube-single-play", "--rows", 11, "--episodes", 400, "--seed", random.randrange(1 << 30)]
        good(*words, "-o", scratch.at("whole.npz"))
        parts = lambda: [n for n in os.listdir(scratch.path) if "broken.npz.part-" in n and n[-4:].isdigit()]
        assert any(stopped_and_killed(scratch, words, parts) for _ in range(20))
        cut, flipped = (scratch.at(n) for n in sorted(parts())[:2])  # are made anew
        os.truncate(cut, os.path.getsize(cut) - 1)
        with open(flipped, "r+b") as file:  # one bit of a row
            at = random.randrange(1000, os.path.getsize(flipped))
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << random.randrange(8)]))
        done = call(*words, "-o", scratch.at("broken.npz"))
        warned = [line for line in done.stderr.splitlines() if "is damaged" in line]
        assert done.returncode == 0 and len(warned) == 2 and cut in warned[0] and flipped in warned[1], done.stderr
        for tail in [".npz", "-val.npz"]:
            assert digest(scratch.at(f"whole{tail}")) == digest(scratch.at(f"broken{tail}"))
        assert not parts()


def ended_process():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_leftovers():
    """What a kill left goes with the next command, also when there is nothing else to do; what another process writes stays."""
    with Scratch("leftovers") as scratch:
        words = ["gen", "cube-single-play", "--rows", 2, "--episodes", 200, "--shards", 2, "--threads", 1, "-o", scratch.at("x.npz")]
        good(*words)
        whole, dead = set(os.listdir(scratch.path)), ended_process()
        stays = [f"x-000.npz.tmp.{os.getpid()}.0", f"xy.npz.tmp.{dead}.0", "x-000.npz.tmp.notes", "x-000.npz.part-0001.txt"]
        goes = [f"x-000.npz.tmp.{dead}.0", f"x-001-val.npz.part-0000.tmp.{dead}.12", f"x.gen.json.tmp.{dead}.1", "x-000.npz.part-0000", "x-001-val.npz.part-0000"]
        for missing in [[], ["x-001.npz"]]:
            for name in stays + goes:
                open(scratch.at(name), "w").close()
            for name in missing:
                os.remove(scratch.at(name))
            assert ("nothing to do" in good(*words)) == (not missing)
            assert set(os.listdir(scratch.path)) == whole | set(stays), os.listdir(scratch.path)


def test_nothing_is_replaced():
    """Neither --trace nor --draws nor a maze writes over a table's files, or among them."""
    with Scratch("replaced") as scratch:
        small = ["--rows", 3, "--threads", 1]
        out = ["-o", scratch.at("x.npz")]
        whole = ["gen", "cube-single-play", "--episodes", 2, *small, *out]
        np.savez(scratch.at("draws.npz"), draws=np.zeros((1, 9)))
        good(*whole)
        before = digest(scratch.at("x.npz"))
        for missing in [False, True]:
            if missing:  # begun, and not there yet
                os.remove(scratch.at("x.npz"))
            for more in [["--trace", scratch.at("t.npz")], ["--draws", scratch.at("draws.npz")]]:
                bad(1, ["is there", "another name"], "gen", "cube-single-play", "--episodes", 1, "--seed", 5, *small, *more, *out)
            bad(1, ["is there", "another name"], "gen", "pointmaze-medium", "--episodes", 1, *out)
            assert missing or digest(scratch.at("x.npz")) == before
        assert "wrote" in good(*whole) and digest(scratch.at("x.npz")) == before
        assert "nothing to do" in good(*whole) and not os.path.exists(scratch.at("t.npz"))
        os.remove(scratch.at("x.gen.json"))
        bad(1, ["is there", "x.npz"], "gen", "cube-single-play", "--episodes", 1, *small, "--trace", scratch.at("t.npz"), *out)


def first_lines(count, *words):
    """What a command says first on standard error; it is killed then."""
    process = spawn(*words)
    late = threading.Timer(60, process.kill)
    late.start()
    lines = [process.stderr.readline() for _ in range(count)]
    late.cancel()
    process.kill()
    process.communicate()
    return lines


def large_set(need, shards=500):
    """Options of a set of puzzle-4x6 that takes about as many bytes."""
    rows = need / (1.1 + 1 / shards) / (235 + 3 * 24)
    long = int(rows / 4e6) + 2
    return ["--episodes", int(rows / long), "--rows", long, "--shards", shards, "--threads", 1]


def test_disk():
    """The disk that is needed is told first; a set is refused only if what it likely takes is not there."""
    with Scratch("disk") as scratch:
        out = ["-o", scratch.at("x.npz")]
        told, = first_lines(1, "gen", "cube-single-play", "-o", scratch.at("official.npz"))
        assert "1100 episodes" in told and "about 0.9 GB of disk" in told, told
        free = shutil.disk_usage(scratch.path).free
        bad(1, ["are needed but only", "free"], "gen", "puzzle-4x6-play", *large_set(1.3 * free), *out)
        assert not [n for n in os.listdir(scratch.path) if n.startswith("x")]
        told, warned = first_lines(2, "gen", "puzzle-4x6-play", *large_set(0.75 * free), *out)
        assert "of disk" in told and "GB are free" in warned and "at most" in warned, (told, warned)
        # Parts that are there have their room already.
        episodes = int(1.3 * free / (2.1 * (235 + 3 * 24) + 977) / 2000)
        words = ["gen", "puzzle-4x6-play", "--episodes", episodes, "--rows", 2000, "--shards", 1, "-o", scratch.at("parts.npz")]
        bad(1, ["are needed but only", "free"], *words)
        for k in range(episodes // 128 + 1):
            open(scratch.at(f"parts.npz.part-{k:04}"), "w").close()
        assert "of disk" in first_lines(1, *words)[0]


def test_packed():
    """Rows of full episodes take no more than is said, nor much less."""
    with Scratch("packed") as scratch:
        for name, likely in [("scene", 235 + 42 + 2 * 3), ("puzzle-4x5", 235 + 20 * 3)]:
            good("gen", f"{name}-{random.choice(KINDS)}", "--episodes", 1, "--seed", random.randrange(1 << 30), "-o", scratch.at(f"{name}.npz"))
            row = os.path.getsize(scratch.at(f"{name}.npz")) / 1001
            assert 0.8 * likely < row < 1.03 * likely, (name, row, likely)


def test_bench():
    """The measurement names the data that it made."""
    words = ["--seconds", 0.01, "--threads", 1]
    assert json.loads(good("bench", "gen", "cube-single-noisy-oraclerep", *words, "--json"))["env"] == "cube-single-noisy-v0"
    assert good("bench", "gen", "pointmaze-medium-stitch", *words).startswith("pointmaze-medium-stitch-v0: ")
    assert good("bench", "gen", "pointmaze-giant", *words).startswith("pointmaze-giant-navigate-v0: ")


def test_errors():
    with Scratch("errors") as scratch:
        out = ["-o", scratch.at("x.npz")]
        bad(2, ["there is no stitch data of cube-single", "play|noisy"], "gen", "cube-single", "--type", "stitch", *out)
        bad(2, "there is no play data", "gen", "pointmaze-medium", "--type", "play", *out)
        bad(2, "different things", "gen", "scene-play-v0", "--type", "noisy", *out)
        bad(2, "trace", "gen", "pointmaze-medium", "--trace", scratch.at("t.npz"), *out)
        bad(2, ["--rows 1", "2 or more"], "gen", "scene-play", "--rows", 1, *out)
        for name in ["x.txt", "x.y/x.npz.gz"]:
            bad(2, [name, "FILE.npz", "FOLDER/"], "gen", "scene-play", "--episodes", 1, "-o", scratch.at(name))
        assert os.listdir(scratch.path) == []
        good("gen", "pointmaze-medium", "--episodes", 1, "-o", scratch.at("data.v1/"))  # a folder by its slash, then by being there
        good("gen", "pointmaze-medium", "--episodes", 1, "-o", scratch.at("data.v1"))
        with open(scratch.at("x.npz"), "w") as file:
            file.write("someone's own")
        bad(1, ["is there", "x.npz"], "gen", "scene-play-v0", "--episodes", 1, *out)
        os.remove(scratch.at("x.npz"))
        assert [n for n in os.listdir(scratch.path) if n.endswith(".npz")] == []


def test_script():
    """What `dcrl render --script` would show is the data's episode, button states included."""
    with Scratch("script") as scratch:
        good("gen", "puzzle-3x3-play", "--episodes", 2, "--seed", 7, "-o", scratch.at("x.npz"))
        words = ["render", "puzzle-3x3-play", "--episode", 1, "--at", random.randrange(1001)]
        good(*words, "--script", "--seed", 7, "-o", scratch.at("a.png"))
        good(*words, "--data", scratch.at("x.npz"), "-o", scratch.at("b.png"))
        assert digest(scratch.at("a.png")) == digest(scratch.at("b.png"))


def solved(env, qpos, buttons):
    """Some rows as the task wants them, so that every number of conditions occurs."""
    table, cubes = env.unwrapped, getattr(env.unwrapped, "_num_cubes", 0)
    for row in range(len(qpos)):
        for k in range(cubes):
            if random.random() < 0.6:
                qpos[row, 14 + 7 * k : 17 + 7 * k] = table._data.mocap_pos[table._cube_target_mocap_ids[k]] + np.random.uniform(-0.03, 0.03, 3)
        if buttons is not None and random.random() < 0.6:
            buttons[row] = table._target_button_states
        if hasattr(table, "_target_drawer_pos") and random.random() < 0.6:
            qpos[row, -2:] = table._target_drawer_pos, table._target_window_pos


def test_rewards():
    """Relabelling for a single task, against the package's, on data and on rows that are made to fit."""
    with Scratch("rewards") as scratch:
        for name in ["cube-double", "cube-triple", "scene", "puzzle-3x3", "pointmaze-medium", "antmaze-giant", "antsoccer-arena"]:
            form = f"singletask-task{random.randint(1, 5)}"
            kind = "play" if name in NAMES else "navigate"
            env = ogbench.make_env_and_datasets(f"{name}-{kind}-{form}-v0", env_only=True)
            env.reset()
            qpos = np.random.uniform(-4, 24, (300, env.unwrapped.model.nq)).astype(np.float32)
            buttons = np.random.randint(0, 2, (300, env.unwrapped._num_buttons)) if hasattr(env.unwrapped, "_num_buttons") else None
            if name in NAMES:
                solved(env, qpos, buttons)
            else:
                at = 15 if "soccer" in name else 0
                qpos[:150, at : at + 2] = env.unwrapped.cur_goal_xy + np.random.uniform(-1.5, 1.5, (150, 2))
            data = dict(qpos=qpos, **({} if buttons is None else dict(button_states=buttons)))
            np.savez(scratch.at("in.npz"), **data)
            good("data", "rewards", scratch.at("in.npz"), f"{name}-{form}-v0", "-o", scratch.at("out.npz"))
            relabel_dataset(name, env, data)
            ours = np.load(scratch.at("out.npz"))
            assert np.array_equal(ours["rewards"], data["rewards"]) and np.array_equal(ours["masks"], data["masks"]), name
            assert 0 < (data["masks"] == 0).sum() < 300, name
        bad(1, ["'qpos'", "dcrl gen"], "data", "rewards", scratch.at("out.npz"), "scene-singletask", "-o", scratch.at("x.npz"))
        for rows in [(3, 2), (0, 2), (2, 0)]:
            np.savez(scratch.at("in.npz"), qpos=np.zeros((rows[0], 25)), button_states=np.zeros((rows[1], 2)))
            bad(1, ["button_states", "rows"], "data", "rewards", scratch.at("in.npz"), "scene-singletask", "-o", scratch.at("x.npz"))
        bad(1, ["qpos", "columns"], "data", "rewards", scratch.at("in.npz"), "cube-double-singletask", "-o", scratch.at("x.npz"))
        bad(2, ["single-task form"], "data", "rewards", scratch.at("in.npz"), "scene", "-o", scratch.at("x.npz"))
        assert not os.path.exists(scratch.at("x.npz"))


if __name__ == "__main__":
    run_plain(globals())
