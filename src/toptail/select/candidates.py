"""Candidates without values, in any shape, for the deployed selector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.partitioned import open_partitioned
from toptail.io.tables import as_table, is_partitioned, plain, read_table
from toptail.pools import ScoredPools
from toptail.pools.columns import check_finite, codes, numbers
from toptail.select.base import Pool
from toptail.stats.best_of_k import Floats, Ints

ANSWER: Final = "answer"
"""The default name of the column with answers."""
_ANY: Final = ""
"""Name of a column of zeros for a selector that reads no column: a random pick."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pools to choose from, grouped by size, and their place in the input."""

    pools: list[Pool]
    """Blocks of pools: all pools of one size are in one block."""
    rows: list[Ints]
    """Indices in the input of the candidates of each of :attr:`pools` ``[m, n]``."""
    queries: list[Ints]
    """Indices in the input of each of :attr:`pools` ``[m]``."""
    shape: tuple[int, ...]
    """Shape of a column of the input."""

    @classmethod
    def of(cls, data: Any, columns: Sequence[str], *, votes: bool) -> Candidates:
        """Read the ``columns`` of the input, and the answers if the selector ``votes``."""
        if isinstance(data, (str, os.PathLike)):
            return _from_table(_read(data), str(data), columns, votes=votes)
        if isinstance(data, ScoredPools):
            return _from_pools(data, columns, votes=votes)
        if isinstance(data, Mapping) and "query" not in data:
            return _from_arrays(data, columns, votes=votes)
        if isinstance(data, (np.ndarray, list, tuple)) and not _rows(data):
            wanted = [*columns, *([ANSWER] if votes else [])] or [_ANY]
            if len(wanted) != 1 or votes:
                names = ", ".join(wanted)
                raise InputError(f"Give the columns by their names: the selector reads {names}.")
            return _from_arrays({wanted[0]: data}, columns, votes=votes)
        return _from_table(as_table(data, "table"), "table", columns, votes=votes)

    def joined(self, found: Iterable[Floats]) -> Floats:
        """Numbers of candidates in the order and shape of the input."""
        result = np.empty(int(np.prod(self.shape)))
        for rows, part in zip(self.rows, found, strict=True):
            result[rows] = part
        return result.reshape(self.shape)

    def per_pool(self, found: Sequence[Ints]) -> Ints:
        """One number of each pool in the order of the input."""
        result = np.empty(sum(part.size for part in self.queries), dtype=np.int64)
        for queries, part in zip(self.queries, found, strict=True):
            result[queries] = part
        return result


def _read(path: str | os.PathLike[str]) -> pa.Table:
    if not is_partitioned(path):
        return read_table(Path(path))
    table = open_partitioned(path)
    return table.read(table.schema.names)


def answer_codes(answers: Any) -> Ints:
    """Codes of the answers: equal answers have equal codes; same shape."""
    array = np.asarray(answers)
    array = array.astype(str) if array.dtype == object else array
    _, code = np.unique(array.reshape(-1), return_inverse=True)
    return np.asarray(code, dtype=np.int64).reshape(array.shape)


def need(where: str, present: Iterable[str], columns: Sequence[str], *, votes: bool) -> None:
    """Raise an :class:`InputError` where a column that a selector reads is missing."""
    there = list(present)
    wanted = [*columns, *([ANSWER] if votes else [])]
    missing = [name for name in wanted if name not in there]
    if missing:
        raise InputError(
            f"{where}: the selector reads the column '{missing[0]}', which is not there; the "
            f"columns are {', '.join(map(str, there)) or 'none'}."
        )


def _rows(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and isinstance(data[0], Mapping)


def _from_pools(data: ScoredPools, columns: Sequence[str], *, votes: bool) -> Candidates:
    every = {**data.scores}
    if data.support is not None:
        every["support"] = data.support.astype(np.float64)
    for name in columns:
        if name in data.further and name not in every:
            every[name] = numbers(data.source, name, data.further[name], score=True)
    answer = None
    if votes and ANSWER in data.further:
        answer = answer_codes(data.further[ANSWER].to_pylist())
    rows = np.arange(data.rows)
    return _grouped(every, answer, data.offsets, rows, data.source, columns, votes)


def _from_arrays(data: Mapping[str, Any], columns: Sequence[str], *, votes: bool) -> Candidates:
    need("arrays", data, columns, votes=votes)
    arrays: dict[str, NDArray[Any]] = {name: np.asarray(data[name], float) for name in columns}
    if votes:
        arrays[ANSWER] = answer_codes(data[ANSWER])
    if not arrays:  # any column tells how many candidates there are
        arrays = {_ANY: np.zeros(np.shape(next(iter(data.values()), ())))}
    first = next(iter(arrays.values()))
    if first.ndim not in (1, 2) or first.size == 0:
        raise InputError(
            f"The candidates must be one pool [n] or several of one size [m, n], not {first.shape}."
        )
    for name, array in arrays.items():
        if array.shape != first.shape:
            raise InputError(f"Column '{name}' has shape {array.shape}, not {first.shape}.")
    m, n = (1, first.size) if first.ndim == 1 else first.shape
    flat = {name: array.reshape(-1) for name, array in arrays.items()}
    answer = flat.pop(ANSWER, None)
    given = _grouped(flat, answer, np.arange(m + 1) * n, np.arange(m * n), "arrays", columns, votes)
    return Candidates(given.pools, given.rows, given.queries, first.shape)


def _from_table(table: pa.Table, where: str, columns: Sequence[str], *, votes: bool) -> Candidates:
    need(where, table.column_names, ["query", *columns], votes=votes)
    code, _ = codes(where, "query", plain(table["query"]))
    order = np.argsort(code, kind="stable").astype(np.int64)
    every = {name: numbers(where, name, plain(table[name]), score=True) for name in columns}
    answer = answer_codes(plain(table[ANSWER]).to_pylist()) if votes else None
    offsets = np.concatenate([[0], np.cumsum(np.bincount(code))])
    sorted_answer = None if answer is None else answer[order]
    flat = {name: column[order] for name, column in every.items()}
    return _grouped(flat, sorted_answer, offsets, order, where, columns, votes)


def _grouped(
    columns: Mapping[str, Floats],
    answer: Ints | None,
    offsets: Ints,
    rows: Ints,
    where: str,
    needed: Sequence[str],
    votes: bool,
) -> Candidates:
    """Group pools by size; ``rows`` are the indices of the candidates in the input."""
    need(where, [*columns, *([] if answer is None else [ANSWER])], needed, votes=votes)
    for name in needed:
        check_finite(where, name, columns[name], "entry", score=True)
    sizes = np.diff(offsets)
    pools, places, queries = [], [], []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        at = offsets[members][:, None] + np.arange(size)
        found = {name: columns[name][at] for name in needed}
        if not found and answer is None:  # the selector reads nothing but how many there are
            found = {_ANY: np.zeros(at.shape)}
        pools.append(Pool(found, None if answer is None else answer[at]))
        places.append(rows[at])
        queries.append(members)
    return Candidates(pools, places, queries, (rows.size,))
