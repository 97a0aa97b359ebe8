"""What judged values allow, whatever the score: the best possible with K, and the headroom.

The oracle(K) of a pool is the expected value of the best of K of its candidates. The headroom is
oracle(K) - V(1). Where not every candidate was judged, :class:`HeadroomEstimate` has the headroom
from the queries that a design judged whole.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from toptail.judging.partial import SampledJudgement
from toptail.judging.values import Judgement, offsets_at
from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK, blocks_of
from toptail.stats.best_of_k import Floats, Ints, selection_weights, split_oracle
from toptail.stats.ends import extreme_changes, extreme_weights
from toptail.stats.k_grid import KGrid
from toptail.stats.products import steady_product
from toptail.stats.resample import available_threads
from toptail.stats.sampled import cross_fitted

_FITTED: Final = 20
"""With fewer queries judged whole, single labels of other queries do not predict the headroom."""


@dataclass(frozen=True, eq=False)
class Possible:
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


def possible_per_query(pools: ScoredPools, judged: Judgement, grid: KGrid) -> Possible:
    """What is possible in each query's pool, block by block on all cores."""
    oracle, least, most = np.empty((3, pools.queries, len(grid.shown)))

    def possible(at: slice) -> Floats:
        return _possible(offsets_at(pools, at), judged.at(pools, at), grid.shown)

    def profile(weight: Floats) -> dict[int, Floats]:
        def part(at: slice) -> dict[int, Floats]:
            return _profile(offsets_at(pools, at), judged.at(pools, at), weight[at])

        found: dict[int, Floats] = {}
        for _, sums in pools.over(part):
            for size, ordered in sums.items():
                found[size] = found.get(size, 0.0) + ordered
        return found

    for at, part in pools.over(possible):
        oracle[at], least[at], most[at] = part
    return Possible(oracle, least, most, profile)


def _possible(offsets: Ints, judged: Judgement, k: tuple[int, ...]) -> Floats:
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
    """Of the changes from k[0] to each K."""
    return extreme_weights(n, k, np.zeros(len(k), dtype=np.int64), np.arange(len(k)))


@dataclass(frozen=True, eq=False)
class HeadroomEstimate:
    """The headroom as the queries that a design judged whole show it."""

    possible: Possible
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
        possible = possible_per_query(whole, exact, grid)
        headroom = possible.oracle - _means(whole, exact.value)
        predicted = _predicted(pools, judged, headroom, chance, grid)
        weight = np.where(full, 1.0 / np.where(full, chance, 1.0), 0.0)
        missed = np.zeros(predicted.shape)
        missed[full] = headroom - predicted[full]
        mean = np.einsum("q,qk->k", weight, missed) / weight.sum()
        missed = weight[:, None] * (missed - mean)
        return cls(possible, headroom, predicted + mean + missed, missed, weight)


def _means(pools: ScoredPools, value: Floats) -> Floats:
    """Mean value of each pool ``[queries, 1]``."""
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
        likely = possible_per_query(pools, Judgement(by), grid).oracle - _means(pools, by)
        features = [column[:, None] for column in likely.T]
    result = [
        cross_fitted(column, chance, x, fold) for column, x in zip(known.T, features, strict=True)
    ]
    return np.stack(result, axis=1)
