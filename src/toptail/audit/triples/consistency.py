"""Pathwise Bellman consistency: how far a score is from the recursion that a value obeys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.errors import InputError
from toptail.pools.columns import split_seed
from toptail.pools.triples import ScoredTriples
from toptail.stats.best_of_k import Floats, Ints


@dataclass(frozen=True)
class BellmanConsistency:
    """Two normalized errors of the one-step residual δ; lower is better for both."""

    rmse: Estimate
    """RMSE(δ)/std(f): the paper's; depends on the score's arbitrary offset."""
    std: Estimate
    """std(δ)/std(f): does not change when a constant is added to the score."""


def bellman_consistency(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> BellmanConsistency:
    r"""Normalized error of the Bellman recursion along the recorded actions, for d >= 2.

    .. math:: \delta = f(s_t, a_t, g) - r - \gamma f(s_{t+1}, a_{t+1}, g), \qquad
              \frac{\operatorname{RMSE}(\delta)}{\operatorname{std}(f)},\quad
              \frac{\operatorname{std}(\delta)}{\operatorname{std}(f)}

    with r the critic's own reward of a step that misses the goal: 0 for contrastive scores
    and 0/1 critics, -1 for -1/0 critics. Standard deviations are over the same triples with
    divisor n. Lower is better; an exact return-to-go (γ^d, or -(1 - γ^d)/(1 - γ)) gives 0.
    NaN for a constant score, which has no scale.
    """
    keep = triples.distance >= 2
    if not keep.any():
        raise InputError(
            f"{triples.source}: no triple has a goal two or more steps away, which the Bellman "
            "residual needs; draw triples with longer offsets."
        )
    score = bootstrap.column(triples, "scores", column)
    following = bootstrap.column(triples, "next_scores", column)
    reward = triples.step_reward[split_seed(column)[0]]
    # Next scores of triples with d = 1 may be anything: they are never looked at.
    residual = np.where(keep, score - reward - triples.gamma * np.where(keep, following, 0.0), 0.0)

    def errors(rows: Ints) -> Floats:
        f, delta = score[rows], residual[rows]
        spread = f.std() if f.max() > f.min() else np.nan
        return np.array([np.sqrt((delta**2).mean()), delta.std()]) / spread

    both = bootstrap.each(errors, keep)
    return BellmanConsistency(both[0], both[1])
