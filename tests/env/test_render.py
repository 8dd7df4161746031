"""`dcrl render`: frames beside those of the Python package `ogbench`, films as Pillow opens them, and wrong calls.

States are new with every change of the sources. With --gl both sides draw by the same OpenGL, so frames must be equal to
the bit; the package draws from kinematics that may be one physics step old (mj_step leaves them so), hence they are
refreshed there first. Our own renderer's frames are near them. Where no OpenGL is found only what needs none is tested.
"""

import os
import random
import re
import sys

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, digest, good, progress, run_tests  # noqa: E402
from experts import made_up  # noqa: E402

TASKS = "antmaze-medium-v0"
LEAKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "render_leaks.txt")
os.environ["LSAN_OPTIONS"] = f"suppressions={LEAKS}:print_suppressions=0"


def find_gl():
    """The first kind that draws here."""
    with Scratch("render") as scratch:
        for kind in "egl", "osmesa":
            if call("render", TASKS, "--gl", kind, "-o", scratch.at("a.png")).returncode == 0:
                return kind
    return None


GL = find_gl()
os.environ["MUJOCO_GL"] = GL or "disable"
import gymnasium  # noqa: E402
import mujoco  # noqa: E402
import ogbench  # noqa: E402, F401


def needs_gl(test):
    def skipped():
        print(f"{test.__name__}: skipped, there is no OpenGL here (tools/setup.sh test installs OSMesa)")

    return test if GL else skipped


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def state_of(env):
    """What render() depends on, as arrays of a states file."""
    out = dict(qpos=env.data.qpos.copy())
    if hasattr(env, "cur_goal_xy"):
        return dict(out, goal_xy=np.array(env.cur_goal_xy))
    target = [env._data.mocap_pos[k] for k in getattr(env, "_cube_target_mocap_ids", [])]
    if hasattr(env, "_cur_button_states"):
        out["button_states"] = np.array(env._cur_button_states)
        target.append(env._target_button_states)
    if hasattr(env, "_target_drawer_pos"):
        target.append([env._target_drawer_pos, env._target_window_pos])
    return dict(out, target=np.concatenate(target))


def near(ours, frame, name):
    """Our own renderer's frame beside OpenGL's: pixels on edges may differ by much, and there are few of those. Returns the share
    of values within 8; of a hundred states the worst had 0.983, and the mean was 0.991 or more (docs/envs.md)."""
    off = np.abs(ours.astype(int) - frame)
    share = (off <= 8).mean()
    assert off.mean() < 1 and share > 0.97, (name, off.mean(), share)
    return share


def near_all(shares):
    assert np.mean(shares) > 0.987, shares


def compare(scratch, name):
    env = gymnasium.make(name).unwrapped
    env.reset(options=dict(task_id=random.randint(1, 5)))
    for _ in range(random.randrange(4)):
        env.step(env.action_space.sample())
    mujoco.mj_forward(env.model, env.data)
    np.savez(scratch.at("state.npz"), **state_of(env))
    frame = env.render()
    env.close()
    for out in "a.png", "b.png":
        good("render", name, "--gl", GL, "--states", scratch.at("state.npz"), "-o", scratch.at(out))
    good("render", name, "--states", scratch.at("state.npz"), "-o", scratch.at("own.png"))
    share = near(pixels(scratch.at("own.png")), frame, name)
    ours = pixels(scratch.at("a.png"))
    off = np.abs(ours.astype(int) - frame)
    assert np.array_equal(ours, frame), (name, off.mean(), off.max())
    with open(scratch.at("a.png"), "rb") as a, open(scratch.at("b.png"), "rb") as b:
        assert a.read() == b.read(), name
    return share


@needs_gl
def test_frames():
    with Scratch("render") as scratch:
        near_all([compare(scratch, name) for name in (
            "pointmaze-large-v0", "pointmaze-teleport-v0", "antmaze-medium-v0", "humanoidmaze-giant-v0", "antsoccer-arena-v0",
            "cube-single-v0", "cube-octuple-v0", "scene-v0", "puzzle-3x3-v0", "puzzle-4x6-v0")])


def success_state(env):
    """Every cube on its mark, which gives it another colour."""
    for k, mocap in enumerate(env._cube_target_mocap_ids):
        env._data.joint(f"object_joint_{k}").qpos[:3] = env._data.mocap_pos[mocap]
    env.pre_step()
    env.post_step()
    mujoco.mj_forward(env.model, env.data)


@needs_gl
def test_success_colours():
    with Scratch("render") as scratch:
        env = gymnasium.make("cube-triple-v0").unwrapped
        env.reset(options=dict(task_id=random.randint(1, 5)))
        success_state(env)
        np.savez(scratch.at("state.npz"), **state_of(env))
        good("render", "cube-triple-v0", "--gl", GL, "--states", scratch.at("state.npz"), "-o", scratch.at("a.png"))
        assert np.array_equal(pixels(scratch.at("a.png")), env.render())
        env.close()


@needs_gl
def test_small_frames():
    """Of the size and by the cameras that OGBench's pixel tasks have."""
    shares = []
    with Scratch("render") as scratch:
        for name, camera in (("antmaze-giant-v0", "back"), ("cube-quadruple-v0", "front_pixels"), ("scene-v0", "front_pixels"),
                             ("puzzle-4x4-v0", "front_pixels")):
            words = ["render", name, "--task", random.randint(1, 5), "--seed", random.randrange(1000), "--camera", camera,
                     "--width", 64, "--height", 64]
            good(*words, "-o", scratch.at("own.png"))
            good(*words, "--gl", GL, "-o", scratch.at("gl.png"))
            shares.append(near(pixels(scratch.at("own.png")), pixels(scratch.at("gl.png")), name))
    near_all(shares)


def test_threads():
    """The same film by any number of threads, and each frame by itself."""
    with Scratch("render") as scratch:
        words = ["render", "cube-double-v0", "--script", "--every", 40, "--width", 50, "--height", 60]
        for threads in 1, 2, 3:
            good(*words, "--threads", threads, "-o", scratch.at(f"{threads}.gif"))
            assert digest(scratch.at(f"{threads}.gif")) == digest(scratch.at("1.gif")), threads
        good(*words, "-o", scratch.at("frames"))
        names = sorted(os.listdir(scratch.at("frames")))
        at = random.randrange(len(names))
        good(*words[:3], *words[5:], "--at", 40 * at, "-o", scratch.at("one.png"))
        assert np.array_equal(pixels(scratch.at("one.png")), pixels(scratch.at("frames", names[at])))
        assert not np.array_equal(pixels(scratch.at("one.png")), pixels(scratch.at("frames", names[at - 1])))


def test_views():
    """Sizes, cameras, and a target that is not shown where there is none."""
    with Scratch("render") as scratch:
        def draw(*words):
            good("render", TASKS, *words, "-o", scratch.at("a.png"))
            return pixels(scratch.at("a.png"))

        usual = draw()
        assert usual.shape == (200, 200, 3) and draw("--width", 64, "--height", 48).shape == (48, 64, 3)
        assert not np.array_equal(usual, draw("--camera", "back"))
        small = draw("--width", 64, "--height", 64).astype(int)  # a picture of the same
        large = draw("--width", 256, "--height", 256).reshape(64, 4, 64, 4, 3).mean((1, 3))
        assert np.abs(small - large).mean() < 3, np.abs(small - large).mean()
        assert draw("--width", 1, "--height", 1).shape == (1, 1, 3) and draw("--width", 4096, "--height", 2).shape == (2, 4096, 3)
        assert not np.array_equal(usual, draw("--task", 2)) and np.array_equal(usual, draw())
        state = dict(qpos=np.zeros(15), goal_xy=np.array([8.0, 8.0]))
        state["qpos"][2], state["qpos"][3] = 0.5, 1
        np.savez(scratch.at("aimed.npz"), **state)
        del state["goal_xy"]
        np.savez(scratch.at("free.npz"), **state)
        differ = (draw("--states", scratch.at("aimed.npz")) != draw("--states", scratch.at("free.npz"))).any(-1)
        assert 10 < differ.sum() < 400, differ.sum()


def make_run(scratch):
    good("gen", "pointmaze-medium-navigate", "-o", scratch.at("data.npz"), "--episodes", 10)
    good("train", "--env", "pointmaze-medium-navigate-oraclerep-v0", "--data", scratch.at("data.npz"), "--hidden", "16,16",
         "--batch", 16, "--steps", 20, "--out", scratch.at("run"), "--threads", 1)


def test_sources():
    """A data file, the script that made it, and a policy give films of the right length."""
    small = ["--width", 40, "--height", 40]
    with Scratch("render") as scratch:
        make_run(scratch)
        words = ["render", "pointmaze-medium-navigate-v0", "--every", 100, *small]
        good(*words, "--data", scratch.at("data.npz"), "--episode", 3, "-o", scratch.at("data.gif"))
        good(*words, "--script", "--episode", 3, "-o", scratch.at("script.gif"))
        with Image.open(scratch.at("data.gif")) as image:
            assert image.n_frames == 11 and image.size == (40, 40) and image.info["duration"] == 10000
        assert digest(scratch.at("data.gif")) == digest(scratch.at("script.gif"))
        words = ["antmaze-teleport-stitch-v0", "--expert", made_up("ant", 1, scratch.at("ant.safetensors"))]
        good("gen", *words, "--episodes", 2, "-o", scratch.at("ant.npz"))
        good("render", *words, "--every", 50, *small, "--script", "--episode", 1, "-o", scratch.at("script.gif"))
        good("render", words[0], "--every", 50, *small, "--data", scratch.at("ant.npz"), "--episode", 1, "-o", scratch.at("data.gif"))
        assert digest(scratch.at("data.gif")) == digest(scratch.at("script.gif"))


def test_policy():
    small = ["--width", 40, "--height", 40]
    with Scratch("render") as scratch:
        make_run(scratch)
        out = good("render", scratch.at("run"), "--task", 2, "--every", 250, *small, "--seed", 5, "-o", scratch.at("frames"))
        steps = int(out.split(" in ")[1].split()[0])
        assert "step 20 " in out and len(os.listdir(scratch.at("frames"))) == steps // 250 + 1, out
        again = good("render", scratch.at("run"), "--task", 2, *small, "--seed", 5, "--at", -1, "--threads", 2, "-o", scratch.at("a.png"))
        assert again.split("; ")[1] == out.split("; ")[1], (again, out)
        if steps % 250 == 0:
            last = sorted(os.listdir(scratch.at("frames")))[-1]
            assert np.array_equal(pixels(scratch.at("frames", last)), pixels(scratch.at("a.png")))


def broken_libraries(scratch):
    """An environment in which no library of OpenGL can be loaded."""
    os.mkdir(scratch.at("lib"))
    for name in "libEGL.so.1", "libEGL.so", "libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so":
        with open(scratch.at("lib", name), "w") as file:
            file.write("not a library\n" * 100)
    return {**os.environ, "LD_LIBRARY_PATH": scratch.at("lib")}


def test_no_gl():
    with Scratch("render") as scratch:
        env = broken_libraries(scratch)
        for kind in "auto", "egl", "osmesa":
            bad(1, ["no OpenGL", "libosmesa6", "libegl1"], "render", TASKS, "--gl", kind, "-o", scratch.at("a.png"), env=env)
        good("render", TASKS, "-o", scratch.at("own.png"), env=env)
        good("env", "model", TASKS, "--out", scratch.at("a.mjb"), env=env)  # nothing else needs it
        assert not os.path.exists(scratch.at("a.png"))


def test_wrong_calls():
    with Scratch("render") as scratch:
        out = ["-o", scratch.at("a.png")]
        bad(2, "one run or environment", "render", *out)
        bad(2, "--out", "render", TASKS)
        bad(2, ["width", "1 and 4096", "(0)"], "render", TASKS, "--width", 0, *out)
        bad(2, ["height", "1 and 4096"], "render", TASKS, "--height", 5000, *out)
        bad(1, ["not a run folder", "none"], "render", scratch.at("none"), *out)
        bad(2, "did you mean", "render", "antmaze-medum-v0", *out)
        bad(2, "exclude each other", "render", TASKS, "--script", "--states", "a.npz", *out)
        os.mkdir(scratch.at("empty"))
        bad(1, "not a run folder", "render", scratch.at("empty"), *out)
        assert not os.path.exists(scratch.at("a.png"))


@needs_gl
def test_progress():
    """A long film shows how far it is; stopped, it leaves no file."""
    with Scratch("render") as scratch:
        np.savez(scratch.at("state.npz"), qpos=np.zeros((20000, 15)))
        lines = progress("drawing", "render", TASKS, "--gl", GL, "--states", scratch.at("state.npz"), "-o", scratch.at("a.gif"))
        assert re.fullmatch(r"drawing \d+/20008 frames \(\d+%\)  [\d.]+ frames/s  ETA [\d:]+", lines[-1]), lines
        assert os.listdir(scratch.path) == ["state.npz"], os.listdir(scratch.path)


def test_wrong_files():
    with Scratch("render") as scratch:
        out = ["-o", scratch.at("a.png")]
        make_run(scratch)
        data = ["--data", scratch.at("data.npz")]
        bad(2, "there is no episode 10 in data of 10", "render", "pointmaze-medium-v0", *data, "--episode", 10, *out)
        bad(1, "'qpos' has 2 values per row", "render", TASKS, *data, *out)
        bad(1, "'qpos' has 2 values per row", "render", "puzzle-3x3-v0", *data, *out)
        bad(2, "no checkpoint of step 7", "render", scratch.at("run"), "--step", 7, *out)
        bad(2, ["no episode 15 of 15", "--episodes"], "render", scratch.at("run"), "--episode", 15, *out)
        bad(2, ["no camera 'up'", "back"], "render", TASKS, "--camera", "up", *out)
        bad(2, "no state 1 of 1", "render", TASKS, "--at", 1, *out)
        bad(1, "safetensors", "render", TASKS, "--script", "--expert", scratch.at("data.npz"), *out)
        bad(1, "nope.npz", "render", TASKS, "--states", scratch.at("nope.npz"), *out)
        for arrays, text in ((dict(a=np.zeros(3)), "no array 'qpos'"), (dict(qpos=np.zeros(14)), "another shape"),
                             (dict(qpos=np.zeros((2, 2, 15))), "another shape"), (dict(qpos=np.zeros((0, 15))), "another shape"),
                             (dict(qpos=np.full(15, np.nan)), "not finite"), (dict(qpos=np.full(15, 1e300)), "too large"),
                             (dict(qpos=np.zeros(15), goal_xy=np.array([np.inf, 0])), "not finite"),
                             (dict(qpos=np.zeros(15), goal_xy=np.zeros(3)), "another shape")):
            np.savez(scratch.at("state.npz"), **arrays)
            bad(1, text, "render", TASKS, "--states", scratch.at("state.npz"), *out)
        np.savez(scratch.at("state.npz"), qpos=np.zeros((4, 30)), button_states=np.zeros((3, 16)))
        bad(1, "another shape", "render", "puzzle-4x4-v0", "--states", scratch.at("state.npz"), *out)
        for name, more, text in (
            ("cube-single-v0", dict(goal_xy=np.zeros(2)), "has no 'goal_xy'"),
            ("cube-single-v0", dict(button_states=np.zeros(2)), "has no 'button_states'"),
            ("pointmaze-medium-v0", dict(target=np.zeros(2)), "has no 'target'"),
            ("puzzle-4x4-v0", dict(button_states=np.full(16, 0.5)), "0.5 at number 0"),
        ):
            np.savez(scratch.at("state.npz"), qpos=np.zeros(30), **more)
            bad(1, text, "render", name, "--states", scratch.at("state.npz"), *out)
        for value in 0.0, 1e9, -1e9:  # odd, but a state: no unit quaternions, and far away
            np.savez(scratch.at("state.npz"), qpos=np.full(15, value))
            good("render", TASKS, "--states", scratch.at("state.npz"), *out)
        with open(scratch.at("broken.npz"), "wb") as file:
            file.write(b"PK\x03\x04" + bytes(100))
        bad(1, "broken.npz", "render", TASKS, "--states", scratch.at("broken.npz"), *out)


if __name__ == "__main__":
    run_tests(globals())
    sys.stdout.flush()
    os._exit(0)  # the package's EGL contexts complain when they are collected
