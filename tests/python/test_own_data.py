"""Data of one's own, from a file to a robot: Minari's HDF5, D4RL's with timeouts, actions in radians, discrete actions. Each is
converted, looked into, trained on with rows held out, reported and exported, and its policy then drives the robot that made the
data: from Python, from a C program by the library, by the exported C file, and by ONNX. All four go the same way, to the goal.

The robot is a point in the plane that moves by a tenth of its action a step.
"""

import json
import os
import subprocess
from pathlib import Path

from package import BUILD, SOURCE

import h5py
import numpy as np

import dcrl
from drive import Scratch, bad, call, good, run_tests

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

EPISODES, LENGTH, STEPS = 120, 40, 60
WAYS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)  # of discrete actions
START, GOAL = np.float32([-0.6, -0.5]), np.float32([0.6, 0.4])
rng = np.random.default_rng(3)

DRIVE = r"""
#include <stdio.h>
#include <stdint.h>
#ifdef LIBRARY
#include <dcrl/dcrl.h>
static dcrl_policy *policy;
static void act(const float *now, const float *goal, int t, float *action) {
    (void)t;
    if (dcrl_policy_act(policy, 1, now, goal, action)) fprintf(stderr, "%s\n", dcrl_message());
}
#else
#include "policy.c"
static policy_memory memory;
static void act(const float *now, const float *goal, int t, float *action) {
    policy_act(&memory, now, goal, (uint64_t)t, action);
}
#endif
int main(int argc, char **argv) {
    static const float ways[][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    const float goal[] = {0.6F, 0.4F};
    float now[] = {-0.6F, -0.5F}, action[8], reach = 1;
#ifdef LIBRARY
    if (argc < 3 || dcrl_policy_open(&policy, argv[2], 1)) return fprintf(stderr, "%s\n", dcrl_message()), 1;
#endif
    if (argc < 2 || sscanf(argv[1], "%f", &reach) != 1) return 1; /* 0: discrete */
    for (int t = 0; t < 60; t++) {
        act(now, goal, t, action);
        int best = 0;
        for (int k = 1; k < 5 && reach == 0; k++)
            if (action[k] > action[best]) best = k;
        for (int k = 0; k < 2; k++)
            now[k] += 0.1F * (reach == 0 ? ways[best][k] : action[k] / reach);
        printf("%.9g %.9g\n", (double)now[0], (double)now[1]);
    }
    return 0;
}
"""


def wander(discrete):
    """Episodes that go from place to place: observations one longer than actions, which lie within [-1, 1] or are choices."""
    states, actions = np.zeros((EPISODES, LENGTH + 1, 2), np.float32), np.zeros((EPISODES, LENGTH, 2), np.float32)
    choices = np.zeros((EPISODES, LENGTH), np.int64)
    for e in range(EPISODES):
        states[e, 0], aim = rng.uniform(-1, 1, (2, 2))
        for t in range(LENGTH):
            way = aim - states[e, t]
            if np.linalg.norm(way) < 0.15:
                aim = rng.uniform(-1, 1, 2)
            if discrete:
                choices[e, t] = rng.integers(5) if rng.random() < 0.2 else 1 + 2 * np.abs(way).argmax() + (way[np.abs(way).argmax()] < 0)
                actions[e, t] = WAYS[choices[e, t]]
            else:
                actions[e, t] = np.clip(5 * way + rng.normal(size=2) * 0.2, -1, 1)
            states[e, t + 1] = states[e, t] + 0.1 * actions[e, t]
    return states, choices if discrete else actions


def write_minari(path, states, actions):
    with h5py.File(path, "w") as file:
        for e, (s, a) in enumerate(zip(states, actions)):
            group = file.create_group(f"episode_{e}")
            group.attrs.update(id=e, total_steps=LENGTH, seed=0)
            group["observations/observation"], group["observations/desired_goal"] = s, np.zeros((LENGTH + 1, 2))
            group["actions"], group["rewards"] = a, np.zeros(LENGTH)
            group["terminations"], group["truncations"] = np.zeros(LENGTH, bool), np.arange(LENGTH) == LENGTH - 1


def write_d4rl(path, states, actions):
    """Rows are transitions; no episode ends but by timeouts."""
    with h5py.File(path, "w") as file:
        file["observations"], file["next_observations"] = states[:, :-1].reshape(-1, 2), states[:, 1:].reshape(-1, 2)
        file["actions"] = actions.reshape(EPISODES * LENGTH, *actions.shape[2:])
        file["terminals"], file["rewards"] = np.zeros(EPISODES * LENGTH, bool), np.zeros(EPISODES * LENGTH, np.float32)
        file["timeouts"] = np.arange(EPISODES * LENGTH) % LENGTH == LENGTH - 1


def check_converted(data, reach):
    told = json.loads(good("data", "info", data, "--json"))
    assert told["trajectories"] == EPISODES and told["discrete_actions"] == (0 if reach else 5), told
    assert ("one of 5 discrete actions" in good("data", "info", data)) == (reach == 0)
    if reach > 1:
        assert told["needs_act_scale"]
        bad(1, "--act-scale auto", "train", "--data", data, "--agent", "bc", "--steps", 5, "--out", data + ".run")
    return told


def in_python(run, reach):
    policy, now, way = dcrl.Policy(run), START.copy(), []
    for _ in range(STEPS):
        move = WAYS[policy.choose(now, GOAL)] if reach == 0 else policy.act(now, GOAL) / np.float32(reach)
        now = now + np.float32(0.1) * move
        way.append(now)
    return np.array(way), policy.distance(START, GOAL)


def in_c(folder, reach, run):
    """By the exported file alone, and by the library."""
    (folder / "drive.c").write_text(DRIVE)
    strict = ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "drive.c"]
    subprocess.run([*strict, "-o", "alone", "-lm"], cwd=folder, check=True)
    library = ["-DLIBRARY", f"-I{SOURCE / 'include'}", "-o", "linked", f"-L{BUILD}", "-ldcrl", f"-Wl,-rpath,{BUILD}"]
    subprocess.run([*strict, *library], cwd=folder, check=True)
    ways = []
    for program in ("alone", "linked"):
        done = subprocess.run([folder / program, str(reach), run], capture_output=True, text=True, check=True)
        ways.append(np.loadtxt(done.stdout.splitlines()))
    return ways


def by_onnx(path, reach):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    now, way = START.copy(), []
    for _ in range(STEPS):
        action = session.run(["action"], {"observation": now[None], "goal": GOAL[None]})[0][0]
        now = now + np.float32(0.1) * (WAYS[action.argmax()] if reach == 0 else action / np.float32(reach))
        way.append(now)
    return np.array(way)


def drive(name, agent, source, write, reach, *words):
    """From a file of other people's to the goal. `reach` is the largest action, 0 for discrete ones."""
    with Scratch("own") as scratch:
        folder = Path(scratch.path)
        for part in ("robot", "robot-val"):
            write(scratch.at(f"{part}.hdf5"), *source())
            good("data", "convert", scratch.at(f"{part}.hdf5"), scratch.at(f"{part}.npz"))
        check_converted(scratch.at("robot.npz"), reach)
        run = scratch.at("run")
        good("train", "--data", scratch.at("robot.npz"), "--agent", agent, "--hidden", "64,64", "--batch", 256, "--lr", 3e-3,
             "--steps", 700, "--out", run, "--report", *words)
        page = (folder / "run/report.html").read_text()
        assert "measured on held-out rows" in page and "val_" in page
        good("export", run, "-o", scratch.at("policy.c"))
        good("export", run, "-o", scratch.at("policy.onnx"))
        way, steps = in_python(run, reach)
        assert np.linalg.norm(way[-1] - GOAL) < 0.3, (name, way[-1])
        assert 0 < steps < 1000
        others = in_c(folder, reach, run) + ([by_onnx(scratch.at("policy.onnx"), reach)] if onnxruntime else [])
        for other in others:
            assert np.abs(other - way).max() < 1e-3, (name, np.abs(other - way).max())
        print(f"  {name}, {agent}: {np.linalg.norm(START - GOAL):.2f} to {np.linalg.norm(way[-1] - GOAL):.2f} of the goal, {len(others) + 1} ways alike")


def scaled(reach):
    states, actions = wander(False)
    return states, actions * np.float32(reach)


def test_choices():
    """The choice is the right one however sure the policy is of it, in all four ways, and a distance is that of the choice."""
    with Scratch("own") as scratch:
        here = rng.random((4000, 1), np.float32)
        right = lambda o: np.minimum((5 * o[:, 0]).astype(int), 4)
        ends = np.arange(4000) % 50 == 49
        np.savez(scratch.at("d.npz"), observations=here, actions=right(here), terminals=ends)
        small = ["--data", scratch.at("d.npz"), "--hidden", "64,64", "--batch", 256, "--lr", 3e-3]
        good("train", *small, "--agent", "bc", "--steps", 1500, "--out", scratch.at("bc"))
        asked = rng.random((500, 1), np.float32)
        policy = dcrl.Policy(scratch.at("bc"))
        values, choices = policy.act(asked, asked), policy.choose(asked, asked)
        assert values.max() > 2 and (choices == right(asked)).mean() > 0.95, (values.max(), (choices == right(asked)).mean())
        low, high = policy.action_range
        assert np.isinf(low).all() and np.isinf(high).all()
        for name in ("policy.c", "policy.onnx"):
            good("export", scratch.at("bc"), "-o", scratch.at(name))
        assert "action: 5, a value for each choice: take the one with the largest" in Path(scratch.at("policy.c")).read_text()
        if onnxruntime:
            session = onnxruntime.InferenceSession(scratch.at("policy.onnx"), providers=["CPUExecutionProvider"])
            fed = {i.name: asked for i in session.get_inputs()}
            assert np.abs(session.run(["action"], fed)[0] - values).max() < 1e-4 * values.max()
        good("train", *small, "--agent", "dcrl", "--set", "n=4", "--steps", 300, "--out", scratch.at("dcrl"))
        policy = dcrl.Policy(scratch.at("dcrl"))
        theirs = policy.distance(asked, asked[::-1], policy.choose(asked, asked[::-1]))
        assert np.abs(policy.distance(asked, asked[::-1]) / theirs - 1).max() < 1e-4
        others = policy.distance(asked, asked[::-1], (policy.choose(asked, asked[::-1]) + 1) % 5)
        assert np.abs(others / theirs - 1).max() > 1e-3


def test_minari():
    drive("Minari", "hiql", lambda: wander(False), write_minari, 1, "--set", "subgoal_steps=10", "--obs-scale", "on")


def test_timeouts():
    drive("D4RL with timeouts", "dcrl", lambda: wander(False), write_d4rl, 1, "--set", "n=4", "--set", "alpha=1")


def test_radians():
    drive("radians", "gcivl", lambda: scaled(3.1), write_d4rl, 3.1, "--act-scale=-3.1,3.1")


def test_discrete():
    drive("discrete", "dcrl", lambda: wander(True), write_d4rl, 0, "--set", "n=4", "--set", "alpha=1")


if __name__ == "__main__":
    if "cannot be loaded" in call("data", "convert", "nowhere.hdf5", "out.npz").stderr:
        print("skipped: this build has no HDF5")
    else:
        run_tests(globals())
