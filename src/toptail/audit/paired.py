"""Ends of a ratio of paired sums that count one cluster which was not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from toptail.stats.best_of_k import Floats

_DRAWS_PER_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sums over each cluster's queries (C clusters, S scorers)."""

    change: Floats
    """Value of the new pick less that of the old one ``[C, S]``."""
    headroom: Floats
    """What the best choice gains over a random one in the old table ``[C]``."""
    lowest: Floats
    """The smallest change that any two scores could make ``[C]``."""
    highest: Floats
    """The largest change that any two scores could make ``[C]``."""


class Ends(NamedTuple):
    """A ratio with its one-sided ends; infinite where the headroom cannot be told from 0."""

    value: float
    low: float
    high: float


def ratio_ends(
    pairs: Pairs, rng: np.random.Generator, resamples: int, level: float = 0.95
) -> list[Ends]:
    r"""Sum of changes over sum of headroom, each end one-sided at :math:`(1 - level)/2`.

    The wider of two ends. One draws weights of the clusters and of one more, which was not seen,

    .. math:: r^* = \frac{\sum_i w_i D_i + w_0 D_0}{\sum_i w_i H_i + w_0 H_0},
              \qquad w \sim \mathrm{Dirichlet}(1, \dots, 1),

    with :math:`D_0 = \sum H D^- / \sum H` (:math:`D^+` for the upper end) and
    :math:`H_0 = \sum H^2 / \sum H`: a harm too rare to be in the sample counts as deep as the
    candidates allow. The other is Fieller's: the ratios r at which Student's test of a mean
    :math:`D - rH` of 0 does not reject, exact for normal sums.

    References
    ----------
    Fieller (1954), "Some problems in interval estimation".
    """
    clusters, tail = len(pairs.headroom), (1.0 - level) / 2
    unit = pairs.headroom.mean()  # first, so that no square underflows
    change, headroom = pairs.change / unit, pairs.headroom / unit
    share = np.maximum(headroom, 0.0) / np.maximum(headroom, 0.0).sum()
    unseen = np.array([share @ (pairs.lowest / unit), share @ (pairs.highest / unit)])
    drawn = _drawn(change, headroom, unseen, float(share @ headroom), rng, resamples)
    # One of the draws: between two infinite ones there is nothing to interpolate.
    lower = np.quantile(drawn[0], tail, axis=0, method="lower")
    upper = np.quantile(drawn[1], 1.0 - tail, axis=0, method="higher")
    critical = float(stdtrit(clusters - 1, 1.0 - tail))
    result = []
    for at, column in enumerate(change.T):
        low, high = fieller(column, headroom, critical)
        ends = min(low, float(lower[at])), max(high, float(upper[at]))
        result.append(Ends(float(column.mean()), *ends))
    return result


def _drawn(
    change: Floats,
    headroom: Floats,
    unseen: Floats,
    unseen_headroom: float,
    rng: np.random.Generator,
    resamples: int,
) -> Floats:
    """Drawn ratios with the unseen cluster at its lowest and at its highest ``[2, draws, S]``."""
    columns = np.column_stack([change, headroom])
    result = np.empty((2, resamples, change.shape[1]))
    block = max(1, _DRAWS_PER_BLOCK // (len(columns) + 1))
    for start in range(0, resamples, block):
        rows = slice(start, min(start + block, resamples))
        weights = rng.standard_exponential((rows.stop - start, len(columns) + 1))
        sums = weights[:, 1:] @ columns
        below = sums[:, -1:] + weights[:, :1] * unseen_headroom
        for side, most in enumerate(unseen):
            ratio = (sums[:, :-1] + weights[:, :1] * most) / np.where(below > 0, below, np.nan)
            result[side, rows] = np.where(below > 0, ratio, (-np.inf, np.inf)[side])
    return result


def fieller(change: Floats, headroom: Floats, critical: float) -> tuple[float, float]:
    """Both ends of the ratios of two means that Student's test does not reject.

    ``change`` and ``headroom`` are ``[clusters]``; infinite where the headroom's own mean cannot
    be told from 0.
    """
    mean = np.array([change.mean(), headroom.mean()])
    spread = critical**2 * np.cov(change, headroom) / len(change)
    (c, b), (_, a) = np.outer(mean, mean) - spread
    if not a > 0:
        return -np.inf, np.inf
    half = np.sqrt(max(b * b - a * c, 0.0)) / a
    return float(b / a - half), float(b / a + half)
