"""Numbers of each query and score column: the audit's only pass over the candidates and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from toptail.audit.pooled import cell_sums, pooled_auc, pooled_edges, put_deciles
from toptail.judging.oracle import rank_weights
from toptail.judging.values import Judgement, offsets_at
from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK, blocks_of, segments
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    average_ties,
    best_of_k,
    tie_starts,
)
from toptail.stats.deciles import bin_shares
from toptail.stats.k_grid import KGrid
from toptail.stats.products import steady_product
from toptail.stats.rank import dense_ranks, row_auc, tau_b_of_ranks
from toptail.stats.resample import available_threads

_BINS = 10


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """The numbers of one score column by query (Q queries, n_k shown K)."""

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
    exact = judged.exact  # rank correlations are no sums: pseudo-values do not give them
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


class _Part(NamedTuple):
    """The candidates of a segment without their scores."""

    offsets: Ints
    value: Floats
    exact: bool
    outside: Floats | None
    """1 where a candidate is off the data support."""


def _measured(
    part: _Part,
    columns: Mapping[str, Floats],
    grid: KGrid,
    binary: bool,
    tick: Callable[[float], None] | None,
) -> dict[str, ScoreColumn]:
    """Each score column of a segment, without the statistics across queries."""
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
    at = block.queries
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    starts = tie_starts(ordered)
    by_score = average_ties(np.take_along_axis(value, order, axis=1), starts)
    weights = rank_weights(block.size, grid.shown)
    out.value[at] = steady_product(by_score, rank_weights(block.size, grid.measured))
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
def _shares(n: int) -> Floats:
    return bin_shares(n, _BINS)


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
