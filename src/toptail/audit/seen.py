"""What the verdict's unit is made of: the best possible, exact or from queries judged whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toptail.audit.bounds import Bounds, bounds_of
from toptail.audit.family import Family
from toptail.audit.partly import Sampled
from toptail.audit.per_query import Judgement, Possible, ScoreColumn, possible_per_query
from toptail.audit.ruler import Seen, WholePart
from toptail.audit.settings import Settings
from toptail.pools import ScoredPools
from toptail.pools.columns import codes
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.sampled import Flags, cross_fitted

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
