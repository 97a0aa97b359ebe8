"""What gains are measured in: the headroom, pooled or each query's own, and the unseen cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toptail.audit.per_query import Judgement, Possible, ScoreColumn, possible_per_query
from toptail.audit.sample import Estimate, Sample
from toptail.audit.settings import Settings, Unit
from toptail.judging.bounds import Bounds, bounds_of
from toptail.judging.partial import Sampled
from toptail.pools import ScoredPools
from toptail.pools.columns import codes
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.ends import (
    Between,
    Shares,
    Unseen,
    Widened,
    moved_weight,
    shares,
    unseen_cluster,
    unseen_weights,
)
from toptail.stats.k_grid import Family
from toptail.stats.resample import cluster_sums
from toptail.stats.sampled import Flags, cross_fitted

ROOMS = ("low", "high")
"""The least and the most that the headroom can be."""


@dataclass(frozen=True, eq=False)
class Undrawn:
    """The unseen cluster as one that was drawn to be judged whole; each ``[n_k]``."""

    missed: Floats
    """By how much its headroom exceeds the prediction, over the chance to be drawn."""
    weight: Floats
    """One over that chance."""
    predicted: Floats
    """Its headroom as it is predicted."""


@dataclass(frozen=True, eq=False)
class Ruler:
    """Shares of the headroom in one unit, read off one sample; the same for all scorers."""

    sample: Sample
    """Per-query numbers and their resamples."""
    family: Family
    """The measured K."""
    unit: Unit
    """``pooled`` or ``query``."""
    unseen: Unseen
    """The cluster that was not seen: the family's changes, over the headroom at k_max."""
    unseen_at: Unseen
    """The same for the changes from 1 to each K, over the headroom at that K."""
    bounded: bool = False
    """Whether changes and headroom are only bounded."""
    undrawn: Undrawn | None = None
    """A query that could have been judged whole and was not, where only some were."""

    def steps(self, prefix: str) -> Shares | Between:
        """The family's steps over the headroom at k_max."""
        return self._changes(prefix, slice(0, len(self.family.steps)))

    def gains(self, prefix: str) -> Shares | Between:
        """The gain from 1 to each K over the headroom at k_max."""
        return self._changes(prefix, slice(len(self.family.steps), None))

    def captured(self, prefix: str) -> Shares | Between:
        """The gain from 1 to each K over the headroom at that K."""
        if self.bounded:
            return self._between(prefix, slice(len(self.family.steps), None), self.unseen_at, 0)
        change, change_draws, headroom, headroom_draws = self._read(prefix, "captured")
        return self._shares(
            slice(None), change, headroom, change_draws, headroom_draws, self.unseen_at
        )

    def gain_at_k_max(self, prefix: str) -> Estimate:
        """The gain from 1 to k_max over the headroom there, without the unseen cluster."""
        if self.bounded:
            return self.sample.total("oracle")[-1]  # not known
        change, change_draws, headroom, headroom_draws = self._read(prefix, "gain")
        total = Estimate(change[:, -1].sum(), change_draws[-1])
        return total / Estimate(headroom[:, -1].sum(), headroom_draws[-1])

    def _changes(self, prefix: str, which: slice) -> Shares | Between:
        unseen = Unseen(self.unseen.least[which], self.unseen.most[which], self.unseen.headroom[:1])
        if self.bounded:
            return self._between(prefix, which, unseen, -1)
        change, change_draws, headroom, headroom_draws = self._read(prefix, "gain")
        return self._shares(
            slice(-1, None),
            change,
            headroom[:, -1:],
            change_draws,
            headroom_draws[-1:],
            unseen,
            (self.family.first[which], self.family.second[which]),
        )

    def _shares(
        self,
        at: slice,
        change: Floats,
        headroom: Floats,
        change_draws: Floats,
        headroom_draws: Floats,
        unseen: Unseen,
        steps: tuple[Ints, Ints] | None = None,
    ) -> Shares:
        """Changes over the headroom at the K numbered ``at``; with ``steps`` between two of them.

        Where the headroom is from queries judged whole, a large one may not be among them: the
        ends hold with one more as well.
        """
        weight, more = self.sample.unseen, self.undrawn
        found = shares(change, headroom, change_draws, headroom_draws, weight, unseen, steps)
        if more is None:
            return found
        seen, both = (
            self.sample.missed("oracle", *unseen).T[at]
            for unseen in ((), (more.missed, more.weight))
        )
        unseen = replace(unseen, headroom=more.predicted[at])
        headroom_draws = headroom_draws - seen + both
        missed = shares(change, headroom, change_draws, headroom_draws, weight, unseen, steps)
        return Widened(**vars(found), missed=missed)

    def _between(self, prefix: str, which: slice, unseen: Unseen, at: int) -> Between:
        """Least and most of changes over the least and the most headroom, from K number ``at``."""

        def part(change: str, room: str) -> Shares:
            return shares(
                self.sample.by_cluster(prefix + change)[:, which],
                self.sample.by_cluster(f"room {room}")[:, at:],
                self.sample.total(prefix + change).draws.T[which],
                self.sample.total(f"room {room}").draws.T[at:],
                self.sample.unseen,
                unseen,
            )

        return Between(*(part(change, room) for change in ("least", "most") for room in ROOMS))

    def _read(self, prefix: str, what: str) -> tuple[Floats, Floats, Floats, Floats]:
        """Changes from 1 and headroom, by cluster ``[C, n_k]`` and drawn ``[n_k, resamples]``.

        Headroom is that of the shown K, and so are the changes for ``captured``; those for
        ``gain`` are of every measured K.
        """

        def both(name: str) -> tuple[Floats, Floats]:
            return self.sample.by_cluster(name), self.sample.total(name).draws.T

        if self.unit == "query":
            return *both(f"{prefix}own {what}"), *both("own")
        (value, value_draws), (top, top_draws) = both(prefix + "value"), both("oracle")
        at = self.family.shown_at if what == "captured" else slice(None)
        return (
            value[:, at] - value[:, :1],
            value_draws[at] - value_draws[:1],
            top - value[:, :1],
            top_draws - value_draws[:1],
        )


@dataclass(frozen=True, eq=False)
class WholePart:
    """Pools judged whole, which stand for the clusters that they are from."""

    cluster: Ints | None
    """The cluster of each; None: every query its own."""
    times: Floats
    """How many pools each stands for: those of its cluster over those of it judged whole."""
    missed: Floats
    """By how much headroom exceeds its prediction, over the chance to be judged whole
    ``[all queries, n_k]``; 0 where a query was not."""
    weight: Floats
    """One over that chance ``[all queries]``; 0 where a query was not judged whole."""
    wider: float
    """How many times as far off predictions are in some query as in any of these; at least 1."""

    @classmethod
    def of(cls, cluster: Ints | None, missed: Floats, weight: Floats, wider: float) -> WholePart:
        """The pools with a weight."""
        full = weight > 0
        if cluster is None:
            return cls(None, np.ones(int(full.sum())), missed, weight, wider)
        whole = np.bincount(cluster[full], minlength=int(cluster.max()) + 1)
        times = np.bincount(cluster) / np.maximum(whole, 1)
        return cls(cluster[full], times[cluster[full]], missed, weight, wider)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the unseen cluster is made of: the pools that were seen."""

    oracle: Floats
    """Best possible with K ``[all queries, n_k]``, right on average where not all was judged."""
    possible: Possible
    """What selection from each pool that is judged whole could do."""
    headroom: Floats
    """oracle(K) - V(1) of those pools ``[queries, n_k]``."""
    cluster: Ints | None
    """The cluster of each query; None: every query its own."""
    tiny: float
    """Headroom at or below this is rounding."""
    sizes: Ints
    """Candidates of each pool ``[queries]``."""
    width: float | None
    """How far apart two values can be, if that was declared."""
    part: WholePart | None = None
    """Which pools were judged whole, where not all were."""
    bounds: Bounds | None = None
    """Ends of changes and headroom, where these are only bounded."""

    def ruler(self, sample: Sample, family: Family, unit: Unit) -> Ruler:
        """Measure in one unit."""
        gains = self.possible.least, self.possible.most
        if unit == "query":
            has = (self.headroom[:, -1:] > self.tiny).astype(np.float64)
            own, times = self._sum(has), _over(has, self.headroom[:, -1:], self.tiny)
            each = [self._sum(_over(end, self.headroom, self.tiny)) for end in gains]
            unseen = self._unseen(family, own, times[:, 0])
            return Ruler(sample, family, unit, unseen, unseen_cluster(each, own))
        top = np.maximum(self._sum(self.headroom), 0.0)
        undrawn = self._undrawn(top)
        if self.width is not None:
            within = self._within(family, self.width, top[:, -1:])
            return Ruler(sample, family, unit, *within, self.bounds is not None, undrawn)
        unseen = self._unseen(family, top[:, -1:], np.ones(len(self.headroom)))
        at = unseen_cluster([self._sum(end) for end in gains], top)
        widened = self._widened(unseen), self._widened(at)
        return Ruler(sample, family, unit, *widened, undrawn=undrawn)

    def _unseen(self, family: Family, top: Floats, times: Floats) -> Unseen:
        """The unseen cluster for all changes, of which each query's are counted so many times."""
        weight = unseen_weights(top)
        of_query = weight[:, 0]
        cluster = self.cluster if self.part is None else self.part.cluster
        if cluster is not None:
            of_query = of_query[np.unique(cluster, return_inverse=True)[1]]
        if self.part is not None:
            times = times * self.part.times
        least, most = self.possible.extremes(of_query * times, family)
        return Unseen(least, most, (weight * top).sum(axis=0))

    def _widened(self, unseen: Unseen) -> Unseen:
        """The unseen cluster, larger where labels of other queries show that they are larger."""
        wider = 1.0 if self.part is None else self.part.wider
        return Unseen(unseen.least * wider, unseen.most * wider, unseen.headroom * wider)

    def _undrawn(self, top: Floats) -> Undrawn | None:
        """The unseen cluster as one that was judged whole; None where all were."""
        part = self.part
        if part is None:
            return None
        full = part.weight > 0
        weight = part.weight[full, None]
        more = part.missed[full] / weight
        predicted = self.headroom - more
        missed = weight * (more + (part.wider - 1.0) * self.headroom)
        found = unseen_cluster([cluster_sums(x, part.cluster) for x in (missed, weight)], top)
        base = unseen_cluster([self._sum(predicted)] * 2, top).least
        return Undrawn(found.least, found.most, base)

    def _within(self, family: Family, width: float, top: Floats) -> tuple[Unseen, Unseen]:
        """The unseen cluster where values lie in a range: it may lose all of it.

        A pool loses at most the width times the total variation between two laws of the
        pick's rank, and need not have any headroom.
        """
        most = np.zeros(family.first.size)
        for size in np.unique(self.sizes).tolist():
            moved = moved_weight(size, family.measured, family.first, family.second)
            most = np.maximum(most, moved)
        pools = self._sum(np.ones((len(self.headroom), 1)))
        most *= width * unseen_cluster([pools, pools], top).most
        at, none = most[len(family.steps) :], np.zeros(1)
        return Unseen(-most, most, none), Unseen(-at, at, none)

    def _sum(self, per_query: Floats) -> Floats:
        if self.part is not None:
            return cluster_sums(per_query * self.part.times[:, None], self.part.cluster)
        return cluster_sums(per_query, self.cluster)


def add_own(sample: Sample, seen: Seen) -> None:
    """Register which queries have headroom of their own."""
    sample.add("own", (seen.headroom[:, -1] > seen.tiny).astype(np.float64))


def add_own_gains(
    sample: Sample, prefix: str, column: ScoreColumn, seen: Seen, family: Family
) -> None:
    """Register one score column's gains, each query in its own headroom."""
    gain = column.value - column.value[:, :1]
    sample.add(f"{prefix}own gain", _over(gain, seen.headroom[:, -1:], seen.tiny))
    sample.add(f"{prefix}own captured", _over(gain[:, family.shown_at], seen.headroom, seen.tiny))


def _over(change: Floats, headroom: Floats, tiny: float) -> Floats:
    """Changes over headroom; 0 where there is none."""
    known = headroom > tiny
    return np.asarray(np.where(known, change / np.where(known, headroom, 1.0), 0.0))


def add_bounds(sample: Sample, bounds: Bounds) -> None:
    """Register the ends of the headroom."""
    for room, column in zip(ROOMS, (bounds.room_low, bounds.room_high), strict=True):
        sample.add(f"room {room}", column)


def add_changes(sample: Sample, prefix: str, columns: Sequence[str], bounds: Bounds) -> None:
    """Register the ends of the changes, the mean over score columns."""
    for name, ends in (("least", bounds.least), ("most", bounds.most)):
        sample.add(prefix + name, np.mean([ends[column] for column in columns], axis=0))


_FITTED = 20
"""With fewer queries judged whole, what single labels say of the headroom is not listened to."""


def seen_of(
    pools: ScoredPools,
    judged: Judgement,
    family: Family,
    columns: Mapping[str, ScoreColumn],
    settings: Settings,
) -> Seen:
    """Oracle, headroom and the worst that could be, of every pool or of those judged whole."""
    random = next(iter(columns.values())).value[:, :1]
    cluster = None if pools.cluster is None else codes(pools.source, "cluster", pools.cluster)[0]
    width = None if settings.value_range is None else float(np.ptp(settings.value_range))
    tiny = 1e-12 * judged.largest
    ends = bounds_of(pools, judged, family, columns, settings)
    if ends is not None:
        return _bounded(pools, ends, family, cluster, tiny)
    if judged.sampled is None:
        possible = possible_per_query(pools, judged, family)
        headroom, oracle = possible.oracle - random, possible.oracle
        return Seen(oracle, possible, headroom, cluster, tiny, pools.sizes, width)
    found = judged_whole(pools, judged.sampled, family)
    wider = _wider(pools, judged.sampled.off, found.weight > 0)
    part = WholePart.of(cluster, found.missed, found.weight, wider)
    oracle = random + found.expected
    return Seen(oracle, found.possible, found.headroom, cluster, tiny, pools.sizes, width, part)


@dataclass(frozen=True, eq=False)
class JudgedWhole:
    """What queries that were judged whole say of the best possible."""

    possible: Possible
    """What selection from each of their pools could do."""
    headroom: Floats
    """Their headroom ``[queries judged whole, n_k]``."""
    expected: Floats
    """Headroom that is right on average, of every query ``[queries, n_k]``."""
    missed: Floats
    """What the queries judged whole add to the prediction in it, each over its chance."""
    weight: Floats
    """One over the chance of a query to be judged whole ``[queries]``; 0 where it was not."""


def judged_whole(pools: ScoredPools, sampled: Sampled, family: Family) -> JudgedWhole:
    """The headroom where a design says of some queries that they were judged whole."""
    chance = sampled.whole[pools.offsets[:-1]]
    full = ~np.isnan(chance)
    whole = pools.select(full)
    exact = Judgement(sampled.value[np.repeat(full, pools.sizes)])
    possible = possible_per_query(whole, exact, family)
    headroom = possible.oracle - _means(whole, exact.value)
    predicted = _predicted(pools, sampled, headroom, chance, family)
    weight = np.where(full, 1.0 / np.where(full, chance, 1.0), 0.0)
    missed = np.zeros(predicted.shape)
    missed[full] = headroom - predicted[full]
    mean = np.einsum("q,qk->k", weight, missed) / weight.sum()
    missed = weight[:, None] * (missed - mean)
    return JudgedWhole(possible, headroom, predicted + mean + missed, missed, weight)


def _wider(pools: ScoredPools, off: Floats, full: Flags) -> float:
    """How many times as far off a judged value is in some query as in any that was judged whole."""
    furthest = np.fmax.reduceat(off, pools.offsets[:-1])
    most = furthest[full].max()
    return max(1.0, float(np.nanmax(furthest) / most)) if most > 0 else 1.0


def _bounded(
    pools: ScoredPools, found: Bounds, family: Family, cluster: Ints | None, tiny: float
) -> Seen:
    """Where the headroom is only bounded: the unseen cluster may lose the range of values."""
    ones = np.ones((pools.queries, len(family.shown)))
    none = np.empty((0, len(family.shown)))
    nothing = Possible(ones, none, none, lambda _: {})
    return Seen(ones * np.nan, nothing, ones, cluster, tiny, pools.sizes, found.width, None, found)


def _means(pools: ScoredPools, value: Floats) -> Floats:
    """Mean value of each pool ``[queries, 1]``."""
    return np.asarray((np.add.reduceat(value, pools.offsets[:-1]) / pools.sizes)[:, None])


def _predicted(
    pools: ScoredPools, sampled: Sampled, headroom: Floats, chance: Floats, family: Family
) -> Floats:
    """Headroom of each query, predicted from other folds ``[queries, n_k]``.

    By the headroom that the labels of single candidates show (their largest value, where the
    rest is predicted), or else by the cheap judge's.
    """
    known = np.full((pools.queries, len(family.shown)), np.nan)
    known[~np.isnan(chance)] = headroom
    fold = sampled.fold[pools.offsets[:-1]]
    features: list[Floats] = [np.empty((pools.queries, 0))] * len(family.shown)
    by = sampled.cheap
    if sampled.known is not None and len(headroom) >= _FITTED:
        by = sampled.known
    if by is not None:
        likely = possible_per_query(pools, Judgement(by), family).oracle - _means(pools, by)
        features = [column[:, None] for column in likely.T]
    result = [
        cross_fitted(column, chance, x, fold) for column, x in zip(known.T, features, strict=True)
    ]
    return np.stack(result, axis=1)
