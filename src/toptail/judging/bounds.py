"""Bounds of changes and of the headroom, where values or the best candidate are not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toptail.judging.partial import BoundedJudgement, SampledJudgement
from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.pools.scored import BLOCK
from toptail.stats.best_of_k import Floats, average_ties, best_of_k, oracle, tie_starts
from toptail.stats.best_of_k import selection_weights as rank_weights
from toptail.stats.k_grid import KGrid
from toptail.stats.products import steady_product as product


@dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the most that each query's changes and headroom can be.

    Changes are in the order of ``KGrid.first``.
    """

    least: Mapping[str, Floats]
    """Score column -> the least that each change can be ``[queries, changes]``."""
    most: Mapping[str, Floats]
    """Score column -> the most that each change can be ``[queries, changes]``."""
    headroom_low: Floats
    """The least headroom at each K ``[queries, n_k]``."""
    headroom_high: Floats
    """The most headroom at each K ``[queries, n_k]``; NaN where it is not known."""
    width: float
    """How far apart two values can be."""

    @classmethod
    def of(
        cls,
        pools: ScoredPools,
        judged: Judgement,
        grid: KGrid,
        curves: Mapping[str, Floats],
        value_range: tuple[float, float] | None,
    ) -> Bounds:
        """The bounds of a judgement that is ``bounded``.

        Either unjudged values may be anything in their range, or a design gives unbiased
        ``curves`` (score column -> V(K) ``[queries, measured]``) but says of too few queries that
        they were judged whole, so that the oracle is not known.
        """
        if isinstance(judged, BoundedJudgement):
            return _of_values(pools, judged.low, judged.high, grid)
        assert isinstance(judged, SampledJudgement)
        changes = {name: v[:, grid.second] - v[:, grid.first] for name, v in curves.items()}
        low = _best_selector(pools, judged, grid, curves)
        random = next(iter(curves.values()))[:, :1]
        if value_range is None:
            return cls(changes, changes, low, low * np.nan, float(np.ptp(judged.labels)))
        high = np.where(np.array(grid.shown) > 1, value_range[1] - random, 0.0)
        return cls(changes, changes, low, high, float(np.ptp(value_range)))


def _best_selector(
    pools: ScoredPools, judged: SampledJudgement, grid: KGrid, curves: Mapping[str, Floats]
) -> Floats:
    """Gain of the selector that is best in other folds ``[queries, n_k]``: no oracle gains less."""
    gains = [value - value[:, :1] for value in curves.values()]
    if judged.cheap is not None:
        own = np.empty_like(gains[0])
        for block in pools.blocks(BLOCK):
            value, cheap = block.take(judged.value), block.take(judged.cheap)
            own[block.queries] = best_of_k(cheap, value, grid.shown)
        gains.append(own - own[:, :1])
    every, fold = np.stack(gains), judged.fold[pools.offsets[:-1]]
    result = np.empty_like(gains[0])
    for part in np.unique(fold):
        others = every[:, fold != part] if (fold != part).any() else every
        result[fold == part] = every[others[..., -1].mean(axis=1).argmax(), fold == part]
    return result


def _of_values(pools: ScoredPools, low: Floats, high: Floats, grid: KGrid) -> Bounds:
    """Bounds from the ends of each value, taken by the sign of a candidate's weight in a change."""
    shape = (pools.queries, grid.first.size)
    least = {name: np.empty(shape) for name in pools.scores}
    most = {name: np.empty(shape) for name in pools.scores}
    headroom = np.empty((2, pools.queries, len(grid.shown)))
    for block in pools.blocks(BLOCK):
        weights = rank_weights(block.size, grid.shown)
        change = (weights[grid.second] - weights[grid.first]).T
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
        tops = oracle(under, grid.shown), oracle(over, grid.shown)
        means = over.mean(axis=1, keepdims=True), under.mean(axis=1, keepdims=True)
        for end, top, mean in zip(headroom, tops, means, strict=True):
            end[block.queries] = top - mean
    return Bounds(least, most, headroom[0], headroom[1], float(high.max() - low.min()))
