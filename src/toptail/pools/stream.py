"""``StreamedPools``: pools whose candidates stay on disk, and are read some queries at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.pools.columns import (
    UNSAID,
    Columns,
    Roles,
    flags,
    group_seeds,
    is_list,
    mostly_numbers,
    numbers,
    parts,
)
from toptail.pools.frames import plain
from toptail.pools.partitioned import PartitionedTable
from toptail.pools.scored import ScoredPools, segments
from toptail.pools.skipped import by_look, without
from toptail.pools.staging import Scratch, Survey, by_query, surveyed
from toptail.pools.tables import (
    OwnNames,
    check_query,
    own_names,
    pools_from_table,
    renamed,
    roles_of,
)
from toptail.stats.best_of_k import Floats, Ints

T = TypeVar("T")
Mapped = Callable[[Callable[[slice], Any], Iterable[slice]], Iterator[Any]]
"""Calls a function for segments and gives what it returned, in their order, as ``map`` does."""

IN_MEMORY: Final = 1 << 27
"""Numbers (rows times columns) of a partitioned table that is read at once: a gibibyte."""


class _Read(Mapping[str, Floats]):
    """Columns by name, each read when it is asked for."""

    def __init__(
        self, names: Sequence[str], read: Callable[[list[str]], dict[str, Floats]]
    ) -> None:
        self._names, self._read = tuple(names), read

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        return self._read([name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedPools(ScoredPools):
    """Pools with labels and sizes in memory alone; whoever asks for a whole column reads it."""

    table: PartitionedTable = field(kw_only=True)
    """The files, in which the candidates of a query lie side by side."""
    names: Mapping[str, str] = field(kw_only=True)
    """Name by which a column is known here -> its name in the files."""
    starts: Ints = field(kw_only=True)
    """The row of the files where each query's candidates start ``[queries]``."""
    mapped: Mapped = map
    """Who works through segments: this process, or an engine."""
    scratch: Scratch | None = None
    """The folder of sorted files, where the table had to be sorted."""

    def __post_init__(self) -> None:
        group_seeds(self.scores, self.source)
        every = slice(0, self.queries)
        for part, read in (("scores", self.scores_at), ("values", self.values_at)):
            lazy = _Read(list(getattr(self, part)), partial(read, every))
            object.__setattr__(self, part, lazy)

    @property
    def in_process(self) -> bool:
        """Whether :meth:`over` works in this process."""
        return self.mapped is map

    @property
    def supported(self) -> bool:
        """Whether the table says which candidates are on the data support."""
        return "support" in self.names

    @property
    def constant_scorers(self) -> list[str]:
        """Scorers that give all candidates of a query the same score, at every query."""

        def constant(at: slice) -> set[str]:
            starts = self.offsets[at] - self.offsets[at.start]
            columns = self.scores_at(at, self.scores)
            low, high = np.minimum.reduceat, np.maximum.reduceat
            return {n for n, c in columns.items() if (low(c, starts) == high(c, starts)).all()}

        found = set(self.scores).intersection(*(names for _, names in self.over(constant)))
        return [n for n, seeds in self.scorers.items() if found.issuperset(seeds.values())]

    def over(self, work: Callable[[slice], T]) -> Iterator[tuple[slice, T]]:
        """Each of the segments with what ``work`` makes of it, in order."""
        cut = segments(self.sizes)
        return zip(cut, self.mapped(work, cut), strict=True)

    def select(self, keep: NDArray[np.bool_]) -> StreamedPools:
        """The queries where ``keep [queries]`` is true, in order."""
        mask = pa.array(keep)
        return replace(
            self,
            query=self.query.filter(mask),
            offsets=np.concatenate([[0], np.cumsum(self.sizes[keep])]),
            starts=self.starts[keep],
            cluster=None if self.cluster is None else self.cluster.filter(mask),
            group=None if self.group is None else self.group.filter(mask),
        )

    def scores_at(self, at: slice, names: Iterable[str]) -> dict[str, Floats]:
        """Score columns of consecutive queries, read and checked."""

        def read(where: str, name: str, column: pa.Array) -> Floats:
            return numbers(where, name, column, score=True)

        return self._read(at, list(names), read, np.float64)

    def values_at(self, at: slice, names: Iterable[str]) -> dict[str, Floats]:
        """Value columns of consecutive queries, read and checked."""

        def read(where: str, name: str, column: pa.Array) -> Floats:
            return numbers(where, name, column, missing=f"{UNSAID}; a table this large is audited "
                           "only where every candidate was judged")  # fmt: skip

        return self._read(at, list(names), read, np.float64)

    def support_at(self, at: slice) -> NDArray[np.bool_] | None:
        """Which candidates of consecutive queries are on the data support."""
        if not self.supported:
            return None
        return self._read(at, ["support"], flags, np.bool_)["support"]

    def _read(
        self,
        at: slice,
        names: list[str],
        read: Callable[[str, str, pa.Array], NDArray[Any]],
        kind: Any,
    ) -> dict[str, NDArray[Any]]:
        """Columns of consecutive queries of these pools, which need not be so in the files."""
        low, high = _ranges(self.starts[at], self.sizes[at])
        out = {name: np.empty(int((high - low).sum()), dtype=kind) for name in names}
        own, done = [self.names[name] for name in names], 0
        for where, row, piece in self.table.batches(own, int(low[0]), int(high[-1])):
            rows = _within(low, high, row, piece.num_rows)
            for name, column in zip(names, own, strict=True):
                found = read(where, column, plain(piece[column]))[rows]
                out[name][done : done + found.size] = found
            done += found.size
        return out


def _ranges(starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """First rows and ends of the rows that lie side by side."""
    ends = starts + sizes
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    return starts[np.append(0, breaks + 1)], ends[np.append(breaks, starts.size - 1)]


def _within(low: Ints, high: Ints, row: int, rows: int) -> slice | NDArray[np.bool_]:
    """Which of the rows from ``row`` on lie in one of the ranges."""
    at = int(np.searchsorted(high, row, "right"))
    if low[at] <= row and row + rows <= high[at]:
        return slice(None)
    every = np.arange(row, row + rows)
    which = np.minimum(np.searchsorted(high, every, "right"), low.size - 1)
    return (low[which] <= every) & (every < high[which])


def partitioned_pools(
    table: PartitionedTable, columns: Columns, *, stream: bool = False, mapped: Mapped = map
) -> ScoredPools:
    """Pools of a partitioned table: in memory where it is small, else streamed if it may be."""
    head = next(table.batches(table.schema.names, 0, 1_000))[2]
    names = parts(table.where, table.schema.names, columns)
    first = renamed(head.replace_schema_metadata(table.schema.metadata), names)
    texts = frozenset(n for n in first.column_names if mostly_numbers(first[n]))
    roles = roles_of(table.where, first.schema, columns, texts)
    wanted = [n for n in (*roles.scores, *roles.values) if n in names]
    if not stream or table.rows * len(wanted) <= IN_MEMORY:
        whole = table.read(table.schema.names).replace_schema_metadata(table.schema.metadata)
        return replace(pools_from_table(whole, table.where, columns), sha256=table.sha256)
    return _streamed(table, columns, names, roles, first, mapped)


def _streamed(
    table: PartitionedTable,
    columns: Columns,
    names: Mapping[str, str],
    roles: Roles,
    first: pa.Table,
    mapped: Mapped,
) -> StreamedPools:
    where, own = table.where, OwnNames(own_names(columns))
    texts = [name for name in roles.scores if mostly_numbers(first[name])]
    skipped = by_look(roles, texts)
    roles = without(where, roles, skipped)
    _check_streamable(where, roles, first)
    lists = any(is_list(first.schema.field(n).type) for n in (*roles.scores, *roles.values))
    if not lists:
        check_query(where, first.column_names, own)
    survey = Survey(table, names, roles, own, lists)
    found = surveyed(survey)
    made: dict[str, Any] = {"table": table, "names": names}
    if lists or not found.ordered:
        scratch, ordered = by_query(survey, found)
        made = {"table": ordered, "names": {n: n for n in ordered.schema.names}, "scratch": scratch}
    return StreamedPools(
        **made,
        query=found.query.array,
        offsets=np.concatenate([[0], np.cumsum(found.sizes)]),
        starts=np.cumsum(found.sizes) - found.sizes,
        scores=dict.fromkeys(roles.scores, np.empty(0)),
        values=dict.fromkeys(roles.values, np.empty(0)),
        cluster=found.labels.get("cluster"),
        group=found.labels.get("group"),
        source=where,
        sha256=table.sha256,
        called=dict(own),
        skipped=skipped,
        mapped=mapped,
    )


def _check_streamable(where: str, roles: Roles, first: pa.Table) -> None:
    """Refuse what only a table in memory can be asked."""
    if "p_judged" in first.column_names or not roles.values:
        raise InputError(
            f"{where}: a table this large is audited only where every candidate was judged; take "
            "a sample of its queries."
        )
    whole = [n for n in roles.scores if pa.types.is_integer(first.schema.field(n).type)]
    if roles.guessed and whole:
        raise InputError(
            f"{where}: nothing says whether the whole numbers of '{whole[0]}' are scores or a "
            f"counter; name the scores of a table this large with {option('scores')}."
        )
