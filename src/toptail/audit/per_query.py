"""Numbers of each query and score column: the audit's only pass over the candidates and scores.

The second half has the statistics across queries: deciles of the pooled scores, and the AUC over
all candidates. A table of one segment is computed at once. Of a table of several segments the AUC
is a sum of whole numbers, which does not depend on their order: it has the same bits whether the
candidates lie in memory or on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toptail.judging.oracle import rank_weights
from toptail.judging.values import Judgement, offsets_at
from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK, blocks_of, segments
from toptail.pools.stream import Scratch, StreamedPools
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    KGrid,
    average_ties,
    best_of_k,
    steady_product,
    tie_starts,
)
from toptail.stats.rank import (
    OrderStatistics,
    bin_shares,
    categories,
    category_shares,
    dense_ranks,
    edge_ranks,
    placements,
    row_auc,
    tau_b_of_ranks,
)
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
    pools: ScoredPools, judged: Judgement, grid: KGrid, tick: Callable[[float], None] | None = None
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


def picked_values(pools: ScoredPools, judged: Judgement, columns: Sequence[str], k: int) -> Floats:
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


_SORTED: Final = 1 << 23
"""How many scores on disk are sorted together."""
_PAIR: Final = np.dtype([("score", "f8"), ("code", "i8")])
"""A score, and a code: twice the number of its query, plus 1 where the value is 1."""


def pooled_edges(pools: ScoredPools, bins: int) -> dict[str, Floats]:
    """Score column -> the edges between ``bins`` quantile bins of all candidates' scores."""
    ranks = edge_ranks(pools.rows, bins)
    if isinstance(pools, StreamedPools):
        found = order_statistics(pools, list(pools.scores), ranks)
        return {name: np.unique(numbers) for name, numbers in found.items()}
    with ThreadPoolExecutor(available_threads()) as pool:
        numbers = pool.map(lambda column: np.partition(column, ranks)[ranks], pools.scores.values())
        return {name: np.unique(each) for name, each in zip(pools.scores, numbers, strict=True)}


def order_statistics(pools: ScoredPools, names: list[str], ranks: Ints) -> dict[str, Floats]:
    """Score column -> its scores at these ranks, read segment by segment."""
    wanted = {name: OrderStatistics(ranks) for name in names}
    while still := {name: each for name, each in wanted.items() if each.found is None}:

        def look(at: slice, still: dict[str, OrderStatistics] = still) -> list[OrderStatistics]:
            parts = [each.blank() for each in still.values()]
            for part, column in zip(parts, pools.scores_at(at, still).values(), strict=True):
                part.add(column)
            return parts

        for _, parts in pools.over(look):
            for whole, part in zip(still.values(), parts, strict=True):
                whole.merge(part)
        for each in still.values():
            each.end()
    return {name: each.found for name, each in wanted.items() if each.found is not None}


def cell_sums(offsets: Ints, scores: Floats, value: Floats, edges: Floats) -> Floats:
    """Counts of candidates and sums of their values ``[2, queries, categories]``."""
    shape = (offsets.size - 1, 2 * edges.size + 1)
    parent = np.repeat(np.arange(shape[0]), np.diff(offsets))
    cell = parent * shape[1] + categories(scores, edges)
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = np.bincount(cell, value, minlength=shape[0] * shape[1])
    return np.stack([counts.astype(np.float64), sums]).reshape(2, *shape)


def put_deciles(decile_sums: Floats, decile_counts: Floats, cells: Floats) -> None:
    """Fill in each query's sums and counts by decile of the pooled scores ``[queries, 10]``."""
    counts, sums = cells
    share = category_shares(counts.sum(axis=0).astype(np.int64), decile_sums.shape[1])
    decile_counts[:] = steady_product(counts, share)
    decile_sums[:] = steady_product(sums, share)


def pooled_auc(pools: ScoredPools, judged: Judgement) -> dict[str, dict[str, Any]]:
    """Score column -> its ``auc`` over all candidates, and each query's ``auc_influence``."""
    whole = slice(0, pools.queries)
    if len(segments(pools.sizes)) > 1:
        return {name: _counted(pools, judged, name) for name in pools.scores}
    value = judged.at(pools, whole).value
    parent = np.repeat(np.arange(pools.queries), pools.sizes)
    columns = pools.scores_at(whole, pools.scores)
    with ThreadPoolExecutor(available_threads()) as pool:
        found = pool.map(lambda column: _placed(column, value == 1.0, parent), columns.values())
        return dict(zip(columns, found, strict=True))


def _placed(scores: Floats, positive: NDArray[np.bool_], parent: Ints) -> dict[str, Any]:
    place = placements(scores, positive)
    area = float(place[positive].mean())
    influence = np.zeros(int(parent[-1]) + 1)
    for mine in (positive, ~positive):
        influence += np.bincount(parent[mine], place[mine] - area, influence.size) / mine.sum()
    return {"auc": area, "auc_influence": influence}


def _counted(pools: ScoredPools, judged: Judgement, name: str) -> dict[str, Any]:
    """The AUC from whole numbers: scores of the other class below count twice, ties once."""
    below = np.zeros((2, pools.queries), dtype=np.int64)
    number = np.zeros((2, pools.queries), dtype=np.int64)
    pieces = _on_disk if isinstance(pools, StreamedPools) else _in_memory
    for at, label, times in pieces(pools, judged, name):
        below[label] += np.bincount(at, times, pools.queries).astype(np.int64)
        number[label] += np.bincount(at, minlength=pools.queries)
    negatives, positives = (int(n) for n in number.sum(axis=1))
    area = int(below[1].sum()) / (2 * positives * negatives)
    won = below[1] / (2 * negatives) - number[1] * area
    lost = number[0] - below[0] / (2 * positives) - number[0] * area
    return {"auc": area, "auc_influence": won / positives + lost / negatives}


_Pieces = Iterator[tuple[Ints, int, Ints]]
"""For some candidates of one class: the query of each, the class (1 where the value is 1), and
twice the number of scores of the other class below it, where a tie counts half."""


def _in_memory(pools: ScoredPools, judged: Judgement, name: str) -> _Pieces:
    positive = judged.value == 1.0
    column = pools.scores[name]
    ordered = [np.sort(column[positive == label]) for label in (False, True)]
    for at in segments(pools.sizes):
        rows = slice(int(pools.offsets[at.start]), int(pools.offsets[at.stop]))
        parent = np.repeat(np.arange(at.start, at.stop), pools.sizes[at])
        for label in (0, 1):
            mine = positive[rows] == bool(label)
            yield parent[mine], label, _below(ordered[1 - label], column[rows][mine])


def _below(ordered: Floats, scores: Floats) -> Ints:
    return np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")


def _on_disk(pools: ScoredPools, judged: Judgement, name: str) -> _Pieces:
    """Distribute the scores over files by ranges, then sort each file."""
    ranks = edge_ranks(pools.rows, -(-pools.rows // _SORTED) + 1)
    bounds = np.unique(order_statistics(pools, [name], ranks)[name])
    scratch = Scratch()
    before = np.zeros(2, dtype=np.int64)
    files = _distributed(pools, judged, name, bounds, scratch.path)
    for category, (path, here) in enumerate(files):
        for pair in _pairs(path):
            scores, at, labels = pair["score"], pair["code"] >> 1, pair["code"] & 1
            for label in (0, 1):
                mine, other = labels == label, 1 - label
                if category % 2:  # all at one bound, so that those of the other class are ties
                    times = np.full(int(mine.sum()), here[other])
                else:
                    times = _below(np.sort(scores[labels == other]), scores[mine])
                yield at[mine], label, times + 2 * before[other]
        before += here
        path.unlink(missing_ok=True)


def _pairs(path: Path) -> Iterator[NDArray[Any]]:
    """The scores of a file, at most `_SORTED` at a time."""
    if path.is_file():
        with path.open("rb") as file:
            while (pairs := np.fromfile(file, _PAIR, _SORTED)).size:
                yield pairs


def _distributed(
    pools: ScoredPools, judged: Judgement, name: str, bounds: Floats, place: Path
) -> list[tuple[Path, Ints]]:
    """Files of scores by category (below, at or above each bound), and their counts by class."""
    counts = np.zeros((2 * bounds.size + 1, 2), dtype=np.int64)
    paths = [place / f"{category}" for category in range(len(counts))]
    for at in segments(pools.sizes):
        column, value = pools.scores_at(at, [name])[name], judged.at(pools, at).value
        pairs = np.empty(column.size, _PAIR)
        pairs["score"] = column
        pairs["code"] = 2 * np.repeat(np.arange(at.start, at.stop), pools.sizes[at])
        pairs["code"] += value == 1.0
        category = categories(column, bounds)
        counts += np.bincount(2 * category + (value == 1.0), minlength=counts.size).reshape(-1, 2)
        order = np.argsort(category, kind="stable")
        starts = np.searchsorted(category[order], np.arange(len(paths) + 1))
        for path, a, b in zip(paths, starts, starts[1:], strict=False):
            if a < b:
                with path.open("ab") as file:
                    pairs[order[a:b]].tofile(file)
    return list(zip(paths, counts, strict=True))
