"""How much a score changes over the cube of actions while state and goal stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.base import TrainedCritic
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries
from toptail.lab.tasks.trajectories import Trajectories
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.deployment.config import SpreadConfig
from toptail_paper.selection.deployment.search import EXACT

BLOCK = 50
"""States that are scored in one call."""


class Spread(NamedTuple):
    """Spread of a score at each state, in units of the score's size there."""

    range: Floats
    """[m] (max_a f - min_a f) / |mean_a f|"""

    deviation: Floats
    """[m] std_a f / |mean_a f|"""


def spread_of(scores: NDArray[Any]) -> Spread:
    """Spread of scores [m, n] over the n actions of each state."""
    size = np.abs(scores.mean(axis=1))
    return Spread(np.ptp(scores, axis=1) / size, scores.std(axis=1) / size)


def score_spread(
    config: SpreadConfig,
    critic: TrainedCritic,
    val: Trajectories,
    drawn: QueryConfig | None = None,
) -> dict[str, dict[str, Any]]:
    """Median and quartiles of both spreads over states, for all of them and by distance group.

    A spread can be large because the score passes through 0 there; the median over states does
    not depend on how large. ``drawn`` has the bounds of the distance groups, where they are not the
    usual ones.
    """
    groups = replace(drawn or QueryConfig(), per_group=config.per_group, seed=config.seed)
    queries = freeze_queries(val, groups)
    rng = np.random.default_rng([config.seed, 1])
    actions = rng.uniform(-1, 1, (config.actions, queries.actions.shape[1])).astype(np.float32)
    spread = spread_of(_scores(critic, queries, actions))
    masks = {"all": np.ones(len(queries), dtype=bool)}
    masks |= {name: queries.group == name for name in queries.config.groups()}
    return {
        name: {"states": int(mask.sum())}
        | {kind: _quartiles(values[mask]) for kind, values in spread._asdict().items()}
        for name, mask in masks.items()
    }


def _scores(critic: TrainedCritic, queries: FrozenQueries, actions: NDArray[np.float32]) -> Floats:
    """Score every action at every query: [queries, actions]."""
    blocks = []
    with jax.default_matmul_precision(EXACT):
        for start in range(0, len(queries), BLOCK):
            own = slice(start, start + BLOCK)
            states, goals = (
                x[own, None].astype(np.float32) for x in (queries.states, queries.goals)
            )
            blocks.append(critic.score(states, actions[None], goals))
    return np.concatenate(blocks).astype(np.float64)


def _quartiles(values: Floats) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"median": float(median), "lower_quartile": float(low), "upper_quartile": float(high)}
