"""Which row of a table a judged candidate is: by its ids, and for numbered ones by its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toptail.errors import InputError, option
from toptail.io.tables import plain
from toptail.pools.columns import numbers
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Floats, Ints

MARK: Final = "mark:"
"""What the columns ``mark:SCORER`` of a plan begin with, see `marks`."""


def candidate_labels(pools: ScoredPools) -> pa.Array:
    """The label of each candidate; its place in the query, from 0, where it has none."""
    if pools.candidate is not None:
        return pools.candidate
    return pa.array(np.arange(pools.rows) - np.repeat(pools.offsets[:-1], pools.sizes))


def row_of_key(pools: ScoredPools) -> dict[tuple[str, str], int]:
    """The row of each (query, candidate)."""
    query = pools.query.cast(pa.string()).to_pylist()
    labels = candidate_labels(pools).cast(pa.string()).to_pylist()
    parent = np.repeat(np.arange(pools.queries), pools.sizes).tolist()
    return {(query[q], label): at for at, (q, label) in enumerate(zip(parent, labels, strict=True))}


def keys_of(table: pa.Table, where: str) -> list[tuple[str, str]]:
    """The (query, candidate) of each row of a table of judged candidates."""
    for name in ("query", "candidate"):
        if name not in table.column_names:
            raise InputError(
                f"{where}: there is no column '{name}'; candidates are found by 'query' and "
                f"'candidate' (columns: {', '.join(table.column_names)})."
            )
    parts = (plain(table[name]).cast(pa.string()).to_pylist() for name in ("query", "candidate"))
    return list(zip(*parts, strict=True))


def rows_of(table: pa.Table, known: Mapping[tuple[str, str], int], where: str, source: str) -> Ints:
    """The known row of each candidate; unknown and repeated candidates are refused."""
    result = np.empty(table.num_rows, dtype=np.int64)
    seen: set[Any] = set()
    for at, key in enumerate(keys_of(table, where)):
        if key not in known:
            why = "was not asked for" if source == "the plan" else "is not in the table"
            raise InputError(
                f"{where}: candidate '{key[1]}' of query '{key[0]}' (row {at + 1}) {why}."
            )
        if key in seen:
            raise InputError(
                f"{where}: row {at + 1} repeats candidate '{key[1]}' of query '{key[0]}'."
            )
        seen.add(key)
        result[at] = known[key]
    return result


def marks(pools: ScoredPools, rows: Ints) -> dict[str, Ints]:
    """Columns that tell numbered candidates by their scores; none where candidates have labels.

    Two marks are equal where the scores are, as float32, which text keeps. A mark does not show the
    score: whoever judges should not see it.
    """
    if pools.candidate is not None:
        return {}
    return {f"{MARK}{name}": _mark(column[rows]) for name, column in pools.scores.items()}


def _mark(scores: Floats) -> Ints:
    with np.errstate(over="ignore"):  # infinite then
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)  # one zero, not two
    return (bits * np.uint32(2_654_435_761)).astype(np.int64)  # an odd factor: no two are the same


def are_numbered(table: pa.Table) -> bool:
    """Whether a table has marks, as its candidates are numbers of rows in their queries."""
    return any(name.startswith(MARK) for name in table.column_names)


def check_order(pools: ScoredPools, rows: Ints, table: pa.Table, where: str) -> bool:
    """Refuse a table whose marks are not those of the pools' ``rows``; False if none is known."""
    scores = {f"{MARK}{name}": name for name in pools.scores}
    known = [name for name in table.column_names if name in scores]
    for name in known:
        found = numbers(where, name, plain(table[name]))
        other = np.flatnonzero(found != _mark(pools.scores[scores[name]][rows]))
        if other.size:
            query, candidate = keys_of(table, where)[other[0]]
            raise InputError(
                f"{where}: in {pools.source} {other.size:,} of {rows.size:,} candidates have "
                f"another '{scores[name]}' than when they were planned (the first in row "
                f"{other[0] + 1}: candidate '{candidate}' of query '{query}'); candidates are "
                "numbered by their row in the query: keep the rows in the order in which they were "
                f"planned, or plan with {option('candidate')}, a column that names candidates."
            )
    return bool(known)
