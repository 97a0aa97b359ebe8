"""``JudgedPicks``: for those who only know how the picked candidates turned out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.columns import called, codes, first_repeat, numbers, play
from toptail.pools.container import Container, named, queries
from toptail.pools.files import atomic, sha256
from toptail.pools.frames import as_table, plain
from toptail.pools.guard import refusing
from toptail.pools.table_files import check_names, file_format, read_table
from toptail.pools.tables import COLUMNS, UNUSABLE, per_query_labels
from toptail.pools.written import write_table
from toptail.stats.best_of_k import Floats, Ints

_COLUMNS = ("query", "selector", "replicate", "value", "key", "cluster", "group")


class PickColumns(TypedDict, total=False):
    """Which columns of a table of picks play which part; by default those of that name.

    ``values`` names the column of values, as for a table of candidates; its name is 'value'.
    """

    query: str | None
    selector: str | None
    values: str | None
    cluster: str | None
    group: str | None


@dataclass(frozen=True, eq=False, repr=False)
class JudgedPicks(Container):
    """Judged values of what each selector picked, one row per (query, selector, replicate)."""

    query: pa.Array
    """Label of each query ``[queries]``."""
    selector: pa.Array
    """Name of each selector ``[selectors]``, in order of first appearance."""
    query_at: Ints
    """Which query each row belongs to ``[rows]``."""
    selector_at: Ints
    """Which selector each row belongs to ``[rows]``."""
    replicate: pa.Array
    """Label of the repetition ``[rows]``; equal labels of one query are paired."""
    value: Floats
    """How the pick turned out ``[rows]``; larger is better."""
    key: pa.Array | None = None
    """Common-random-number key ``[rows]``: equal keys saw the same randomness."""
    cluster: pa.Array | None = None
    """Label of the cluster each query belongs to ``[queries]``."""
    group: pa.Array | None = None
    """Label of the group each query is reported under ``[queries]``."""
    source: str = "memory"
    """Where the picks came from."""
    sha256: str | None = None
    """Content hash of the file they came from."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Part (``group``, ``cluster``, ...) -> the column that plays it, where called otherwise."""

    @classmethod
    def from_arrow(
        cls, table: Any, *, source: str = "table", **columns: Unpack[PickColumns]
    ) -> JudgedPicks:
        """Picks from any table: see :func:`toptail.pools.frames.as_table`.

        Columns ``query``, ``selector``, ``value``, and optional ``replicate`` (one pick per
        query and selector where absent), ``key``, ``cluster`` and ``group``; ``columns`` name
        those that are called otherwise.
        """
        table = as_table(table, source)
        check_names(source, table.column_names)
        named = {
            "value" if part == "values" else part: str(name)
            for part, name in columns.items()
            if name is not None
        }
        parts = play(source, table.column_names, named)
        table = table.select(list(parts.values())).rename_columns(list(parts))
        own = {name: name for name in _COLUMNS} | called(named)
        for name in ("query", "selector", "value"):
            if name not in table.column_names:
                raise InputError(
                    f"{source}: there is no column '{name}'; "
                    f"the columns are {', '.join(table.column_names)}."
                )
        if table.num_rows == 0:
            raise InputError(f"{source}: the table has no rows.")
        data = {n: plain(table[n]) for n in _COLUMNS if n in table.column_names}
        query_at, query = codes(source, own["query"], data["query"])
        selector_at, selector = codes(source, own["selector"], data["selector"])
        value = numbers(source, own["value"], data["value"])
        replicate = data.get("replicate", pa.array(np.zeros(len(value), dtype=np.int64)))
        _check_once(source, query_at, selector_at, replicate, len(selector))
        per_query = {
            name: per_query_labels(source, own[name], data[name], query_at, len(query))
            for name in ("cluster", "group")
            if name in data
        }
        return cls(
            query=query,
            selector=selector,
            query_at=query_at,
            selector_at=selector_at,
            replicate=replicate,
            value=value,
            key=data.get("key"),
            source=source,
            called=called(named),
            **per_query,
        )

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Unpack[PickColumns]) -> JudgedPicks:
        """Picks from a Parquet, CSV, JSON, JSON Lines or Arrow file, with its hash.

        ``columns`` name the parts of the table as in :meth:`from_arrow`.
        """
        where = Path(path)
        with refusing(where, UNUSABLE, COLUMNS):
            picks = cls.from_arrow(read_table(where), source=str(where), **columns)
            return replace(picks, sha256=sha256(where))

    def select(self, keep: NDArray[np.bool_]) -> JudgedPicks:
        """The picks of the queries where ``keep [queries]`` is true, in order."""
        rows, mask = keep[self.query_at], pa.array(keep)

        def labels(array: pa.Array | None, of: pa.Array) -> pa.Array | None:
            return None if array is None else array.filter(of)

        return replace(
            self,
            query=self.query.filter(mask),
            query_at=(np.cumsum(keep) - 1)[self.query_at[rows]],
            selector_at=self.selector_at[rows],
            replicate=self.replicate.filter(pa.array(rows)),
            value=self.value[rows],
            key=labels(self.key, pa.array(rows)),
            cluster=labels(self.cluster, mask),
            group=labels(self.group, mask),
        )

    def _summary(self) -> str:
        selectors = named(self.selector.to_pylist())
        return f"{self.value.size:,} picks at {queries(len(self.query))}; selectors {selectors}"

    def to_arrow(self) -> pa.Table:
        """The long table."""
        columns: dict[str, Any] = {
            "query": self.query.take(pa.array(self.query_at)),
            "selector": self.selector.take(pa.array(self.selector_at)),
            "replicate": self.replicate,
            "value": self.value,
        }
        if self.key is not None:
            columns["key"] = self.key
        for name, labels in (("cluster", self.cluster), ("group", self.group)):
            if labels is not None:
                columns[name] = labels.take(pa.array(self.query_at))
        return pa.table(columns)

    def write(self, path: str | Path) -> None:
        """Write as Parquet, CSV, JSON, JSON Lines or Arrow by the name's ending, atomically."""
        where = Path(path)
        kind = file_format(where)
        if kind == "npz":
            raise InputError(f"{where}: picks are a table; use .parquet, .csv or .jsonl.")
        atomic(where, lambda target: write_table(self.to_arrow(), target, kind))


def _check_once(
    where: str, query_at: Ints, selector_at: Ints, replicate: pa.Array, selectors: int
) -> None:
    replicate_at, labels = codes(where, "replicate", replicate)
    at = first_repeat((query_at * selectors + selector_at) * len(labels) + replicate_at)
    if at is not None:
        raise InputError(
            f"{where}: row {at + 1} repeats a (query, selector, replicate) that is already there; "
            "number repetitions in a column 'replicate'."
        )
