"""Statistics across queries: deciles of the pooled scores, and the AUC over all candidates.

A table of one segment is computed at once. Of a table of several segments the AUC is a sum of
whole numbers, which does not depend on their order: it has the same bits whether the candidates
lie in memory or on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.pools.scored import segments
from toptail.pools.stream import Scratch, StreamedPools
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.deciles import categories, category_shares, edge_ranks
from toptail.stats.order import OrderStatistics
from toptail.stats.products import steady_product
from toptail.stats.rank import placements
from toptail.stats.resample import available_threads

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
