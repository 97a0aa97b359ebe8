"""Where values or the best possible are only known to lie between two ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toptail.audit.per_query import BLOCK, Judgement, ScoreColumn
from toptail.audit.settings import Settings
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, average_ties, best_of_k, oracle, tie_starts
from toptail.stats.best_of_k import selection_weights as rank_weights
from toptail.stats.k_grid import Family
from toptail.stats.products import steady_product as product


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of what an audit asks of each query, in the order of ``Family.first``."""

    least: Mapping[str, Floats]
    """Score column -> the least that each change can be ``[queries, changes]``."""
    most: Mapping[str, Floats]
    """Score column -> the most that each change can be."""
    room_low: Floats
    """Headroom at each K, at least ``[queries, n_k]``."""
    room_high: Floats
    """Headroom at each K, at most; NaN where nothing says so."""
    width: float
    """How far apart two values can be."""


def bounds_of(
    pools: ScoredPools,
    judged: Judgement,
    family: Family,
    columns: Mapping[str, ScoreColumn],
    settings: Settings,
) -> Bounds | None:
    """The ends where something is not known, None where everything can be estimated.

    Either unjudged values may be anything in their range, or a design gives unbiased curves
    but says of no query that it was judged whole, so that the oracle is not known.
    """
    if judged.between is not None:
        return _values_between(pools, *judged.between, family)
    if not judged.bounded:
        return None
    changes = {n: c.value[:, family.second] - c.value[:, family.first] for n, c in columns.items()}
    low = _best_selector(pools, judged, family, columns)
    random = next(iter(columns.values())).value[:, :1]
    if settings.value_range is None:
        return Bounds(changes, changes, low, low * np.nan, float(np.ptp(judged.seen)))
    high = np.where(np.array(family.shown) > 1, settings.value_range[1] - random, 0.0)
    return Bounds(changes, changes, low, high, float(np.ptp(settings.value_range)))


def _best_selector(
    pools: ScoredPools, judged: Judgement, family: Family, columns: Mapping[str, ScoreColumn]
) -> Floats:
    """Gain of the selector that is best in other folds ``[queries, n_k]``: no oracle gains less."""
    assert judged.sampled is not None
    gains = [column.value - column.value[:, :1] for column in columns.values()]
    if judged.sampled.cheap is not None:
        own = np.empty_like(gains[0])
        for block in pools.blocks(BLOCK):
            value, cheap = block.take(judged.value), block.take(judged.sampled.cheap)
            own[block.queries] = best_of_k(cheap, value, family.shown)
        gains.append(own - own[:, :1])
    every, fold = np.stack(gains), judged.sampled.fold[pools.offsets[:-1]]
    result = np.empty_like(gains[0])
    for part in np.unique(fold):
        others = every[:, fold != part] if (fold != part).any() else every
        result[fold == part] = every[others[..., -1].mean(axis=1).argmax(), fold == part]
    return result


def _values_between(pools: ScoredPools, low: Floats, high: Floats, family: Family) -> Bounds:
    """Each change at its own worst and best: by the sign of a candidate's weight in it."""
    shape = (pools.queries, family.first.size)
    least = {name: np.empty(shape) for name in pools.scores}
    most = {name: np.empty(shape) for name in pools.scores}
    rooms = np.empty((2, pools.queries, len(family.shown)))
    for block in pools.blocks(BLOCK):
        weights = rank_weights(block.size, family.shown)
        change = (weights[family.second] - weights[family.first]).T
        up, down = np.maximum(change, 0.0), np.minimum(change, 0.0)
        under, over = block.take(low), block.take(high)
        for name, column in pools.scores.items():
            scores = block.take(column)
            order = np.argsort(scores, axis=1)
            starts = tie_starts(np.take_along_axis(scores, order, axis=1))
            lower, upper = (
                average_ties(np.take_along_axis(x, order, axis=1), starts) for x in (under, over)
            )
            least[name][block.queries] = product(lower, up) + product(upper, down)
            most[name][block.queries] = product(upper, up) + product(lower, down)
        tops = oracle(under, family.shown), oracle(over, family.shown)
        means = over.mean(axis=1, keepdims=True), under.mean(axis=1, keepdims=True)
        for room, top, mean in zip(rooms, tops, means, strict=True):
            room[block.queries] = top - mean
    return Bounds(least, most, rooms[0], rooms[1], float(high.max() - low.min()))
