"""The gradient check of the contract, which also holds for losses with kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.full_cases import SLOW, Case, double, flat, slow_rows
from toptail.lab.critics.base import Batch

STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
SETTLED = 1e-5


def gradient_gap(case: Case, slow_loss: Callable[..., slow.Scalars], batch: Batch) -> float:
    """The largest relative difference of a critic's gradient and the slow loss's, in 3 directions.

    The slow loss reads whatever must not carry a gradient from the unmoved parameters: a missing
    stop_gradient would show.
    """
    wide, rows = double(case.params), slow_rows(batch)
    _, grads = case.gradient(case.params, batch)
    scale = float(np.linalg.norm(flat(grads)))
    rng, gaps = np.random.default_rng(4), []
    for _ in range(3):
        move = jax.tree.map(lambda x: rng.normal(size=x.shape), wide)

        def loss(t: float, move: Any = move) -> float:
            moved = jax.tree.map(lambda x, d: x + t * d, wide, move)
            return slow_loss(moved, wide, rows, SLOW)["loss"]

        expected = derivative(loss, scale)
        gaps.append(abs(flat(grads) @ flat(move) - expected) / max(abs(expected), scale))
    return float(max(gaps))


def derivative(function: Callable[[float], float], scale: float) -> float:
    """The central difference at 0, at the first step from which a smaller one changes nothing.

    A step across a kink (max, relu, a sort) gives a wrong slope; a smaller step does not reach it.
    """
    before = np.inf
    for step in STEPS:
        found = (function(step) - function(-step)) / (2 * step)
        if abs(found - before) <= SETTLED * max(abs(found), scale):
            return found
        before = found
    raise AssertionError(f"the difference quotient does not settle down to steps of {STEPS[-1]}")
