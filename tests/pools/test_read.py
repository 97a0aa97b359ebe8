"""`to_pools` and `to_picks`: paths, frames of other libraries, arrays, and further columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toptail
from tests import flat
from toptail import InputError, JudgedPicks, ScoredPools, builtin_pools
from toptail.pools import stream
from toptail.pools.columns import Columns
from toptail.pools.picks import to_picks
from toptail.pools.read import to_pools

COLUMNS: dict[str, list[Any]] = {
    "prompt": ["a", "a", "a", "b", "b"],
    "rm_logit": [0.1, 0.9, 0.4, 2.0, 1.0],
    "reward": [0.0, 1.0, 0.5, 1.0, 0.0],
    "step": [1, 1, 1, 2, 2],
}
TABLE = pa.table(COLUMNS)
NAMED: Columns = {"query": "prompt", "scores": "rm_logit", "values": "reward", "group": "step"}
EXPECTED = ScoredPools.from_arrow(TABLE, **NAMED)


class Frame:
    """A data frame of which only the Arrow protocol is known (pandas, polars, DuckDB)."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._table.__arrow_c_stream__(schema)


class LazyFrame:
    """A frame that is not there until it is collected, as polars has it."""

    def collect(self) -> Frame:
        return Frame(TABLE)


class DataSet:
    """A Hugging Face data set: a stored table, and indices that say which rows were kept."""

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind
        self.column_names = TABLE.column_names
        self.data = pa.concat_tables([TABLE, TABLE])  # select() keeps the whole table

    def with_format(self, kind: str) -> DataSet:
        return DataSet(kind)

    def __getitem__(self, rows: slice) -> pa.Table:
        assert self.kind == "arrow"
        return self.data.slice(0, TABLE.num_rows)[rows]


class Splits(dict[str, DataSet]):
    """Data sets by split, which can be formatted as well."""

    def with_format(self, kind: str) -> Splits:
        return Splits({name: data.with_format(kind) for name, data in self.items()})


class Tensor:
    """An array of another library."""

    def __init__(self, data: Any) -> None:
        self._data = np.asarray(data)
        self.ndim = self._data.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._data


SOURCES: dict[str, Any] = {
    "pyarrow": TABLE,
    "record batches": TABLE.to_reader(),
    "frame": Frame(TABLE),
    "lazy frame": LazyFrame(),
    "data set": DataSet(),
    "columns": COLUMNS,
    "numpy columns": {name: np.array(column) for name, column in COLUMNS.items()},
    "tensors": {**COLUMNS, "rm_logit": Tensor(COLUMNS["rm_logit"])},
    "rows": TABLE.to_pylist(),
    "index": Frame(TABLE.append_column("__index_level_0__", pa.array(range(5)))),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_tables_of_every_kind_are_the_same_pools(kind: str) -> None:
    pools = to_pools(SOURCES[kind], NAMED)
    assert pools == EXPECTED
    assert pools.called == {"query": "prompt", "group": "step"}


@pytest.mark.parametrize("text", [pa.string_view(), pa.large_string()])
@pytest.mark.parametrize("categories", [False, True])
def test_text_as_polars_and_pandas_have_it(
    text: pa.DataType, categories: bool, tmp_path: Path
) -> None:
    label = pa.array(["a", "b"]).cast(text)
    index = pa.array([0, 0, 0, 1, 1], pa.uint32())
    if categories:
        column = pa.DictionaryArray.from_arrays(index, label)
    else:
        column = pa.array(["a", "a", "a", "b", "b"]).cast(text)
    frame = Frame(TABLE.set_column(0, "prompt", column).set_column(3, "step", column))
    pools = to_pools(frame, NAMED)
    assert pools.query.to_pylist() == ["a", "b"]
    assert pools.group is not None
    assert pools.group.to_pylist() == ["a", "b"]
    for ending in ("parquet", "npz", "arrow"):
        pools.write(tmp_path / f"t.{ending}")
        assert ScoredPools.read(tmp_path / f"t.{ending}").group.to_pylist() == ["a", "b"]  # type: ignore[union-attr]
    assert to_picks({"query": column, "selector": list("abcab"), "value": [0.0] * 5}, {}).query


def test_an_index_without_a_name_is_no_score() -> None:
    frame = Frame(TABLE.append_column("__index_level_0__", pa.array(range(5))))
    pools = to_pools(frame, {"query": "prompt", "values": "reward"})
    assert list(pools.scores) == ["rm_logit"]
    assert pools.skipped == {"step": "named like an index"}  # of the user's, and said


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_paths_and_pools(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    EXPECTED.write(path)
    named: Columns = {"scores": "rm_logit", "values": "reward"}
    for given in (path, str(path)):
        assert to_pools(given, named).values["reward"].tolist() == COLUMNS["reward"]
    assert to_pools(EXPECTED, {}) is EXPECTED


def test_rows_need_not_all_have_the_same_columns() -> None:
    rows = [{"query": 1, "s": 1.0, "value": 0}, {"query": 1, "value": 1, "s": 2.0, "cluster": 3}]
    with pytest.raises(InputError, match="'cluster' is missing in row 1"):
        to_pools(rows, {})
    lists = [{"scores": [1.0, 2.0], "correct": [0, 1]}, {"correct": [1], "scores": np.ones(1)}]
    assert to_pools(lists, {}).sizes.tolist() == [2, 1]


@pytest.mark.parametrize("array", [np.asarray, Tensor])
def test_arrays_of_two_dimensions_are_queries_by_candidates(array: Any) -> None:
    score = [[1.0, 2.0], [3.0, 4.0]]
    data = {
        "mine": array(score),
        "judge": array(score),
        "kind": ["x", "y"],
        "mask": array([[1, 0]] * 2),
    }
    pools = to_pools(data, {"values": "judge", "group": "kind", "support": "mask"})
    assert list(pools.scores) == ["mine"]
    assert pools.group is not None
    assert pools.group.to_pylist() == ["x", "y"]
    assert pools.support is not None
    assert pools.support.tolist() == [True, False, True, False]
    assert pools.called == {"group": "kind", "support": "mask"}


def test_npz_files_take_the_same_names(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, mine=np.eye(2), value=np.eye(2), kind=np.array(["x", "y"]))
    pools = ScoredPools.read(path, group="kind")
    assert pools.group is not None
    assert pools.group.to_pylist() == ["x", "y"]
    with pytest.raises(InputError, match="no column 'sort' to use as group"):
        ScoredPools.read(path, group="sort")


def test_one_column_may_play_two_parts() -> None:
    pools = to_pools(TABLE, {**NAMED, "cluster": "step"})
    assert pools.group is not None
    assert pools.cluster is not None
    assert pools.cluster.equals(pools.group)


BAD: dict[str, tuple[Any, str]] = {
    "a number": (7, "table: cannot be read as a table"),
    "nothing": (None, "table: cannot be read as a table"),
    "no rows": ([], "no rows|no value column"),
    "columns of different length": ({"query": [1], "s": [1.0, 2.0], "value": [1]}, "as a table"),
    "splits": (Splits(train=DataSet(), test=DataSet()), "several tables, of which one is needed"),
    "mixed rows": ([{"query": 1}, 3], "cannot be read as a table"),
    "mixed types": ([{"query": 1, "s": "a"}, {"query": 1, "s": 2}], "cannot be read as a table"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_table_is_refused_in_one_sentence(what: str) -> None:
    data, message = BAD[what]
    with pytest.raises(InputError, match=message) as refused:
        flat.audit(data)
    assert "\n" not in str(refused.value)


def test_a_role_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="no role 'groups'"):
        ScoredPools.from_arrow(TABLE, groups="step")  # type: ignore[call-arg]


def test_pools_know_their_columns_except_which_scores_to_audit() -> None:
    pools = builtin_pools(4, 3)
    assert list(to_pools(pools, {"scores": "noisy"}).scores) == ["noisy"]
    with pytest.raises(InputError, match="group='step' names a column of a table"):
        flat.audit(pools, group="step")


def test_one_array_of_scores_needs_no_name() -> None:
    assert ScoredPools.from_arrays([[1.0, 2.0]], [[0.0, 1.0]]).scorers == {"score": {None: "score"}}


FURTHER: dict[str, list[Any]] = {"density": [5, 4, 3, 2, 1], "answer": ["x", "y", "x", "z", "z"]}


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz"])
def test_further_columns_stay_with_their_candidates_and_in_files(
    ending: str, tmp_path: Path
) -> None:
    columns = {name: [column[at] for at in (3, 0, 1, 4, 2)] for name, column in COLUMNS.items()}
    mixed = {**columns, **{name: [c[at] for at in (3, 0, 1, 4, 2)] for name, c in FURTHER.items()}}
    pools = to_pools(mixed, {**NAMED, "further": ["density", "answer", "not there"]})
    assert {name: c.to_pylist() for name, c in pools.further.items()} == {
        "density": [2, 1, 5, 4, 3],
        "answer": ["z", "z", "x", "y", "x"],
    }
    path = tmp_path / f"t.{ending}"
    pools.write(path)
    assert ScoredPools.read(path) == pools
    last = pools.select(np.array([False, True]))
    assert last.further["answer"].to_pylist() == ["x", "y", "x"]


def test_further_columns_in_lists_and_arrays() -> None:
    lists = [{"rm": [1.0, 2.0], "value": [0, 1], "answer": ["a", "b"], "level": "easy"}]
    further = to_pools(lists, {"further": ["answer", "level"]}).further
    assert {name: c.to_pylist() for name, c in further.items()} == {
        "answer": ["a", "b"],
        "level": ["easy", "easy"],
    }
    arrays = {"rm": np.eye(2), "value": np.eye(2), "answer": np.array([["a", "b"], ["c", "d"]])}
    arrays["size"] = np.array([2, 1])
    assert to_pools(arrays, {"further": ["answer"]}).further["answer"].to_pylist() == [
        "a",
        "b",
        "c",
    ]


def test_further_columns_have_no_gaps() -> None:
    with pytest.raises(InputError, match=r"'answer' has 1 missing value .* row 2"):
        to_pools(
            {**COLUMNS, "answer": ["a", None, "b", "c", "d"]}, {**NAMED, "further": ["answer"]}
        )


@pytest.mark.parametrize("ordered", [True, False])
def test_further_columns_of_a_table_on_disk(
    ordered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "IN_MEMORY", 0)
    table = pa.table(
        {"query": np.repeat(range(4), 5), "rm": np.arange(20) / 7, "value": [0, 1] * 10}
    )
    table = table.append_column("answer", pa.array([str(i % 3) for i in range(20)]))
    if not ordered:
        table = table.take(np.random.default_rng(0).permutation(20))
    (tmp_path / "t").mkdir()
    for at in range(2):
        pq.write_table(table.slice(10 * at, 10), tmp_path / "t" / f"{at}.parquet")
    columns: Columns = {"further": ["answer"], "scores": "rm"}
    whole, streamed = (to_pools(tmp_path / "t", columns, stream=on) for on in (False, True))
    assert isinstance(streamed, stream.StreamedPools)
    for keep in (np.ones(4, bool), np.array([True, False, True, True])):
        one, other = (pools.select(keep).further["answer"] for pools in (whole, streamed))
        assert one.to_pylist() == other.to_pylist()


def test_picks_of_every_kind() -> None:
    rows = [{"query": 1, "selector": name, "value": 1.0} for name in "ab"]
    expected = JudgedPicks.from_arrow(pa.Table.from_pylist(rows))
    assert to_picks(rows, {}) == to_picks(Frame(pa.Table.from_pylist(rows)), {}) == expected
    assert to_picks(expected, {}) is expected
    with pytest.raises(InputError, match="cluster='step' names a column of a table, and these are"):
        toptail.audit_picks(expected, cluster="step")


def test_picks_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "picks.csv"
    path.write_text("query,selector,value\n1,a,1\n1,b,0\n")
    assert to_picks(path, {}) == to_picks(str(path), {}) == JudgedPicks.read(path)
