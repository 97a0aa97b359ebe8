"""`ScoredPools` and `JudgedPicks` from files, folders, data frames and arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError, option, refusing
from toptail.io.partitioned import is_partitioned, open_partitioned
from toptail.pools.coerce import COLUMNS, UNUSABLE, pools_from_arrays
from toptail.pools.columns import Columns, choose, listed
from toptail.pools.picks import JudgedPicks, PickColumns
from toptail.pools.scored import ScoredPools
from toptail.pools.stream import Mapped, partitioned_pools


def to_pools(
    data: Any, columns: Columns, *, stream: bool = False, mapped: Mapped = map
) -> ScoredPools:
    """Pools from pools, the path of a file or folder, any data frame, columns, arrays or rows.

    A mapping that holds arrays of two dimensions is read as ``[queries, candidates]``, like an
    npz file; everything else is a table, see :func:`toptail.io.tables.as_table`. Of pools, only
    the scores can be chosen. A folder or an address holds partitioned Parquet; with ``stream``, a
    large one stays on disk, and ``mapped`` applies functions to its segments.
    """
    if isinstance(data, ScoredPools):
        return _chosen(data, columns)
    if isinstance(data, (str, os.PathLike)):
        if not is_partitioned(data):
            return ScoredPools.read(data, **columns)
        with refusing(data, UNUSABLE, COLUMNS):
            return partitioned_pools(open_partitioned(data), columns, stream=stream, mapped=mapped)
    if isinstance(data, Mapping) and any(getattr(a, "ndim", 1) == 2 for a in data.values()):
        arrays = {str(name): np.asarray(array) for name, array in data.items()}
        return pools_from_arrays("arrays", arrays, columns)
    return ScoredPools.from_arrow(data, **columns)


def _chosen(pools: ScoredPools, columns: Columns) -> ScoredPools:
    _check_unnamed(
        pools.source, "pools", columns, besides=("scores", "values", "further", "partly")
    )
    scores = listed(columns.get("scores"))
    if scores is None:
        return pools
    chosen = choose(pools.source, scores, list(pools.scores), "score")
    left = [n for n in columns.get("further", ()) if n in pools.scores and n not in chosen]
    return replace(
        pools,
        scores={name: pools.scores[name] for name in chosen},
        further={**pools.further, **{name: pa.array(pools.scores[name]) for name in left}},
    )


def _check_unnamed(
    where: str, what: str, columns: Mapping[str, object], besides: tuple[str, ...] = ()
) -> None:
    """Raise :class:`InputError` where columns are named although the data are no table."""
    for part, name in columns.items():
        if name is not None and part not in besides:
            raise InputError(
                f"{where}: {option(part, name)} names a column of a table, and these are "
                f"{what}; name it where they are made from the table."
            )


def to_picks(data: Any, columns: PickColumns) -> JudgedPicks:
    """Picks from picks, the path of a file, or any table."""
    if isinstance(data, JudgedPicks):
        _check_unnamed(data.source, "picks", columns)
        return data
    if isinstance(data, (str, os.PathLike)):
        return JudgedPicks.read(data, **columns)
    return JudgedPicks.from_arrow(data, **columns)
