"""`ScoredPools` as tables and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.io.files import atomic
from toptail.io.roles import roles_text, with_roles
from toptail.io.tables import file_format, write_table
from toptail.pools.scored import ScoredPools


def pools_to_table(pools: ScoredPools) -> pa.Table:
    """The long table of the pools, with the roles of its columns as metadata."""
    parent = pa.array(np.repeat(np.arange(pools.queries), pools.sizes))
    columns: dict[str, Any] = {"query": pools.query.take(parent)}
    if pools.candidate is not None:
        columns["candidate"] = pools.candidate
    columns |= {**pools.scores, **pools.values, **pools.design}
    if pools.support is not None:
        columns["support"] = pools.support
    for name, labels in (("cluster", pools.cluster), ("group", pools.group)):
        if labels is not None:
            columns[name] = labels.take(parent)
    columns = {**pools.further, **columns} if pools.further else columns
    return with_roles(pa.table(columns), pools.scores, pools.values, pools.further)


def write_pools(pools: ScoredPools, path: Path) -> None:
    """Write the pools to ``path``; see :meth:`ScoredPools.write`."""
    kind = file_format(path)
    if kind == "npz":
        write_arrays(path, _npz_arrays(pools, path))
        return
    atomic(path, lambda target: write_table(pools_to_table(pools), target, kind))


def _npz_arrays(pools: ScoredPools, path: Path) -> dict[str, NDArray[Any]]:
    """Dense arrays; ragged pools are padded with 0 and carry their ``size``."""
    if pools.candidate is not None:
        raise InputError(f"{path}: npz files have no place for candidate labels; use .parquet.")
    width = int(pools.sizes.max())
    keep = np.arange(width) < pools.sizes[:, None]

    def dense(column: NDArray[Any]) -> NDArray[Any]:
        result = np.zeros(keep.shape, dtype=column.dtype)
        result[keep] = column
        return result

    columns = {**pools.scores, **pools.values, **pools.design}
    arrays = {name: dense(column) for name, column in columns.items()}
    if pools.support is not None:
        arrays["support"] = dense(pools.support)
    arrays = {name: dense(_numpy(c)) for name, c in pools.further.items()} | arrays
    for name in ("query", "cluster", "group"):
        if (labels := getattr(pools, name)) is not None:
            arrays[name] = _numpy(labels)
    if not keep.all():
        arrays["size"] = pools.sizes
    arrays["toptail"] = np.array(roles_text(pools.scores, pools.values, pools.further))
    return arrays


def _numpy(column: pa.Array) -> NDArray[Any]:
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text:
        return np.array(column.to_pylist(), np.str_)
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array
