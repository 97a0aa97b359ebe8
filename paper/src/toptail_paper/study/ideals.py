"""The ideal critics as scorers: columns of a study's scores that need no training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.judges.ideals import point_ideals
from toptail.lab.scorers.base import Rows, Score, Scorer


def ideal_scorers(task: str, gamma: float) -> list[Scorer]:
    """The ideal critics of a PointMaze data set; solving for them takes minutes, once."""
    ideals = point_ideals(task, gamma)
    return [
        Scorer(name, _in_float32(score), ideals.origin(name))
        for name, score in ideals.scores().items()
    ]


def _in_float32(score: Callable[..., NDArray[Any]]) -> Score:
    def scored(states: Rows, actions: Rows, goals: Rows) -> Rows:
        return np.asarray(score(states, actions, goals), np.float32)

    return scored
