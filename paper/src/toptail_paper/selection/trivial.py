"""Scores that need no training, as rows beside the critics: what a task shows without any.

``straight`` is the straight line to the goal, a · (g − s). It is defined where an action is a
displacement in the plane of the goal, so on PointMaze alone: a walker's joint torques have no
direction. ``likely`` is the behaviour model's density at the candidate. A diffusion model gives no
density, so it is estimated from the model's own samples at the query, which are the candidates of
all its pools: the nearer the k-th nearest other sample, the denser, with k the root of their
number. ``random``, the third, has no scores: its expectation is exact (`Judged.of_random`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from toptail.lab.tasks.names import is_ogbench, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray
from toptail_paper.selection.pools import CandidatePools


class TrivialScore(NamedTuple):
    """A score of all candidates of a study."""

    formula: str
    """What it is, for the header of its file."""
    score: Callable[[FrozenQueries, CandidatePools], FloatArray]
    """Scores of the candidates and the logged action, ``[Q, P, N + 1]``."""


def trivial_scores(task: str) -> Mapping[str, TrivialScore]:
    """The trivial scores that mean something on a task."""
    moves_a_point = is_ogbench(task) and parse_name(task).family == "pointmaze"
    return {name: _SCORES[name] for name in _SCORES if moves_a_point or name != "straight"}


def straight(queries: FrozenQueries, pools: CandidatePools) -> FloatArray:
    """How far a candidate moves the point towards the goal: a · (g − s)."""
    toward = (queries.goals - queries.states)[:, None, None]
    return np.asarray((pools.with_logged() * toward).sum(axis=-1), np.float32)


def likely(queries: FrozenQueries, pools: CandidatePools) -> FloatArray:
    """Minus the distance to the k-th nearest other sample of the query; k = round(√(P N))."""
    count, n = len(queries), pools.actions.shape[1] * pools.actions.shape[2]
    k = min(round(np.sqrt(n)), n - 1)
    samples = pools.actions.reshape(count, n, -1).astype(np.float64)
    scores = np.empty(pools.scored_shape, np.float32)
    for q, (own, logged) in enumerate(zip(samples, pools.logged, strict=True)):
        # A sample is its own nearest one, so its k-th other is the next.
        near = np.partition(cdist(own, own), k, axis=1)[:, k]
        scores[q, :, :-1] = -near.reshape(scores.shape[1], -1)
        scores[q, :, -1] = -np.partition(cdist(logged[None], own)[0], k - 1)[k - 1]
    return scores


_SCORES: Final = {
    "straight": TrivialScore("a . (g - s)", straight),
    "likely": TrivialScore(
        "minus the distance to the k-th nearest other candidate of the query's pools, k the "
        "rounded root of their number",
        likely,
    ),
}
