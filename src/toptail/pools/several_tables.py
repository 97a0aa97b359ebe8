"""Several tables as one: each is a group whose queries keep to themselves."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError, option
from toptail.io.tables import joined_labels
from toptail.pools.columns import Columns
from toptail.pools.read import to_pools
from toptail.pools.scored import ScoredPools, named


def several_tables(sources: Sequence[Any], columns: Columns) -> ScoredPools:
    """Pools of several tables, one after the other.

    Queries of two tables are two pools, also where they have the same label: those are resampled
    together, unless the tables have clusters. The table is the group, unless the tables have
    groups. Columns are those that all tables have.
    """
    tables = [to_pools(source, columns) for source in sources]
    if len(tables) == 1:
        return tables[0]
    names = _names(sources)
    table = np.repeat(np.array(names), [each.queries for each in tables])
    query = pa.concat_arrays([each.query.cast(pa.large_string()) for each in tables])
    group, cluster = (_labels(tables, part) for part in ("group", "cluster"))
    called = dict(tables[0].called)
    if cluster is None and len(query.unique()) < len(query):
        cluster, called["cluster"] = query, called.get("query", "query")
    if group is None:
        group, called["group"] = pa.array(table), "table"
    return ScoredPools(
        query=joined_labels("tables", {"table": pa.array(table), "query": query}),
        offsets=np.concatenate([[0], np.cumsum(np.concatenate([each.sizes for each in tables]))]),
        scores=_shared(tables, names, "scores"),
        values=_shared(tables, names, "values"),
        support=_whole([each.support for each in tables]),
        design=_shared(tables, names, "design", needed=False),
        candidate=_labels(tables, "candidate"),
        cluster=cluster,
        group=group,
        source=", ".join(each.source for each in tables),
        sha256=_sha256([each.sha256 for each in tables]),
        called=called,
        skipped={name: why for each in tables for name, why in each.skipped.items()},
        lengths=_shared(tables, names, "lengths", needed=False),
        further=_shared(tables, names, "further", needed=False),
        notes=tuple(
            f"{name}: {note}"
            for name, each in zip(names, tables, strict=True)
            for note in each.notes
        ),
    )


def _names(sources: Sequence[Any]) -> list[str]:
    """Short names of the tables: those of the files, with folders where two are the same."""
    paths = [str(s) if isinstance(s, (str, os.PathLike)) else "" for s in sources]
    stems = [Path(path).stem or f"table {at}" for at, path in enumerate(paths, 1)]
    if len(set(stems)) == len(stems):
        return stems
    whole = [path or f"table {at}" for at, path in enumerate(paths, 1)]
    if len(set(whole)) < len(whole):
        twice = next(path for at, path in enumerate(whole) if path in whole[:at])
        raise InputError(f"{twice} was given twice; give each table once.")
    return whole


def _shared(
    tables: Sequence[ScoredPools], names: Sequence[str], part: str, *, needed: bool = True
) -> dict[str, Any]:
    columns: list[Mapping[str, Any]] = [getattr(each, part) for each in tables]
    shared = [name for name in columns[0] if all(name in each for each in columns)]
    if needed and not shared:
        found = "; ".join(
            f"{name} has {joined}" for name, joined in zip(names, map(named, columns), strict=True)
        )
        raise InputError(
            f"The tables share no column for {option(part)}: {found}; rename them, or audit one "
            "table at a time."
        )
    return {name: _whole([each[name] for each in columns]) for name in shared}


def _whole(columns: Sequence[Any]) -> Any:
    """Columns of all tables below each other; None where one is missing."""
    if any(column is None for column in columns):
        return None
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    kinds = {column.type for column in columns}
    same = columns if len(kinds) == 1 else [column.cast(pa.large_string()) for column in columns]
    return pa.concat_arrays(same)


def _labels(tables: Sequence[ScoredPools], part: str) -> pa.Array | None:
    return _whole([getattr(each, part) for each in tables])


def _sha256(hashes: Sequence[str | None]) -> str | None:
    if None in hashes:
        return None
    return hashlib.sha256("".join(map(str, hashes)).encode()).hexdigest()
