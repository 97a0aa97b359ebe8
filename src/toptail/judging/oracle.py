"""The headroom that judged values allow: known, estimated from some queries, or bounded.

The oracle(K) of a pool is the expected value of the best of K of its candidates, and the headroom
is oracle(K) - V(1). :class:`SelectionLimits` has it where every candidate was judged,
:class:`HeadroomEstimate` from the queries that a design judged whole, and :class:`Bounds` where
there are too few of those or unjudged values may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from toptail.judging.values import BoundedJudgement, Judgement, SampledJudgement, offsets_at
from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK, blocks_of
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    KGrid,
    average_ties,
    best_of_k,
    oracle,
    selection_weights,
    split_oracle,
    steady_product,
    tie_starts,
)
from toptail.stats.ends import extreme_changes, extreme_weights
from toptail.stats.resample import available_threads
from toptail.stats.sampled import cross_fitted

_FITTED: Final = 20
"""With fewer queries judged whole, single labels of other queries do not predict the headroom."""


@dataclass(frozen=True, eq=False)
class SelectionLimits:
    """What selection from a query's pool could do, whatever the score."""

    oracle: Floats
    """Best possible with K ``[Q, n_k]``; split where the judge is noisy."""
    least: Floats
    """The least that the change from 1 to K can be, by any order ``[Q, n_k]``."""
    most: Floats
    """The most that it can be."""
    profile: Callable[[Floats], dict[int, Floats]]
    """Weights ``[Q]`` -> size of a pool -> weighted sum of such pools' values, each sorted."""

    def extremes(self, weight: Floats, grid: KGrid) -> tuple[Floats, Floats]:
        """Weighted sums over queries of the least and the most of each change ``[changes]``."""
        ends = np.zeros((2, grid.first.size))
        for _, ordered in sorted(self.profile(weight).items()):
            ends += extreme_changes(ordered, grid.measured, grid.first, grid.second)
        return ends[0], ends[1]


def limits_per_query(pools: ScoredPools, judged: Judgement, grid: KGrid) -> SelectionLimits:
    """What selection can do in each query's pool, block by block on all cores."""
    oracle, least, most = np.empty((3, pools.queries, len(grid.shown)))

    def limits(at: slice) -> Floats:
        return _limits(offsets_at(pools, at), judged.at(pools, at), grid.shown)

    def profile(weight: Floats) -> dict[int, Floats]:
        def part(at: slice) -> dict[int, Floats]:
            return _profile(offsets_at(pools, at), judged.at(pools, at), weight[at])

        found: dict[int, Floats] = {}
        for _, sums in pools.over(part):
            for size, ordered in sums.items():
                found[size] = found.get(size, 0.0) + ordered
        return found

    for at, part in pools.over(limits):
        oracle[at], least[at], most[at] = part
    return SelectionLimits(oracle, least, most, profile)


def _limits(offsets: Ints, judged: Judgement, k: tuple[int, ...]) -> Floats:
    """Oracle, least and most of each pool of a segment ``[3, queries, n_k]``."""
    out = np.empty((3, offsets.size - 1, len(k)))

    def measure(block: Block) -> None:
        value = np.sort(block.take(judged.value), axis=1)
        for end, weights in zip(out[1:], _extremes(block.size, k), strict=True):
            end[block.queries] = steady_product(value, weights)
        if judged.replicates is None:
            out[0, block.queries] = steady_product(value, rank_weights(block.size, k))
        else:
            halves = np.stack([block.take(replicate) for replicate in judged.replicates])
            out[0, block.queries] = split_oracle(halves, k)

    with ThreadPoolExecutor(available_threads()) as pool:
        list(pool.map(measure, blocks_of(offsets, BLOCK)))
    return out


def _profile(offsets: Ints, judged: Judgement, weight: Floats) -> dict[int, Floats]:
    """Size of a pool -> weighted sum of the sorted values of such pools of a segment ``[size]``."""

    def measure(block: Block) -> Floats:
        value = np.sort(block.take(judged.value), axis=1)
        return np.asarray(steady_product(weight[None, block.queries], value)[0])

    blocks, found = list(blocks_of(offsets, BLOCK)), dict[int, Floats]()
    with ThreadPoolExecutor(available_threads()) as pool:
        for block, ordered in zip(blocks, pool.map(measure, blocks), strict=True):
            found[block.size] = found.get(block.size, 0.0) + ordered
    return found


@lru_cache(maxsize=256)
def rank_weights(n: int, k: tuple[int, ...]) -> Floats:
    """Chances ``[n, n_k]`` that the best of K of n is the candidate of each rank, ascending."""
    return np.ascontiguousarray(selection_weights(n, k).T)


@lru_cache(maxsize=256)
def _extremes(n: int, k: tuple[int, ...]) -> tuple[Floats, Floats]:
    return extreme_weights(n, k, np.zeros(len(k), dtype=np.int64), np.arange(len(k)))


@dataclass(frozen=True, eq=False)
class HeadroomEstimate:
    """The headroom as the queries that a design judged whole show it."""

    limits: SelectionLimits
    """What selection from each of their pools could do."""
    headroom: Floats
    """Their headroom ``[queries judged whole, n_k]``."""
    expected: Floats
    """Headroom that is right on average, of every query ``[queries, n_k]``."""
    missed: Floats
    """By how much the headroom of queries judged whole exceeds its prediction, over the chance to
    be judged whole ``[queries, n_k]``; 0 where a query was not."""
    weight: Floats
    """One over the chance to be judged whole ``[queries]``; 0 where a query was not."""

    @classmethod
    def of(cls, pools: ScoredPools, judged: SampledJudgement, grid: KGrid) -> HeadroomEstimate:
        """The difference estimate: predictions, corrected where a query was judged whole."""
        chance = judged.whole[pools.offsets[:-1]]
        full = ~np.isnan(chance)
        whole = pools.select(full)
        exact = Judgement(judged.observed[np.repeat(full, pools.sizes)])
        limits = limits_per_query(whole, exact, grid)
        headroom = limits.oracle - _means(whole, exact.value)
        predicted = _predicted(pools, judged, headroom, chance, grid)
        weight = np.where(full, 1.0 / np.where(full, chance, 1.0), 0.0)
        missed = np.zeros(predicted.shape)
        missed[full] = headroom - predicted[full]
        mean = np.einsum("q,qk->k", weight, missed) / weight.sum()
        missed = weight[:, None] * (missed - mean)
        return cls(limits, headroom, predicted + mean + missed, missed, weight)


def _means(pools: ScoredPools, value: Floats) -> Floats:
    return np.asarray((np.add.reduceat(value, pools.offsets[:-1]) / pools.sizes)[:, None])


def _predicted(
    pools: ScoredPools, judged: SampledJudgement, headroom: Floats, chance: Floats, grid: KGrid
) -> Floats:
    """Headroom of each query, predicted from other folds ``[queries, n_k]``.

    The predictor is the headroom that the labels of single candidates show (their largest value,
    where the rest is predicted), or else the cheap judge's.
    """
    known = np.full((pools.queries, len(grid.shown)), np.nan)
    known[~np.isnan(chance)] = headroom
    fold = judged.fold[pools.offsets[:-1]]
    features: list[Floats] = [np.empty((pools.queries, 0))] * len(grid.shown)
    by = judged.cheap
    if judged.likely is not None and len(headroom) >= _FITTED:
        by = judged.likely
    if by is not None:
        likely = limits_per_query(pools, Judgement(by), grid).oracle - _means(pools, by)
        features = [column[:, None] for column in likely.T]
    result = [
        cross_fitted(column, chance, x, fold) for column, x in zip(known.T, features, strict=True)
    ]
    return np.stack(result, axis=1)


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
        weights = selection_weights(block.size, grid.shown)
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
            least[name][block.queries] = steady_product(lower, up) + steady_product(upper, down)
            most[name][block.queries] = steady_product(upper, up) + steady_product(lower, down)
        tops = oracle(under, grid.shown), oracle(over, grid.shown)
        means = over.mean(axis=1, keepdims=True), under.mean(axis=1, keepdims=True)
        for end, top, mean in zip(headroom, tops, means, strict=True):
            end[block.queries] = top - mean
    return Bounds(least, most, headroom[0], headroom[1], float(high.max() - low.min()))
