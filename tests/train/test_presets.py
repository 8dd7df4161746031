"""Presets against the paper's table of task-specific values: every task with every method, trained one step.

TABLE is typed from the paper (not read from configs/): alpha or N of {TD-n, TRL, DCRL}, TD's and MC's alpha, TRL's lambda.
OGBENCH and HORIZON are typed from the settings that OGBench and the horizon-reduction code publish for other methods.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, bad, good, run_tests  # noqa: E402

AGENTS = ["dcrl", "curriculum", "trl", "trl-n", "td-n", "td", "mc"]
SIZES = {"pointmaze": (2, 2), "antmaze": (29, 8), "humanoidmaze": (69, 21), "antsoccer": (42, 8)}
TABLE = {  # alpha, td's, mc's, lambda, gamma
    "pointmaze-medium": (2, 10, 2, 0.7, 0.99),
    "pointmaze-large": (2, 10, 2, 0.7, 0.99),
    "pointmaze-giant": (2, 10, 2, 0.7, 0.995),
    "antmaze-large": (0.7, 0.7, 0.7, 0, 0.99),
    "antsoccer-arena": (0.3, 0.3, 0.3, 0.5, 0.99),
    "humanoidmaze-medium": (0.1, 0.1, 0.1, 0, 0.995),
    "humanoidmaze-large": (0.1, 0.1, 0.1, 0.1, 0.995),
    "cube-single": (1, 1, 1, 0.7, 0.99),
    "cube-double": (2, 10, 2, 1, 0.99),
    "scene": (1, 1, 1, 1, 0.99),
    "puzzle-3x3": (2, 2, 2, 0.5, 0.99),
    "puzzle-4x4": (1, 2, 1, 2, 0.99),
}
ARM = {  # observation, goal
    "cube-single": (28, 3), "cube-double": (37, 6), "cube-triple": (46, 9), "cube-quadruple": (55, 12), "cube-octuple": (91, 24), "scene": (40, 7),
    "puzzle-3x3": (55, 9), "puzzle-4x4": (83, 16), "puzzle-4x5": (99, 20), "puzzle-4x6": (115, 24),
}  # fmt: skip
LONG = {"puzzle-4x5": (100, 32), "puzzle-4x6": (100, 32), "cube-triple": (25, 4), "cube-quadruple": (25, 4), "cube-octuple": (25, 4)}  # n, samples
GIANT = {"td": 0.3, "mc": 0.3, "td-n": 0.1, "trl": 0.1, "trl-n": 0.1}  # the others: rejection sampling


OGBENCH = {  # alpha of iql, crl and qrl; hiql's subgoal_steps
    "pointmaze": (0.003, 0.03, 0.0003, 25), "antmaze": (0.3, 0.1, 0.003, 25), "antsoccer": (0.1, 0.3, 0.003, 25), "humanoidmaze": (0.1, 0.1, 0.001, 100),
    "cube": (1, 3, 0.3, 10), "scene": (1, 3, 0.3, 10), "puzzle": (1, 3, 0.3, 10),
}  # fmt: skip
HORIZON = {  # alpha of iql, crl and qrl; hiql's kappa, alpha and subgoal_steps; law and share of random goals of policies
    "humanoidmaze-giant": (0.3, 0.3, 0.001, 0.5, 3, 50, "uniform", 0), "puzzle-4x5": (1, 1, 3, 0.7, 3, 25, "geometric", 0.5), "puzzle-4x6": (1, 1, 3, 0.7, 3, 25, "geometric", 0.5),
    "cube-triple": (10, 3, 3, 0.5, 10, 50, "geometric", 0), "cube-quadruple": (10, 3, 3, 0.5, 10, 50, "geometric", 0), "cube-octuple": (10, 3, 3, 0.5, 10, 50, "geometric", 0),
}  # fmt: skip
OTHERS = ["bc", "iql", "crl", "qrl", "hiql"]


def write_data(path, obs, act):
    arrays = {"observations": np.random.normal(size=(60, obs)), "actions": np.random.uniform(-1, 1, (60, act))}
    np.savez(path, terminals=np.arange(60) % 30 == 29, **{k: v.astype(np.float32) for k, v in arrays.items()})


def train(scratch, preset, agent, *more):
    path, family = scratch.at("data.npz"), preset.split("-")[0]
    write_data(path, *(SIZES[family] if family in SIZES else (ARM[preset][0], 5)))
    run = scratch.at(f"{preset}-{agent}")
    good("train", preset, "--agent", agent, "--data", path, "--steps", 1, *more, "--out", run)
    with open(os.path.join(run, "config.json")) as file:
        return json.load(file)


def config_of(scratch, preset, agent, *more):
    config, family = train(scratch, preset, agent, *more), preset.split("-")[0]
    assert config["agent"] == agent and config["env"] == f"{preset}-{'play' if preset in ARM else 'navigate'}-oraclerep-v0", config
    if preset in ARM:
        assert sum(n * times for n, times in zip(config["rep"][1::4], config["rep"][3::4])) == ARM[preset][1], config
    else:
        assert config["rep"] == [15 if family == "antsoccer" else 0, 2]
    assert all(config.get(k, 0.7) == 0.7 for k in ("kappa", "kappa_prop"))
    goals = ("geometric", 0.5 if family == "puzzle" else 0) if preset in LONG else ("uniform", 0)
    assert (config["actor_law"], config["actor_random"]) == goals, config
    return config


def test_standard():
    with Scratch("presets") as scratch:
        for preset, (alpha, td, mc, weight, gamma) in TABLE.items():
            for agent in AGENTS:
                config = config_of(scratch, preset, agent, "--hidden", "8,8", "--batch", 4)
                assert config["policy"] == "ddpgbc" and config["alpha"] == {"td": td, "mc": mc}.get(agent, alpha), config
                assert config["gamma"] == gamma and config.get("n", 25) == 25
                assert config.get("lambda", 0) == (weight if agent == "trl" else 0), config


def test_tuned():
    """What we found to be better has a name of its own; the rest is the paper's."""
    with Scratch("presets") as scratch:
        path = scratch.at("data.npz")
        write_data(path, 37, 5)
        for agent in AGENTS:
            configs = []
            for preset in ("cube-double", "cube-double-tuned"):
                run = scratch.at(f"{preset}-{agent}")
                good("train", preset, "--agent", agent, "--data", path, "--steps", 1, "--hidden", "8,8", "--batch", 4, "--out", run)
                with open(os.path.join(run, "config.json")) as file:
                    configs.append(json.load(file))
            paper, tuned = configs
            assert tuned["alpha"] == 10 and tuned.get("kappa_prop", 0.7) == (0.9 if agent == "dcrl" else 0.7), tuned
            assert all(paper[k] == tuned[k] for k in paper if k not in ("alpha", "kappa_prop")), (paper, tuned)


def test_giant():
    with Scratch("presets") as scratch:
        for agent in AGENTS:
            config = config_of(scratch, "humanoidmaze-giant", agent, "--hidden", "8,8", "--batch", 4)
            assert config["gamma"] == 0.999 and config.get("n", 100) == 100
            if agent in GIANT:
                assert config["policy"] == "ddpgbc" and config["alpha"] == GIANT[agent], config
            else:
                assert config["policy"] == "rejection" and config["samples"] == 32, config


def test_long():
    with Scratch("presets") as scratch:
        for preset, (n, samples) in LONG.items():
            for agent in AGENTS:
                config = config_of(scratch, preset, agent, "--hidden", "8,8", "--batch", 4)
                assert config["gamma"] == 0.999 and config.get("n", n) == n, config
                assert config["policy"] == "rejection" and config["samples"] == samples, config
                assert config.get("goal_law", "uniform") == "uniform", config  # later states that a value is asked about


def has(config, **want):
    assert {k: config[k] for k in want} == want, (want, config)


def test_others_standard():
    """OGBench's values, for the methods that it plays."""
    with Scratch("presets") as scratch:
        for preset in TABLE:
            *alphas, k = OGBENCH[preset.split("-")[0]]
            for agent in OTHERS:
                config = train(scratch, preset, agent, "--hidden", "8,8", "--batch", 4)
                has(config, gamma=TABLE[preset][4], actor_law="uniform", actor_random=0, actor_layernorm=False)
                if agent in ("iql", "crl", "qrl"):
                    has(config, alpha=alphas[("iql", "crl", "qrl").index(agent)])
                if agent in ("iql", "hiql"):
                    has(config, kappa=0.9 if agent == "iql" else 0.7, goal_law="geometric")
                if agent == "hiql":
                    has(config, alpha_low=3, alpha_high=3, subgoal_steps=k, rep_dim=10)
                if agent in ("crl", "qrl"):
                    has(config, latent=512)


def test_others_long():
    """The horizon-reduction code's values."""
    with Scratch("presets") as scratch:
        for preset, (iql, crl, qrl, kappa, alpha, k, law, random) in HORIZON.items():
            config = {agent: train(scratch, preset, agent, "--hidden", "8,8", "--batch", 4) for agent in OTHERS}
            for agent in OTHERS:
                has(config[agent], gamma=0.999, actor_layernorm=agent != "qrl")
            has(config["bc"], actor_law="geometric", actor_random=0)
            has(config["iql"], alpha=iql, kappa=0.9, policy="ddpgbc", goal_law="uniform", actor_law=law, actor_random=random)
            has(config["crl"], alpha=crl, latent=1024, actor_law=law, actor_random=random)
            has(config["qrl"], alpha=qrl, latent=1024)
            has(config["hiql"], kappa=kappa, alpha_low=alpha, alpha_high=alpha, subgoal_steps=k, rep_dim=128, goal_law="uniform", actor_law=law, actor_random=random)


def test_sizes():
    """Networks, batch and steps as the paper has them."""
    with Scratch("presets") as scratch:
        config = config_of(scratch, "pointmaze-large", "dcrl")
        assert config["hidden"] == [512] * 3 and config["batch"] == 1024 and config["save_every"] == 100_000
        presets = {p["name"]: p for p in json.loads(good("list", "presets", "--json"))["presets"]}
        assert presets["long"]["hidden"] == "1024,1024,1024,1024" and presets["long"]["batch"] == "1024"
        assert presets["long"]["steps"] == presets["standard"]["steps"] == "1000000"


def test_errors():
    with Scratch("presets") as scratch:
        write_data(scratch.at("d.npz"), 29, 8)
        out = ["--data", scratch.at("d.npz"), "--out", scratch.at("run")]
        bad(2, ["'pointmaze-larg'", "did you mean 'pointmaze-large'?"], "train", "pointmaze-larg", *out)
        bad(1, ["29 columns", "pointmaze-large-oraclerep-v0 has 2", "data of that environment"], "train", "pointmaze-large", *out)
        bad(2, ["(0.2, 0.5, 0)", "add up to 1"], "train", "antmaze-large", *out, "--set", "goal_random=0")


if __name__ == "__main__":
    run_tests(globals())
