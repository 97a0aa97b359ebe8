"""Tables in many Parquet files: a folder, or an address of a remote file system."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from toptail.errors import InputError, refusing
from toptail.io.tables import joined_labels, remote_advice

BATCH: Final = 1 << 17
"""Rows that are decoded together."""
_UNREADABLE: Final = "is not readable partitioned Parquet"
_TAIL: Final = 1 << 16


@dataclass(frozen=True)
class PartFile:
    """One file of the table."""

    path: str
    first: int
    """The index of its first row in the table."""
    groups: tuple[int, ...]
    """Number of rows of each of its row groups."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Columns from its folder's name, as in ``task=cube/``."""

    @property
    def rows(self) -> int:
        return sum(self.groups)


@dataclass(frozen=True)
class PartitionedTable:
    """A table in many Parquet files of one schema, in the order of their names."""

    where: str
    """The folder or address, for errors and records."""
    system: pyarrow.fs.FileSystem
    """The file system that holds the files."""
    files: tuple[PartFile, ...]
    schema: pa.Schema
    """Columns of all files, including those from folder names."""
    sha256: str
    """Hash over names, sizes and last bytes of the files; the last bytes hold Parquet's index."""
    joined: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns of joined labels -> the columns they are made of."""

    @cached_property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[str, int, pa.Table]]:
        """Rows ``start`` to ``stop`` in pieces: a name for errors, the first row, the rows."""
        end = self.rows if stop is None else stop
        stored = [part for name in columns for part in self.joined.get(name, (name,))]
        for file in self.files:
            if file.first < end and file.first + file.rows > start:
                pieces = self._of_file(
                    file, list(dict.fromkeys(stored)), start - file.first, end - file.first
                )
                for where, row, piece in pieces:
                    yield where, row, self._joined(where, piece, columns)

    def _joined(self, where: str, piece: pa.Table, columns: Sequence[str]) -> pa.Table:
        for name in (name for name in columns if name in self.joined):
            labels = joined_labels(where, {part: piece[part] for part in self.joined[name]})
            piece = piece.append_column(name, labels)
        return piece.select(list(columns))

    def read(self, columns: Sequence[str]) -> pa.Table:
        return pa.concat_tables([piece for _, _, piece in self.batches(columns)])

    def _of_file(
        self, file: PartFile, columns: Sequence[str], start: int, end: int
    ) -> Iterator[tuple[str, int, pa.Table]]:
        ends = np.cumsum(file.groups)
        begins = ends - file.groups
        groups = np.flatnonzero((begins < end) & (ends > start))
        stored = [name for name in columns if name not in file.constants]
        row = int(begins[groups[0]]) if groups.size else 0
        with (
            refusing(file.path, _UNREADABLE),
            self.system.open_input_file(file.path) as stream,
            pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False) as parquet,
        ):
            self._check(file, stored, parquet.schema_arrow)
            for batch in parquet.iter_batches(BATCH, groups.tolist(), stored):
                if row >= end:
                    return
                low, high = max(start - row, 0), min(end - row, batch.num_rows)
                if low < high:
                    piece = self._whole(file, batch.slice(low, high - low), columns)
                    yield (
                        f"{file.path} (rows from {row + low + 1} on)",
                        file.first + row + low,
                        piece,
                    )
                row += batch.num_rows

    def _check(self, file: PartFile, columns: Sequence[str], schema: pa.Schema) -> None:
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise InputError(
                f"{file.path}: there is no column '{missing[0]}', which other files of "
                f"{self.where} have; leave the file out or write it again."
            )

    def _whole(self, file: PartFile, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Table:
        """A piece with the columns from its folder's name, in the types of the whole table."""
        found = {name: batch[name] for name in batch.schema.names}
        for name in columns:
            kind = self.schema.field(name).type
            if name in file.constants:
                found[name] = pa.repeat(pa.scalar(file.constants[name], kind), batch.num_rows)
            elif found[name].type != kind:
                found[name] = found[name].cast(kind)
        return pa.table({name: found[name] for name in columns})


def open_partitioned(path: str | PathLike[str]) -> PartitionedTable:
    """List the files of a folder or an address, without reading their rows."""
    where = str(path)
    with refusing(where, _UNREADABLE, remote_advice(where)):
        system, base, paths = _listed(where)
        _check_one_split(where, paths)
        found = ds.dataset(
            paths or base,
            filesystem=system,
            format="parquet",
            partitioning="hive",
            **({"partition_base_dir": base} if paths else {}),
        )
        fragments = sorted(found.get_fragments(), key=lambda fragment: fragment.path)
        if not fragments:
            raise InputError(
                f"{where} is a folder without Parquet files; give the path of a table, or a folder "
                "of Parquet files."
            )
        digest, files, first = hashlib.sha256(), [], 0
        for fragment in fragments:
            groups = _groups(found.filesystem, fragment.path, digest)
            keys = ds.get_partition_keys(fragment.partition_expression)
            files.append(PartFile(fragment.path, first, groups, keys))
            first += files[-1].rows
        table = PartitionedTable(
            where, found.filesystem, tuple(files), found.schema, digest.hexdigest()
        )
    if table.rows == 0:
        raise InputError(f"{where}: the table has no rows.")
    return table


def _listed(where: str) -> tuple[pyarrow.fs.FileSystem, str, list[str]]:
    """The file system of a folder or address, its path there, and its Parquet files by name.

    Without any that are called so, the list is empty.
    """
    try:
        system, base = (
            pyarrow.fs.FileSystem.from_uri(where)
            if "://" in where
            else (pyarrow.fs.LocalFileSystem(), where)
        )
    except (pa.ArrowInvalid, ImportError):  # a file system that only fsspec knows
        import fsspec

        other, base = fsspec.core.url_to_fs(where)
        system = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(other))
    if system.get_file_info(base).type != pyarrow.fs.FileType.Directory:
        return system, base, []
    inside = system.get_file_info(pyarrow.fs.FileSelector(base, recursive=True))
    names = {file.path: Path(file.path).relative_to(base).parts for file in inside if file.is_file}
    return (
        system,
        base,
        sorted(
            path
            for path, parts in names.items()
            if parts[-1].endswith((".parquet", ".pq")) and not any(p[0] in "._" for p in parts)
        ),
    )


_SHARD: Final = re.compile(r"(?:^|/)([^/]+?)-\d{5}-of-\d{5}\.parquet$")
"""Hugging Face's name of a file: ``test-00000-of-00001.parquet``."""


def _check_one_split(where: str, paths: Sequence[str]) -> None:
    shards = (_SHARD.search(path) for path in paths)
    splits = sorted({shard[1] for shard in shards if shard})
    if len(splits) > 1:
        file = next(path for path in paths if f"{splits[-1]}-0" in path)
        raise InputError(
            f"{where} holds the splits {', '.join(splits)}; give the files of one, such as {file}, "
            "or a folder of its files."
        )


def _groups(system: pyarrow.fs.FileSystem, path: str, digest: Any) -> tuple[int, ...]:
    """Rows of a file's row groups; adds its name, size and last bytes to the hash."""
    with refusing(path, _UNREADABLE), system.open_input_file(path) as stream:
        size = stream.size()
        stream.seek(max(size - _TAIL, 0))
        digest.update(f"{Path(path).name} {size}\n".encode())
        digest.update(stream.read())
        stream.seek(0)
        metadata = pq.ParquetFile(stream).metadata
        return tuple(metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))
