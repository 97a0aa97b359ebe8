"""``JudgedPicks``: for those who only know how the picked candidates turned out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError
from toptail.pools.columns import codes, first_repeat, numbers
from toptail.pools.container import Container, named, queries
from toptail.pools.files import atomic, check_names, file_format, read_table, sha256
from toptail.pools.frames import as_table, plain
from toptail.pools.tables import per_query_labels, write_table
from toptail.stats.best_of_k import Floats, Ints

_COLUMNS = ("query", "selector", "replicate", "value", "key", "cluster")


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
    source: str = "memory"
    """Where the picks came from."""
    sha256: str | None = None
    """Content hash of the file they came from."""

    @classmethod
    def from_arrow(cls, table: Any, *, source: str = "table") -> JudgedPicks:
        """Picks from any table: see :func:`toptail.pools.frames.as_table`.

        Columns ``query``, ``selector``, ``value``, and optional ``replicate`` (one pick per
        query and selector where absent), ``key`` and ``cluster``.
        """
        table = as_table(table, source)
        check_names(source, table.column_names)
        for name in ("query", "selector", "value"):
            if name not in table.column_names:
                raise InputError(
                    f"{source}: there is no column '{name}'; "
                    f"the columns are {', '.join(table.column_names)}."
                )
        if table.num_rows == 0:
            raise InputError(f"{source}: the table has no rows.")
        columns = {n: plain(table[n]) for n in _COLUMNS if n in table.column_names}
        query_at, query = codes(source, "query", columns["query"])
        selector_at, selector = codes(source, "selector", columns["selector"])
        value = numbers(source, "value", columns["value"])
        replicate = columns.get("replicate", pa.array(np.zeros(len(value), dtype=np.int64)))
        _check_once(source, query_at, selector_at, replicate, len(selector))
        cluster = None
        if "cluster" in columns:
            cluster = per_query_labels(source, "cluster", columns["cluster"], query_at, len(query))
        return cls(
            query=query,
            selector=selector,
            query_at=query_at,
            selector_at=selector_at,
            replicate=replicate,
            value=value,
            key=columns.get("key"),
            cluster=cluster,
            source=source,
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> JudgedPicks:
        """Picks from a Parquet, CSV, JSON Lines or Arrow file, with its hash."""
        where = Path(path)
        picks = cls.from_arrow(read_table(where), source=str(where))
        return replace(picks, sha256=sha256(where))

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
        if self.cluster is not None:
            columns["cluster"] = self.cluster.take(pa.array(self.query_at))
        return pa.table(columns)

    def write(self, path: str | Path) -> None:
        """Write as Parquet, CSV, JSON Lines or Arrow by the name's ending, atomically."""
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
