"""``ScoredPools`` to tables and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import atomic, write_arrays
from toptail.pools.columns import METADATA
from toptail.pools.scored import ScoredPools
from toptail.pools.table_files import DELIMITERS, file_format


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
    return pa.table(columns).replace_schema_metadata({METADATA: _written_roles(pools)})


def _written_roles(pools: ScoredPools) -> str:
    """Which columns are scores and which are values."""
    return json.dumps({"scores": list(pools.scores), "values": list(pools.values)})


def write_pools(pools: ScoredPools, path: Path) -> None:
    """Write the pools to ``path``; see :meth:`ScoredPools.write`."""
    kind = file_format(path)
    if kind == "npz":
        write_arrays(path, _npz_arrays(pools, path))
        return
    atomic(path, lambda target: write_table(pools_to_table(pools), target, kind))


def write_table(table: pa.Table, target: Path, kind: str) -> None:
    """Write a table in one of the formats of `toptail.pools.table_files.FORMATS` (not npz)."""
    if kind == "parquet":
        pq.write_table(table, target)
    elif kind == "arrow":
        pa.feather.write_feather(table, target)
    else:
        with pa.output_stream(str(target)) as file:  # packs by the name's ending
            _write_text(table, file, kind)


def _write_text(table: pa.Table, file: pa.NativeFile, kind: str) -> None:
    if kind in DELIMITERS:
        options = pa.csv.WriteOptions(delimiter=DELIMITERS[kind])
        pa.csv.write_csv(table, file, write_options=options)
    elif kind == "json":
        file.write(json.dumps(table.to_pylist()).encode() + b"\n")
    else:
        for batch in table.to_batches(max_chunksize=1 << 16):
            lines = (json.dumps(row) + "\n" for row in batch.to_pylist())
            file.write("".join(lines).encode())


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
    for name in ("query", "cluster", "group"):
        labels = getattr(pools, name)
        if labels is not None:
            text = pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type)
            arrays[name] = np.array(labels.to_pylist(), np.str_) if text else labels.to_numpy()
    if not keep.all():
        arrays["size"] = pools.sizes
    arrays["toptail"] = np.array(_written_roles(pools))
    return arrays
