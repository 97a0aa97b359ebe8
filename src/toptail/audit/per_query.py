"""Each query's own numbers: the only pass over the candidates that an audit makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from toptail.audit.pooled import cell_sums, pooled_auc, pooled_edges, put_deciles
from toptail.judging.values import Judgement, offsets_at
from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK, blocks_of, segments
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    average_ties,
    best_of_k,
    selection_weights,
    split_oracle,
    tie_starts,
)
from toptail.stats.deciles import bin_shares
from toptail.stats.ends import extreme_changes, extreme_weights
from toptail.stats.k_grid import KGrid
from toptail.stats.products import steady_product
from toptail.stats.rank import dense_ranks, row_auc, tau_b_of_ranks
from toptail.stats.resample import available_threads

_BINS = 10


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """What one score column does, query by query (Q queries, n_k of the shown K)."""

    value: Floats
    """Expected value of the pick at every measured K ``[Q, measured]``."""
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
            out[0, block.queries] = steady_product(value, _weights(block.size, k))
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


def score_columns(
    pools: ScoredPools,
    judged: Judgement,
    grid: KGrid,
    tick: Callable[[float], None] | None = None,
) -> dict[str, ScoreColumn]:
    """Measure every score column of ``pools``, segment by segment, block by block on all cores.

    Blocks write to their own rows, so the result does not depend on the number of
    threads.
    """
    # What is no sum over candidates cannot be had from some of them.
    exact = judged.exact
    q, binary = pools.queries, judged.binary and exact
    out = {name: _empty(q, grid, pools.supported, binary) for name in pools.scores}
    edges = pooled_edges(pools, _BINS)
    cells = {n: np.empty((2, q, 2 * e.size + 1)) for n, e in edges.items()}
    inner = tick if pools.in_process and len(segments(pools.sizes)) == 1 else None

    def measure(at: slice) -> dict[str, tuple[ScoreColumn, Floats]]:
        offsets, value = offsets_at(pools, at), judged.at(pools, at).value
        scores, support = pools.scores_at(at, pools.scores), pools.support_at(at)
        outside = None if support is None else (~support).astype(np.float64)
        part = _Part(offsets, value, exact, outside)
        found = _measured(part, scores, grid, binary, inner)
        return {n: (c, cell_sums(offsets, scores[n], value, edges[n])) for n, c in found.items()}

    for at, part in pools.over(measure):
        for name, (column, sums) in part.items():
            cells[name][:, at] = sums
            for field_name, whole in vars(out[name]).items():
                if whole is not None:
                    whole[at] = getattr(column, field_name)
        if tick is not None and inner is None:
            tick(at.stop / q)
    for name, column in out.items():
        put_deciles(column.decile_sums, column.decile_counts, cells.pop(name))
    if not binary:
        return out
    areas = pooled_auc(pools, judged)
    return {n: ScoreColumn(**{**vars(c), **areas[n]}) for n, c in out.items()}


def _empty(q: int, grid: KGrid, supported: bool, binary: bool) -> ScoreColumn:
    """Room for the numbers of a score column."""
    n_k = len(grid.shown)
    return ScoreColumn(
        value=np.empty((q, len(grid.measured))),
        selected_score=np.empty((q, n_k)),
        tau_b=np.empty(q),
        deciles_within=np.empty((q, _BINS)),
        decile_sums=np.empty((q, _BINS)),
        decile_counts=np.empty((q, _BINS)),
        off_support=np.empty((q, n_k)) if supported else None,
        auc_within=np.empty(q) if binary else None,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """The candidates of a segment, but for their scores."""

    offsets: Ints
    """Where each pool starts."""
    value: Floats
    """Their values."""
    exact: bool
    """Whether every candidate has its value."""
    outside: Floats | None
    """1 where a candidate is off the data support."""


def _measured(
    part: _Part,
    columns: Mapping[str, Floats],
    grid: KGrid,
    binary: bool,
    tick: Callable[[float], None] | None,
) -> dict[str, ScoreColumn]:
    """Each score column of a segment, but for what looks across queries."""
    queries = part.offsets.size - 1
    out = {n: _empty(queries, grid, part.outside is not None, binary) for n in columns}
    blocks = list(blocks_of(part.offsets, BLOCK))

    def measure(block: Block) -> None:
        value = block.take(part.value)
        value_ranks = dense_ranks(value) if part.exact else None
        outside = None if part.outside is None else block.take(part.outside)
        for name, column in columns.items():
            scores = block.take(column)
            _measure_block(out[name], block, grid, scores, value, value_ranks, outside)

    with ThreadPoolExecutor(available_threads()) as pool:
        for done, _ in enumerate(pool.map(measure, blocks), start=1):
            if tick is not None:
                tick(done / len(blocks))
    return out


def _measure_block(
    out: ScoreColumn,
    block: Block,
    grid: KGrid,
    scores: Floats,
    value: Floats,
    value_ranks: tuple[Ints, Ints] | None,
    outside: Floats | None,
) -> None:
    """The arithmetic of one block of one score column."""
    at = block.queries
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    starts = tie_starts(ordered)
    by_score = average_ties(np.take_along_axis(value, order, axis=1), starts)
    weights = _weights(block.size, grid.shown)
    out.value[at] = steady_product(by_score, _weights(block.size, grid.measured))
    out.deciles_within[at] = steady_product(by_score, _shares(block.size))
    out.selected_score[at] = _expected_score(ordered, weights)
    out.tau_b[at] = np.nan
    if value_ranks is not None:
        out.tau_b[at] = tau_b_of_ranks(*dense_ranks(scores, order), *value_ranks)
    if outside is not None and out.off_support is not None:
        by_score = average_ties(np.take_along_axis(outside, order, axis=1), starts)
        out.off_support[at] = steady_product(by_score, weights)
    if out.auc_within is not None:
        out.auc_within[at] = row_auc(scores, value == 1.0)


def _expected_score(ordered: Floats, weights: Floats) -> Floats:
    """Expected score of the pick ``[m, n_k]``; -inf where the pick may be a score of -inf."""
    finite = np.isfinite(ordered)
    known = np.where(finite, ordered, 0.0)
    # Halved exponents keep the sum of huge scores finite.
    scale = max(1.0, float(np.abs(known).max()))
    result = steady_product(known / scale, weights) * scale
    if not finite.all():
        result[steady_product((~finite).astype(np.float64), weights) > 0] = -np.inf
    return np.asarray(result)


@lru_cache(maxsize=256)
def _weights(n: int, k: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(selection_weights(n, k).T)


@lru_cache(maxsize=256)
def _shares(n: int) -> Floats:
    return bin_shares(n, _BINS)


@lru_cache(maxsize=256)
def _extremes(n: int, k: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Of the changes from k[0] to each K."""
    return extreme_weights(n, k, np.zeros(len(k), dtype=np.int64), np.arange(len(k)))


def values_at(pools: ScoredPools, judged: Judgement, columns: Sequence[str], k: int) -> Floats:
    """V(K) of score columns, the mean over them ``[queries]``, and nothing else."""

    def values(at: slice) -> Floats:
        part, scores = judged.at(pools, at).value, pools.scores_at(at, columns)
        result = np.zeros(at.stop - at.start)
        for block in blocks_of(offsets_at(pools, at), BLOCK):
            value = block.take(part)
            for name in columns:
                result[block.queries] += best_of_k(block.take(scores[name]), value, [k])[:, 0]
        return result

    return np.concatenate([part for _, part in pools.over(values)]) / len(columns)
