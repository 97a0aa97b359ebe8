"""``ScoredPools``: queries with their candidates, scores by scorer and seed, values by judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.io.files import atomic
from toptail.io.tables import as_table, file_format, roles_text, with_roles, write_table
from toptail.pools.columns import (
    MISSING_VALUE,
    Columns,
    check_complete,
    check_finite,
    check_present,
    group_seeds,
)
from toptail.stats.best_of_k import Floats, Ints


class Container:
    """Equality by content, a matching hash, and a repr of one line.

    Two containers are equal if their labels are, and their columns have the same names in the same
    order and the same numbers. Their origin does not count: a container equals its copy on disk.
    """

    _ORIGIN: ClassVar = ("source", "sha256", "called", "skipped", "lengths", "notes")
    """Fields about the origin of the content."""

    def _summary(self) -> str:
        """Counts and names of columns."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (field.name for field in fields(self) if field.name not in self._ORIGIN)  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash(self._summary())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"


def queries(n: int) -> str:
    """A number of queries in words: "1 query", "2 queries"."""
    return f"{n:,} {'query' if n == 1 else 'queries'}"


def named(names: Iterable[object], most: int = 6) -> str:
    """The first names, and how many more there are."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        floats = a.dtype.kind == "f" == b.dtype.kind  # entries that are not used may be NaN
        return bool(np.array_equal(a, b, equal_nan=floats))
    if isinstance(a, pa.Array) and isinstance(b, pa.Array):
        return bool(a.equals(b))
    arrays = (np.ndarray, pa.Array)
    return not isinstance(a, arrays) and not isinstance(b, arrays) and bool(a == b)


T = TypeVar("T")

CANNOT_CHOOSE: Final = "all candidates of a query the same score and cannot choose"
"""What scorers of `ScoredPools.constant_scorers` give."""
BLOCK: Final = 1 << 17
"""Candidates of a block whose temporary arrays stay in the cache."""
SEGMENT: Final = 1 << 24
"""Candidates that are processed together; of a streamed table, this many are in memory."""


def segments(sizes: Ints) -> list[slice]:
    """Cut the queries into consecutive segments of about `SEGMENT` candidates."""
    number = (np.cumsum(sizes) - sizes) // SEGMENT
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], sizes.size], strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Block(Container):
    """Pools of one size, ready for arithmetic on ``[queries, candidates]`` arrays."""

    queries: Ints
    """Positions of these pools in the container."""
    rows: slice | Ints
    """Their candidates: a slice where they are adjacent, else indices."""
    size: int
    """Candidates per pool."""

    def take(self, column: NDArray[Any]) -> NDArray[Any]:
        """A per-candidate column as ``[queries, size]``; a view where that is possible."""
        return column[self.rows].reshape(self.queries.size, self.size)

    def _summary(self) -> str:
        return f"{self.queries.size:,} pools of {self.size}"


def blocks_of(offsets: Ints, limit: int = 1 << 62) -> Iterator[Block]:
    """Blocks of pools of one size with about ``limit`` candidates, given each pool's first row."""
    sizes = np.diff(offsets)
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        per_block = max(1, limit // int(size))
        for start in range(0, members.size, per_block):
            queries = members[start : start + per_block]
            rows: slice | Ints
            if queries[-1] - queries[0] + 1 == queries.size:
                rows = slice(int(offsets[queries[0]]), int(offsets[queries[-1] + 1]))
            else:
                rows = (offsets[queries][:, None] + np.arange(size)).reshape(-1)
            yield Block(queries, rows, int(size))


@dataclass(frozen=True, eq=False, repr=False)
class ScoredPools(Container):
    """Candidate pools with scores and judged values; pools may differ in size.

    Candidates of a query are adjacent: query q owns rows ``offsets[q]:offsets[q + 1]`` of every
    per-candidate column. Larger is better for scores and values. All are finite, except that a
    score may be -inf, and that a value is NaN where a candidate was not judged.

    Make one with :meth:`read` (a file), :meth:`from_arrow` (any data frame) or
    :meth:`from_arrays` (NumPy).
    """

    query: pa.Array
    """Label of each query ``[queries]``."""
    offsets: Ints
    """First row of each query's candidates, and the number of rows ``[queries + 1]``."""
    scores: Mapping[str, Floats]
    """Score column name to ``[rows]``; ``name@42`` is training seed 42 of scorer ``name``."""
    values: Mapping[str, Floats]
    """Value column name to ``[rows]``, one per judge or replicate."""
    support: NDArray[np.bool_] | None = None
    """True where the candidate is on the data support ``[rows]``."""
    design: Mapping[str, Floats] = field(default_factory=dict)
    """How candidates were chosen for judging, each ``[rows]``, NaN where unknown: ``p_judged``, the
    chance of a candidate; and with a plan ``p_whole``, the chance that its whole query was chosen,
    and ``own``, 1 where the candidate itself was drawn. Empty where every candidate was judged."""
    candidate: pa.Array | None = None
    """Label of each candidate ``[rows]``, unique within its query."""
    cluster: pa.Array | None = None
    """Label of the cluster each query belongs to ``[queries]``; intervals resample clusters."""
    group: pa.Array | None = None
    """Label of the group each query is reported under ``[queries]``."""
    source: str = "memory"
    """The origin of the pools, for records and errors."""
    sha256: str | None = None
    """Content hash of the file they came from."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Role (``group``, ``cluster``, ...) -> its column, where that has another name."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Number columns that were not taken as scores -> the reason."""
    lengths: Mapping[str, Floats] = field(default_factory=dict)
    """At most one column with the candidates' lengths ``[rows]``, NaN where unknown; the audit
    checks whether score and value both follow length."""
    further: Mapping[str, pa.Array] = field(default_factory=dict)
    """Other columns of the candidates ``[rows]`` without missing entries, numbers or text:
    answers to vote on, numbers to filter by."""
    notes: tuple[str, ...] = ()
    """What was done about missing scores, for the report."""

    def __post_init__(self) -> None:
        shapes = {name: c.shape for part in (self.scores, self.values) for name, c in part.items()}
        shapes |= {name: (len(column),) for name, column in self.further.items()}
        for name, shape in shapes.items():
            if shape != (self.rows,):
                raise InputError(
                    f"{self.source}: column '{name}' has shape {shape}, expected ({self.rows},)."
                )
        if not self.scores or not self.values:
            raise InputError(f"{self.source}: at least one score and one value column are needed.")
        if self.queries == 0 or (self.sizes == 0).any():
            raise InputError(f"{self.source}: the table is empty or holds a query without rows.")
        group_seeds(self.scores, self.source)

    @property
    def queries(self) -> int:
        """Number of queries."""
        return self.offsets.size - 1

    @property
    def rows(self) -> int:
        """Number of candidates over all queries."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Ints:
        """Candidates per query ``[queries]``."""
        return np.diff(self.offsets)

    @property
    def scorers(self) -> dict[str, dict[int | None, str]]:
        """Scorer -> training seed -> its column; the seed of a scorer without seeds is None."""
        return group_seeds(self.scores, self.source)

    @property
    def constant_scorers(self) -> list[str]:
        """Scorers that give all candidates of a query the same score, at every query."""
        starts = self.offsets[:-1]
        constant = {
            name: bool((np.minimum.reduceat(c, starts) == np.maximum.reduceat(c, starts)).all())
            for name, c in self.scores.items()
        }
        return [n for n, seeds in self.scorers.items() if all(constant[c] for c in seeds.values())]

    def _summary(self) -> str:
        sizes = self.sizes
        size = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        names = f"scores {named(self.scores)}; values {named(self.values)}"
        return f"{queries(self.queries)} of {size} candidates; {names}"

    def blocks(self, limit: int = 1 << 62) -> Iterator[Block]:
        """Pools grouped by size, at most about ``limit`` candidates per block."""
        return blocks_of(self.offsets, limit)

    def scores_at(self, at: slice, names: Iterable[str]) -> dict[str, Floats]:
        """Score columns of consecutive queries."""
        return {name: self.scores[name][self._rows(at)] for name in names}

    def values_at(self, at: slice, names: Iterable[str]) -> dict[str, Floats]:
        """Value columns of consecutive queries."""
        return {name: self.values[name][self._rows(at)] for name in names}

    def support_at(self, at: slice) -> NDArray[np.bool_] | None:
        """Which candidates of consecutive queries are on the data support."""
        return None if self.support is None else self.support[self._rows(at)]

    @property
    def supported(self) -> bool:
        return self.support is not None

    @property
    def in_process(self) -> bool:
        """Whether :meth:`over` works in this process."""
        return True

    def over(self, work: Callable[[slice], T]) -> Iterator[tuple[slice, T]]:
        """Each of the :func:`segments` with the result of ``work``, in order."""
        return ((at, work(at)) for at in segments(self.sizes))

    def _rows(self, at: slice) -> slice:
        return slice(int(self.offsets[at.start]), int(self.offsets[at.stop]))

    def select(self, keep: NDArray[np.bool_]) -> ScoredPools:
        """The queries where ``keep [queries]`` is true, in order."""
        return self if keep.all() else self.keep(np.repeat(keep, self.sizes))

    def keep(self, rows: NDArray[np.bool_]) -> ScoredPools:
        """The candidates where ``rows [rows]`` is true; a query without any is gone."""
        sizes = np.add.reduceat(rows, self.offsets[:-1], dtype=np.int64)
        mask = pa.array(sizes > 0)

        def labels(array: pa.Array | None) -> pa.Array | None:
            return None if array is None else array.filter(mask)

        return replace(
            self,
            query=self.query.filter(mask),
            offsets=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
            scores={name: column[rows] for name, column in self.scores.items()},
            values={name: column[rows] for name, column in self.values.items()},
            design={name: column[rows] for name, column in self.design.items()},
            lengths={name: column[rows] for name, column in self.lengths.items()},
            further={name: column.filter(pa.array(rows)) for name, column in self.further.items()},
            support=None if self.support is None else self.support[rows],
            candidate=None if self.candidate is None else self.candidate.filter(pa.array(rows)),
            cluster=labels(self.cluster),
            group=labels(self.group),
        )

    @classmethod
    def from_arrays(
        cls,
        scores: ArrayLike | Mapping[str, ArrayLike],
        values: ArrayLike | Mapping[str, ArrayLike],
        *,
        support: ArrayLike | None = None,
        design: Mapping[str, ArrayLike] | None = None,
        further: Mapping[str, ArrayLike] | None = None,
        missing_values: bool = False,
        query: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        group: ArrayLike | None = None,
        size: ArrayLike | None = None,
        source: str = "arrays",
        called: Mapping[str, str] | None = None,
    ) -> ScoredPools:
        """Pools from dense ``[queries, candidates]`` arrays.

        Parameters
        ----------
        scores
            One array, or scorer (or ``scorer@seed``) to its array.
        values
            One array, or value name to array.
        support
            Booleans of the same shape: is the candidate on the data support?
        design
            The chances :attr:`design` of the same shape.
        further
            The columns :attr:`further` of the same shape.
        missing_values
            Whether values may be missing (NaN); they may where there is a design.
        query
            Labels ``[queries]``; queries are numbered from 0 by default.
        cluster
            Labels ``[queries]`` of queries to resample together.
        group
            Labels ``[queries]`` of queries to report by.
        size
            ``[queries]``: how many of a row's entries count where pools differ in size; the
            rest is padding.
        source
            What the arrays are called in records and errors.
        called
            Role -> what its array is called in errors, :attr:`called`.
        """
        own = dict(called or {})
        scored = scores if isinstance(scores, Mapping) else {"score": scores}
        judged = values if isinstance(values, Mapping) else {"value": values}
        first = np.asarray(next(iter(judged.values()), None))
        if first.ndim != 2:
            raise InputError(f"{source}: values must be [queries, candidates], not {first.shape}.")
        m, n = first.shape
        sizes = np.full(m, n) if size is None else np.asarray(size, dtype=np.int64)
        if sizes.shape != (m,) or (sizes < 1).any() or (sizes > n).any():
            raise InputError(f"{source}: 'size' must hold one number in 1..{n} per query.")
        keep = np.arange(n) < sizes[:, None]

        def flat(name: str, array: ArrayLike, text: bool = False) -> NDArray[Any]:
            data = np.asarray(array)
            if data.shape != (m, n):
                raise InputError(f"{source}: '{name}' has shape {data.shape}, not {(m, n)}.")
            if data.dtype.kind not in "fiub" and not text:
                raise InputError(f"{source}: '{name}' must hold numbers, not {data.dtype}.")
            return data.reshape(-1) if size is None else data[keep]

        def columns(
            arrays: Mapping[str, ArrayLike], score: bool, blank: bool = False
        ) -> dict[str, Floats]:
            result = {name: flat(name, a).astype(np.float64) for name, a in arrays.items()}
            if score:
                check_complete(source, {name: pa.array(c) for name, c in result.items()}, "entry")
            for name, column in result.items():
                known = np.where(np.isnan(column), 0.0, column) if blank else column
                if not score and np.isnan(known).any():
                    at = int(np.argmax(np.isnan(known))) + 1
                    raise InputError(
                        f"{source}: '{name}' has no value in entry {at}; {MISSING_VALUE}."
                    )
                check_finite(source, name, known, row="entry", score=score)
            return result

        def labels(part: str, array: ArrayLike | None) -> pa.Array | None:
            if array is None:
                return None
            name = own.get(part, part)
            result = pa.array(np.asarray(array))
            if len(result) != m:
                raise InputError(f"{source}: '{name}' has {len(result)} labels for {m} queries.")
            return result

        names = labels("query", np.arange(m) if query is None else query)
        assert names is not None
        if len(names.unique()) != m:
            name = own.get("query", "query")
            raise InputError(f"{source}: '{name}' holds the same label twice.")
        return cls(
            query=names,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            scores=columns(scored, score=True),
            values=columns(judged, score=False, blank=missing_values or bool(design)),
            design=columns(design or {}, score=False, blank=True),
            further={
                name: check_present(source, name, pa.array(flat(name, array, text=True)))
                for name, array in (further or {}).items()
            },
            support=None
            if support is None
            else flat(own.get("support", "support"), support).astype(bool),
            cluster=labels("cluster", cluster),
            group=labels("group", group),
            source=source,
            called=own,
        )

    @classmethod
    def from_arrow(
        cls, table: Any, *, source: str = "table", **columns: Unpack[Columns]
    ) -> ScoredPools:
        """Pools from any table: see :func:`toptail.io.tables.as_table`.

        Long (one row per candidate) or one row per query with list columns.

        Parameters
        ----------
        table
            Any data frame with the Arrow protocol (pyarrow, pandas, polars, DuckDB, ...), a lazy
            frame, a Hugging Face data set, a mapping of columns, or a list of rows.
        source
            The name of the table in records and errors.
        columns
            ``query``, ``candidate``, ``support``, ``cluster``, ``group``, ``scores``,
            ``values``: which columns have which role, where they are not found by name.
        """
        from toptail.pools.read import pools_from_table

        return pools_from_table(as_table(table, source), source, columns)

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Unpack[Columns]) -> ScoredPools:
        """Pools from a Parquet, CSV, JSON, JSON Lines, Arrow or npz file, with its hash.

        ``columns`` name the columns as in :meth:`from_arrow`.
        """
        from toptail.pools.read import read_pools

        return read_pools(Path(path), columns)

    def to_arrow(self) -> pa.Table:
        """The long table; its metadata name scores, values and further columns."""
        parent = pa.array(np.repeat(np.arange(self.queries), self.sizes))
        columns: dict[str, Any] = {"query": self.query.take(parent)}
        if self.candidate is not None:
            columns["candidate"] = self.candidate
        columns |= {**self.scores, **self.values, **self.design}
        if self.support is not None:
            columns["support"] = self.support
        for name, labels in (("cluster", self.cluster), ("group", self.group)):
            if labels is not None:
                columns[name] = labels.take(parent)
        columns = {**self.further, **columns} if self.further else columns
        return with_roles(pa.table(columns), self.scores, self.values, self.further)

    def write(self, path: str | Path) -> None:
        """Write as Parquet, CSV, JSON, JSON Lines, Arrow or npz by the name's ending, atomically.

        Reading the file back gives an equal container. CSV and JSON do not record which
        columns are scores: name them when reading, unless the defaults find them.
        CSV has no types: text labels made of digits come back as numbers.
        """
        where = Path(path)
        kind = file_format(where)
        if kind == "npz":
            write_arrays(where, _npz_arrays(self, where))
        else:
            atomic(where, lambda target: write_table(self.to_arrow(), target, kind))


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
