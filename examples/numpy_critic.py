"""A critic of one's own, in NumPy: how near the goal is to where the action points.

    toptail-paper study semantics --task pointmaze-medium-navigate-v0 --runs RUNS --out OUT \
        --scorer examples/numpy_critic.py:score

The score is minus the straight-line distance from the state, moved by the action, to the goal. It
knows nothing of walls, so it is a baseline that a trained critic should beat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEP = 0.2
"""How far an action of length 1 moves the agent in one step of PointMaze."""


def score(
    states: NDArray[np.float32], actions: NDArray[np.float32], goals: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return one score per row; larger is better.

    Parameters
    ----------
    states
        Observations ``[n, s]``; the first two columns are the position.
    actions
        Actions ``[n, a]``; where there are exactly two columns they move the position.
    goals
        Observations to be reached ``[n, s]``.
    """
    position = states[:, :2]
    if actions.shape[1] == 2:
        position = position + STEP * actions
    distance: NDArray[np.float32] = np.linalg.norm(goals[:, :2] - position, axis=1)
    return -distance
