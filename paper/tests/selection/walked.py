"""A few random steps of each walker, and untrained runs of their widths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.tests.semantics.fake_runs import write_run
from tests.training.toy import SMALL
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.tasks.episodes import Navigator, Situation
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.config import LearnerConfig, RunConfig

WALKERS = (
    "antmaze-medium-navigate-v0",
    "humanoidmaze-medium-navigate-v0",
    "antsoccer-arena-navigate-v0",
)
ROWS = 70
"""Rows of an episode: as many as far goals need."""


class Still:
    """Does nothing: the noise moves the joints."""

    def __init__(self, actions: int) -> None:
        self._actions = actions

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        del rngs

    def actions(self, situation: Situation) -> NDArray[Any]:
        return np.zeros((len(situation.positions), self._actions))

    def describe(self) -> str:
        return "nothing"


@cache
def walked(name: str) -> Dataset:
    """Three episodes for training and three for validation."""
    task = parse_name(name)
    assert task.dimensions is not None
    navigator = Navigator(task, ROWS, 0.5, Still(task.dimensions[1]))
    episodes = navigator.collect([np.random.SeedSequence(i) for i in range(6)])
    train, val = (_joined([e.arrays for e in part]) for part in (episodes[:3], episodes[3:]))
    return Dataset(train, val, task)


def _joined(episodes: Sequence[dict[str, NDArray[Any]]]) -> Trajectories:
    arrays: dict[str, Any] = {
        name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]
    }
    terminals = np.tile(np.arange(ROWS) == ROWS - 1, len(episodes))
    return Trajectories(**arrays, terminals=terminals)


def write_walker_run(name: str, critic: str, seed: int, out: Path) -> Path:
    """An untrained run on a walker's data: of a critic, or of the behaviour model."""
    if critic == "diffusion":
        small = (("hidden", (8,)), ("levels", 4), ("time_dim", 4))
        config: LearnerConfig = DiffusionRun(name, critic, 4, 16, log_every=2, settings=small)
    else:
        config = RunConfig(name, critic, 4, 16, log_every=2, settings=SMALL)
    dimensions, train = parse_name(name).dimensions, walked(name).train
    assert dimensions is not None
    return write_run(config, seed, out, train.sha256, dimensions)
