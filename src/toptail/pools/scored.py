"""``ScoredPools``: queries with their candidates, scores by scorer and seed, values by judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.pools.columns import check_finite, split_seed
from toptail.stats.best_of_k import Floats


@dataclass(frozen=True)
class Block:
    """Pools of one size, ready for arithmetic on ``[queries, candidates]`` arrays."""

    queries: NDArray[np.int64]
    """Positions of these pools in the container."""
    rows: slice | NDArray[np.int64]
    """Their candidates: a slice where they lie side by side, else indices."""
    size: int
    """Candidates per pool."""

    def take(self, column: NDArray[Any]) -> NDArray[Any]:
        """A per-candidate column as ``[queries, size]``; a view where that is possible."""
        return column[self.rows].reshape(self.queries.size, self.size)


@dataclass(frozen=True)
class ScoredPools:
    """Candidate pools with scores and judged values; pools may differ in size.

    Candidates of a query lie side by side: query q owns rows
    ``offsets[q]:offsets[q + 1]`` of every per-candidate column. All scores and values
    are finite; larger is better for both.

    Make one with :meth:`read` (a file), :meth:`from_arrow` (any data frame that speaks
    Arrow) or :meth:`from_arrays` (NumPy).
    """

    query: pa.Array
    """Label of each query ``[queries]``."""
    offsets: NDArray[np.int64]
    """Where each query's candidates start ``[queries + 1]``."""
    scores: Mapping[str, Floats]
    """Score column name to ``[rows]``; ``name@42`` is training seed 42 of scorer ``name``."""
    values: Mapping[str, Floats]
    """Value column name to ``[rows]``, one per judge or replicate."""
    support: NDArray[np.bool_] | None = None
    """True where the candidate is on the data support ``[rows]``."""
    candidate: pa.Array | None = None
    """Label of each candidate ``[rows]``, unique within its query."""
    cluster: pa.Array | None = None
    """Label of the cluster each query belongs to ``[queries]``; intervals resample clusters."""
    group: pa.Array | None = None
    """Label of the group each query is reported under ``[queries]``."""
    source: str = "memory"
    """Where the pools came from, for records."""
    sha256: str | None = None
    """Content hash of the file they came from."""

    def __post_init__(self) -> None:
        for name, column in (*self.scores.items(), *self.values.items()):
            if column.shape != (self.rows,):
                raise InputError(
                    f"{self.source}: column '{name}' has shape {column.shape}, "
                    f"expected ({self.rows},)."
                )
        if not self.scores or not self.values:
            raise InputError(f"{self.source}: at least one score and one value column are needed.")
        if self.queries == 0 or (self.sizes == 0).any():
            raise InputError(f"{self.source}: the table is empty or holds a query without rows.")

    @property
    def queries(self) -> int:
        """Number of queries."""
        return self.offsets.size - 1

    @property
    def rows(self) -> int:
        """Number of candidates over all queries."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Candidates per query ``[queries]``."""
        return np.diff(self.offsets)

    @property
    def scorers(self) -> dict[str, dict[str | None, str]]:
        """Scorer name to its columns by seed; the key is None for a scorer without seeds."""
        result: dict[str, dict[str | None, str]] = {}
        for column in self.scores:
            name, seed = split_seed(column)
            if seed is not None and name in self.scores:
                name, seed = column, None  # 'raw' and 'raw@1' side by side are two scorers
            result.setdefault(name, {})[seed] = column
        return result

    def blocks(self, limit: int = 1 << 62) -> Iterator[Block]:
        """Pools grouped by size, at most about ``limit`` candidates per block."""
        sizes = self.sizes
        for size in np.unique(sizes):
            members = np.flatnonzero(sizes == size)
            per_block = max(1, limit // int(size))
            for start in range(0, members.size, per_block):
                queries = members[start : start + per_block]
                rows: slice | NDArray[np.int64]
                if queries[-1] - queries[0] + 1 == queries.size:
                    rows = slice(int(self.offsets[queries[0]]), int(self.offsets[queries[-1] + 1]))
                else:
                    rows = (self.offsets[queries][:, None] + np.arange(size)).reshape(-1)
                yield Block(queries, rows, int(size))

    def select(self, keep: NDArray[np.bool_]) -> ScoredPools:
        """The queries where ``keep [queries]`` is true, in order."""
        if keep.all():
            return self
        rows = np.repeat(keep, self.sizes)
        mask = pa.array(keep)

        def labels(array: pa.Array | None) -> pa.Array | None:
            return None if array is None else array.filter(mask)

        return replace(
            self,
            query=self.query.filter(mask),
            offsets=np.concatenate([[0], np.cumsum(self.sizes[keep])]),
            scores={name: column[rows] for name, column in self.scores.items()},
            values={name: column[rows] for name, column in self.values.items()},
            support=None if self.support is None else self.support[rows],
            candidate=None if self.candidate is None else self.candidate.filter(pa.array(rows)),
            cluster=labels(self.cluster),
            group=labels(self.group),
        )

    def equals(self, other: ScoredPools) -> bool:
        """Same labels and bit-equal columns in the same order; the source may differ."""

        def same_labels(a: pa.Array | None, b: pa.Array | None) -> bool:
            return a is b is None or (a is not None and b is not None and a.equals(b))

        def same(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> bool:
            return list(a) == list(b) and all(np.array_equal(a[n], b[n]) for n in a)

        def same_support(a: NDArray[np.bool_] | None, b: NDArray[np.bool_] | None) -> bool:
            return a is b is None or (a is not None and b is not None and np.array_equal(a, b))

        return (
            np.array_equal(self.offsets, other.offsets)
            and same(self.scores, other.scores)
            and same(self.values, other.values)
            and same_labels(self.query, other.query)
            and same_labels(self.candidate, other.candidate)
            and same_labels(self.cluster, other.cluster)
            and same_labels(self.group, other.group)
            and same_support(self.support, other.support)
        )

    @classmethod
    def from_arrays(
        cls,
        scores: Mapping[str, ArrayLike],
        values: ArrayLike | Mapping[str, ArrayLike],
        *,
        support: ArrayLike | None = None,
        query: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        group: ArrayLike | None = None,
        size: ArrayLike | None = None,
        source: str = "arrays",
    ) -> ScoredPools:
        """Pools from dense ``[queries, candidates]`` arrays.

        Parameters
        ----------
        scores
            Scorer (or ``scorer@seed``) to its array.
        values
            One array, or value name to array.
        support
            Booleans of the same shape: is the candidate on the data support?
        query, cluster, group
            Labels ``[queries]``; queries are numbered from 0 by default.
        size
            ``[queries]``: how many of a row's entries count where pools differ in size; the
            rest is padding and is not looked at.
        """
        judged = dict(values) if isinstance(values, Mapping) else {"value": values}
        first = np.asarray(next(iter(judged.values()), None))
        if first.ndim != 2:
            raise InputError(f"{source}: values must be [queries, candidates], not {first.shape}.")
        m, n = first.shape
        sizes = np.full(m, n) if size is None else np.asarray(size, dtype=np.int64)
        if sizes.shape != (m,) or (sizes < 1).any() or (sizes > n).any():
            raise InputError(f"{source}: 'size' must hold one number in 1..{n} per query.")
        keep = np.arange(n) < sizes[:, None]

        def flat(name: str, array: ArrayLike) -> NDArray[Any]:
            data = np.asarray(array)
            if data.shape != (m, n):
                raise InputError(f"{source}: '{name}' has shape {data.shape}, not {(m, n)}.")
            if data.dtype.kind not in "fiub":
                raise InputError(f"{source}: '{name}' must hold numbers, not {data.dtype}.")
            return data.reshape(-1) if size is None else data[keep]

        def columns(arrays: Mapping[str, ArrayLike]) -> dict[str, Floats]:
            result = {name: flat(name, a).astype(np.float64) for name, a in arrays.items()}
            for name, column in result.items():
                check_finite(source, name, column, row="entry")
            return result

        def labels(name: str, array: ArrayLike | None) -> pa.Array | None:
            if array is None:
                return None
            result = pa.array(np.asarray(array))
            if len(result) != m:
                raise InputError(f"{source}: '{name}' has {len(result)} labels for {m} queries.")
            return result

        names = labels("query", np.arange(m) if query is None else query)
        assert names is not None
        if len(names.unique()) != m:
            raise InputError(f"{source}: 'query' holds the same label twice.")
        return cls(
            query=names,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            scores=columns(scores),
            values=columns(judged),
            support=None if support is None else flat("support", support).astype(bool),
            cluster=labels("cluster", cluster),
            group=labels("group", group),
            source=source,
        )

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        *,
        scores: Sequence[str] | None = None,
        values: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
        source: str = "table",
    ) -> ScoredPools:
        """Pools from any data frame that speaks Arrow (pyarrow, pandas, polars, DuckDB, ...).

        Long (one row per candidate, columns ``query``, scores, values, and optional
        ``candidate``, ``support``, ``cluster``, ``group``) or one row per query with list
        columns. ``scores`` and ``values`` name columns; see
        :func:`toptail.pools.columns.find_roles` for the defaults. ``names`` says which
        columns play the reserved parts, as in ``{"query": "prompt_id", "group": "step"}``.
        """
        from toptail.pools.tables import pools_from_table

        return pools_from_table(pa.table(table), scores, values, source, names)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        scores: Sequence[str] | None = None,
        values: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> ScoredPools:
        """Pools from a Parquet, CSV, JSON Lines, Arrow or npz file, with its hash."""
        from toptail.pools.tables import read_pools

        return read_pools(Path(path), scores, values, names)

    def to_arrow(self) -> pa.Table:
        """The long table; its metadata says which columns are scores and which values."""
        from toptail.pools.tables import pools_to_table

        return pools_to_table(self)

    def write(self, path: str | Path) -> None:
        """Write as Parquet, CSV, JSON Lines, Arrow or npz by the name's ending, atomically.

        Reading the file back gives an equal container. CSV and JSON Lines do not record
        which columns are scores: name them when reading, unless the defaults find them.
        CSV has no types: text labels made of digits come back as numbers.
        """
        from toptail.pools.tables import write_pools

        write_pools(self, Path(path))
