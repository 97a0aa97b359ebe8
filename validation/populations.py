"""Queries whose truth is known: what the populations of several simulations are made of."""

from __future__ import annotations

import numpy as np

from toptail.stats.best_of_k import Floats, KGrid

Part = tuple[Floats, Floats]
"""Scores and values ``[queries, candidates]``."""


def correlated(rng: np.random.Generator, shape: tuple[int, int], strength: float) -> Part:
    """Standard normal values, and scores of this correlation with them."""
    value = rng.normal(size=shape)
    return strength * value + np.sqrt(1 - strength**2) * rng.normal(size=shape), value


def trapped(score: Floats, value: Floats, depth: float | Floats = 0.0) -> Part:
    """The same with a top-scored candidate that is worth ``depth`` less than the worst."""
    value = value.copy()
    value[np.arange(len(value)), score.argmax(axis=1)] = value.min(axis=1) - depth
    return score, value


def changes(value: Floats, grid: KGrid) -> Floats:
    """What curves ``[..., n_k]`` change by over each step of the grid ``[..., steps]``."""
    first, second = np.searchsorted(grid.deciding, grid.steps).T
    return np.asarray(value[..., second] - value[..., first])
