"""A table that is read as a stream gives the audit of the same table in memory, bit for bit."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.flat import audit
from tests.quick import quick
from toptail import InputError
from toptail.pools.stream import StreamedPools


def table(seed: int = 0, queries: int = 60, *, binary: bool = False) -> pa.Table:
    """Pools of several sizes, with everything that a table can have."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 5, 6, 8, 8, 8], queries)
    sizes[:3] = 8
    rows = int(sizes.sum())
    query = np.repeat(np.arange(queries), sizes)
    value = rng.normal(size=rows) + 0.3 * query % 3
    value = (value > 0.2).astype(float) if binary else value
    noisy = np.round(value + rng.normal(size=rows), 1)
    noisy[rng.random(rows) < 0.02] = -np.inf
    return pa.table(
        {
            "query": [f"q{q}" for q in query],
            "candidate": np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes),
            "score_a@1": value + rng.normal(size=rows),
            "score_a@2": value + rng.normal(size=rows),
            "score_b": noisy,
            "score_c": np.zeros(rows),
            "value": value,
            "again": value + 0.1 * rng.normal(size=rows),
            "support": rng.random(rows) < 0.7,
            "cluster": query // 2,
            "group": pa.array([f"g{q % 3}" for q in query]),
        }
    )


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large, and is worked on in small pieces."""
    monkeypatch.setattr("toptail.pools.stream.IN_MEMORY", 0)
    monkeypatch.setattr("toptail.pools.scored.SEGMENT", 90)
    monkeypatch.setattr("toptail.io.partitioned.BATCH", 37)
    monkeypatch.setattr("toptail.pools.stream._PART", 64)
    monkeypatch.setattr(import_module("toptail.audit.per_query"), "_SORTED", 50)


def written(folder: Path, data: pa.Table, files: int = 4) -> Path:
    """The table in several files with small row groups."""
    folder.mkdir()
    cuts = np.linspace(0, data.num_rows, files + 1).astype(int)
    for at, (a, b) in enumerate(pairwise(cuts)):
        pq.write_table(data.slice(a, b - a), folder / f"part-{at}.parquet", row_group_size=50)
    return folder


def content(data: Any, **settings: Any) -> dict[str, Any]:
    """An audit without the record of where it came from."""
    found = audit(data, resamples=100, **settings).to_dict()
    return {name: part for name, part in found.items() if name != "record"}


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "own": {"unit": "query"},
    "replicates": {"replicates": ["value", "again"]},
    "range": {"value_range": (-20.0, 20.0)},
    "pools": {"min_pool": 6, "k": [3]},
}


@pytest.mark.parametrize("order", quick(["in order", "shuffled"], ["shuffled"]))
@pytest.mark.parametrize("name", SETTINGS)
def test_a_stream_gives_the_same_bits(tmp_path: Path, name: str, order: str) -> None:
    data = table()
    if order == "shuffled":
        data = data.take(pa.array(np.random.default_rng(1).permutation(data.num_rows)))
    settings = {"values": "value", **SETTINGS[name]}
    if "replicates" in settings:
        del settings["values"]
    assert content(written(tmp_path / "t", data), **settings) == content(data, **settings)


@pytest.mark.parametrize("order", quick(["in order", "shuffled"], ["shuffled"]))
def test_binary_values_give_the_same_bits(tmp_path: Path, order: str) -> None:
    data = table(binary=True)
    if order == "shuffled":
        data = data.take(pa.array(np.random.default_rng(1).permutation(data.num_rows)))
    streamed = content(written(tmp_path / "t", data), values="value")
    assert streamed == content(data, values="value")
    assert streamed["scorers"]["score_b"]["auc"] is not None


def test_an_auc_of_several_segments_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(binary=True)
    several = content(data, values="value")["scorers"]
    monkeypatch.setattr("toptail.pools.scored.SEGMENT", 1 << 24)
    for name, one in content(data, values="value")["scorers"].items():
        for end in ("auc", "auc_low", "auc_high"):
            assert several[name][end] == pytest.approx(one[end], abs=1e-12)


def test_lists_and_folder_names_are_columns_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=(40, 8))
    lists = {"score": (value + rng.normal(size=value.shape)).tolist(), "value": value.tolist()}
    data = pa.table({**lists, "group": ["a"] * 20 + ["b"] * 20})
    for at, name in enumerate("ab"):
        folder = tmp_path / "t" / f"group={name}"
        folder.mkdir(parents=True)
        pq.write_table(data.slice(20 * at, 20).drop_columns(["group"]), folder / "part.parquet")
    assert content(tmp_path / "t") == content(data)


def test_a_small_folder_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "t", table())
    assert isinstance(read(folder), StreamedPools)
    monkeypatch.setattr("toptail.pools.stream.IN_MEMORY", 1 << 27)
    assert not isinstance(read(folder), StreamedPools)
    assert content(folder, values="value") == content(table(), values="value")


def read(folder: Path) -> Any:
    """The pools of a folder."""
    from toptail.pools.read import to_pools

    return to_pools(folder, {}, stream=True)


def test_whole_columns_of_a_stream_can_be_asked_for(tmp_path: Path) -> None:
    data = table()
    pools = read(written(tmp_path / "t", data))
    assert np.array_equal(pools.scores["score_b"], data["score_b"].to_numpy())
    assert list(pools.values) == ["value"]
    with pytest.raises(KeyError):
        pools.scores["value"]


def changed(data: pa.Table, name: str, row: int, entry: Any) -> pa.Table:
    """The table with one entry of a column put in."""
    entries = data[name].to_pylist()
    entries[row] = entry
    return data.set_column(data.column_names.index(name), name, pa.array(entries))


@pytest.mark.parametrize(
    ("name", "row", "entry", "said"),
    [
        (
            "score_b",
            200,
            float("nan"),
            r"2.parquet \(rows from 12 on\).* holds nan in row 10",
        ),
        ("value", 3, None, "every candidate was judged"),
        ("candidate", 1, 0, "repeats candidate '0'"),
        ("cluster", 2, 59, "'cluster' must be the same"),
        ("query", 2, None, "'query' is missing"),
        ("support", 2, None, "'support' has 1 missing value"),
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path: Path, name: str, row: int, entry: Any, said: str
) -> None:
    folder = written(tmp_path / "t", changed(table(), name, row, entry))
    with pytest.raises(InputError, match=said):
        content(folder, values="value")


def test_a_repeated_candidate_is_found_in_any_order(tmp_path: Path) -> None:
    data = changed(table(), "candidate", 1, 0)
    data = data.take(pa.array(np.random.default_rng(1).permutation(data.num_rows)))
    with pytest.raises(InputError, match="repeats candidate '0'"):
        content(written(tmp_path / "t", data), values="value")


def test_what_needs_a_table_in_memory_is_refused(tmp_path: Path) -> None:
    data = table().append_column("p_judged", pa.array(np.full(table().num_rows, 0.5)))
    with pytest.raises(InputError, match="every candidate was judged"):
        content(written(tmp_path / "a", data), values="value")
    plain = table().select(["query", "value"])
    whole = plain.append_column("quality", pa.array(np.arange(plain.num_rows) % 7))
    with pytest.raises(InputError, match="name the scores"):
        content(written(tmp_path / "b", whole))


def test_files_must_have_the_same_columns(tmp_path: Path) -> None:
    folder = written(tmp_path / "t", table())
    pq.write_table(table().drop_columns(["score_b"]), folder / "part-9.parquet")
    with pytest.raises(InputError, match=r"part-9.parquet: there is no column 'score_b'"):
        content(folder, values="value")


@pytest.mark.parametrize("files", [[], ["a.parquet"]])
def test_a_folder_without_tables_is_refused(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match="Parquet"):
        audit(tmp_path)


def test_an_address_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(InputError, match="nowhere://x is not readable"):
        audit("nowhere://x")
