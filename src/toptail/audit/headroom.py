"""Headroom: what a change of value is measured in, and the ends of such shares.

The headroom at K is the value of the best of K candidates less that of a random one. Gains and
falls of V(K) are shares of it. :func:`headroom_of` decides once, before anything is measured, how
the headroom is known; every class has the same few methods:

- :class:`PooledHeadroom`: that of all queries together, where every candidate has its value;
- :class:`QueryHeadroom`: each query's own, for the unit ``query``;
- :class:`EstimatedHeadroom`: estimated from the queries that a design judged whole;
- :class:`BoundedHeadroom`: only known to lie between two ends.

Ends count one cluster that is not in the sample (:mod:`toptail.stats.ends`). It is made of the
pools that were judged whole, ordered as badly and as well as their candidates allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from toptail.audit.per_query import ScoreColumn
from toptail.judging.oracle import Bounds, HeadroomEstimate, SelectionLimits, limits_per_query
from toptail.judging.values import Judgement, SampledJudgement
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, Ints, KGrid
from toptail.stats.ends import (
    BoundedShares,
    Shares,
    Unseen,
    WidenedShares,
    moved_weight,
    shares,
    unseen_cluster,
    unseen_weights,
)
from toptail.stats.resample import Estimate, Sample, cluster_sums


@dataclass(frozen=True, eq=False)
class WholePools:
    """Pools whose candidates were all judged; from them the unseen cluster is estimated."""

    limits: SelectionLimits
    """What selection from each pool could do."""
    headroom: Floats
    """oracle(K) - V(1) of each pool ``[pools, n_k]``."""
    cluster: Ints | None
    """The cluster of each pool; None: every pool its own."""
    times: Floats
    """Weight of each pool ``[pools]``: pools of its cluster per pool that was judged whole."""
    tiny: float
    """Headroom at or below this is rounding."""

    @classmethod
    def of(
        cls,
        limits: SelectionLimits,
        headroom: Floats,
        cluster: Ints | None,
        whole: Ints,
        tiny: float,
    ) -> WholePools:
        """The pools at the positions ``whole`` of all pools, whose clusters are ``cluster``."""
        if cluster is None:
            return cls(limits, headroom, None, np.ones(len(headroom)), tiny)
        counts = np.bincount(cluster[whole], minlength=int(cluster.max()) + 1)
        times = np.bincount(cluster) / np.maximum(counts, 1)
        return cls(limits, headroom, cluster[whole], times[cluster[whole]], tiny)

    def sums(self, per_pool: Floats) -> Floats:
        """Sums over the pools of each cluster ``[clusters, columns]``."""
        return cluster_sums(per_pool * self.times[:, None], self.cluster)

    def unseen(self, grid: KGrid, top: Floats, times: Floats) -> Unseen:
        """The unseen cluster for all changes of the grid.

        ``top [clusters, 1]`` is the headroom of each cluster, and the changes of each pool are
        multiplied by ``times [pools]``.
        """
        weight = unseen_weights(top)
        of_pool = weight[:, 0]
        if self.cluster is not None:
            of_pool = of_pool[np.unique(self.cluster, return_inverse=True)[1]]
        least, most = self.limits.extremes(of_pool * (times * self.times), grid)
        return Unseen(least, most, (weight * top).sum(axis=0))

    @property
    def spread(self) -> float | None:
        """How many times the 90 % quantile of the headroom at k_max is the 10 % quantile."""
        headroom = self.headroom[:, -1]
        known = headroom[headroom > self.tiny]
        if not known.size:
            return None
        low, high = np.quantile(known, [0.1, 0.9])
        return float(high / low)

    def share(self, change: Floats, at: slice = slice(None)) -> Floats:
        """Changes over each pool's own headroom at the K numbered ``at``; 0 where it has none."""
        headroom = self.headroom[:, at]
        known = headroom > self.tiny
        return np.asarray(np.where(known, change / np.where(known, headroom, 1.0), 0.0))


@dataclass(frozen=True, eq=False)
class Headroom:
    """Shares of the headroom, read from a sample; the base of the four kinds.

    In this class every share is NaN, which is so where the headroom is only bounded.
    """

    grid: KGrid
    oracle: Floats
    """Best possible with K ``[queries, n_k]``; right on average where it is estimated, and NaN
    where it is bounded."""

    @property
    def spread(self) -> float | None:
        """How unequal the queries' headrooms are (`WholePools.spread`); 1 where that is unknown."""
        return 1.0

    @property
    def without(self) -> int:
        """How many queries are known to have no headroom."""
        return 0

    def of_each_query(self) -> Headroom:
        """The same queries, each measured in its own headroom."""
        raise NotImplementedError

    def add_to(self, sample: Sample) -> None:
        """Add the columns of queries that this kind of headroom reads beside ``oracle``."""

    def add_scorer(
        self, sample: Sample, prefix: str, column: ScoreColumn, members: Sequence[str]
    ) -> None:
        """Add the columns of a scorer that this kind of headroom reads beside its value.

        ``column`` has its numbers, the means over the score columns ``members``.
        """

    def mean(self, sample: Sample, prefix: str) -> float:
        """The mean headroom at k_max over queries, in units of the value."""
        return float(sample.mean("oracle").point[-1] - sample.mean(prefix + "value").point[0])

    def steps(self, sample: Sample, prefix: str) -> Shares | BoundedShares:
        """The steps of the grid over the headroom at k_max."""
        raise NotImplementedError

    def gains(self, _sample: Sample, _prefix: str, _tail: float, /) -> dict[str, Floats]:
        """``value``, ``low`` and ``high`` of the gain from 1 to each K, over the headroom at k_max.

        Each end has the one-sided error ``tail``.
        """
        return {end: np.full(len(self.grid.shown), np.nan) for end in ("value", "low", "high")}

    def captured(self, sample: Sample, prefix: str, tail: float, /) -> dict[str, Floats]:
        """As `gains`, over the headroom at that K."""
        return Headroom.gains(self, sample, prefix, tail)

    def gain_at_k_max(self, sample: Sample, _prefix: str, /) -> Estimate:
        """The gain from 1 to k_max over the headroom there, without the unseen cluster."""
        return sample.total("oracle")[-1]


@dataclass(frozen=True, eq=False)
class PooledHeadroom(Headroom):
    """The headroom of all queries together, where every candidate has its value."""

    whole: WholePools
    unseen: Unseen
    """The unseen cluster: changes of the grid, over the headroom at k_max."""
    unseen_at: Unseen
    """The unseen cluster: changes from 1 to each K, over the headroom at that K."""

    @property
    def spread(self) -> float | None:
        return self.whole.spread

    @property
    def without(self) -> int:
        return int((self.whole.headroom[:, -1] <= self.whole.tiny).sum())

    def of_each_query(self) -> Headroom:
        return QueryHeadroom.of(self)

    def steps(self, sample: Sample, prefix: str) -> Shares:
        return self._changes(sample, prefix, slice(0, len(self.grid.steps)))

    def gains(self, sample: Sample, prefix: str, tail: float, /) -> dict[str, Floats]:
        return _ends(self._changes(sample, prefix, slice(len(self.grid.steps), None)), tail)

    def captured(self, sample: Sample, prefix: str, tail: float, /) -> dict[str, Floats]:
        return _ends(self.captured_shares(sample, prefix), tail)

    def captured_shares(self, sample: Sample, prefix: str) -> Shares:
        """The gain from 1 to each K over the headroom at that K."""
        return self._shares(sample, self._sums(sample, prefix, "captured"), self.unseen_at)

    def gain_at_k_max(self, sample: Sample, prefix: str, /) -> Estimate:
        sums = self._sums(sample, prefix, "gain")
        total = Estimate(sums.change[:, -1].sum(), sums.change_draws[-1])
        return total / Estimate(sums.headroom[:, -1].sum(), sums.headroom_draws[-1])

    def _changes(self, sample: Sample, prefix: str, which: slice) -> Shares:
        unseen = Unseen(self.unseen.least[which], self.unseen.most[which], self.unseen.headroom[:1])
        steps = self.grid.first[which], self.grid.second[which]
        return self._shares(sample, self._sums(sample, prefix, "gain"), unseen, steps)

    def _sums(self, sample: Sample, prefix: str, what: Literal["gain", "captured"]) -> _Sums:
        """Changes from 1 to each measured K (``gain``) or to each shown K (``captured``)."""
        value, value_draws = sample.sums(prefix + "value")
        top, top_draws = sample.sums("oracle")
        at = self.grid.shown_at if what == "captured" else slice(None)
        return _Sums(
            value[:, at] - value[:, :1],
            top - value[:, :1],
            value_draws[at] - value_draws[:1],
            top_draws - value_draws[:1],
        )

    def _shares(
        self, sample: Sample, sums: _Sums, unseen: Unseen, steps: tuple[Ints, Ints] | None = None
    ) -> Shares:
        """Changes over the headroom at the same K or, of ``steps``, over that at k_max."""
        return shares(*sums.over(steps), sample.unseen, unseen, steps)


class _Sums(NamedTuple):
    """Changes and headroom, by cluster ``[clusters, n_k]`` and resampled ``[n_k, resamples]``."""

    change: Floats
    headroom: Floats
    change_draws: Floats
    headroom_draws: Floats

    def over(self, steps: tuple[Ints, Ints] | None) -> _Sums:
        """For ``steps``, the sums with the headroom at k_max alone; else these sums."""
        if steps is None:
            return self
        change, headroom, change_draws, headroom_draws = self
        return _Sums(change, headroom[:, -1:], change_draws, headroom_draws[-1:])


def _ends(found: Shares, tail: float) -> dict[str, Floats]:
    """Shares with their ends, at most 1; differences from 0 that are rounding become 0."""
    ends = {"value": found.value, "low": found.low(tail), "high": found.high(tail)}
    ends = {name: np.where(np.abs(x) <= 1e-9, 0.0, x) for name, x in ends.items()}
    # An infinite end is not known, and stays so.
    return {name: np.where(np.isinf(x), x, np.minimum(x, 1.0)) for name, x in ends.items()}


@dataclass(frozen=True, eq=False)
class QueryHeadroom(PooledHeadroom):
    """Each query's own headroom; queries without any are left out."""

    @classmethod
    def of(cls, pooled: PooledHeadroom) -> QueryHeadroom:
        """The queries of ``pooled``, each measured in its own headroom."""
        grid, whole = pooled.grid, pooled.whole
        has = (whole.headroom[:, -1:] > whole.tiny).astype(np.float64)
        own = whole.sums(has)
        unseen = whole.unseen(grid, own, whole.share(has, slice(-1, None))[:, 0])
        gains = whole.limits.least, whole.limits.most
        at = unseen_cluster([whole.sums(whole.share(end)) for end in gains], own)
        return cls(grid, pooled.oracle, whole, unseen, at)

    def add_to(self, sample: Sample) -> None:
        sample.add("own", (self.whole.headroom[:, -1] > self.whole.tiny).astype(np.float64))

    def add_scorer(
        self, sample: Sample, prefix: str, column: ScoreColumn, _members: Sequence[str]
    ) -> None:
        gain = column.value - column.value[:, :1]
        sample.add(f"{prefix}own gain", self.whole.share(gain, slice(-1, None)))
        sample.add(f"{prefix}own captured", self.whole.share(gain[:, self.grid.shown_at]))

    def _sums(self, sample: Sample, prefix: str, what: Literal["gain", "captured"]) -> _Sums:
        change, change_draws = sample.sums(f"{prefix}own {what}")
        own, own_draws = sample.sums("own")
        return _Sums(change, own, change_draws, own_draws)


@dataclass(frozen=True, eq=False)
class EstimatedHeadroom(PooledHeadroom):
    """The headroom of all queries, estimated from those that a design judged whole.

    A query with a large headroom may not be among those: the ends hold with one more as well.
    """

    missed: Floats
    """`HeadroomEstimate.missed`."""
    weight: Floats
    """`HeadroomEstimate.weight`."""
    wider: float
    """By which factor other queries may exceed those judged whole: see :func:`_error_ratio`."""

    def add_to(self, sample: Sample) -> None:
        sample.add_missed("oracle", self.missed, self.weight)

    @cached_property
    def _undrawn(self) -> tuple[Floats, Floats, Floats]:
        """What an unseen cluster that is judged whole would add to the estimate, each ``[n_k]``.

        Its headroom less the prediction, over the chance to be judged whole; one over that chance;
        and its predicted headroom.
        """
        whole, full = self.whole, self.weight > 0
        weight = self.weight[full, None]
        more = self.missed[full] / weight
        predicted = whole.headroom - more
        missed = weight * (more + (self.wider - 1.0) * whole.headroom)
        top = _cluster_headroom(whole)
        found = unseen_cluster([cluster_sums(x, whole.cluster) for x in (missed, weight)], top)
        return found.least, found.most, unseen_cluster([whole.sums(predicted)] * 2, top).least

    def _shares(
        self, sample: Sample, sums: _Sums, unseen: Unseen, steps: tuple[Ints, Ints] | None = None
    ) -> Shares:
        found = super()._shares(sample, sums, unseen, steps)
        missed, weight, predicted = self._undrawn
        at = slice(None) if steps is None else slice(-1, None)
        drawn, both = (sample.missed("oracle", *more).T[at] for more in ((), (missed, weight)))
        parts = sums.over(steps)
        parts = parts._replace(headroom_draws=parts.headroom_draws - drawn + both)
        unseen = replace(unseen, headroom=predicted[at])
        return WidenedShares(**vars(found), missed=shares(*parts, sample.unseen, unseen, steps))


@dataclass(frozen=True, eq=False)
class BoundedHeadroom(Headroom):
    """Headroom and changes that are only known to lie between two ends.

    The unseen cluster may lose the range of values, and need not have any headroom.
    """

    bounds: Bounds
    unseen: Unseen
    """The unseen cluster, for all changes of the grid."""

    def add_to(self, sample: Sample) -> None:
        sample.add("headroom low", self.bounds.headroom_low)
        sample.add("headroom high", self.bounds.headroom_high)

    def add_scorer(
        self, sample: Sample, prefix: str, _column: ScoreColumn, members: Sequence[str]
    ) -> None:
        for name, ends in (("least", self.bounds.least), ("most", self.bounds.most)):
            sample.add(prefix + name, np.mean([ends[column] for column in members], axis=0))

    def mean(self, sample: Sample, _prefix: str) -> float:
        return float(sample.mean("headroom low").point[-1])

    def steps(self, sample: Sample, prefix: str) -> BoundedShares:
        which = slice(0, len(self.grid.steps))
        unseen = Unseen(self.unseen.least[which], self.unseen.most[which], self.unseen.headroom)

        def part(end: str, headroom: str) -> Shares:
            (change, change_draws), (top, top_draws) = map(sample.sums, (prefix + end, headroom))
            return shares(
                change[:, which],
                top[:, -1:],
                change_draws[which],
                top_draws[-1:],
                sample.unseen,
                unseen,
            )

        rooms = ("headroom low", "headroom high")
        return BoundedShares(*(part(end, room) for end in ("least", "most") for room in rooms))


def headroom_of(
    pools: ScoredPools,
    judged: Judgement,
    grid: KGrid,
    columns: Mapping[str, ScoreColumn],
    cluster: Ints | None,
    value_range: tuple[float, float] | None,
) -> Headroom:
    """The headroom of all queries together, by what the judgement knows of it.

    ``columns`` are the numbers of each score column, ``cluster`` the cluster of each query, and
    ``value_range`` the declared range of values.
    """
    curves = {name: column.value for name, column in columns.items()}
    if judged.bounded:
        bounds = Bounds.of(pools, judged, grid, curves, value_range)
        counts = cluster_sums(np.ones((pools.queries, 1)), cluster)
        unseen = _unseen_in_range(pools.sizes, grid, bounds.width, counts, counts)
        return BoundedHeadroom(
            grid, np.full((pools.queries, len(grid.shown)), np.nan), bounds, unseen
        )
    random, tiny = next(iter(curves.values()))[:, :1], 1e-12 * judged.largest
    if not isinstance(judged, SampledJudgement):
        limits = limits_per_query(pools, judged, grid)
        every = np.arange(pools.queries)
        whole = WholePools.of(limits, limits.oracle - random, cluster, every, tiny)
        unseen, at = _unseen(whole, grid, pools.sizes, value_range)
        return PooledHeadroom(grid, limits.oracle, whole, unseen, at)
    found = HeadroomEstimate.of(pools, judged, grid)
    full = np.flatnonzero(found.weight > 0)
    whole = WholePools.of(found.limits, found.headroom, cluster, full, tiny)
    wider = _error_ratio(pools, judged.error, full)
    unseen, at = _unseen(whole, grid, pools.sizes, value_range, wider)
    oracle = random + found.expected
    return EstimatedHeadroom(grid, oracle, whole, unseen, at, found.missed, found.weight, wider)


def _error_ratio(pools: ScoredPools, error: Floats, full: Ints) -> float:
    """Largest prediction error of all queries over that of the queries judged whole, at least 1."""
    furthest = np.fmax.reduceat(error, pools.offsets[:-1])
    most = furthest[full].max()
    return max(1.0, float(np.nanmax(furthest) / most)) if most > 0 else 1.0


def _cluster_headroom(whole: WholePools) -> Floats:
    """Headroom of each cluster ``[clusters, n_k]``, not negative."""
    return np.maximum(whole.sums(whole.headroom), 0.0)


def _unseen(
    whole: WholePools,
    grid: KGrid,
    sizes: Ints,
    value_range: tuple[float, float] | None,
    wider: float = 1.0,
) -> tuple[Unseen, Unseen]:
    """The unseen cluster for changes of the grid, and for changes from 1 to each shown K.

    It is made of the pools judged whole, ``wider`` times as large (see :func:`_error_ratio`).
    """
    top = _cluster_headroom(whole)
    if value_range is not None:
        counts = whole.sums(np.ones((len(whole.headroom), 1)))
        unseen = _unseen_in_range(sizes, grid, float(np.ptp(value_range)), counts, top[:, -1:])
        at = slice(len(grid.steps), None)
        return unseen, Unseen(unseen.least[at], unseen.most[at], unseen.headroom)
    unseen = whole.unseen(grid, top[:, -1:], np.ones(len(whole.headroom)))
    ends = [whole.sums(end) for end in (whole.limits.least, whole.limits.most)]
    both = unseen, unseen_cluster(ends, top)
    first, second = (Unseen(u.least * wider, u.most * wider, u.headroom * wider) for u in both)
    return first, second


def _unseen_in_range(sizes: Ints, grid: KGrid, width: float, pools: Floats, top: Floats) -> Unseen:
    """The unseen cluster where values lie in a range of this width: it may lose all of it.

    A pool loses at most the width times the total variation between two laws of the pick's rank,
    and need not have any headroom. ``pools`` and ``top`` are the number of pools and the headroom
    of each cluster ``[clusters, 1]``.
    """
    most = np.zeros(grid.first.size)
    for size in np.unique(sizes).tolist():
        most = np.maximum(most, moved_weight(size, grid.measured, grid.first, grid.second))
    most *= width * unseen_cluster([pools, pools], top).most
    return Unseen(-most, most, np.zeros(1))
