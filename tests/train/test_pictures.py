"""Training on pictures: the same bytes with any number of threads and after a stop; checkpoints that say what they see; a
policy that acts as JAX computes from the weights in its file; and what is refused."""
import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
TESTS = os.path.join(os.path.dirname(__file__), "..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "python")]
import package  # noqa: F401, E402

sys.path.insert(0, os.path.join(TESTS, "algo"))  # whose parity.py is meant
import numpy as np  # noqa: E402
from drive import Scratch, bad, checkpoints, digests, good  # noqa: E402
from safetensors import safe_open  # noqa: E402

import dcrl  # noqa: E402
import fresh  # noqa: E402
import test_picture_parity as pictures  # noqa: E402

SHAPE, ROWS, LENGTH = (16, 17, 3), 400, 40
pictures.SHAPE, pictures.CELLS = SHAPE, int(np.prod(SHAPE))
AGENTS = {"bc": [], "hiql": ["rep_dim=4"], "crl": ["latent=16"], "dcrl": ["policy=rejection", "samples=3", "flow_steps=2"], "iql": [], "gcivl": []}
rng = np.random.default_rng(fresh.seed())


def write(path, **change):
    arrays = {"observations": rng.integers(0, 256, (ROWS, *SHAPE)).astype(np.uint8), "actions": np.float32(rng.uniform(-1, 1, (ROWS, 2))),
              "terminals": np.arange(ROWS) % LENGTH == LENGTH - 1}
    np.savez(path, **arrays | change)


def words(agent, *more):
    sets = ["hidden=8,8", "batch=6", "log_every=2", "crop=0.5", *AGENTS[agent], *more]
    return ["--agent", agent, "--steps", 4, *(w for s in sets for w in ("--set", s))]


def read(run):
    with safe_open(checkpoints(run)[-1], "np") as file:
        return {k: file.get_tensor(k) for k in file.keys()}, file.metadata()


def check_agent(s, agent, *more):
    run = agent + "".join(more)
    for name, threads in (("one", 1), ("three", 3)):
        good("train", "--data", s.at("a.npz"), "--out", s.at(run, name), *words(agent, f"threads={threads}", *more))
    good("train", "--data", s.at("a.npz"), "--out", s.at(run, "two"), *words(agent)[:2], "--steps", 2, *words(agent, *more)[4:])
    good("train", "--resume", s.at(run, "two"), "--steps", 4)
    assert digests(s.at(run, "one")) == digests(s.at(run, "three")) == digests(s.at(run, "two")), run
    tensors, said = read(s.at(run, "one"))
    concat = "fusion=concat" in more
    assert f"impala_small (16,17,{6 if concat else 3})" in said["networks"] and '"picture": [16,17,3]' in said["method"], said
    assert ("fusion" in said["config"]) == ("concat" in said["method"]) == concat, said
    assert ("target_critic/encoder1/dense/w" in tensors) == (agent in ("dcrl", "iql") and not concat)
    policy = dcrl.Policy(s.at(run, "one"))
    obs, goal = (rng.integers(0, 256, (70, pictures.CELLS)) for _ in range(2))  # more than are encoded at once
    actions = policy.act(obs, goal)
    assert actions.shape == (70, 2) and np.isfinite(actions).all() and actions.std() > 0
    if agent in ("bc", "dcrl"):
        check_goals(s.at(run, "one"), obs, goal)
    return tensors, obs, goal, actions


def check_goals(run, obs, goal):
    """What is kept of goals: the actions are those of a policy that saw other goals before, to the bit."""
    others, moved = goal[::-1].copy(), goal.copy()
    moved[69] = goal[0]
    for then in (goal, moved, np.roll(goal, 1, 0)):
        kept, other = (dcrl.Policy(run) for _ in range(2))
        kept.act(obs, goal)
        other.act(obs, others)
        assert (kept.act(obs[::-1], then) == other.act(obs[::-1], then)).all(), run


def check_acting(tensors, obs, goal, actions):
    """bc's action is the mean that its actor gives of what its encoders see."""
    def encoder(k):
        names = [f"conv{i}" for i in range(9)] + ["dense"]
        return {n: {p: np.float64(tensors[f"actor/encoder{k}/{n}/{p}"]) for p in "wb"} for n in names}

    encoders = [encoder(k) for k in range(2 - pictures.CONCAT)]

    def part(k):
        found = {p: np.float64(tensors[f"actor/{k}/{p}"]) for p in "wb"}
        return found | {"b": found["b"].reshape(1, -1)}

    for e in (network := {"mlp": [part(k) for k in range(3)], "encoders": encoders})["encoders"]:
        for p in e.values():
            p["b"] = p["b"].reshape(1, -1)
    want = np.clip(pictures.net(network, obs / 255, goal / 255)[0], -1, 1)
    assert np.abs(want - actions).max() < 1e-5, np.abs(want - actions).max()


def check_refused(s):
    train = lambda code, texts, *more, data="a.npz", agent="bc": bad(
        code, texts, "train", "--agent", agent, "--data", s.at(data), "--steps", 2, "--out", s.at("no"), "--set", "hidden=8", "--set", "batch=4", *more)
    train(1, ["network high_actor would have to paint pictures of 16 x 17 x 3", "picture=off"], agent="por")
    train(2, ["picture must be auto, off or HEIGHT,WIDTH,CHANNELS", "16x17"], "--set", "picture=16x17")
    train(2, ["an observation has 816 values, a picture of 16,16,3 has 768"], "--set", "picture=16,16,3")
    train(2, ["observations are no pictures that could be cropped"], "--set", "crop=0.5", data="floats.npz")
    train(2, ["observations are no pictures that an encoder could see side by side"], "--set", "fusion=concat", data="floats.npz")


def check_every_agent(s):
    """The others train, too, or say which network cannot see pictures."""
    small = lambda agent, *more: ("train", "--agent", agent, "--data", s.at("a.npz"), "--steps", 1, "--hidden", 4, "--batch", 4, *more)
    for agent in (a["name"] for a in json.loads(good("list", "agents", "--json"))["agents"]):
        if agent in AGENTS:
            continue
        if agent in ("coe", "por", "hbc", "sharsa"):
            bad(1, ["network", "pictures" if agent in ("por", "hbc") else "no encoder", "picture=off"], *small(agent, "--out", s.at("no")))
            if agent != "coe":  # goals that are a few numbers
                good(*small(agent, "--out", s.at("rep-" + agent), "--set", "rep=0,2"))
        else:
            good(*small(agent, "--out", s.at("every-" + agent)))


def check_held_out(s):
    """Held-out pictures are not cropped: with steps of size 0 their loss is that of a run that crops nothing."""
    write(s.at("b.npz"))
    write(s.at("b-val.npz"))
    logs = []
    for crop in ("0", "1"):
        out = s.at("val" + crop)
        good("train", "--agent", "bc", "--data", s.at("b.npz"), "--steps", 2, "--hidden", 8, "--batch", 4, "--lr", 0, "--out", out, "--set", f"crop={crop}", "--set", "log_every=1")
        with open(os.path.join(out, "train.csv")) as log:
            logs.append([line.strip().split(",") for line in log])
    assert logs[0][0][1] == "loss_bc" and logs[0][0][3] == "val_loss_bc"
    assert [r[3] for r in logs[0]] == [r[3] for r in logs[1]] and [r[1] for r in logs[0][1:]] != [r[1] for r in logs[1][1:]]


def check_learns(s):
    """A blob goes straight ahead: where it is and where it will be say in which direction. Who does not see that has 0.5."""
    y, x = np.mgrid[:32, :32]
    heading = rng.uniform(0, 2 * np.pi, (400, 1))
    step = np.stack([np.sin(heading), np.cos(heading)], -1).repeat(12, 1)
    at = (rng.uniform(8, 23, (400, 1, 2)) + step * (np.arange(12)[:, None] - 6)).reshape(-1, 2)
    blob = np.exp(-((y - at[:, 0, None, None]) ** 2 + (x - at[:, 1, None, None]) ** 2) / 4)
    write(s.at("line.npz"), observations=np.stack([30 + 200 * blob, 60 + 0 * blob, 60 + 100 * blob], -1).astype(np.uint8),
          actions=np.float32(step.reshape(-1, 2)), terminals=np.arange(len(at)) % 12 == 11)
    good("train", "--agent", "bc", "--data", s.at("line.npz"), "--out", s.at("line"), "--hidden", "64,64", "--batch", 64, "--lr", 1e-3, "--steps", 300, "--set", "log_every=100")
    with open(s.at("line", "train.csv")) as log:
        loss = float(log.readlines()[-1].split(",")[1])
    assert loss < 0.2, loss


def check_off(s):
    """Without encoders pictures are rows of numbers, as they were; so are small ones by themselves."""
    good("train", "--data", s.at("a.npz"), "--out", s.at("off"), "--agent", "bc", "--steps", 2, "--set", "picture=off", "--hidden", 8, "--batch", 4)
    tensors, said = read(s.at("off"))
    assert tensors["actor/0/w"].shape[1] == 2 * pictures.CELLS and "picture" not in said["method"] + said["config"] + said["networks"]
    good("train", "--data", s.at("floats.npz"), "--out", s.at("given"), "--agent", "bc", "--steps", 2, "--set", "picture=16,17,3", "--hidden", 8, "--batch", 4)
    assert "actor/encoder1/conv8/w" in read(s.at("given"))[0]


with Scratch("pictures") as s:
    write(s.at("a.npz"))
    write(s.at("floats.npz"), observations=np.float32(rng.random((ROWS, *SHAPE))))
    found = {agent: check_agent(s, agent) for agent in AGENTS}
    check_acting(*found["bc"])
    pictures.CONCAT = True
    check_acting(*check_agent(s, "bc", "fusion=concat"))
    check_off(s)
    check_learns(s)
    check_every_agent(s)
    check_held_out(s)
    check_refused(s)
print(f"{len(AGENTS)} methods trained on pictures of {SHAPE}, and acted")
