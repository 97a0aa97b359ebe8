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
from scipy.special import ndtri, stdtrit

from toptail.stats.best_of_k import Floats, Ints, selection_weights, steady_product


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


def extreme_changes(
    ordered: Floats, k: Sequence[int], first: Ints, second: Ints
) -> tuple[Floats, Floats]:
    """The least and the most that V(K2) - V(K1) can be for values in ascending order ``[n]``.

    The product with :func:`extreme_weights`, some steps at a time. A weighted sum of several
    pools of one size, each in ascending order, gives the same sum of their ends.
    """
    least, most = np.empty((2, first.size))
    for at in _parts(first.size, ordered.size):
        for end, weights in zip(
            (least, most), extreme_weights(ordered.size, k, first[at], second[at]), strict=True
        ):
            end[at] = steady_product(ordered[None], weights)[0]
    return least, most


def moved_weight(n: int, k: Sequence[int], first: Ints, second: Ints) -> Floats:
    """Total variation ``[steps]`` between the laws of the pick's rank at two K in a pool of ``n``.

    Where values lie in a range, a step changes V by at most this times its width.
    """
    weights, moved = selection_weights(n, k), np.empty(first.size)
    for at in _parts(first.size, n):
        change = weights[second[at]] - weights[first[at]]
        moved[at] = np.maximum(change, 0.0).sum(axis=1)
    return moved


def unseen_weights(headroom: Floats) -> Floats:
    r"""How much each seen cluster counts in the unseen one: :math:`H^3 / \sum H^3`.

    ``headroom`` is ``[clusters, entries]``, not negative. NaN without headroom.
    """
    relative = headroom / _positive(headroom.max(axis=-2, keepdims=True))
    return np.asarray(relative**3 / (relative**3).sum(axis=-2, keepdims=True))


def unseen_cluster(ends: Sequence[Floats], headroom: Floats) -> Unseen:
    r"""A cluster like those seen that have the most to lose.

    ``ends`` are the least and the most of each change ``[clusters, entries]``.
    :math:`D_0 = \sum H^3 D^\mp / \sum H^3` and :math:`H_0 = \sum H^4 / \sum H^3` over clusters (the
    axis before the last). By H alone, harm that sits in the clusters with the most headroom is
    counted too low. NaN without headroom.
    """
    weight = unseen_weights(headroom)

    def weighted(column: Floats) -> Floats:
        return np.asarray((weight * column).sum(axis=-2))

    least, most = ends
    return Unseen(weighted(least), weighted(most), weighted(headroom))


@dataclass(frozen=True, eq=False)
class Shares:
    """Changes over headroom: what was seen, and draws with a cluster that was not.

    Everything is over the mean headroom of the clusters that were seen.
    """

    value: Floats
    """``[entries]``: sum of changes over sum of headroom."""
    points: Floats
    """``[points, resamples]``: draws of the shares that entries are differences of."""
    steps: tuple[Ints, Ints] | None
    """Which two points make each entry; None: every point is one."""
    weight: Floats
    """``[entries, resamples]`` or ``[1, resamples]``: the unseen cluster's weight over headroom."""
    moments: tuple[Floats, Floats, Floats]
    """Variances of the means of change and headroom and their covariance; each ``[entries]``."""
    clusters: int
    """How many clusters were seen."""
    unseen: Unseen
    """The cluster that was not seen."""

    @property
    def se(self) -> Floats:
        """Standard errors to first order ``[entries]``."""
        dd, hh, dh = self.moments
        return np.sqrt(np.maximum(dd - 2 * self.value * dh + self.value**2 * hh, 0.0))

    @property
    def lower(self) -> Floats:
        """``[entries, resamples]``: draws with the unseen cluster at its worst."""
        return self._drawn(self.unseen.least, slice(None))

    @property
    def upper(self) -> Floats:
        """``[entries, resamples]``: draws with the unseen cluster at its best."""
        return self._drawn(self.unseen.most, slice(None))

    def _drawn(self, extra: Floats, at: slice) -> Floats:
        """The draws of some entries, where the unseen cluster changes by ``extra``."""
        if self.steps is None:
            change = self.points[..., at, :].copy()
        else:
            first, second = (end[at] for end in self.steps)
            change = self.points[..., second, :]
            change -= self.points[..., first, :]
        own = self.weight if self.weight.shape[-2] == 1 else self.weight[..., at, :]
        change += extra[..., at, None] * own
        return change

    def _furthest(self, extra: Floats, count: int, sign: int) -> tuple[Ints, Floats]:
        """Of each entry the ``count`` largest draws (sign 1) or smallest (-1), nearest first.

        Which they are, and the draws ``[entries, count]``; NaN where a draw is not known.
        """
        resamples = self.points.shape[-1]
        likely = -ndtri(min(0.5, 3 * count / resamples))  # about three times as many lie beyond
        limit = sign * (self.value + extra * self.weight.mean(axis=-1)) + likely * self.se
        at = np.empty((*self.value.shape, count), dtype=np.int64)
        drawn = np.empty(at.shape)
        for part in _parts(self.value.shape[-1], self.points.size // self.points.shape[-2]):
            draws = sign * self._drawn(extra, part)
            rows = zip(draws.reshape(-1, resamples), limit[..., part].reshape(-1), strict=True)
            found = np.array([_largest(row, beyond, count) for row, beyond in rows])
            at[..., part, :] = found.reshape(*draws.shape[:-1], count)
            drawn[..., part, :] = sign * np.take_along_axis(draws, at[..., part, :], axis=-1)
        unknown = np.isnan(self.weight).any(axis=-1) | np.isnan(self.value)
        drawn[unknown] = np.nan
        return at, drawn

    def _quantile(self, extra: Floats, tail: float, sign: int) -> Floats:
        """The end of each entry's draws beyond which a share ``tail`` of them lies."""
        resamples = self.points.shape[-1]
        place = tail * (resamples - 1)
        before = int(place)
        _, drawn = self._furthest(extra, min(before + 2, resamples), sign)
        inner, outer = drawn[..., 0], drawn[..., min(1, resamples - 1)]
        return np.asarray(outer + (inner - outer) * (place - before))

    def low(self, tail: float) -> Floats:
        """Lower ends of one-sided error ``tail``: the draws', and no higher than Student's."""
        return np.minimum(self._quantile(self.unseen.least, tail, -1), self.student(tail)[0])

    def high(self, tail: float) -> Floats:
        """Upper ends of one-sided error ``tail``: the draws', and no lower than Student's."""
        return np.maximum(self._quantile(self.unseen.most, tail, 1), self.student(tail)[1])

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
        resamples = self.points.shape[-1]
        alone = int(np.ceil((1.0 - tail) * (resamples - 1)))  # no lower than the quantile
        at, drawn = self._furthest(self.unseen.most, resamples - alone, 1)
        worst = np.zeros((*self.points.shape[:-2], resamples), dtype=np.int64)
        ranks = np.arange(alone, resamples)
        for entry in np.moveaxis(at, -2, 0):
            found = np.maximum(np.take_along_axis(worst, entry, axis=-1), ranks)
            np.put_along_axis(worst, entry, found, axis=-1)
        together = int(np.ceil((1.0 - error) * resamples)) - 1
        rank = np.maximum(np.sort(worst, axis=-1)[..., together, None], alone)
        ends = np.take_along_axis(drawn, (rank - alone)[..., None], axis=-1)[..., 0]
        risk = np.minimum(1.0 - rank / resamples, tail)
        return np.maximum(ends, self.student(risk)[1]), risk


@dataclass(frozen=True, eq=False)
class BoundedShares:
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
    """The most that changes can be, over the most headroom."""

    @property
    def clusters(self) -> int:
        """How many clusters were seen."""
        return self.least_low.clusters

    @property
    def value(self) -> Floats:
        """The middle between the lowest and the highest possible shares."""
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
class WidenedShares(Shares):
    """Shares of a headroom that was estimated from some queries: those with most may be missing.

    Each end is the wider one of two estimates.
    """

    missed: Shares
    """The same shares with the headroom of a query that was not drawn."""

    def low(self, tail: float) -> Floats:
        return np.minimum(super().low(tail), self.missed.low(tail))

    def high(self, tail: float) -> Floats:
        return np.maximum(super().high(tail), self.missed.high(tail))

    def simultaneous_high(self, error: float, tail: float) -> tuple[Floats, Floats]:
        high, risk = super().simultaneous_high(error, tail)
        other, its_risk = self.missed.simultaneous_high(error, tail)
        return np.maximum(high, other), np.minimum(risk, its_risk)


def _lower(over_least: Floats, over_most: Floats) -> Floats:
    """The smaller of the shares over the least and over the largest possible headroom.

    NaN in ``over_most`` means that the headroom has no known upper bound: then a gain is only
    known to be above 0.
    """
    positive = np.where(over_least > 0, np.finfo(np.float64).tiny, over_least)
    return np.where(np.isnan(over_most), positive, np.minimum(over_least, over_most))


def _upper(over_least: Floats, over_most: Floats) -> Floats:
    """The larger of both shares; without an upper bound of the headroom, a loss may be almost 0."""
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
    steps: tuple[Ints, Ints] | None = None,
) -> Shares:
    """Shares of the headroom with their draws.

    Parameters
    ----------
    change, headroom
        Sums of each cluster ``[clusters, entries]``; the headroom may be one column. With
        ``steps`` the changes are ``[clusters, points]``, and the headroom is one column.
    change_draws, headroom_draws
        Their resampled sums ``[entries, resamples]``, or ``[points, resamples]``.
    weight
        The unseen cluster's weight in each resample ``[resamples]``, where a seen one's is 1 on
        average.
    unseen
        The cluster that was not seen.
    steps
        Entry i is the change from point ``steps[0][i]`` to point ``steps[1][i]``.
    """
    clusters = change.shape[-2]
    mean = _positive(headroom.mean(axis=-2))
    d, h = change / mean[..., None, :], headroom / mean[..., None, :]
    value = d.mean(axis=-2)
    d, h = d - value[..., None, :], h - 1.0
    pairs = float(clusters * max(clusters - 1, 1))
    hh, dh = ((x * h).sum(axis=-2) / pairs for x in (h, d))
    if steps is None:
        dd = (d * d).sum(axis=-2) / pairs
    else:
        first, second = steps
        across = np.swapaxes(d, -1, -2)
        gram = (steady_product(across, d) if d.ndim == 2 else np.matmul(across, d)) / pairs
        own = np.diagonal(gram, axis1=-2, axis2=-1)
        dd = own[..., first] + own[..., second] - 2 * gram[..., first, second]
        value, dh = (x[..., second] - x[..., first] for x in (value, dh))
    relative = Unseen(unseen.least / mean, unseen.most / mean, unseen.headroom / mean)
    drawn = _positive(headroom_draws + unseen.headroom[..., None] * weight)
    points, own = np.divide(change_draws, drawn, order="C"), mean[..., None] * weight / drawn
    moments = np.maximum(dd, 0.0), hh, dh
    return Shares(value, points, steps, own, moments, clusters, relative)


def _largest(row: Floats, limit: float, count: int) -> Ints:
    """Positions of the ``count`` largest numbers of a row, ascending by number.

    Only numbers above ``limit`` are sorted, if there are enough of them: that is faster.
    """
    at = np.flatnonzero(row > limit)
    if at.size < count:
        at = np.arange(row.size)
    return np.asarray(at[np.argsort(row[at])[at.size - count :]])


def _parts(entries: int, size: int) -> list[slice]:
    """Slices of the entries, ``size`` numbers each, that fit the processor's cache."""
    step = max(1, (1 << 17) // max(size, 1))
    return [slice(start, start + step) for start in range(0, entries, step)]


def _positive(x: Floats) -> Floats:
    """The numbers above 0; NaN elsewhere."""
    return np.where(x > 0, x, np.nan)


def rare_share(clusters: int, tail: float) -> float:
    """Upper end for the share of clusters with a property that none of the n seen ones has.

    1 - tail**(1/n), the exact upper end (Clopper and Pearson) for 0 of n: about 3.7/n at 2.5 %.
    """
    return float(1.0 - tail ** (1.0 / clusters))
