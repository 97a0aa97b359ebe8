"""A small data set and a small critic, so that a whole training takes a fraction of a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from toptail.lab.tasks.files import Dataset, save_file
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.config import RunConfig
from toptail.lab.training.data import TaskData

SMALL = (("hidden", (8,)), ("embed_dim", 4), ("ensemble", 1))


def walks(trajectories: int, rows: int, seed: int) -> Trajectories:
    """Random walks in the plane whose actions are their steps."""
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-1, 1, (trajectories, rows, 2))
    observations = np.cumsum(actions, axis=1) - actions
    terminals = np.zeros((trajectories, rows), dtype=bool)
    terminals[:, -1] = True
    return Trajectories(
        observations.reshape(-1, 2).astype(np.float32),
        actions.reshape(-1, 2).astype(np.float32),
        terminals.reshape(-1),
    )


def toy_dataset() -> Dataset:
    return Dataset(walks(10, 20, seed=1), walks(4, 20, seed=2), None)


@cache
def toy_data() -> TaskData:
    return TaskData.place(toy_dataset())


def toy_file(folder: Path) -> Path:
    """Write the data set; returns the training file."""
    data = toy_dataset()
    save_file(folder / "walks.npz", data.train)
    save_file(folder / "walks-val.npz", data.val)
    return folder / "walks.npz"


def toy_config(**changes: Any) -> RunConfig:
    """A run of 14 steps with a line every 3: the last line has only 2 steps."""
    settings: dict[str, Any] = {
        "task": "walks",
        "critic": "raw",
        "steps": 14,
        "batch_size": 16,
        "learning_rate": 1e-2,
        "log_every": 3,
        "settings": SMALL,
    }
    return RunConfig(**(settings | changes))
