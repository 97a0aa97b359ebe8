"""``StreamedPools``: pools larger than memory, read from disk some queries at a time."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.errors import InputError, NotDoneError, option
from toptail.io.files import temporary
from toptail.io.partitioned import PartitionedTable, open_partitioned
from toptail.io.tables import plain
from toptail.pools.columns import (
    MISSING_VALUE,
    Columns,
    Roles,
    check_present,
    codes,
    column_names,
    flags,
    group_seeds,
    is_list,
    mostly_numbers,
    numbers,
    query_parts,
    score_numbers,
)
from toptail.pools.read import (
    TableNames,
    check_query,
    check_same_label,
    check_unique,
    join_query,
    not_scores_by_look,
    one_row_per_candidate,
    pools_from_table,
    renamed,
    roles_of,
    table_names,
    without_skipped,
)
from toptail.pools.scored import ScoredPools, segments
from toptail.stats.best_of_k import Floats, Ints

_PART: Final = 1 << 23
"""Rows of a file that is sorted in memory."""
_MOST_PARTS: Final = 256
"""Files that are open at the same time."""
_CODE: Final = "toptail code"


class Scratch:
    """A temporary folder that is removed with its last reference; pickled, it is None."""

    def __init__(self) -> None:
        stack = ExitStack()
        self.path = stack.enter_context(temporary(Path(tempfile.gettempdir()), folder=True))
        weakref.finalize(self, stack.close)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return type(None), ()


@dataclass(frozen=True, eq=False)
class TableLayout:
    """A partitioned table and the roles of its columns."""

    table: PartitionedTable
    names: Mapping[str, str]
    """New name of a column -> its name in the files."""
    roles: Roles
    own: TableNames
    """Role -> the table's name of its column."""
    lists: bool
    """Whether a row is a query with lists."""
    lowest: bool = False
    """Whether a missing score counts as the lowest."""

    def pieces(self, *parts: str) -> Iterator[tuple[str, pa.Table]]:
        """Pieces with one row per candidate: a name for errors, and the columns."""
        wanted = [name for name in parts if name in self.names]
        more = [self.roles.values[0]] if self.lists and self.roles.values[0] not in wanted else []
        used = {name: self.names[name] for name in (*wanted, *more)}
        for where, row, piece in self.table.batches(list(used.values())):
            table = renamed(piece, used)
            if self.lists:
                scores = [n for n in self.roles.scores if n in used]
                values = [n for n in self.roles.values if n in used]
                further = tuple(n for n in self.roles.further if n in used)
                roles = Roles(scores, values, further=further)
                table = one_row_per_candidate(table, roles, where, self.own, row)
            yield where, table


class LabelCodes:
    """Numbers for labels that come in pieces, by first appearance."""

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}
        self._kind = pa.null()

    def codes(self, where: str, name: str, column: pa.Array) -> Ints:
        """The numbers of a piece's labels ``[rows]``."""
        code, labels = codes(where, name, column)
        self._kind = column.type
        known = [
            # One key for every NaN.
            self.labels.setdefault(math.nan if label != label else label, len(self.labels))
            for label in labels.to_pylist()
        ]
        return np.array(known, dtype=np.int64)[code]

    @property
    def array(self) -> pa.Array:
        return pa.array(list(self.labels), self._kind)


@dataclass(frozen=True, eq=False)
class QueryLabels:
    """The queries of a table."""

    query: LabelCodes
    """Their labels, by first appearance."""
    sizes: Ints
    """Candidates of each."""
    ordered: bool
    """Whether the candidates of each are adjacent, in this order."""
    labels: dict[str, pa.Array]
    """The label of each query for ``cluster`` and ``group``, where the table has them."""


def read_labels(survey: TableLayout) -> QueryLabels:
    queries, sizes = LabelCodes(), _GrowingArray(0)
    per_query = {name: (LabelCodes(), _GrowingArray(-1)) for name in ("cluster", "group")}
    per_query = {name: both for name, both in per_query.items() if name in survey.names}
    ordered, last, tail = True, 0, None
    own = survey.own
    for where, piece in survey.pieces("query", "candidate", *per_query):
        data = {name: plain(piece[name]) for name in piece.column_names}
        code = queries.codes(where, own["query"], data["query"])
        ordered = ordered and int(code[0]) >= last and bool((np.diff(code) >= 0).all())
        last = int(code[-1])
        np.add.at(sizes.upto(len(queries.labels)), code, 1)
        for name, (numbered, label) in per_query.items():
            mine = numbered.codes(where, own[name], data[name])
            _check_same(where, name, own, label.upto(len(queries.labels)), code, mine)
        if "candidate" in data and ordered:
            tail = _check_candidates(where, own["candidate"], code, data["candidate"], tail)
    n = len(queries.labels)
    labels = {
        name: numbered.array.take(pa.array(label.upto(n)))
        for name, (numbered, label) in per_query.items()
    }
    return QueryLabels(queries, sizes.upto(n), ordered, labels)


class _GrowingArray:
    """An array of integers that can grow."""

    def __init__(self, fill: int) -> None:
        self._fill, self._room = fill, np.full(1 << 16, fill, dtype=np.int64)

    def upto(self, n: int) -> Ints:
        """A view of the first ``n`` entries."""
        if n > self._room.size:
            more = np.full(max(n, 2 * self._room.size) - self._room.size, self._fill)
            self._room = np.concatenate([self._room, more])
        return self._room[:n]


def _check_same(
    where: str, part: str, own: TableNames, label: Ints, code: Ints, mine: Ints
) -> None:
    """Store the label of new queries; raise :class:`InputError` where a query has two."""
    new, at = np.unique(code, return_index=True)
    label[new] = np.where(label[new] < 0, mine[at], label[new])
    check_same_label(where, part, own, label[code] != mine)


Tail = tuple[Ints, pa.Array]


def _check_candidates(
    where: str, name: str, code: Ints, candidate: pa.Array, tail: Tail | None
) -> Tail:
    """Check that candidates are unique; return those of the last query for the next piece."""
    if tail is not None:
        code, candidate = (np.concatenate([tail[0], code]), pa.concat_arrays([tail[1], candidate]))
    check_unique(where, name, code, candidate)
    start = int(np.searchsorted(code, code[-1]))
    return code[start:], candidate[start:]


def sort_by_query(survey: TableLayout, found: QueryLabels) -> tuple[Scratch, PartitionedTable]:
    """Sort the table by query into files of a temporary folder.

    Rows are first distributed to files by ranges of queries; then each file, which fits in memory,
    is sorted. Rows of one query keep their order.
    """
    columns = (*survey.roles.scores, *survey.roles.values)
    rows = int(found.sizes.sum())
    scratch = Scratch()
    _check_disk_space(scratch.path, survey.table.where, 8 * rows * (len(columns) + 2))
    part = (np.cumsum(found.sizes) - found.sizes) // max(_PART, -(-rows // _MOST_PARTS))
    dealt = _distribute(survey, found, part, scratch.path)
    for path in dealt:
        _sort(path, survey)
    return scratch, open_partitioned(scratch.path)


def _check_disk_space(place: Path, where: str, need: int) -> None:
    free = shutil.disk_usage(place).free
    if free < need:
        raise NotDoneError(
            f"{where}: its rows must be sorted by query on disk, which takes "
            f"{need / 1e9:,.1f} GB in {place.parent}, and {free / 1e9:,.1f} GB are free; make "
            "room, or name another folder in the environment variable TMPDIR."
        )


def _distribute(survey: TableLayout, found: QueryLabels, part: Ints, place: Path) -> list[Path]:
    """Write the rows of each range of queries to a file, in the order of the table."""
    paths = [place / f"{at:04}.arrow" for at in range(int(part[-1]) + 1)]
    scores, values, _, further = survey.roles
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        parts = ("query", "candidate", "support", *scores, *values, *further)
        for where, piece in survey.pieces(*parts):
            data = {name: plain(piece[name]) for name in piece.column_names}
            code = found.query.codes(where, survey.own["query"], data["query"])
            table = pa.table(
                {name: check_present(where, name, data[name]) for name in further}
                | {_CODE: code}
                | {name: _scores(where, name, data[name], survey.lowest) for name in scores}
                | {name: numbers(where, name, data[name], missing=MISSING_VALUE) for name in values}
                | (
                    {"support": flags(where, survey.own["support"], data["support"])}
                    if "support" in data and "support" not in further
                    else {}
                )
                | ({"candidate": data["candidate"]} if "candidate" in data else {})
            )
            order = np.argsort(part[code], kind="stable")
            dealt, starts = np.unique(part[code][order], return_index=True)
            table = table.take(pa.array(order))
            for at, a, b in zip(dealt, starts, [*starts[1:], len(order)], strict=True):
                if at not in writers:
                    writers[at] = stack.enter_context(
                        pa.ipc.new_stream(str(paths[at]), table.schema)
                    )
                writers[at].write_table(table.slice(a, b - a))
    return paths


def _scores(where: str, name: str, column: pa.Array, lowest: bool) -> Floats:
    return (
        score_numbers(where, name, column) if lowest else numbers(where, name, column, score=True)
    )


def _sort(path: Path, survey: TableLayout) -> None:
    """Replace a file by one that is sorted by query."""
    with pa.ipc.open_stream(str(path)) as stream:
        table = stream.read_all()
    path.unlink()
    code = table[_CODE].to_numpy()
    if "candidate" in table.column_names:
        candidate = plain(table["candidate"])
        check_unique(survey.table.where, survey.own["candidate"], code, candidate)
    labels = {_CODE, "candidate"}.difference(survey.roles.further)
    table = table.select([name for name in table.column_names if name not in labels])
    table = table.take(pa.array(np.argsort(code, kind="stable")))
    pq.write_table(
        table,
        path.with_suffix(".parquet"),
        compression="none",
        use_dictionary=False,
        row_group_size=1 << 20,
    )


T = TypeVar("T")
Mapped = Callable[[Callable[[slice], Any], Iterable[slice]], Iterator[Any]]
"""Calls a function for each segment and yields the results in order, as ``map`` does."""

IN_MEMORY: Final = 1 << 27
"""Up to this many numbers (rows times columns), a gibibyte, a table is read into memory."""


class _LazyColumns(Mapping[str, Any]):
    """Columns by name, each of which is read when it is looked up."""

    def __init__(self, names: Iterable[str], read: Callable[[list[str]], dict[str, Any]]) -> None:
        self._names, self._read = tuple(names), read

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._read([name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedPools(ScoredPools):
    """Pools with only labels and sizes in memory; a column is read whenever it is looked up."""

    table: PartitionedTable = field(kw_only=True)
    """The files, in which the candidates of a query are adjacent."""
    names: Mapping[str, str] = field(kw_only=True)
    """New name of a column -> its name in the files."""
    starts: Ints = field(kw_only=True)
    """First row of each query's candidates in the files ``[queries]``."""
    mapped: Mapped = map
    """How a function is applied to segments: ``map``, or the map of an executor."""
    lowest: bool = False
    """Whether a missing score counts as the lowest."""
    scratch: Scratch | None = None
    """The folder of the sorted files, if the table had to be sorted."""

    def __post_init__(self) -> None:
        group_seeds(self.scores, self.source)
        every = slice(0, self.queries)
        for part, read in (("scores", self.scores_at), ("values", self.values_at)):
            lazy = _LazyColumns(getattr(self, part), partial(read, every))
            object.__setattr__(self, part, lazy)
        object.__setattr__(self, "further", _LazyColumns(self.further, self._further))

    @property
    def in_process(self) -> bool:
        return self.mapped is map

    @property
    def supported(self) -> bool:
        return "support" in self.names and "support" not in self.further

    @property
    def constant_scorers(self) -> list[str]:

        def constant(at: slice) -> set[str]:
            starts = self.offsets[at] - self.offsets[at.start]
            columns = self.scores_at(at, self.scores)
            low, high = np.minimum.reduceat, np.maximum.reduceat
            return {n for n, c in columns.items() if (low(c, starts) == high(c, starts)).all()}

        found = set(self.scores).intersection(*(names for _, names in self.over(constant)))
        return [n for n, seeds in self.scorers.items() if found.issuperset(seeds.values())]

    def over(self, work: Callable[[slice], T]) -> Iterator[tuple[slice, T]]:
        cut = segments(self.sizes)
        return zip(cut, self.mapped(work, cut), strict=True)

    def select(self, keep: NDArray[np.bool_]) -> StreamedPools:
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
        return self._read(at, list(names), partial(_scores, lowest=self.lowest), np.float64)

    def values_at(self, at: slice, names: Iterable[str]) -> dict[str, Floats]:
        advice = (
            f"{MISSING_VALUE}; a table this large is audited only where every candidate was judged"
        )

        def read(where: str, name: str, column: pa.Array) -> Floats:
            return numbers(where, name, column, missing=advice)

        return self._read(at, list(names), read, np.float64)

    def support_at(self, at: slice) -> NDArray[np.bool_] | None:
        if not self.supported:
            return None
        return self._read(at, ["support"], flags, np.bool_)["support"]

    def _further(self, names: list[str]) -> dict[str, pa.Array]:
        low, high = _ranges(self.starts, self.sizes)
        own = [self.names[name] for name in names]
        pieces: dict[str, list[pa.Array]] = {name: [] for name in names}
        for where, row, piece in self.table.batches(own, int(low[0]), int(high[-1])):
            rows = np.arange(piece.num_rows)[_within(low, high, row, piece.num_rows)]
            for name, column in zip(names, own, strict=True):
                found = check_present(where, column, plain(piece[column]))
                pieces[name].append(found.take(pa.array(rows)))
        return {name: pa.concat_arrays(found) for name, found in pieces.items()}

    def _read(
        self,
        at: slice,
        names: list[str],
        read: Callable[[str, str, pa.Array], NDArray[Any]],
        kind: Any,
    ) -> dict[str, NDArray[Any]]:
        """Columns of consecutive queries, whose rows need not be adjacent in the files."""
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
    """Starts and ends of the ranges of adjacent rows."""
    ends = starts + sizes
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    return starts[np.append(0, breaks + 1)], ends[np.append(breaks, starts.size - 1)]


def _within(low: Ints, high: Ints, row: int, rows: int) -> slice | NDArray[np.bool_]:
    """Which of ``rows`` rows from ``row`` on lie in one of the ranges."""
    at = int(np.searchsorted(high, row, "right"))
    if low[at] <= row and row + rows <= high[at]:
        return slice(None)
    every = np.arange(row, row + rows)
    which = np.minimum(np.searchsorted(high, every, "right"), low.size - 1)
    return (low[which] <= every) & (every < high[which])


def partitioned_pools(
    table: PartitionedTable, columns: Columns, *, stream: bool = False, mapped: Mapped = map
) -> ScoredPools:
    """Pools of a partitioned table; with ``stream``, a large one stays on disk."""
    head = next(table.batches(table.schema.names, 0, 1_000))[2]
    given, parts = columns, query_parts(columns)
    head = head.replace_schema_metadata(table.schema.metadata)
    head, columns = join_query(table.where, head, columns)
    names = column_names(table.where, head.column_names, columns)
    first = renamed(head, names)
    texts = frozenset(n for n in first.column_names if mostly_numbers(first[n]))
    roles = roles_of(table.where, first.schema, columns, texts)
    wanted = [n for n in (*roles.scores, *roles.values) if n in names]
    if not stream or table.rows * len(wanted) <= IN_MEMORY:
        whole = table.read(table.schema.names).replace_schema_metadata(table.schema.metadata)
        return replace(pools_from_table(whole, table.where, given), sha256=table.sha256)
    if parts:
        table = replace(table, joined={",".join(parts): parts})
    return _streamed(table, columns, names, roles, first, mapped)


def _streamed(
    table: PartitionedTable,
    columns: Columns,
    names: Mapping[str, str],
    roles: Roles,
    first: pa.Table,
    mapped: Mapped,
) -> StreamedPools:
    where, own = table.where, TableNames(table_names(columns))
    if columns.get("missing") == "drop":
        raise InputError(
            f"{where}: rows of a table this large cannot be left out while it is read; drop them "
            f"first, or give {option('missing', 'lowest')}."
        )
    lowest = columns.get("missing") == "lowest"
    texts = [name for name in roles.scores if mostly_numbers(first[name])]
    skipped = not_scores_by_look(roles, texts)
    roles = without_skipped(where, roles, skipped)
    _check_streamable(where, roles, first)
    lists = any(is_list(first.schema.field(n).type) for n in (*roles.scores, *roles.values))
    if not lists:
        check_query(where, first.column_names, own)
    survey = TableLayout(table, names, roles, own, lists, lowest)
    found = read_labels(survey)
    made: dict[str, Any] = {"table": table, "names": names}
    if lists or not found.ordered:
        scratch, ordered = sort_by_query(survey, found)
        made = {"table": ordered, "names": {n: n for n in ordered.schema.names}, "scratch": scratch}
    return StreamedPools(
        **made,
        query=found.query.array,
        offsets=np.concatenate([[0], np.cumsum(found.sizes)]),
        starts=np.cumsum(found.sizes) - found.sizes,
        scores=dict.fromkeys(roles.scores, np.empty(0)),
        values=dict.fromkeys(roles.values, np.empty(0)),
        further=dict.fromkeys(roles.further),
        cluster=found.labels.get("cluster"),
        group=found.labels.get("group"),
        source=where,
        sha256=table.sha256,
        called=dict(own),
        skipped=skipped,
        notes=("Missing scores, if there are any, count as the lowest.",) if lowest else (),
        mapped=mapped,
        lowest=lowest,
    )


def _check_streamable(where: str, roles: Roles, first: pa.Table) -> None:
    """Raise :class:`InputError` for tables that only work in memory."""
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
