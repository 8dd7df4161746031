"""HDF5 files of the three layouts, made with h5py as D4RL, Minari and robomimic make them: converted, looked into, trained on. What
is not as it should be, or points out of the file, is refused with one line and leaves nothing."""
import json
import os
import subprocess
import sys
import time

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, good, run_tests  # noqa: E402

rng = np.random.default_rng(0)


def supported():
    done = call("data", "convert", "nowhere.hdf5", "out.npz")
    return "cannot read HDF5" not in done.stderr and "cannot be loaded" not in done.stderr


def d4rl(path, rows=3000, cut=250, radians=False, **more):
    """Rows are transitions; episodes end by timeouts, and the file stops in the middle of one."""
    wide = 3.1 if radians else 1.0
    arrays = {
        "observations": rng.normal(size=(rows, 5)).astype("f4"),
        "actions": rng.uniform(-wide, wide, size=(rows, 2)).astype("f4"),
        "rewards": np.zeros(rows, "f4"),
        "terminals": np.zeros(rows, bool),
        "timeouts": np.arange(rows) % cut == cut - 1,
        "next_observations": rng.normal(size=(rows, 5)).astype("f4"),
        "infos/qpos": rng.normal(size=(rows, 3)),
        "infos/goal": rng.normal(size=(rows, 2)),
        **more,
    }
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            if values is not None:
                file.create_dataset(name, data=values, compression="gzip")
        file["metadata/algorithm/name"] = "SAC"
    return arrays


def episodes(path, name, lengths, obs, act, more=1):
    """Groups 0, 1, 2 ... 10, 11, whose order by name is another one."""
    made = []
    with h5py.File(path, "w") as file:
        for number, length in enumerate(lengths):
            group = file.create_group(name.format(number))
            made.append((obs(length + more), act(length)))
            for key, values in (made[-1][0].items() if isinstance(made[-1][0], dict) else [("", made[-1][0])]):
                group[("obs" if "demo" in name else "observations") + ("/" + key if key else "")] = values
            group["actions"] = made[-1][1]
            group["rewards"] = np.zeros(length)
            if "demo" not in name:
                group["terminations"], group["truncations"] = np.zeros(length, bool), np.arange(length) == length - 1
    return made


def convert(s, path, *words):
    told = good("data", "convert", path, s.at("out.npz"), *words)
    with np.load(s.at("out.npz")) as file:
        return told, {name: file[name] for name in file.files}


def train(s, *words):
    good("train", "--data", s.at("out.npz"), "--agent", "bc", "--hidden", "8", "--batch", 16, "--steps", 5, "--out", s.at(f"run{rng.integers(1 << 40)}"), *words)


def info(s, name="out.npz"):
    return json.loads(good("data", "info", s.at(name), "--json"))


def test_d4rl():
    with Scratch("hdf5") as s:
        want = d4rl(s.at("a.hdf5"), 3100)
        told, got = convert(s, s.at("a.hdf5"))
        assert "3100 rows" in told and "D4RL" in told and "observations (5)" in told, told
        assert set(got) == {"observations", "actions", "terminals", "timeouts", "qpos"}
        for name in "observations", "actions":
            assert got[name].dtype == np.float32 and np.array_equal(got[name], want[name]), name
        assert np.array_equal(got["timeouts"] != 0, want["timeouts"]) and np.array_equal(got["qpos"], want["infos/qpos"].astype("f4"))
        assert info(s)["trajectories"] == 13  # 12 of 250 rows, and what the end of the file cuts
        train(s)
        d4rl(s.at("a.hdf5"), radians=True)
        for words in (["data", "info", s.at("a.hdf5")], ["train", "--data", s.at("a.hdf5"), "--out", s.at("run")]):
            bad(1, ["HDF5 is no data set yet", "dcrl data convert"], *words)
        convert(s, s.at("a.hdf5"), "--level", 0)
        assert info(s)["needs_act_scale"]
        bad(1, "--act-scale auto", "train", "--data", s.at("out.npz"), "--agent", "bc", "--steps", 5, "--out", s.at("no"))
        train(s, "--act-scale", "auto")
        good("data", "convert", s.at("out.npz"), s.at("store"))
        assert info(s, "store")["hash"] == info(s)["hash"]
        # Discrete actions stay whole numbers, and uint8 pictures bytes.
        pictures = rng.integers(0, 256, (3000, 4, 4, 3)).astype("u1")
        want = d4rl(s.at("a.hdf5"), actions=rng.integers(0, 6, 3000), observations=pictures)
        _, got = convert(s, s.at("a.hdf5"))
        assert np.array_equal(got["actions"], want["actions"]) and got["actions"].dtype.kind == "i"
        assert np.array_equal(got["observations"], pictures) and got["observations"].dtype == np.uint8
        train(s)


def test_minari():
    with Scratch("hdf5") as s:
        lengths = [7, 1, 30, 4, 5, 6, 7, 8, 9, 10, 40, 3]
        real = lambda n: rng.uniform(-1, 1, (n, 2))
        made = episodes(s.at("main_data.hdf5"), "episode_{}", lengths, lambda n: rng.normal(size=(n, 3)), real)
        told, got = convert(s, s.at("main_data.hdf5"))
        assert "12 episodes in the layout of Minari" in told, told
        assert np.array_equal(got["observations"], np.concatenate([o for o, _ in made]).astype("f4"))
        assert np.array_equal(got["actions"], np.concatenate([np.concatenate([a, a[-1:]]) for _, a in made]).astype("f4"))
        assert np.array_equal(np.flatnonzero(got["terminals"]), np.cumsum(np.array(lengths) + 1) - 1)
        train(s)
        parts = lambda n: {k: rng.normal(size=(n, w)) for k, w in (("observation", 4), ("achieved_goal", 2), ("desired_goal", 2))}
        made = episodes(s.at("main_data.hdf5"), "episode_{}", lengths, parts, lambda n: rng.integers(0, 3, n))
        told, got = convert(s, s.at("main_data.hdf5"))
        assert "achieved_goal (2), observation (4)" in told, told
        assert np.array_equal(got["observations"], np.concatenate([np.concatenate([o["achieved_goal"], o["observation"]], 1) for o, _ in made]).astype("f4"))
        assert got["actions"].ndim == 1 and got["actions"].dtype.kind == "i"
        train(s, "--set", "rep=0,2")
        _, got = convert(s, s.at("main_data.hdf5"), "--obs", "observation")
        assert np.array_equal(got["observations"], np.concatenate([o["observation"] for o, _ in made]).astype("f4"))


def test_robomimic():
    with Scratch("hdf5") as s:
        def parts(n):
            return {"robot0_eef_pos": rng.normal(size=(n, 3)), "object": rng.normal(size=(n, 10)), "agentview_image": rng.integers(0, 256, (n, 8, 8, 3)).astype("u1")}
        made = episodes(s.at("low_dim.hdf5"), "data/demo_{}", [20] * 11, parts, lambda n: rng.uniform(-1, 1, (n, 7)), more=0)
        told, got = convert(s, s.at("low_dim.hdf5"))
        assert "11 episodes in the layout of robomimic" in told and "object (10), robot0_eef_pos (3)" in told, told
        assert np.array_equal(got["observations"], np.concatenate([np.concatenate([o["object"], o["robot0_eef_pos"]], 1) for o, _ in made]).astype("f4"))
        assert info(s)["trajectories"] == 11
        train(s)
        _, got = convert(s, s.at("low_dim.hdf5"), "--obs", "agentview_image")
        assert got["observations"].shape == (220, 8, 8, 3) and got["observations"].dtype == np.uint8
        _, got = convert(s, s.at("low_dim.hdf5"), "--obs", "robot0_eef_pos,object")
        assert np.array_equal(got["observations"][:20, :3], made[0][0]["robot0_eef_pos"].astype("f4"))
        bad(1, ["no array 'data/demo_0/obs/nothing'"], "data", "convert", s.at("low_dim.hdf5"), s.at("no.npz"), "--obs", "nothing")


def test_refused():
    """Nothing is read from outside of the file, nothing that it only claims to hold, and nothing is left behind."""
    with Scratch("hdf5") as s:
        path = s.at("a.hdf5")
        refuse = lambda texts, *words: bad(1, [*texts, "a.hdf5"], "data", "convert", path, s.at("no.npz"), *words)

        def write(edit, **more):
            d4rl(path, 500, **more)
            with h5py.File(path, "r+") as file:
                edit(file)

        with open(s.at("secret"), "wb") as file:
            file.write(bytes(4 * 500))
        write(lambda f: f.__delitem__("actions"))
        refuse(["no observations at the root"])
        write(lambda f: f.__delitem__("terminals"))
        refuse(["no array 'terminals'"])
        d4rl(path, 500, actions=np.zeros((400, 2), "f4"))
        refuse(["'actions' does not go with the others"])
        d4rl(path, 500, observations=np.full((500, 2), b"text"))
        refuse(["'observations' holds no numbers"])
        d4rl(path, 500, observations=None)
        with h5py.File(path, "r+") as f:
            f["observations"] = h5py.ExternalLink(s.at("b.hdf5"), "observations")
        refuse(["no observations at the root"])
        with h5py.File(path, "r+") as f:
            del f["observations"]
            f["observations"] = h5py.SoftLink("/next_observations")
        refuse(["no observations at the root"])
        with h5py.File(path, "r+") as f:
            del f["observations"]
            f.create_dataset("observations", (500, 1), "f4", external=[(s.at("secret"), 0, h5py.h5f.UNLIMITED)])
        refuse(["'observations' lie outside of the file"])
        with h5py.File(path, "r+") as f:
            del f["observations"]
            layout = h5py.VirtualLayout(shape=(500, 5), dtype="f4")
            layout[:] = h5py.VirtualSource(path, "next_observations", shape=(500, 5))
            f.create_virtual_dataset("observations", layout)
        refuse(["'observations' lie outside of the file"])
        with h5py.File(path, "r+") as f:
            del f["observations"], f["actions"]
            f.create_dataset("observations", (1 << 34, 5), "f4", chunks=(1024, 5))
            f.create_dataset("actions", (1 << 34, 2), "f4", chunks=(1024, 2))
        refuse(["'observations' claims", "holds 0"])
        with h5py.File(path, "r+") as f:
            del f["observations"]
            f.create_dataset("observations", data=np.zeros((1 << 19, 1 << 8), "u1"), chunks=(1 << 19, 1 << 8), compression="gzip", maxshape=(None, None))
            f["observations"].resize((1 << 19, 1 << 12))
        refuse(["'observations' claims"] if os.path.getsize(path) < (1 << 21) else ["chunks of"])
        d4rl(path, 500)
        with h5py.File(path) as f:
            header = h5py.h5o.get_info(f["infos/qpos"].id).addr
        with open(path, "r+b") as file:  # what need not be there, but is, and is damaged
            file.seek(header)
            file.write(b"\xff" * 16)
        refuse(["cannot read 'infos/qpos'"])
        d4rl(path, 500)
        whole = open(path, "rb").read()
        for n in 0, 7, 500, len(whole) // 2, len(whole) - 1000:
            with open(path, "wb") as file:
                file.write(whole[:n])
            bad(1, ["a.hdf5"], "data", "convert", path, s.at("no.npz"))
        os.remove(path)
        bad(1, ["a.hdf5"], "data", "convert", path, s.at("no.npz"))
        d4rl(path, 500)
        bad(2, ["HDF5 becomes .npz"], "data", "convert", path, s.at("store"))
        bad(2, ["observations are one array"], "data", "convert", path, s.at("no.npz"), "--obs", "x")
        bad(1, ["dcrl data convert"], "train", "--data", path, "--steps", 5, "--out", s.at("run"))
        lengths = [5, 6]
        episodes(path, "episode_{}", lengths, lambda n: rng.normal(size=(n, 3)), lambda n: rng.normal(size=(n, 2)))
        for edit, text in ((lambda f: f["episode_1"].__delitem__("actions"), "no array 'episode_1/actions'"),
                           (lambda f: f["episode_1"].__setitem__("actions", np.zeros((6, 3))), "'episode_1/actions' does not go"),
                           (lambda f: f["episode_1"].__delitem__("observations"), "no array 'episode_1/observations'"),
                           (lambda f: f["episode_1"].__setitem__("observations", np.zeros((1, 3))), "")):
            with h5py.File(path, "r+") as f:
                edit(f)
            refuse([text])
        assert not os.path.exists(s.at("no.npz")) and not [n for n in os.listdir(s.path) if "no.npz" in n]


def test_large_chunks():
    """A file is read in pieces: memory does not grow with it, and a chunk is not unpacked for each of them."""
    with Scratch("hdf5") as s:
        rows = 1 << 17
        d4rl(s.at("a.hdf5"), rows, observations=np.zeros((rows, 100), "f4"), next_observations=None)
        with h5py.File(s.at("a.hdf5"), "r+") as f:
            del f["observations"]
            f.create_dataset("observations", data=np.tile(np.arange(100, dtype="f4"), (rows, 1)), chunks=(rows // 4, 50), compression="gzip")
        before = time.time()
        told, got = convert(s, s.at("a.hdf5"))
        print(f"  {time.time() - before:.1f} s")
        assert (got["observations"] == np.arange(100)).all() and time.time() - before < 60
        words = [os.environ["DCRL"], "data", "convert", s.at("a.hdf5"), s.at("out.npz")]
        most = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
                               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *words], capture_output=True, text=True, check=True)
        with open(os.environ["DCRL"], "rb") as file:  # a sanitizer keeps what was freed for a while
            bound = 400 if b"__asan_init" in file.read() else 150
        assert int(most.stdout) < bound << 10, most.stdout


if __name__ == "__main__":
    if supported():
        run_tests(globals())
    else:
        bad(1, ["HDF5", "libhdf5"], "data", "convert", "nowhere.hdf5", "out.npz")
        print("this build has no HDF5")
