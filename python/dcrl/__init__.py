"""dcrl: offline goal-conditioned reinforcement learning.

    data = dcrl.Dataset("pointmaze.npz")
    policy = dcrl.train("runs/a", data, agent="dcrl", steps=100_000)
    action = policy.act(observation, goal)

`Dataset`, `train` and `Run`, `Policy`, and OGBench's environments: `make`, `make_vec`, `make_env_and_datasets`. Errors are
subclasses of `dcrl.Error` whose message says what to do.
"""

from ._lib import (
    Error,
    FileError,
    InputError,
    Interrupted,
    NotFiniteError,
    OutOfMemory,
    Unsupported,
    UsageError,
    program,
    version,
)
from .data import Dataset
from .envs import Env, VectorEnv, list_envs, make, make_vec
from .ogbench import load_dataset, make_env_and_datasets
from .policy import Policy, Score
from .train import Run, train

__version__ = version().split()[0]

__all__ = [
    "Dataset",
    "Env",
    "Error",
    "FileError",
    "InputError",
    "Interrupted",
    "NotFiniteError",
    "OutOfMemory",
    "Policy",
    "Run",
    "Score",
    "Unsupported",
    "UsageError",
    "VectorEnv",
    "list_envs",
    "load_dataset",
    "make",
    "make_env_and_datasets",
    "make_vec",
    "program",
    "train",
    "version",
]
