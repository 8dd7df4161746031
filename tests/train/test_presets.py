"""Presets against the paper's table of task-specific values: the options of every task with every method (train --dry-run), and a step of
training with each method.

TABLE is typed from the paper (not read from configs/): alpha or N of {TD-n, TRL, DCRL}, TD's and MC's alpha, TRL's lambda;
mazes and fields that it lacks have the values of the size that it has.
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
    "pointmaze-teleport": (2, 10, 2, 0.7, 0.99),
    "antmaze-medium": (0.7, 0.7, 0.7, 0, 0.99),
    "antmaze-large": (0.7, 0.7, 0.7, 0, 0.99),
    "antmaze-giant": (0.7, 0.7, 0.7, 0, 0.995),
    "antmaze-teleport": (0.7, 0.7, 0.7, 0, 0.99),
    "antsoccer-arena": (0.3, 0.3, 0.3, 0.5, 0.99),
    "antsoccer-medium": (0.3, 0.3, 0.3, 0.5, 0.99),
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
HORIZON = {  # alpha of iql, crl, qrl and sacbc; agg of sacbc and sharsa; hiql's kappa and alpha; subgoal_steps of hiql, hbc and sharsa; law and share of random goals of policies
    "humanoidmaze-giant": (0.3, 0.3, 0.001, 0.1, "mean", 0.5, 3, 50, "uniform", 0),
    "puzzle-4x5": (1, 1, 3, 0.3, "min", 0.7, 3, 25, "geometric", 0.5), "puzzle-4x6": (1, 1, 3, 0.3, "min", 0.7, 3, 25, "geometric", 0.5),
    "cube-triple": (10, 3, 3, 10, "min", 0.5, 10, 50, "geometric", 0), "cube-quadruple": (10, 3, 3, 10, "min", 0.5, 10, 50, "geometric", 0), "cube-octuple": (10, 3, 3, 10, "min", 0.5, 10, 50, "geometric", 0),
}  # fmt: skip
TRIANGLE = {  # tdp: alpha, candidates (M), far_steps (P); coe: alpha, beta
    "pointmaze": ((5, 8, 500), (1, 1)), "antmaze": ((10, 8, 100), (3, 10)), "antsoccer": ((10, 8, 200), (0.3, 1)),
    "humanoidmaze-medium": ((5, 8, 500), (0.1, 3)), "humanoidmaze-large": ((5, 8, 500), (0.1, 1)), "cube-single": ((5, 8, 500), (0.3, 10)),
    "cube-double": ((5, 8, 500), (0.3, 10)), "scene": ((1, 16, 200), (1, 10)), "puzzle-3x3": ((5, 8, 500), (3, 10)), "puzzle-4x4": ((5, 8, 500), (1, 10)),
}  # fmt: skip
TRIANGLE_LONG = {  # tdp: alpha, or samples of rejection; far_steps; coe: alpha, beta
    "humanoidmaze-giant": (3, None, 1000, (1, 0.5)), "puzzle-4x5": (None, 32, 1000, (3, 10)), "puzzle-4x6": (None, 32, 1000, (3, 10)),
    "cube-triple": (None, 4, 1000, (3, 10)), "cube-quadruple": (None, 4, 1000, (3, 10)), "cube-octuple": (None, 4, 1000, (3, 10)),
}  # fmt: skip
VISUAL = {  # alpha of mc, qrl and tmd; tdp's candidates and far_steps; coe's alpha; discount, share of cropped batches; alphas of iql and crl, hiql's subgoal_steps
    "visual-antmaze-medium": (0.3, 0.003, 0.1, (10, 8, 100), 3, 0.99, 0, (0.3, 0.1, 25)),
    "visual-antmaze-large": (0.3, 0.003, 0.1, (10, 8, 100), 3, 0.99, 0, (0.3, 0.1, 25)),
    "visual-antmaze-giant": (0.3, 0.003, 0.1, (10, 8, 100), 3, 0.995, 0, (0.3, 0.1, 25)),
    "visual-cube-single": (2, 0.3, 3, (5, 16, 500), 0.3, 0.99, 0.5, (1, 3, 10)),
    "visual-cube-double": (0.7, 0.3, 3, (5, 16, 500), 0.3, 0.99, 0.5, (1, 3, 10)),
    "visual-cube-triple": (0.7, 0.3, 3, (5, 16, 500), 0.3, 0.99, 0.5, (1, 3, 10)),
    "visual-scene": (1, 0.3, 3, (1, 16, 200), 1, 0.99, 0.5, (1, 3, 10)),
    "visual-puzzle-3x3": (2, 0.3, 3, (5, 16, 500), 3, 0.99, 0.5, (1, 3, 10)),
    "visual-puzzle-4x4": (1, 0.3, 3, (5, 16, 500), 1, 0.99, 0.5, (1, 3, 10)),
    "visual-puzzle-4x5": (0.5, 0.3, 3, (5, 16, 500), 1, 0.99, 0.5, (1, 3, 10)),
}  # fmt: skip
CONCAT = {"bc", "gcivl", "iql", "crl", "qrl", "tmd", "hiql"}  # one encoder of state and goal, as OGBench's agents and tmd's code have
# alpha of tmd, in the paper's table; elsewhere it takes crl's, which is the same wherever both are known
TMD = {"pointmaze": 0.03, "antmaze": 0.1, "antsoccer": 0.3, "humanoidmaze": 0.1, "cube": 3, "scene": 3, "puzzle": 3}
TRIANGLES = ["tdp", "coe"]
OTHERS = ["bc", "fbc", "gcivl", "iql", "sacbc", "crl", "qrl", "tmd", "hiql", "por", "hbc", "sharsa"]
WITH_LAYERNORM = {"fbc", "sacbc", "hbc", "sharsa"}  # in the actor, also in OGBench's sizes: horizon-reduction's code is the only public one
CLONES = {"bc", "fbc", "hbc"}  # goals of theirs are not the task's
FLOWS = {"fbc", "hbc"}  # of those, with geometric goals, for which alone they have a gamma


def write_data(path, obs, act):
    arrays = {"observations": np.random.normal(size=(60, obs)), "actions": np.random.uniform(-1, 1, (60, act))}
    np.savez(path, terminals=np.arange(60) % 30 == 29, **{k: v.astype(np.float32) for k, v in arrays.items()})


def options(preset, agent, *more):
    return json.loads(good("train", preset, "--agent", agent, "--dry-run", *more))


def config_of(preset, agent):
    config, family = options(preset, agent), preset.split("-")[0]
    assert config["agent"] == agent and config["env"] == f"{preset}-{'play' if preset in ARM else 'navigate'}-oraclerep-v0", config
    if preset in ARM:
        assert sum(n * times for n, times in zip(config["rep"][1::4], config["rep"][3::4])) == ARM[preset][1], config
    else:
        assert config["rep"] == [15 if family == "antsoccer" else 0, 2], config
    assert all(config.get(k, 0.7) == 0.7 for k in ("kappa", "kappa_prop"))
    goals = ("geometric", 0.5 if family == "puzzle" else 0) if preset in LONG else ("uniform", 0)
    assert (config["actor_law"], config["actor_random"]) == goals, config
    return config


def test_standard():
    for preset, (alpha, td, mc, weight, gamma) in TABLE.items():
        for agent in AGENTS:
            config = config_of(preset, agent)
            assert config["policy"] == "ddpgbc" and config["alpha"] == {"td": td, "mc": mc}.get(agent, alpha), config
            assert config["gamma"] == gamma and config.get("n", 25) == 25
            assert config.get("lambda", 0) == (weight if agent == "trl" else 0), config


def test_tuned():
    """What we found to be better has a name of its own; the rest is the paper's."""
    for agent in AGENTS:
        paper, tuned = (options(preset, agent) for preset in ("cube-double", "cube-double-tuned"))
        assert tuned["alpha"] == 10 and tuned.get("kappa_prop", 0.7) == (0.9 if agent == "dcrl" else 0.7), tuned
        assert all(paper[k] == tuned[k] for k in paper if k not in ("alpha", "kappa_prop")), (paper, tuned)


def test_giant():
    for agent in AGENTS:
        config = config_of("humanoidmaze-giant", agent)
        assert config["gamma"] == 0.999 and config.get("n", 100) == 100
        if agent in GIANT:
            assert config["policy"] == "ddpgbc" and config["alpha"] == GIANT[agent], config
        else:
            assert config["policy"] == "rejection" and config["samples"] == 32, config


def test_long():
    for preset, (n, samples) in LONG.items():
        for agent in AGENTS:
            config = config_of(preset, agent)
            assert config["gamma"] == 0.999 and config.get("n", n) == n, config
            assert config["policy"] == "rejection" and config["samples"] == samples, config
            assert config.get("goal_law", "uniform") == "uniform", config  # later states that a value is asked about


def has(config, **want):
    assert {k: config[k] for k in want} == want, (want, config)


def por_of(preset):
    """HIQL's code on CALVIN, and on antmaze-large; its actors are 2 x 256."""
    large = preset in ("antmaze-large", "antmaze-large-stitch")
    alpha, kappa = (3, 0.9) if large else (1, 0.7)
    return {"subgoal_steps": 1, "kappa": kappa, "alpha_low": alpha, "alpha_high": alpha, "actor_hidden": [256, 256], "actor_activation": "relu", "actor_std": "free"}


def test_triangle_standard():
    """The paper's values of tdp and coe; sizes that it lacks have those of the size that it has."""
    for preset in TABLE:
        (alpha, ways, far), (pull, beta) = TRIANGLE[preset if preset in TRIANGLE else preset.split("-")[0]]
        tdp, coe = (options(preset, agent) for agent in TRIANGLES)
        for config in (tdp, coe):
            has(config, gamma=TABLE[preset][4], kappa=0.5, actor_law="uniform", actor_random=0, actor_layernorm=True, goal_law="geometric")
        has(tdp, alpha=alpha, policy="ddpgbc", candidates=ways, far_steps=far, far="floor", goal_next=0.1)
        has(coe, alpha=pull, beta=beta, subgoal="random", goal_random=0, goal_next=0.1)


def test_triangle_long():
    for preset, (alpha, samples, far, (pull, beta)) in TRIANGLE_LONG.items():
        tdp, coe = (options(preset, agent) for agent in TRIANGLES)
        for config in (tdp, coe):
            has(config, gamma=0.999, kappa=0.5, goal_law="uniform", actor_law=HORIZON[preset][-2], actor_random=HORIZON[preset][-1])
        has(tdp, candidates=8, far_steps=far, **({"policy": "ddpgbc", "alpha": alpha} if alpha else {"policy": "rejection", "samples": samples}))
        has(coe, alpha=pull, beta=beta)


def test_others_standard():
    """OGBench's values, for the methods that it plays; horizon-reduction's for others."""
    for preset, (own, _, _, _, gamma) in TABLE.items():
        *alphas, k = OGBENCH[preset.split("-")[0]]
        config = {agent: options(preset, agent) for agent in OTHERS}
        for agent in OTHERS:
            has(config[agent], gamma=0.999 if agent in FLOWS else gamma, actor_random=0, actor_layernorm=agent in WITH_LAYERNORM)
            has(config[agent], actor_law="geometric" if agent in FLOWS else "uniform")
        for agent, alpha in zip(("iql", "crl", "qrl", "gcivl", "sacbc"), (*alphas, 10, own)):
            has(config[agent], alpha=alpha)
        has(config["gcivl"], kappa=0.9, goal_law="geometric")
        has(config["iql"], kappa=0.9, goal_law="geometric")
        has(config["sacbc"], agg="min", goal_law="uniform")
        has(config["hiql"], kappa=0.7, goal_law="geometric", alpha_low=3, alpha_high=3, subgoal_steps=k, rep_dim=10)
        has(config["sharsa"], subgoal_steps=k, agg="min", samples=32, goal_law="uniform")
        has(config["hbc"], subgoal_steps=k, actors="flow")
        has(config["por"], **por_of(preset))
        has(config["crl"], latent=512)
        has(config["qrl"], latent=512)
        has(config["tmd"], latent=512, batch=512, zeta=0.05, alpha=TMD[preset.split("-")[0]])


def of_ogbench():
    """Data sets that only OGBench has settings for: (preset, environment, gamma, random goals, alphas of iql, crl, qrl, hiql; k)."""
    for family, sizes in (("pointmaze", "medium large giant teleport"), ("antmaze", "medium large giant teleport"), ("humanoidmaze", "medium large giant"), ("antsoccer", "arena medium")):
        *alphas, k = OGBENCH[family]
        for size in sizes.split():
            gamma = 0.995 if family == "humanoidmaze" or size == "giant" else 0.99
            yield f"{family}-{size}-stitch", f"{family}-{size}-stitch-v0", gamma, 0.5, (*alphas, 3), k
    for size in ("medium", "large", "teleport"):
        yield f"antmaze-{size}-explore", f"antmaze-{size}-explore-v0", 0.99, 1, (0.01, 0.003, 0.001, 10), 25
    for task in ("cube-single", "cube-double", "cube-triple", "cube-quadruple", "scene", "puzzle-3x3", "puzzle-4x4", "puzzle-4x5", "puzzle-4x6"):
        yield f"{task}-noisy", f"{task}-noisy-v0", 0.99, 0, (0.03, 0.1, 0.03, 3), 10
    for task in ("cube-triple", "cube-quadruple", "puzzle-4x5", "puzzle-4x6"):
        yield f"{task}-ogbench", f"{task}-play-v0", 0.99, 0, (1, 3, 0.3, 3), 10
    yield "humanoidmaze-giant-ogbench", "humanoidmaze-giant-navigate-v0", 0.995, 0, (0.1, 0.1, 0.001, 3), 100


def test_ogbench():
    """Whole observations as goals, and 3 x 512 also where the paper has a long preset of the task."""
    presets = {p["name"] for p in json.loads(good("list", "presets", "--json"))["presets"] if "env" in p and "oraclerep" not in p["env"] and "lock" not in p["env"] and "visual" not in p["env"]}
    assert presets == {row[0] for row in of_ogbench()}
    for preset, env, gamma, random, (iql, crl, qrl, hiql), k in of_ogbench():
        config = {agent: options(preset, agent) for agent in OTHERS}
        for agent in OTHERS:
            has(config[agent], env=env, gamma=0.999 if agent in FLOWS else gamma, rep=[], actor_layernorm=agent in WITH_LAYERNORM)
            has(config[agent], actor_law="geometric" if agent in FLOWS else "uniform", actor_random=0 if agent in CLONES else random)
        has(config["gcivl"], alpha=10, kappa=0.9)
        has(config["iql"], alpha=iql, kappa=0.9)
        has(config["crl"], alpha=crl)
        has(config["qrl"], alpha=qrl)
        has(config["tmd"], alpha=crl, batch=512)
        has(config["hiql"], alpha_low=hiql, alpha_high=hiql, subgoal_steps=k, kappa=0.7)
        has(config["sharsa"], subgoal_steps=k, agg="min", samples=32)
        has(config["hbc"], subgoal_steps=k, actors="flow")
        has(config["por"], **por_of(preset))
    assert options("puzzle-4x5-ogbench", "mc")["hidden"] == [512] * 3


def test_visual():
    """The paper's values on pictures, OGBench's for its own agents, and what all of these runs share."""
    presets = {p["name"] for p in json.loads(good("list", "presets", "--json"))["presets"] if "visual" in p.get("env", "")}
    assert presets == set(VISUAL) and len(VISUAL) == 10
    for preset, (mc, qrl, tmd, (pull, ways, far), coe, gamma, crop, (iql, crl, k)) in VISUAL.items():
        config = {agent: options(preset, agent) for agent in AGENTS + TRIANGLES + OTHERS}
        for agent, c in config.items():
            has(c, env=f"{preset}-{'navigate' if 'maze' in preset else 'play'}-v0", hidden=[512] * 3, batch=256, steps=500_000, save_every=100_000, lr=3e-4, tau=0.005)
            has(c, crop=crop, crop_pad=3, picture="auto", rep=[], fusion="concat" if agent in CONCAT else "separate", gamma=0.999 if agent in FLOWS else gamma)
            assert c.get("lambda", 0) == 0 and c.get("n", 25) == 25, c
        for agent in ("dcrl", "curriculum", "trl", "trl-n", "td-n"):
            has(config[agent], policy="rejection", samples=8)
            assert all(config[agent].get(k, 0.7) == 0.7 for k in ("kappa", "kappa_prop"))
        has(config["mc"], policy="ddpgbc", alpha=mc)
        has(config["tdp"], policy="ddpgbc", alpha=pull, candidates=ways, far_steps=far)
        has(config["coe"], alpha=coe, beta=10)
        has(config["iql"], policy="ddpgbc", alpha=iql, kappa=0.9)
        has(config["hiql"], alpha_low=3, alpha_high=3, subgoal_steps=k, kappa=0.7, rep_dim=10)
        for agent, alpha in (("qrl", qrl), ("tmd", tmd), ("crl", crl), ("gcivl", 10)):
            has(config[agent], alpha=alpha)


def test_visual_training():
    """A step on pictures in a file, of every method that the paper plays on them and whose networks see pictures."""
    with Scratch("presets") as scratch:
        pictures = np.random.default_rng(1).integers(0, 256, (60, 64, 64, 3)).astype(np.uint8)
        np.savez(scratch.at("d.npz"), observations=pictures, terminals=np.arange(60) % 30 == 29, actions=np.random.uniform(-1, 1, (60, 5)).astype(np.float32))
        small = ["--hidden", "8,8", "--batch", 4, "--steps", 1]
        for agent in ("hiql", "qrl", "tmd", "tdp", "mc", "td-n", "trl", "dcrl"):
            good("train", "visual-cube-single", "--agent", agent, "--data", scratch.at("d.npz"), *small, "--out", scratch.at(agent))
            with open(scratch.at(agent, "config.json")) as file:
                has(json.load(file), crop=0.5, fusion="concat" if agent in CONCAT else "separate")


def test_others_long():
    """The horizon-reduction code's values."""
    for preset, (iql, crl, qrl, sacbc, agg, kappa, alpha, k, law, random) in HORIZON.items():
        config = {agent: options(preset, agent) for agent in OTHERS}
        for agent in OTHERS:
            has(config[agent], gamma=0.999, actor_layernorm=agent not in ("qrl", "por"))
        for agent in CLONES:
            has(config[agent], actor_law="geometric", actor_random=0)
        has(config["gcivl"], alpha=10, kappa=0.9, goal_law="uniform", actor_law=law, actor_random=random)
        has(config["iql"], alpha=iql, kappa=0.9, policy="ddpgbc", goal_law="uniform", actor_law=law, actor_random=random)
        has(config["sacbc"], alpha=sacbc, agg=agg, goal_law="uniform", actor_law=law, actor_random=random)
        has(config["crl"], alpha=crl, latent=1024, actor_law=law, actor_random=random)
        has(config["qrl"], alpha=qrl, latent=1024)
        has(config["tmd"], alpha=crl, latent=1024, batch=512, actor_law=law, actor_random=random)
        has(config["hiql"], kappa=kappa, alpha_low=alpha, alpha_high=alpha, subgoal_steps=k, rep_dim=128, goal_law="uniform", actor_law=law, actor_random=random)
        has(config["hbc"], subgoal_steps=k, actors="flow")
        has(config["por"], **por_of(preset), goal_law="uniform", actor_law=law, actor_random=random)
        has(config["sharsa"], subgoal_steps=k, agg=agg, samples=32, goal_law="uniform", actor_law=law, actor_random=random)


def test_sizes():
    """Networks, batch and steps as the paper has them."""
    config = config_of("pointmaze-large", "dcrl")
    assert config["hidden"] == [512] * 3 and config["batch"] == 1024 and config["save_every"] == 100_000
    presets = {p["name"]: p for p in json.loads(good("list", "presets", "--json"))["presets"]}
    assert presets["long"]["hidden"] == "1024,1024,1024,1024" and presets["long"]["batch"] == "1024"
    assert presets["long"]["steps"] == presets["standard"]["steps"] == "1000000"


def test_training():
    """A step of every method with a preset of each kind, to a config.json that says what --dry-run did."""
    sizes = {"pointmaze-large": SIZES["pointmaze"], "cube-single": (ARM["cube-single"][0], 5), "puzzle-4x5": (ARM["puzzle-4x5"][0], 5)}
    small = ["--hidden", "16,16", "--batch", 8, "--steps", 1]
    with Scratch("presets") as scratch:
        for preset, widths in sizes.items():
            data = scratch.at(preset + ".npz")
            write_data(data, *widths)
            for agent in AGENTS + OTHERS + TRIANGLES:
                run = scratch.at(f"{preset}-{agent}")
                good("train", preset, "--agent", agent, "--data", data, *small, "--out", run)
                with open(os.path.join(run, "config.json")) as file:
                    config = json.load(file)
                has(config, **(options(preset, agent, *small) | {"data": config["data"], "val": "off"}))


def test_errors():
    with Scratch("presets") as scratch:
        write_data(scratch.at("d.npz"), 29, 8)
        out = ["--data", scratch.at("d.npz"), "--out", scratch.at("run")]
        bad(2, ["'pointmaze-larg'", "did you mean 'pointmaze-large'?"], "train", "pointmaze-larg", *out)
        bad(1, ["29 columns", "pointmaze-large-oraclerep-v0 has 2", "data of that environment"], "train", "pointmaze-large", *out)
        bad(2, ["(0.2, 0.5, 0)", "add up to 1"], "train", "antmaze-large", *out, "--set", "goal_random=0")


if __name__ == "__main__":
    run_tests(globals())
