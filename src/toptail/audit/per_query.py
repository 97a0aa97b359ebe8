"""Each query's own numbers: the only pass over the candidates that an audit makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toptail.pools import Block, ScoredPools
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    average_ties,
    oracle,
    selection_weights,
    split_oracle,
    tie_starts,
)
from toptail.stats.deciles import bin_shares, pooled_bins
from toptail.stats.rank import dense_ranks, placements, row_auc, tau_b_of_ranks

# Blocks of about this many candidates: their temporaries stay in cache.
_BLOCK = 1 << 17
_BINS = 10


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """What one score column does, query by query (Q queries, n_k values of K)."""

    value: Floats
    """Expected value of the pick ``[Q, n_k]``."""
    selected_score: Floats
    """Expected score of the pick ``[Q, n_k]``."""
    tau_b: Floats
    """Within-query Kendall tau_b with the value ``[Q]``; NaN where undefined."""
    deciles_within: Floats
    """Mean value by score decile formed inside the query ``[Q, 10]``."""
    decile_sums: Floats
    """Sum of values falling into each decile of the pooled scores ``[Q, 10]``."""
    decile_counts: Floats
    """Number of candidates falling into each decile of the pooled scores ``[Q, 10]``."""
    off_support: Floats | None = None
    """Chance that the pick is off support ``[Q, n_k]``."""
    auc_within: Floats | None = None
    """AUC inside the query, for binary values ``[Q]``."""
    auc: float | None = None
    """AUC over all candidates, for binary values."""
    auc_influence: Floats | None = field(default=None, repr=False)
    """How far each query moves the pooled AUC ``[Q]``; sums to 0."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """The values an audit judges by."""

    value: Floats
    """``[rows]``: the judged value, or the mean of its replicates."""
    replicates: Floats | None = None
    """``[r, rows]``: independent replicates of a noisy judge."""

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1, with both present."""
        return bool(np.isin(self.value, (0.0, 1.0)).all() and self.value.min() < self.value.max())

    def select(self, rows: NDArray[np.bool_]) -> Judgement:
        """The judgement of some of the candidates."""
        kept = None if self.replicates is None else self.replicates[:, rows]
        return Judgement(self.value[rows], kept)


def oracle_per_query(pools: ScoredPools, judged: Judgement, k: Sequence[int]) -> Floats:
    """Best possible with K for each query ``[Q, n_k]``; split where the judge is noisy."""
    result = np.empty((pools.queries, len(k)))
    for block in pools.blocks(_BLOCK):
        if judged.replicates is None:
            result[block.queries] = oracle(block.take(judged.value), k)
        else:
            halves = np.stack([block.take(replicate) for replicate in judged.replicates])
            result[block.queries] = split_oracle(halves, k)
    return result


def score_columns(
    pools: ScoredPools,
    judged: Judgement,
    k: Sequence[int],
    tick: Callable[[float], None] | None = None,
) -> dict[str, ScoreColumn]:
    """Measure every score column of ``pools``, block by block on all cores.

    Blocks write to their own rows, so the result does not depend on the number of
    threads.
    """
    q, n_k, binary = pools.queries, len(k), judged.binary
    out = {
        name: ScoreColumn(
            value=np.empty((q, n_k)),
            selected_score=np.empty((q, n_k)),
            tau_b=np.empty(q),
            deciles_within=np.empty((q, _BINS)),
            decile_sums=np.empty((q, _BINS)),
            decile_counts=np.empty((q, _BINS)),
            off_support=None if pools.support is None else np.empty((q, n_k)),
            auc_within=np.empty(q) if binary else None,
        )
        for name in pools.scores
    }
    off = None if pools.support is None else 1.0 - pools.support
    blocks = list(pools.blocks(_BLOCK))

    def measure(block: Block) -> None:
        value = block.take(judged.value)
        value_ranks = dense_ranks(value)
        outside = None if off is None else block.take(off)
        weights = _weights(block.size, tuple(k))
        for name, column in pools.scores.items():
            scores = block.take(column)
            _measure_block(out[name], block, weights, scores, value, value_ranks, outside)

    with ThreadPoolExecutor(_threads()) as pool:
        for done, _ in enumerate(pool.map(measure, blocks), start=1):
            if tick is not None:
                tick(done / len(blocks))
        parent = np.repeat(np.arange(q), pools.sizes)
        finish = {
            name: pool.submit(_pooled, out[name], column, judged, parent)
            for name, column in pools.scores.items()
        }
        return {name: future.result() for name, future in finish.items()}


def _measure_block(
    out: ScoreColumn,
    block: Block,
    weights: Floats,
    scores: Floats,
    value: Floats,
    value_ranks: tuple[Ints, Ints],
    outside: Floats | None,
) -> None:
    """The arithmetic of one block of one score column."""
    at = block.queries
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    starts = tie_starts(ordered)
    by_score = average_ties(np.take_along_axis(value, order, axis=1), starts)
    out.value[at] = by_score @ weights
    out.deciles_within[at] = by_score @ _shares(block.size)
    out.selected_score[at] = _selected_score(ordered, weights)
    out.tau_b[at] = tau_b_of_ranks(*dense_ranks(scores, order), *value_ranks)
    if outside is not None and out.off_support is not None:
        by_score = average_ties(np.take_along_axis(outside, order, axis=1), starts)
        out.off_support[at] = by_score @ weights
    if out.auc_within is not None:
        out.auc_within[at] = row_auc(scores, value == 1.0)


def _selected_score(ordered: Floats, weights: Floats) -> Floats:
    """Expected score of the pick; NaN where a score of -inf may be picked."""
    if np.isneginf(ordered[:, 0]).any():
        lowest = np.isneginf(ordered)
        finite = _selected_score(np.where(lowest, 0.0, ordered), weights)
        return np.where(lowest.astype(np.float64) @ weights > 0, np.nan, finite)
    # Halved exponents keep the sum of huge scores finite.
    scale = max(1.0, float(np.abs(ordered).max()))
    result: Floats = ((ordered / scale) @ weights) * scale
    return result


def _pooled(out: ScoreColumn, scores: Floats, judged: Judgement, parent: Ints) -> ScoreColumn:
    """Fill in what looks across queries: deciles of the pooled scores, and the AUC."""
    queries = out.tau_b.size
    category, share = pooled_bins(scores, _BINS)
    cell = parent * share.shape[0] + category
    shape = (queries, share.shape[0])
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    sums = np.bincount(cell, judged.value, minlength=shape[0] * shape[1]).reshape(shape)
    out.decile_counts[:] = counts @ share
    out.decile_sums[:] = sums @ share
    if out.auc_within is None:
        return out
    positive = judged.value == 1.0
    place = placements(scores, positive)
    area = float(place[positive].mean())
    influence = np.zeros(queries)
    for mine in (positive, ~positive):
        influence += np.bincount(parent[mine], place[mine] - area, queries) / mine.sum()
    return ScoreColumn(**{**out.__dict__, "auc": area, "auc_influence": influence})


@lru_cache(maxsize=256)
def _weights(n: int, k: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(selection_weights(n, k).T)


@lru_cache(maxsize=256)
def _shares(n: int) -> Floats:
    return bin_shares(n, _BINS)


def _threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
