"""``JudgedPicks``: values of the picked candidates alone, without scores of all candidates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError, refusing
from toptail.io.files import atomic, sha256
from toptail.io.tables import as_table, check_names, file_format, plain, read_table, write_table
from toptail.pools.columns import (
    MISSING_ENTRY,
    codes,
    columns_by_role,
    first_repeat,
    numbers,
    other_names,
)
from toptail.pools.read import COLUMNS, UNUSABLE, check_design, check_unnamed, per_query_labels
from toptail.pools.scored import Container, ScoredPools, named, queries
from toptail.stats.best_of_k import Floats, Ints

_PICK_DESIGN = ("p_judged", "own")
_COLUMNS = ("query", "selector", "replicate", "value", "key", "cluster", "group", *_PICK_DESIGN)


class PickColumns(TypedDict, total=False):
    """Which columns of a table of picks have which role; by default those of that name.

    ``values`` names the column of values, as for a table of candidates; its name is 'value'.
    """

    query: str | None
    selector: str | None
    values: str | None
    cluster: str | None
    group: str | None
    p_judged: str | None


@dataclass(frozen=True, eq=False, repr=False)
class JudgedPicks(Container):
    """Values of the candidates that selectors picked: a row per (query, selector, replicate)."""

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
    """Value of the pick ``[rows]``; larger is better. NaN where it was not judged."""
    key: pa.Array | None = None
    """Common-random-number key ``[rows]``: rows with equal keys used the same random draws."""
    cluster: pa.Array | None = None
    """Label of the cluster each query belongs to ``[queries]``."""
    group: pa.Array | None = None
    """Label of the group each query is reported under ``[queries]``."""
    design: Mapping[str, Floats] = field(default_factory=dict)
    """The chance that each pick was chosen for judging, ``p_judged [rows]``, and ``own`` (1 where
    the pick itself was drawn), as in :class:`ScoredPools`. Empty where every pick was judged."""
    source: str = "memory"
    """The origin of the picks, for records and errors."""
    sha256: str | None = None
    """Content hash of the file they came from."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Role (``group``, ``cluster``, ...) -> its column, where that has another name."""

    @classmethod
    def from_arrow(
        cls, table: Any, *, source: str = "table", **columns: Unpack[PickColumns]
    ) -> JudgedPicks:
        """Picks from any table: see :func:`toptail.io.tables.as_table`.

        Columns ``query``, ``selector``, ``value``, and optional ``replicate`` (one pick per
        query and selector where absent), ``key``, ``cluster``, ``group`` and ``p_judged``, with
        which values may be missing; ``columns`` name those that are called otherwise.
        """
        table = as_table(table, source)
        check_names(source, table.column_names)
        named = {
            "value" if part == "values" else part: str(name)
            for part, name in columns.items()
            if name is not None
        }
        parts = columns_by_role(source, table.column_names, named)
        table = table.select(list(parts.values())).rename_columns(list(parts))
        own = {name: name for name in _COLUMNS} | other_names(named)
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
        design = {
            name: numbers(source, own[name], data[name], missing="")
            for name in _PICK_DESIGN
            if {name, "p_judged"} <= set(data)
        }
        check_design(source, own["p_judged"], design)
        missing = "" if design else MISSING_ENTRY
        value = numbers(source, own["value"], data["value"], missing=missing)
        replicate = data.get("replicate", pa.array(np.zeros(len(value), dtype=np.int64)))
        _check_once(source, query_at, selector_at, replicate, len(selector))
        _check_alike(source, own, query_at * len(selector) + selector_at, design)
        per_query = {
            name: per_query_labels(source, name, own, data[name], query_at, len(query))
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
            design=design,
            source=source,
            called=other_names(named),
            **per_query,
        )

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Unpack[PickColumns]) -> JudgedPicks:
        """Picks from a Parquet, CSV, JSON, JSON Lines or Arrow file, with its hash.

        ``columns`` name the columns as in :meth:`from_arrow`.
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
            design={name: column[rows] for name, column in self.design.items()},
            key=labels(self.key, pa.array(rows)),
            cluster=labels(self.cluster, mask),
            group=labels(self.group, mask),
        )

    def as_pools(self) -> ScoredPools:
        """The picks as the candidates of their queries.

        Each selector becomes a scorer that puts its own pick first; the value is the mean over
        replicates, NaN where none was judged.
        """
        cell, at, back = np.unique(
            self.query_at * len(self.selector) + self.selector_at,
            return_index=True,
            return_inverse=True,
        )
        known = ~np.isnan(self.value)
        sums, counts = (
            np.bincount(back, part) for part in (np.where(known, self.value, 0.0), known)
        )
        query, selector = np.divmod(cell, len(self.selector))
        names = map(str, self.selector.to_pylist())
        return ScoredPools(
            query=self.query,
            offsets=np.searchsorted(query, np.arange(len(self.query) + 1)),
            scores={f"{name} first": 1.0 * (selector == s) for s, name in enumerate(names)},
            values={"value": np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)},
            design={name: column[at] for name, column in self.design.items()},
            candidate=self.selector.take(pa.array(selector)),
            cluster=self.cluster,
            group=self.group,
            source=self.source,
            called=self.called,
        )

    def _summary(self) -> str:
        selectors = named(self.selector.to_pylist())
        return f"{self.value.size:,} picks at {queries(len(self.query))}; selectors {selectors}"

    def to_arrow(self) -> pa.Table:
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
        if self.design:  # NaN is written as null
            blank = {**self.design, "value": self.value}
            columns |= {name: pa.array(x, from_pandas=True) for name, x in blank.items()}
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


def _check_alike(
    where: str, own: Mapping[str, str], pick: Ints, design: Mapping[str, Floats]
) -> None:
    """Raise :class:`InputError` where replicates of a pick have different chances."""
    for name, column in design.items():
        known = np.flatnonzero(~np.isnan(column))
        _, at, back = np.unique(pick[known], return_index=True, return_inverse=True)
        other = column[known] != column[known][at][back]
        if other.any():
            raise InputError(
                f"{where}: '{own[name]}' in row {known[int(np.argmax(other))] + 1} is not that of "
                "the pick's other repetitions; a pick is chosen for judging once."
            )


def to_picks(data: Any, columns: PickColumns) -> JudgedPicks:
    """Picks from picks, the path of a file, or any table."""
    if isinstance(data, JudgedPicks):
        check_unnamed(data.source, "picks", columns)
        return data
    if isinstance(data, (str, os.PathLike)):
        return JudgedPicks.read(data, **columns)
    return JudgedPicks.from_arrow(data, **columns)
