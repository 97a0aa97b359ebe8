"""What the columns of Parquet and Arrow files take once they are unpacked, from what is declared.

Both repeat and compress: a few bytes can stand for a text that a column then holds a million times.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toptail.io.guard import check_unpacked
from toptail.stats.best_of_k import Ints

_ROWS: Final = 1 << 20
"""Rows that are looked at together; of a column that takes four bytes each."""
_MAGIC: Final = b"ARROW1"
_DICTIONARY_BATCH: Final = 2
"""The kind of an Arrow message that holds what a column's codes stand for."""


def check_parquet_texts(path: Path, file: pq.ParquetFile, columns: list[str] | None) -> None:
    """Raise where the texts of some columns unpack to too much.

    They are read as codes and what each stands for, which is how a file repeats them.
    """
    wanted = file.schema_arrow.names if columns is None else columns
    texts = [name for name in wanted if _is_text(file.schema_arrow.field(name).type)]
    if not texts:
        return
    size = 0
    coded = pq.ParquetFile(path, memory_map=True, read_dictionary=texts)
    for batch in coded.iter_batches(_ROWS, columns=texts):
        size += sum(map(_text_bytes, batch.columns))
        check_unpacked(path, size)


def check_texts(path: Path, table: pa.Table) -> None:
    """Raise where the codes of a table stand for texts that together take too much."""
    check_unpacked(path, sum(_text_bytes(p) for column in table.columns for p in column.chunks))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        is_one(kind)
        for is_one in (
            *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
            *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
        )
    )


def _text_bytes(piece: pa.Array) -> int:
    """Bytes of a column's texts, each as often as it stands there; 0 for what is no text."""
    if not _is_text(piece.type):
        return 0
    if not pa.types.is_dictionary(piece.type):
        return int(_lengths(piece).sum())
    lengths = _lengths(piece.dictionary)
    codes = piece.indices.drop_null().to_numpy(zero_copy_only=False)
    return int(np.bincount(codes, minlength=lengths.size) @ lengths)


def _lengths(texts: pa.Array) -> Ints:
    """Bytes of each text; 0 where it is missing."""
    if len(texts) == 0:
        return np.zeros(0, np.int64)
    if pa.types.is_string_view(texts.type) or pa.types.is_binary_view(texts.type):
        views = np.frombuffer(texts.buffers()[1], "<i4").reshape(-1, 4)  # the length comes first
        sizes = views[texts.offset : texts.offset + len(texts), 0].astype(np.int64)
        return np.where(texts.is_valid().to_numpy(zero_copy_only=False), sizes, 0)
    lengths: Ints = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def check_arrow(path: Path) -> None:
    """Raise where the compressed buffers of an Arrow file say that they unpack to too much."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] == data[-6:] == _MAGIC:  # else it is none, which its reader says better
            check_unpacked(path, sum(_buffers(data)))


def _buffers(data: mmap.mmap) -> Iterator[int]:
    """What each compressed buffer unpacks to, in the batches that the file's footer lists."""
    (length,) = struct.unpack_from("<i", data, len(data) - 10)
    footer = _Record.root(data, len(data) - 10 - length)
    for place in (*footer.structs(2, 24), *footer.structs(3, 24)):
        start, ahead = struct.unpack_from("<qi", data, place)
        marked = data[start : start + 4] == b"\xff\xff\xff\xff"
        message = _Record.root(data, start + (8 if marked else 4))
        batch = message.record(2)
        if message.byte(1) == _DICTIONARY_BATCH:
            batch = batch.record(1)
        if not batch.has(3):  # nothing is compressed
            continue
        for buffer in batch.structs(2, 16):
            offset, packed = struct.unpack_from("<qq", data, buffer)
            if packed:
                (size,) = struct.unpack_from("<q", data, start + ahead + offset)
                yield size if size >= 0 else packed


class _Record:
    """A record of the FlatBuffers format, in which Arrow describes its batches."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self._data, self._at = data, at
        self._names = at - struct.unpack_from("<i", data, at)[0]

    @classmethod
    def root(cls, data: mmap.mmap, at: int) -> _Record:
        """The record that a description begins with."""
        return cls(data, at + struct.unpack_from("<I", data, at)[0])

    def _place(self, field: int) -> int:
        """Where a field lies; 0 where the record does not have it."""
        (size,) = struct.unpack_from("<H", self._data, self._names)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self._data, self._names + 4 + 2 * field)
        return self._at + offset if offset else 0

    def has(self, field: int) -> bool:
        """Whether a field is there."""
        return self._place(field) > 0

    def byte(self, field: int) -> int:
        """A field of one byte."""
        return self._data[self._place(field)] if self.has(field) else 0

    def record(self, field: int) -> _Record:
        """A field that is a record itself."""
        return _Record.root(self._data, self._place(field))

    def structs(self, field: int, width: int) -> range:
        """Where the entries of a field that is a list begin."""
        if not self.has(field):
            return range(0)
        place = self._place(field)
        place += struct.unpack_from("<I", self._data, place)[0]
        (count,) = struct.unpack_from("<I", self._data, place)
        end = place + 4 + width * count
        if end > len(self._data):
            raise ValueError(f"a list of {count} entries is longer than the file")
        return range(place + 4, end, width)
