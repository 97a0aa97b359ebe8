"""Large tables by query: which queries there are, and their rows sorted on disk where need be."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from toptail.errors import NotDoneError
from toptail.pools.columns import UNSAID, Roles, codes, flags, numbers
from toptail.pools.frames import plain
from toptail.pools.partitioned import PartitionedTable, open_partitioned
from toptail.pools.tables import OwnNames, check_same, check_unique, explode, renamed
from toptail.pools.temporary import temporary
from toptail.stats.best_of_k import Ints

_PART: Final = 1 << 23
"""Rows that are sorted together."""
_MOST_PARTS: Final = 256
"""Files that are open together."""
_CODE: Final = "toptail code"


class Scratch:
    """A temporary folder, which goes with the last who uses it; other processes have none."""

    def __init__(self) -> None:
        stack = ExitStack()
        self.path = stack.enter_context(temporary(Path(tempfile.gettempdir()), folder=True))
        weakref.finalize(self, stack.close)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return type(None), ()


@dataclass(frozen=True, eq=False)
class Survey:
    """What to look at."""

    table: PartitionedTable
    """The files."""
    names: Mapping[str, str]
    """Name by which a column is known -> its name in the files."""
    roles: Roles
    """Scores and values."""
    own: OwnNames
    """What a person calls the parts."""
    lists: bool
    """Whether a row is a query with lists."""

    def pieces(self, *parts: str) -> Iterator[tuple[str, pa.Table]]:
        """Pieces with one row per candidate: what to call them in errors, and their columns."""
        wanted = [name for name in parts if name in self.names]
        more = [self.roles.values[0]] if self.lists and self.roles.values[0] not in wanted else []
        used = {name: self.names[name] for name in (*wanted, *more)}
        for where, row, piece in self.table.batches(list(used.values())):
            table = renamed(piece, used)
            if self.lists:
                kept = [n for n in (*self.roles.scores, *self.roles.values) if n in used]
                scores = [n for n in kept if n in self.roles.scores]
                values = [n for n in kept if n in self.roles.values]
                table = explode(table, Roles(scores, values), where, self.own, row)
            yield where, table


class Numbered:
    """Labels, numbered by their first appearance in all pieces."""

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}
        self._kind = pa.null()

    def codes(self, where: str, name: str, column: pa.Array) -> Ints:
        """The numbers of a piece's labels ``[rows]``."""
        code, labels = codes(where, name, column)
        self._kind = column.type
        known = [
            # There is one NaN, as a key.
            self.labels.setdefault(math.nan if label != label else label, len(self.labels))
            for label in labels.to_pylist()
        ]
        return np.array(known, dtype=np.int64)[code]

    @property
    def array(self) -> pa.Array:
        """The labels in order."""
        return pa.array(list(self.labels), self._kind)


@dataclass(frozen=True, eq=False)
class SurveyedQueries:
    """The queries of a table."""

    query: Numbered
    """Their labels, by first appearance."""
    sizes: Ints
    """Candidates of each."""
    ordered: bool
    """Whether the candidates of each lie side by side, in this order."""
    labels: dict[str, pa.Array]
    """``cluster`` and ``group``, where there are such: the label of each query."""


def surveyed(survey: Survey) -> SurveyedQueries:
    """One pass over the labels of a table."""
    queries, sizes = Numbered(), _Growing(0)
    per_query = {name: (Numbered(), _Growing(-1)) for name in ("cluster", "group")}
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
            tail = _checked(where, own["candidate"], code, data["candidate"], tail)
    n = len(queries.labels)
    labels = {
        name: numbered.array.take(pa.array(label.upto(n)))
        for name, (numbered, label) in per_query.items()
    }
    return SurveyedQueries(queries, sizes.upto(n), ordered, labels)


class _Growing:
    """An array of whole numbers that becomes longer."""

    def __init__(self, fill: int) -> None:
        self._fill, self._room = fill, np.full(1 << 16, fill, dtype=np.int64)

    def upto(self, n: int) -> Ints:
        """The first ``n`` entries, to be written to."""
        if n > self._room.size:
            more = np.full(max(n, 2 * self._room.size) - self._room.size, self._fill)
            self._room = np.concatenate([self._room, more])
        return self._room[:n]


def _check_same(where: str, part: str, own: OwnNames, label: Ints, code: Ints, mine: Ints) -> None:
    """Note the label of queries that are new; raise where a query has two."""
    new, at = np.unique(code, return_index=True)
    label[new] = np.where(label[new] < 0, mine[at], label[new])
    check_same(where, part, own, label[code] != mine)


Tail = tuple[Ints, pa.Array]


def _checked(where: str, name: str, code: Ints, candidate: pa.Array, tail: Tail | None) -> Tail:
    """Raise where a query has a candidate twice; what the next piece may go on with."""
    if tail is not None:
        code, candidate = (
            np.concatenate([tail[0], code]),
            pa.concat_arrays([tail[1], candidate]),
        )
    check_unique(where, name, code, candidate)
    start = int(np.searchsorted(code, code[-1]))
    return code[start:], candidate[start:]


def by_query(survey: Survey, found: SurveyedQueries) -> tuple[Scratch, PartitionedTable]:
    """The table's numbers in the order of queries, in files of a temporary folder.

    Rows are first dealt to files by ranges of queries; then each file, which fits in memory, is
    sorted. Rows of one query keep their order.
    """
    columns = (*survey.roles.scores, *survey.roles.values)
    rows = int(found.sizes.sum())
    scratch = Scratch()
    _check_room(scratch.path, survey.table.where, 8 * rows * (len(columns) + 2))
    part = (np.cumsum(found.sizes) - found.sizes) // max(_PART, -(-rows // _MOST_PARTS))
    dealt = _dealt(survey, found, part, scratch.path)
    for path in dealt:
        _sort(path, survey)
    return scratch, open_partitioned(scratch.path)


def _check_room(place: Path, where: str, need: int) -> None:
    free = shutil.disk_usage(place).free
    if free < need:
        raise NotDoneError(
            f"{where}: its rows must be sorted by query on disk, which takes "
            f"{need / 1e9:,.1f} GB in {place.parent}, and {free / 1e9:,.1f} GB are free; make "
            "room, or name another folder in the environment variable TMPDIR."
        )


def _dealt(survey: Survey, found: SurveyedQueries, part: Ints, place: Path) -> list[Path]:
    """Files with the rows of some queries each, in the table's own order."""
    paths = [place / f"{at:04}.arrow" for at in range(int(part[-1]) + 1)]
    scores, values = survey.roles.scores, survey.roles.values
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for where, piece in survey.pieces("query", "candidate", "support", *scores, *values):
            data = {name: plain(piece[name]) for name in piece.column_names}
            code = found.query.codes(where, survey.own["query"], data["query"])
            table = pa.table(
                {_CODE: code}
                | {name: numbers(where, name, data[name], score=True) for name in scores}
                | {name: numbers(where, name, data[name], missing=UNSAID) for name in values}
                | (
                    {"support": flags(where, survey.own["support"], data["support"])}
                    if "support" in data
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


def _sort(path: Path, survey: Survey) -> None:
    """Replace a file by one that has its rows in the order of queries."""
    with pa.ipc.open_stream(str(path)) as stream:
        table = stream.read_all()
    path.unlink()
    code = table[_CODE].to_numpy()
    if "candidate" in table.column_names:
        candidate = plain(table["candidate"])
        check_unique(survey.table.where, survey.own["candidate"], code, candidate)
        table = table.drop_columns(["candidate"])
    table = table.drop_columns([_CODE]).take(pa.array(np.argsort(code, kind="stable")))
    pq.write_table(
        table,
        path.with_suffix(".parquet"),
        compression="none",
        use_dictionary=False,
        row_group_size=1 << 20,
    )
