"""Queries of several columns, missing scores, several tables, pipes and remote files."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import toptail
from toptail import InputError, TableColumns
from toptail.cli import main
from toptail.pools import stream
from toptail.pools.columns import Columns, Missing
from toptail.pools.read import to_pools

nan = float("nan")


def rows(prompts: int = 40, candidates: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Answers of two policies to the same prompts; the reward follows the value."""
    rng = np.random.default_rng(seed)
    found = []
    for policy in ("a", "b"):
        for prompt in range(prompts):
            for _ in range(candidates):
                right = bool(rng.random() < 0.5)
                reward = right + float(rng.normal())
                found.append({"policy": policy, "prompt": prompt, "rm": reward, "value": right})
    return found


def lines(content: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in content)


# Queries of several columns.


def test_several_columns_make_a_query() -> None:
    joined = toptail.read(rows(), query=("policy", "prompt"), cluster="prompt", group="policy")
    assert joined.queries == 80
    assert joined.query[0].as_py() == "a/0"
    assert list(joined.scores) == ["rm"]  # the number of the prompt is no score
    assert joined.group is not None
    assert set(joined.group.to_pylist()) == {"a", "b"}
    by_hand = [{**row, "query": f"{row['policy']}/{row['prompt']}"} for row in rows()]
    same = toptail.read(by_hand, scores="rm", cluster="prompt", group="policy")
    assert joined.query.to_pylist() == same.query.to_pylist()
    assert np.array_equal(joined.scores["rm"], same.scores["rm"])


def test_labels_that_look_alike_when_joined_stay_apart() -> None:
    table = {"x": ["a/b", "a", "a\\", "a"], "y": ["c", "b/c", "/b", "\\/b"], "s": [0.0] * 4}
    pools = toptail.read({**table, "value": [1.0] * 4}, query=("x", "y"))
    assert pools.queries == 4


def test_one_name_in_a_tuple_is_one_column() -> None:
    assert toptail.read(rows(), query=("prompt",)).queries == 40


@pytest.mark.parametrize("parts", [("policy", "promt"), ("policy", "gap")])
def test_parts_of_a_query_that_cannot_be_used(parts: tuple[str, str]) -> None:
    content = [{**row, "gap": None if at == 2 else 1} for at, row in enumerate(rows())]
    message = "perhaps 'prompt'" if parts[1] == "promt" else "'gap' .* row 3"
    with pytest.raises(InputError, match=message):
        toptail.read(content, query=parts)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_the_flag_takes_columns_separated_by_commas(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows()), path)
    else:
        path.write_text(lines(rows()))
    words = ["--query", "policy,prompt", "--group", "policy", "--cluster", "prompt"]
    out = ["--resamples", "200", "--out", str(tmp_path / "out")]
    assert main(["audit", str(path), *words, *out]) == 0
    assert "80 queries" in capsys.readouterr().out
    plan = ["plan", str(path), "--labels", "100", "--out", str(tmp_path / "plan.csv")]
    assert main([*plan, "--query", "policy,prompt"]) == 0


def test_the_error_about_two_groups_of_a_query_names_the_flag() -> None:
    with pytest.raises(InputError) as refused:
        toptail.read(rows(), query="prompt", group="policy")
    said = refused.value.for_command()
    assert "--query policy,prompt and --cluster prompt" in said


# Missing scores.

GAPS = {
    "query": [0, 0, 0, 1, 1, 2, 2],
    "bm25": [1.0, None, 3.0, nan, 2.0, None, None],
    "dense": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    "value": [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
}


def read(missing: Missing | None, **columns: Any) -> toptail.ScoredPools:
    return toptail.read(pa.table(GAPS), columns=TableColumns(missing=missing, **columns))


def test_an_incomplete_column_does_not_block_the_others() -> None:
    pools = read(None)
    assert list(pools.scores) == ["dense"]
    assert pools.rows == 7
    assert "“bm25” 4 of 7" in pools.notes[0]
    assert "lowest" in pools.notes[0]


@pytest.mark.parametrize("named", [{"missing": "error"}, {"missing": None, "scores": "bm25"}])
def test_an_incomplete_column_that_was_asked_for_is_refused(named: Any) -> None:
    with pytest.raises(InputError, match=r"4 missing values in 7 rows .* missing='lowest'"):
        read(**named)


def test_the_lowest_score_is_never_preferred() -> None:
    pools = read("lowest")
    inf = np.inf
    assert pools.scores["bm25"].tolist() == [1.0, -inf, 3.0, -inf, 2.0, -inf, -inf]
    assert pools.notes == ("Missing scores count as the lowest: “bm25” 4 of 7.",)


def test_dropped_candidates_and_queries() -> None:
    pools = read("drop")
    assert pools.query.to_pylist() == [0, 1]
    assert pools.sizes.tolist() == [2, 1]
    assert pools.scores["dense"].tolist() == [1.0, 3.0, 5.0]
    assert pools.values["value"].tolist() == [0.0, 0.0, 1.0]
    assert pools.notes == ("Left out for a missing score: 4 of 7 candidates (“bm25” 4 of 7).",)


def test_rows_in_any_order_are_dropped_by_their_own_gaps() -> None:
    order = [5, 0, 3, 1, 6, 2, 4]
    table = pa.table(GAPS).take(order)
    pools = toptail.read(table, columns=TableColumns(missing="drop"))
    assert dict(zip(pools.query.to_pylist(), pools.sizes.tolist(), strict=True)) == {0: 2, 1: 1}
    assert not np.isneginf(pools.scores["bm25"]).any()


def test_nothing_left_to_drop_from() -> None:
    with pytest.raises(InputError, match="no candidate has all scores"):
        toptail.read(
            {**GAPS, "bm25": [None] * 6 + [1.0], "x": [1.0] * 6 + [None]},
            columns=TableColumns(missing="drop"),
        )


@pytest.mark.parametrize(("missing", "count"), [("lowest", 5), ("drop", 4)])
def test_arrays_have_gaps_too(missing: Missing, count: int) -> None:
    arrays = {
        "a": np.array([[1.0, nan, 3.0], [1.0, 2.0, nan]]),
        "value": np.ones((2, 3)),
        "size": np.array([3, 2]),  # the last NaN is padding
    }
    pools = to_pools(arrays, Columns(missing=missing))
    assert pools.rows == count
    assert "1 of 5" in pools.notes[0]


def test_seeds_of_an_incomplete_scorer_go_together() -> None:
    table = {**GAPS, "bm25@1": GAPS["bm25"], "bm25@2": GAPS["dense"]}
    del table["bm25"]
    assert list(toptail.read(table).scores) == ["dense"]


def test_the_command_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = [{**row, "x": None if at % 9 == 0 else 1.5} for at, row in enumerate(rows())]
    (tmp_path / "t.jsonl").write_text(lines(content))
    words = ["audit", str(tmp_path / "t.jsonl"), "--query", "policy,prompt", "--resamples", "200"]
    out = ["--out", str(tmp_path / "out")]
    assert main([*words, *out]) == 0
    assert "“x” 36 of 320" in capsys.readouterr().out
    assert main([*words, *out, "--missing", "drop"]) == 0
    assert "36 of 320 candidates" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*words, "--missing", "zero"])


def folder(path: Path, table: pa.Table) -> Path:
    path.mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), path / "0.parquet")
    pq.write_table(table.slice(half), path / "1.parquet")
    return path


@pytest.mark.parametrize("adjacent", [True, False])
def test_large_tables_join_queries_and_fill_gaps(
    adjacent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = [{**row, "rm": None if at % 9 == 0 else row["rm"]} for at, row in enumerate(rows())]
    table = pa.Table.from_pylist(content)
    if not adjacent:
        table = table.take(np.random.default_rng(1).permutation(table.num_rows))
    columns = Columns(query=("policy", "prompt"), group="policy", scores=["rm"], missing="lowest")
    path = folder(tmp_path / "t", table)
    whole = to_pools(path, columns)
    monkeypatch.setattr(stream, "IN_MEMORY", 1)
    on_disk = to_pools(path, columns, stream=True)
    assert isinstance(on_disk, stream.StreamedPools)
    assert on_disk.query.to_pylist() == whole.query.to_pylist()
    assert on_disk.group == whole.group
    assert np.array_equal(on_disk.scores["rm"], whole.scores["rm"])
    with pytest.raises(InputError, match="cannot be left out while it is read"):
        to_pools(path, {**columns, "missing": "drop"}, stream=True)


# Several tables.


def test_each_of_several_tables_is_a_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = rows()
    for policy in ("a", "b"):
        mine = [{**row, "query": row["prompt"]} for row in content if row["policy"] == policy]
        pq.write_table(pa.Table.from_pylist(mine), tmp_path / f"{policy}.parquet")
    paths = [str(tmp_path / f"{policy}.parquet") for policy in ("a", "b")]
    together = toptail.audit(paths, scores="rm", resamples=200)
    by_hand = toptail.audit(
        content,
        scores="rm",
        query=("policy", "prompt"),
        group="policy",
        cluster="prompt",
        resamples=200,
    )
    assert together.verdicts == by_hand.verdicts
    assert set(together.groups) == {"a", "b"}
    out = ["--scores", "rm", "--resamples", "200", "--out", str(tmp_path / "out")]
    assert main(["audit", *paths, *out]) == 0
    assert "80 queries" in capsys.readouterr().out


def test_several_tables_name_only_columns_that_they_have() -> None:
    """Equal queries are resampled together and each table is a group: no columns of files."""
    content = rows()
    frames = [
        pa.Table.from_pylist([row for row in content if row["policy"] == policy])
        for policy in ("a", "b")
    ]
    assert not {"cluster", "group", "table"} & set(frames[0].column_names)
    result = toptail.audit(frames, scores="rm", query="prompt", resamples=200)
    said = result.to_dict()
    assert (said["cluster_column"], said["group_column"]) == ("prompt", "table")
    assert "resampled in 40 whole clusters (column “prompt”)" in result.summary()
    named = toptail.audit(
        frames, scores="rm", query="prompt", cluster="prompt", group="prompt", resamples=200
    ).to_dict()
    assert (named["cluster_column"], named["group_column"]) == ("prompt", "prompt")


def test_tables_without_a_score_in_common_are_refused(tmp_path: Path) -> None:
    one = pa.table({"query": [1, 1], "x": [0.1, 0.2], "value": [0.0, 1.0]})
    other = one.rename_columns(["query", "y", "value"])
    with pytest.raises(InputError, match="table 1 has x; table 2 has y"):
        toptail.read([one, other])
    path = tmp_path / "t.parquet"
    pq.write_table(one, path)
    with pytest.raises(InputError, match="given twice"):
        toptail.read([path, path])


# Standard input, and files elsewhere.


def pipe(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def packed(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


CSV = "policy,prompt,rm,value\n" + "".join(
    f"{r['policy']},{r['prompt']},{r['rm']!r},{int(r['value'])}\n" for r in rows()
)


@pytest.mark.parametrize(
    "content",
    [
        lines(rows()).encode(),
        CSV.encode(),
        json.dumps(rows()).encode(),
        json.dumps(rows(), indent=1).encode(),
        packed(pa.Table.from_pylist(rows())),
    ],
    ids=["jsonl", "csv", "json", "indented", "parquet"],
)
def test_a_pipe_is_read_whatever_it_holds(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(content, monkeypatch)
    out = ["--resamples", "200", "--out", str(tmp_path / "out")]
    assert main(["audit", "-", "--query", "policy,prompt", *out]) == 0
    found = toptail.AuditResult.read(tmp_path / "out")
    assert found.queries == 80
    assert found.to_dict()["record"]["source"] == "standard input"


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n"])
def test_a_pipe_that_is_no_table_is_named(
    content: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(content, monkeypatch)
    assert main(["audit", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_files_and_folders_through_fsspec() -> None:
    system = fsspec.filesystem("memory")
    table = pa.Table.from_pylist(rows())
    with system.open("/hub/data/test-00000-of-00001.parquet", "wb") as file:
        file.write(packed(table))
    with system.open("/hub/README.md", "wb") as file:
        file.write(b"# A data set\n")
    with system.open("/text/scores.jsonl", "wb") as file:
        file.write(lines(rows()).encode())
    here = toptail.read(rows(), query=("policy", "prompt"))
    for address in (
        "memory://hub",
        "memory://hub/data/test-00000-of-00001.parquet",
        "memory://text/scores.jsonl",
    ):
        assert toptail.read(address, query=("policy", "prompt")) == here, address
    with pytest.raises(InputError, match=r"memory://text/none\.jsonl"):
        toptail.read("memory://text/none.jsonl")


def test_addresses_of_the_hub_over_a_local_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hf://`` as huggingface_hub's file system serves it, over a folder instead of the Hub."""

    class Hub(DirFileSystem):  # type: ignore[misc]
        protocol = "hf"

        def __init__(self, **options: Any) -> None:
            super().__init__(path=str(tmp_path), fs=fsspec.filesystem("file"), **options)

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("hf://").strip("/")

    monkeypatch.setitem(sys.modules["fsspec.registry"].__dict__["_registry"], "hf", Hub)
    place = tmp_path / "datasets" / "org" / "name" / "data"
    place.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows()), place / "test-00000-of-00001.parquet")
    (place.parent / "scores.jsonl").write_text(lines(rows()))
    here = toptail.read(rows(), query=("policy", "prompt"))
    for end in ("data", "data/test-00000-of-00001.parquet", "scores.jsonl"):
        address = f"hf://datasets/org/name/{end}"
        assert toptail.read(address, query=("policy", "prompt")) == here, address
    with pytest.raises(InputError, match=r"hf://datasets/org/name/none\.jsonl"):
        toptail.read("hf://datasets/org/name/none.jsonl")


def test_a_downloaded_data_set_with_a_readme_and_two_splits(tmp_path: Path) -> None:
    place = tmp_path / "hub"
    (place / "data").mkdir(parents=True)
    (place / "README.md").write_text("# A data set\n")
    table = pa.Table.from_pylist(rows())
    pq.write_table(table, place / "data" / "test-00000-of-00001.parquet")
    assert toptail.read(place, query=("policy", "prompt")).rows == table.num_rows
    pq.write_table(table, place / "data" / "train-00000-of-00001.parquet")
    with pytest.raises(InputError, match="holds the splits test, train; give the files of one"):
        toptail.read(place, query=("policy", "prompt"))


@pytest.mark.parametrize("method", ["to_arrow_table", "fetch_arrow_table"])
def test_a_query_that_duckdb_has_run_has_a_method(method: str) -> None:
    ran = type("DuckDBPyConnection", (), {method: lambda _: pa.Table.from_pylist(rows())})()
    assert toptail.read(ran, query=("policy", "prompt")).queries == 80
