"""Repeated texts and compressed columns: looked at before there is room made for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from toptail.io.guard import MOST

from toptail import ScoredPools
from toptail.errors import InputError
from toptail.io import unpacked
from toptail.io.tables import read_table

CORPUS = Path(__file__).parents[1] / "attack" / "corpus"
ROWS = 3_000
LONG = "long " * 2_000
"""A text that makes 30 MB of a column of which the file is some kilobytes."""


def codes(kind: pa.DataType) -> pa.Table:
    """A table whose queries are few long texts, each standing there a thousand times."""
    texts = pa.array([f"{LONG}{n}" for n in range(3)], kind)
    query = pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS, dtype=np.int32) % 3), texts)
    numbers = np.arange(ROWS) % 7 / 7
    return pa.table({"query": query, "score": numbers, "value": numbers})


def plain_parquet(path: Path) -> None:
    pq.write_table(codes(pa.string()), path, store_schema=False)


def categories_parquet(path: Path) -> None:
    pq.write_table(codes(pa.large_string()), path)


def arrow_of_categories(path: Path) -> None:
    feather.write_feather(codes(pa.string()), path, compression="uncompressed")


def arrow_of_views(path: Path) -> None:
    table = codes(pa.string())
    buffers = [None, None, pa.py_buffer(LONG.encode())]
    view = np.zeros(ROWS, [("size", "<i4"), ("begins", "S4"), ("buffer", "<i4"), ("at", "<i4")])
    view["size"], view["begins"] = len(LONG), LONG[:4].encode()
    buffers[1] = pa.py_buffer(view.tobytes())
    query = pa.Array.from_buffers(pa.string_view(), ROWS, buffers)
    table = table.set_column(0, "query", query)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def compressed_arrow(kind: str) -> Callable[[Path], None]:
    """Numbers that are all the same."""
    columns = {name: np.zeros(2_000_000) for name in ("query", "score", "value")}
    return lambda path: feather.write_feather(pa.table(columns), path, compression=kind)


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "plain": (".parquet", plain_parquet),
    "categories": (".parquet", categories_parquet),
    "categories of Arrow": (".arrow", arrow_of_categories),
    "views of Arrow": (".arrow", arrow_of_views),
    "lz4": (".feather", compressed_arrow("lz4")),
    "zstd": (".arrow", compressed_arrow("zstd")),
}


def bomb(name: str, folder: Path) -> Path:
    ending, write = BOMBS[name]
    write(path := folder / f"bomb{ending}")
    return path


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much_is_refused_unless_allowed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bomb(name, tmp_path)
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr("toptail.io.guard._UNSUSPECTED", 2_000_000)
    monkeypatch.setattr("toptail.io.guard._RATIO", 2)
    with pytest.raises(InputError, match=r"unpacks to 0\.0 GB .*--max-gb"):
        ScoredPools.read(path)
    monkeypatch.setenv(MOST, "0.1")
    assert sum(ScoredPools.read(path).sizes) in (ROWS, 2_000_000)


@pytest.mark.parametrize("name", ["plain", "lz4", "zstd"])
def test_the_reader_is_not_asked_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is the refusal before the columns are made."""
    path = bomb(name, tmp_path)
    monkeypatch.setenv(MOST, "0.002")

    def read(*_: object, **__: object) -> pa.Table:
        pytest.fail("the columns were made")

    monkeypatch.setattr(feather, "read_table", read)
    monkeypatch.setattr(pq.ParquetFile, "read", read)
    with pytest.raises(InputError, match="--max-gb"):
        read_table(path)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_sound_arrow_file_says_what_it_takes(
    compression: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many batches, categories, missing entries, lists and texts: read as they were written."""
    rows = 64
    table = pa.table(
        {
            "query": pa.array([f"q{n % 5}" for n in range(rows)]).dictionary_encode(),
            "note": pa.array([None if n % 3 else "x" * n for n in range(rows)]),
            "lists": pa.array([[n] * (n % 4) for n in range(rows)]),
            "score": np.random.default_rng(0).random(rows),
        }
    )
    path = tmp_path / "a.arrow"
    feather.write_feather(table, path, compression=compression, chunksize=chunk)
    told: list[float] = []
    monkeypatch.setattr("toptail.io.unpacked.check_unpacked", lambda _path, size: told.append(size))
    assert read_table(path).equals(table)
    declared = told[0]
    assert declared == 0 if compression == "uncompressed" else declared > table.nbytes / 2


def test_two_columns_of_one_name_are_still_said(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["query", "query"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="'query' appears twice"):
        read_table(tmp_path / "a.parquet")


def test_missing_texts_take_nothing() -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        texts = pa.array(["a" * 20, None, "bc", None, "d" * 30], kind)
        assert unpacked._text_bytes(texts) == 52
        assert unpacked._text_bytes(texts[1:4]) == 2
        assert unpacked._text_bytes(texts[:0]) == 0
    coded = pa.array(["a", None, "bc", "a", None]).dictionary_encode()
    assert unpacked._text_bytes(coded) == 4
    assert unpacked._text_bytes(coded[2:]) == 3
    assert unpacked._text_bytes(pa.array([1, 2])) == 0


def test_a_list_that_no_file_of_that_size_holds_is_not_walked() -> None:
    """Its footer says that billions of batches follow."""
    path = CORPUS / "table-arrow--list-longer-than-the-file.arrow"
    with pytest.raises(InputError, match=r"a list of \d+ entries is longer than the file"):
        read_table(path)
