r"""Ends of a share: mean change over mean headroom, when harm may not have been seen.

A share is :math:`r = \sum_c D_c / \sum_c H_c` over clusters c. Its ends come from draws in which
one more cluster, which was not seen, stands beside the n that were:

.. math:: r^* = \frac{\sum_c w_c D_c + w_0 D_0}{\sum_c w_c H_c + w_0 H_0},
          \qquad (w_0, \dots, w_n) \sim \mathrm{Dirichlet}(1, \dots, 1).

Arrays end in ``[entries, resamples]`` (draws), ``[entries]`` (ends) or ``[clusters, entries]``
(what was seen); axes before those are a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from toptail.stats.best_of_k import Floats, Ints, selection_weights


def extreme_weights(n: int, k: Sequence[int], first: Ints, second: Ints) -> tuple[Floats, Floats]:
    r"""Weights that give the least and the most that V(K2) - V(K1) can be in a pool of ``n``.

    By the rearrangement inequality no order of the candidates by a score gives less than
    the sorted values against the differences of the rank weights sorted the other way, and
    none gives more than both sorted alike. Steps go from ``k[first]`` to ``k[second]``; returns two
    arrays ``[n, steps]`` for values in ascending order.

    Examples
    --------
    >>> least, most = extreme_weights(3, [1, 3], np.array([0]), np.array([1]))
    >>> ([0.0, 1.0, 5.0] @ least).round(6), ([0.0, 1.0, 5.0] @ most).round(6)
    (array([-2.]), array([3.]))
    """
    weights = selection_weights(n, k)
    change = np.sort(weights[second] - weights[first], axis=1).T
    return np.ascontiguousarray(change[::-1]), np.ascontiguousarray(change)


@dataclass(frozen=True, eq=False)
class Unseen:
    """One cluster that was not seen, ordered as badly and as well as its candidates allow."""

    least: Floats
    """Its change at worst ``[entries]``."""
    most: Floats
    """Its change at best ``[entries]``."""
    headroom: Floats
    """Its headroom ``[entries]`` or ``[1]``."""


def unseen_cluster(ends: Sequence[Floats], headroom: Floats) -> Unseen:
    r"""A cluster like those seen that have the most to lose.

    ``ends`` are the least and the most of each change ``[clusters, entries]``.
    :math:`D_0 = \sum H^3 D^\mp / \sum H^3` and :math:`H_0 = \sum H^4 / \sum H^3` over clusters (the
    axis before the last). By H alone, harm that sits in the clusters with the most headroom is
    counted too low. NaN without headroom.
    """
    relative = headroom / _positive(headroom.max(axis=-2, keepdims=True))
    weight = relative**3 / (relative**3).sum(axis=-2, keepdims=True)

    def weighted(column: Floats) -> Floats:
        return np.asarray((weight * column).sum(axis=-2))

    least, most = ends
    return Unseen(weighted(least), weighted(most), weighted(headroom))


@dataclass(frozen=True, eq=False)
class Shares:
    """Changes over headroom: what was seen, and draws with a cluster that was not."""

    value: Floats
    """``[entries]``: sum of changes over sum of headroom."""
    lower: Floats
    """``[entries, resamples]``: draws with the unseen cluster at its worst."""
    upper: Floats
    """``[entries, resamples]``: draws with the unseen cluster at its best."""
    moments: tuple[Floats, Floats, Floats]
    """Variances of the means of change and headroom and their covariance, over headroom
    squared; each ``[entries]``."""
    clusters: int
    """How many clusters were seen."""
    unseen: Unseen
    """The cluster that was not seen, over the mean headroom of those that were."""

    @property
    def se(self) -> Floats:
        """Standard errors to first order ``[entries]``."""
        dd, hh, dh = self.moments
        return np.sqrt(np.maximum(dd - 2 * self.value * dh + self.value**2 * hh, 0.0))

    def low(self, tail: float) -> Floats:
        """Lower ends of one-sided error ``tail``: the draws', and no higher than Student's."""
        return np.minimum(np.quantile(self.lower, tail, axis=-1), self.student(tail)[0])

    def high(self, tail: float) -> Floats:
        """Upper ends of one-sided error ``tail``: the draws', and no lower than Student's."""
        return np.maximum(np.quantile(self.upper, 1.0 - tail, axis=-1), self.student(tail)[1])

    def student(self, tail: float | Floats) -> tuple[Floats, Floats]:
        r"""Fieller's ends: where Student's test of :math:`E[D - rH] = 0` stops rejecting.

        Infinite where the headroom itself cannot be told from 0 (Fieller, 1954).
        """
        dd, hh, dh = self.moments
        t2 = np.asarray(stdtrit(max(self.clusters - 1, 1), tail), dtype=np.float64) ** 2
        a, b, c = 1.0 - t2 * hh, self.value - t2 * dh, self.value**2 - t2 * dd
        known = (a > 0) & (self.clusters > 1)
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        a = np.where(known, a, 1.0)
        return np.where(known, (b - root) / a, -np.inf), np.where(known, (b + root) / a, np.inf)

    def simultaneous_high(self, error: float, tail: float) -> tuple[Floats, Floats]:
        """Upper ends that hold together with this error, and the risk ``[1]`` of each alone.

        The rank c is the smallest for which at most ``error`` of the draws lie above the
        c-th smallest draw in any entry, and at most ``tail`` in one; the ends are those draws,
        and no lower than Student's at the same risk (Besag et al., 1995, for such bands).
        """
        resamples = self.upper.shape[-1]
        order = np.argsort(self.upper, axis=-1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(resamples), axis=-1)
        worst = np.sort(rank.max(axis=-2), axis=-1)
        together = int(np.ceil((1.0 - error) * resamples)) - 1
        alone = int(np.ceil((1.0 - tail) * (resamples - 1)))  # no lower than the quantile
        at = np.maximum(worst[..., together, None], alone)
        chosen = np.take_along_axis(order, at[..., None], axis=-1)
        drawn = np.take_along_axis(self.upper, chosen, axis=-1)[..., 0]
        risk = np.minimum(1.0 - at / resamples, tail)
        return np.maximum(drawn, self.student(risk)[1]), risk


@dataclass(frozen=True, eq=False)
class Between:
    """Shares of which change and headroom are only known to lie between two ends.

    Its ends are true whatever the headroom is: a loss is ruled out over the least headroom, and
    established over the most.
    """

    least_low: Shares
    """The least changes over the least headroom."""
    least_high: Shares
    """The least changes over the most headroom; NaN where that is not known."""
    most_low: Shares
    """The most that changes can be, over the least headroom."""
    most_high: Shares
    """The same over the most headroom."""

    @property
    def clusters(self) -> int:
        """How many clusters were seen."""
        return self.least_low.clusters

    @property
    def value(self) -> Floats:
        """The middle of what the shares can be."""
        ends = (x.value for x in (self.least_low, self.least_high, self.most_low, self.most_high))
        low, low_over_most, high, high_over_most = ends
        return np.asarray((_lower(low, low_over_most) + _upper(high, high_over_most)) / 2)

    def low(self, tail: float) -> Floats:
        """Lower ends of one-sided error ``tail``."""
        return _lower(self.least_low.low(tail), self.least_high.low(tail))

    def high(self, tail: float) -> Floats:
        """Upper ends of one-sided error ``tail``."""
        return _upper(self.most_low.high(tail), self.most_high.high(tail))

    def simultaneous_high(self, error: float, tail: float) -> tuple[Floats, Floats]:
        """Upper ends that hold together with this error, and the risk ``[1]`` of each alone."""
        over_least, risk = self.most_low.simultaneous_high(error, tail)
        over_most, other = self.most_high.simultaneous_high(error, tail)
        return _upper(over_least, over_most), np.minimum(risk, other)


@dataclass(frozen=True, eq=False)
class Widened(Shares):
    """Shares whose headroom is from a sample of queries, which may have missed a large one."""

    missed: Shares
    """The same shares, where the headroom counts a query that was not drawn."""

    def low(self, tail: float) -> Floats:
        """Lower ends of one-sided error ``tail``."""
        return np.minimum(super().low(tail), self.missed.low(tail))

    def high(self, tail: float) -> Floats:
        """Upper ends of one-sided error ``tail``."""
        return np.maximum(super().high(tail), self.missed.high(tail))

    def simultaneous_high(self, error: float, tail: float) -> tuple[Floats, Floats]:
        """Upper ends that hold together with this error, and the risk ``[1]`` of each alone."""
        high, risk = super().simultaneous_high(error, tail)
        other, its_risk = self.missed.simultaneous_high(error, tail)
        return np.maximum(high, other), np.minimum(risk, its_risk)


def _lower(over_least: Floats, over_most: Floats) -> Floats:
    """The smaller share; over headroom of unknown size a gain is above 0, and no more is known."""
    positive = np.where(over_least > 0, np.finfo(np.float64).tiny, over_least)
    return np.where(np.isnan(over_most), positive, np.minimum(over_least, over_most))


def _upper(over_least: Floats, over_most: Floats) -> Floats:
    """The larger share; over headroom of unknown size a loss may be as small as 0."""
    return np.where(
        np.isnan(over_most), np.maximum(over_least, 0.0), np.maximum(over_least, over_most)
    )


def shares(
    change: Floats,
    headroom: Floats,
    change_draws: Floats,
    headroom_draws: Floats,
    weight: Floats,
    unseen: Unseen,
) -> Shares:
    """Shares of the headroom with their draws.

    Parameters
    ----------
    change, headroom
        Sums of each cluster ``[clusters, entries]``; the headroom may be one column.
    change_draws, headroom_draws
        Their resampled sums ``[entries, resamples]``.
    weight
        The unseen cluster's weight in each resample ``[resamples]``, where a seen one's is 1 on
        average.
    unseen
        The cluster that was not seen.
    """
    clusters = change.shape[-2]
    mean = _positive(headroom.mean(axis=-2))
    d, h = change / mean[..., None, :], headroom / mean[..., None, :]
    value = d.mean(axis=-2)
    d, h = d - value[..., None, :], h - 1.0
    pairs = float(clusters * max(clusters - 1, 1))
    dd, hh, dh = ((x * y).sum(axis=-2) / pairs for x, y in ((d, d), (h, h), (d, h)))
    moments = dd, hh, dh
    base = _positive(headroom_draws + unseen.headroom[..., None] * weight)

    def drawn(change: Floats) -> Floats:
        return (change_draws + change[..., None] * weight) / base

    relative = Unseen(unseen.least / mean, unseen.most / mean, unseen.headroom / mean)
    lower, upper = drawn(unseen.least), drawn(unseen.most)
    return Shares(value, lower, upper, moments, clusters, relative)


def _positive(x: Floats) -> Floats:
    """The numbers above 0; NaN elsewhere."""
    return np.where(x > 0, x, np.nan)


def rare_share(clusters: int, tail: float) -> float:
    """The largest share of clusters that may look otherwise when none of those seen does.

    1 - tail**(1/n), the exact upper end (Clopper and Pearson) for 0 of n: about 3.7/n at 2.5 %.
    """
    return float(1.0 - tail ** (1.0 / clusters))
