"""Every agent that `dcrl list agents` names, on a little data with actions: a run that dies and is resumed, and one on two
threads, give the bytes of an unbroken one on one thread; a state of huge numbers stops it before anything bad is saved; what
needs real-valued actions says so of discrete ones."""
import json
import os
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, call, check_error, checkpoints, digests, good, newest_step, run_tests  # noqa: E402

ROWS, LENGTH, STEPS = 2400, 40, 60
TRAIN = ["train", "--hidden", "24,16", "--batch", 300, "--steps", STEPS, "--log-every", 7, "--save-every", 20]  # two blocks of rows
TAKE_DISCRETE = {"dcrl", "curriculum", "trl", "trl-n", "td", "td-n", "mc", "tdp", "iql", "bc"}  # with the policies that they have by themselves
AGENTS = [a["name"] for a in json.loads(good("list", "agents", "--json"))["agents"]]
SMALL = {agent: ["--set", "latent=64"] for agent in ("crl", "qrl", "tmd")}  # all pairs of 512 columns are minutes with a sanitizer
rng = np.random.default_rng(3)
OBSERVATIONS, ACTIONS = rng.normal(size=(ROWS, 5)).astype("f4"), rng.uniform(-1, 1, (ROWS, 3)).astype("f4")


def write(path, observations=OBSERVATIONS, actions=ACTIONS):
    np.savez(path, observations=observations, actions=actions, terminals=(np.arange(ROWS) % LENGTH == LENGTH - 1).astype("f4"))
    return path


def lose_the_end(run):
    """What a process leaves that died after the save before the last two."""
    os.remove(os.path.join(run, "DONE"))
    for path in checkpoints(run)[-2:]:
        os.remove(path)
    assert newest_step(run) == STEPS - 40


def test_resume_and_threads():
    with Scratch("agents") as scratch:
        data = write(scratch.at("data.npz"))
        for number, agent in enumerate(AGENTS):
            words = [*TRAIN, "--agent", agent, "--data", data, *SMALL.get(agent, []), *(["--set", "rep=1,2"] if number % 2 else [])]
            run, two = scratch.at(agent), scratch.at(agent + "-2")
            good(*words, "--threads", 1, "--out", run)
            good(*words, "--threads", 2, "--out", two)
            want = digests(run)
            assert digests(two) == want, agent
            lose_the_end(run)
            good("train", "--resume", run)
            assert digests(run) == want, agent
            shutil.rmtree(run)
        print(f"  {len(AGENTS)} agents")


def test_huge_numbers():
    with Scratch("agents") as scratch:
        observations = OBSERVATIONS.copy()
        observations[777] = 3e38
        data = write(scratch.at("data.npz"), observations)
        for agent in AGENTS:
            run = scratch.at(agent)
            bad(1, "NaN or Inf in the ", "train", "--agent", agent, "--data", data, "--hidden", "8,8", "--batch", 8, "--steps", 9000,
                "--save-every", 5, "--log-every", 5, "--threads", 1, "--set", "obs_scale=off", "--out", run)
            for path in checkpoints(run):
                assert all(np.all(np.isfinite(v)) for v in load_file(path).values()), (agent, path)


def test_discrete():
    with Scratch("agents") as scratch:
        data = write(scratch.at("data.npz"), actions=(np.arange(ROWS) % 4).astype("i4"))
        refused = []
        for agent in AGENTS:
            words = [*TRAIN, "--agent", agent, "--data", data, "--out", scratch.at(agent)]
            done = call(*words)
            if done.returncode:
                check_error(done.returncode, done.stderr, 1, [f"{agent} needs real-valued actions", "4 discrete"], words)
                assert not os.path.exists(scratch.at(agent)), agent
                refused.append(agent)
        print("  refuse discrete actions:", *refused)
        assert set(refused) == set(AGENTS) - TAKE_DISCRETE
        for agent, policy in (("dcrl", "rejection"), ("tdp", "rejection"), ("iql", "rejection"), ("iql", "awr")):
            bad(1, "needs real-valued actions", *TRAIN, "--agent", agent, "--set", "policy=" + policy, "--data", data, "--out", scratch.at("none"))
            assert not os.path.exists(scratch.at("none"))


def test_locks():
    """Which have discrete actions, and a form of their own without any."""
    with Scratch("agents") as scratch:
        for agent in sorted(set(AGENTS) - TAKE_DISCRETE):
            words = [*TRAIN, "--agent", agent, "--env", "lock-16", "--out", scratch.at("run")]
            bad(2, [f"{agent} learns from real-valued actions", "for a lock"], *words)
            bad(1, [f"{agent} needs real-valued actions", "2 discrete"], *words, "--set", "form=value")


if __name__ == "__main__":
    run_tests(globals())
