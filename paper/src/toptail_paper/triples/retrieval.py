"""Retrieval: whether the true goal scores above other goals. Ties count half."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toptail.errors import InputError
from toptail.stats import paired_win_rate, recall_at_k
from toptail.stats.best_of_k import Floats, rounding
from toptail.stats.resample import Estimate, cluster_sums
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.scored import ScoredTriples

DISTANCES = (1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 61)
"""Where the bins of :func:`distance_profile` start, and where the last one ends."""


def retrieval_auc(triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap) -> Estimate:
    r"""Pooled AUC of all positives against all negatives.

    .. math:: \mathrm{AUC} = \frac{1}{n \cdot nm} \sum_{i} \sum_{j,l}
              \big([f_i^+ > f_{jl}^-] + \tfrac12 [f_i^+ = f_{jl}^-]\big)

    with :math:`f_i^+` the score of triple i's own goal and :math:`f_{jl}^-` that of the l-th
    negative goal of triple j. In [0, 1], larger is better, 0.5 is chance. A resample is exact
    (a quadratic form in how often each trajectory was drawn); a negative is drawn with the
    triple that it was scored for.
    """
    positive, negative = _with(triples, "negatives", column, bootstrap)
    code, clusters = bootstrap.code, bootstrap.clusters
    wins = np.empty((positive.size, clusters))
    for cluster in range(clusters):
        mine = np.sort(negative[code == cluster], axis=None)
        sides = [np.searchsorted(mine, positive, side) for side in ("left", "right")]
        wins[:, cluster] = (sides[0] + sides[1]) / 2
    triples_in = np.bincount(code, minlength=clusters).astype(np.float64)
    tried = np.outer(triples_in, triples_in * negative.shape[1])
    return bootstrap.pairs(cluster_sums(wins, code)) / bootstrap.pairs(tried)


def hard_negative_win_rate(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> Estimate:
    r"""How often the goal beats the goal of the nearest state of another trajectory.

    .. math:: \operatorname{mean}_i \big([f_i^+ > f_i^h] + \tfrac12 [f_i^+ = f_i^h]\big)

    In [0, 1], larger is better, 0.5 is chance.
    """
    return bootstrap.mean(paired_win_rate(*_with(triples, "hard_negatives", column, bootstrap)))


def recall(triples: ScoredTriples, column: str, k: int, bootstrap: TrajectoryBootstrap) -> Estimate:
    """Share of triples whose goal is among the k highest of itself and its m negatives.

    Ties are in random order: a goal tied at the edge counts by its chance. In [0, 1], larger
    is better; k/(m + 1) is chance.
    """
    positive, negative = _with(triples, "negatives", column, bootstrap)
    if not 1 <= k <= negative.shape[1]:
        raise InputError(
            f"{triples.source}: recall@{k} needs k between 1 and {negative.shape[1]}, "
            "the number of negatives of each triple."
        )
    pool = np.column_stack([positive, negative])
    return bootstrap.mean(recall_at_k(pool, np.zeros(len(triples), dtype=np.int64), k))


def same_trajectory_win_rate(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> Estimate:
    """How often the goal beats the second goal of its own trajectory: a control.

    Both goals are drawn by the same rule, so which of them is called the goal is a coin
    toss: 0.5 in expectation for *every* score, a perfect one too. A value away from 0.5
    points at an error in drawing or scoring. For what a score knows of time, see
    :func:`nearer_goal_win_rate`. NaN without second goals.
    """
    wins = paired_win_rate(*_with(triples, "second_goals", column, bootstrap))
    return bootstrap.mean(wins, triples.second_distance > 0)


def nearer_goal_win_rate(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> Estimate:
    """How often the nearer of two goals on one trajectory scores higher, at one (s, a).

    In [0, 1], larger is better: 1 for an exact return-to-go, 0.5 for a score that only knows
    which trajectory a goal is on. NaN without second goals.
    """
    wins = paired_win_rate(*_with(triples, "second_goals", column, bootstrap))
    first_is_nearer = triples.distance < triples.second_distance
    nearer_wins = np.where(first_is_nearer, wins, 1.0 - wins)
    return bootstrap.mean(nearer_wins, triples.second_distance > 0)


def distance_profile(
    triples: ScoredTriples,
    column: str,
    bootstrap: TrajectoryBootstrap,
    edges: Sequence[int] = DISTANCES,
) -> Estimate:
    r"""Mean score against temporal distance; 1 = nearest goals, 0 = random goals ``[bins]``.

    .. math:: p_b = \frac{\bar f_b - \bar f^-}{\bar f_1 - \bar f^-}

    with :math:`\bar f_b` the mean score of the triples with :math:`e_b \le d < e_{b+1}` and
    :math:`\bar f^-` the mean score of the negatives. A value decays along the bins towards
    0; a score of compatibility alone stays near 1. NaN in an empty bin, and everywhere
    where nearest goals do not score above random ones.
    """
    scores, negative = _with(triples, "negatives", column, bootstrap)
    bins = np.searchsorted(np.asarray(edges), triples.distance, side="right") - 1
    member = bins[:, None] == np.arange(len(edges) - 1)
    # Scaled by the largest score, so that sums of huge scores stay finite.
    scale = max(float(np.abs(scores).max()), float(np.abs(negative).max())) or 1.0
    by_bin = bootstrap.mean(np.where(member, scores[:, None] / scale, 0.0))
    share = bootstrap.mean(member.astype(np.float64))
    random = bootstrap.mean((negative / scale).mean(axis=1, keepdims=True))
    above = by_bin / share - random
    nearest = above[:1]
    floor = rounding(1.0)  # a constant score must not be divided by what its sums round to
    return above / Estimate(
        np.where(nearest.point > floor, nearest.point, 0.0),
        np.where(nearest.draws > floor, nearest.draws, 0.0),
    )


def _with(
    triples: ScoredTriples, family: str, column: str, bootstrap: TrajectoryBootstrap
) -> tuple[Floats, Floats]:
    own, other = (bootstrap.column(triples, name, column) for name in ("scores", family))
    return own, other
