"""Bad input: one sentence that names file, column and row; exit code 2; nothing half-written."""

from __future__ import annotations

import json
import pickle
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toptail import InputError, JudgedPicks, ScoredPools, builtin_pools
from toptail.cli import main

Write = Callable[[Path], Path]


def parquet(**columns: object) -> Write:
    def write(folder: Path) -> Path:
        path = folder / "t.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


def text(name: str, content: str | bytes) -> Write:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def npz(**arrays: np.ndarray) -> Write:
    def write(folder: Path) -> Path:
        path = folder / "t.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path

    return write


def twice(folder: Path) -> Path:
    path = folder / "t.parquet"
    table = pa.table([[1], [1.0], [2.0], [0.0]], names=["query", "s", "s", "value"])
    pq.write_table(table, path)
    return path


def truncated(folder: Path) -> Path:
    path = folder / "t.parquet"
    builtin_pools(5, 4).write(path)
    path.write_bytes(path.read_bytes()[:-200])
    return path


ok = {"query": [1, 1, 2, 2], "s": [1.0, 2.0, 3.0, 4.0], "value": [0.0, 1.0, 0.0, 1.0]}

nan, inf = float("nan"), float("inf")

CASES: dict[str, tuple[Any, ...]] = {
    # case: (writer, extra arguments, what the sentence must name, ...)
    "no such file": (lambda folder: folder / "none.parquet", "", "none.parquet", "not exist"),
    "a folder": (lambda folder: folder, "", "is a folder"),
    "unknown type": (text("t.xlsx", "x"), "", ".xlsx", ".parquet"),
    "empty file": (text("t.csv", ""), "", "t.csv", "empty"),
    "header only": (text("t.csv", "query,s,value\n"), "", "t.csv", "no rows"),
    "truncated parquet": (truncated, "", "t.parquet", "truncated"),
    "text called parquet": (text("t.parquet", "query,s\n1,2\n"), "", "not a readable Par"),
    "broken json": (text("t.jsonl", '{"query": 1, "s": \n'), "", "not a readable JSON Lines"),
    "no value column": (parquet(query=[1], s=[1.0]), "", "no value column", "--values"),
    "neither value nor query": (parquet(prompt=["a", "a"], rm=[1.0, 2.0], is_correct=[0, 1]), "",
        "no value column and no query column",
        "perhaps --values is_correct --query prompt (columns: prompt, rm, is_correct)"),
    "value and query that have near names": (
        parquet(qestion_id=["a", "a"], pred_ok=[0, 1], rm=[1.0, 2.0]), "",
        "perhaps --values pred_ok --query qestion_id"),
    "query under another name": (
        parquet(prompt_id=[1, 1], rm=[1.0, 2.0], value=[0, 1], policy=["x", "x"]), "--group policy",
        "no query column", "perhaps --query prompt_id (columns: prompt_id, rm, value, policy)"),
    "misspelt score": (parquet(**ok), "--scores S", "no score column 'S'", "'s' is meant"),
    "misspelt group": (parquet(**ok, policy=["a"] * 4), "--group polices", "no column 'polices'",
        "'policy' is meant"),
    "no score column": (parquet(query=[1], value=[1.0]), "", "no score column", "--scores"),
    "unknown score": (parquet(**ok), "--scores t", "no score column 't'", "s, value"),
    "score is value": (parquet(**ok), "--scores s --values s", "'s'", "both"),
    "two values": (parquet(**ok, value_b=ok["value"]), "", "several value columns", "--replicates"),
    "duplicate columns": (twice, "", "column 's' appears twice"),
    "duplicate rows": (parquet(**ok, candidate=["a", "b", "a", "a"]), "", "t.parquet", "row 4",
        "candidate 'a'"),
    "infinite score": (parquet(**(ok | {"s": [1.0, 2.0, inf, 1.0]})), "", "'s'", "inf", "row 3",
        "or -inf for the lowest"),
    "missing scores of several scorers": (
        parquet(**ok, bm25=[None, 1.0, None, 2.0], splade=[1.0, nan, 2.0, 3.0], rrf=[1.0] * 4),
        "--missing error", "column 'bm25' has 2 missing values in 4 rows (the first in row 1)",
        "column 'splade' has 1 missing value in 4 rows (the first in row 2)", "-inf",
        "not retrieved", "--scores s,rrf"),
    "missing scores of the only scorer": (parquet(**(ok | {"s": [1.0, None, None, 4.0]})), "",
        "column 's' has 2 missing values in 4 rows (the first in row 2)", "-inf"),
    "npz with missing scores": (
        npz(a=np.array([[1.0, nan, nan]]), b=np.ones((1, 3)), value=np.ones((1, 3))),
        "--missing error", "column 'a' has 2 missing values in 3 entries (the first in entry 2)",
        "--scores b"),
    "missing query": (parquet(**(ok | {"query": [1, 1, None, 2]})), "", "'query'", "missing",
        "row 3"),
    "text score": (text("t.csv", "query,s,b,value\n1,0.5,1,1\n1,high,0,0\n1,0.7,0,0\n"), "",
        "t.csv", "'s'", "row 2", "'high'"),
    "numbers stored as text": (parquet(**(ok | {"s": ["1", "2", "3", "4"]})), "--scores s", "'s'",
        "'1' as text"),
    "decimal commas": (text("t.csv", "query;s;value\n1;0,5;1\n1;1,25;0\n"), "", "t.csv", "'s'",
        "row 1", "'0,5' with a decimal comma", "a decimal point"),
    "json lines of null": (text("t.jsonl", 'null\n{"query": 1}\n'), "", "one object on each"),
    "names that are no text": (text("t.csv", b"query,s\xfe,value\n1,2,3\n"), "", "t.csv",
        "not a readable"),
    "json of a number": (text("t.json", "7"), "", "t.json", "list of objects"),
    "json without end": (text("t.json", "[" * 200_000), "", "t.json", "JSON"),
    "json of columns that do not fit": (
        text("t.json", '{"query": {"0": 1}, "s": {"1": 1.0}, "value": {"0": 1}}'), "", "t.json",
        "same rows"),
    "json of mixed types": (
        text("t.json", '[{"query": 1, "s": 1, "value": 1}, {"query": 1, "s": "a", "value": 0}]'),
        "", "t.json", "as a table"),
    "text called gz": (text("t.csv.gz", "query,s,value\n1,2,3\n"), "", "not a readable CSV"),
    "packed parquet": (text("t.parquet.gz", "x"), "", ".parquet.gz", "unknown file type"),
    "only what is no score": (parquet(query=[1, 1], n_tokens=[3, 4], value=[0, 1]), "",
        "'n_tokens' (named like a length) was left out", "--scores"),
    "group of one's own name": (parquet(**ok, policy=["a", "b", "c", "c"]), "--group policy",
        "column 'policy' must be the same", "row 2", "--query policy,query", "--cluster query",
        "or leave out --group"),
    "cluster of one's own name": (parquet(**ok, document=["a", "a", None, "c"]),
        "--cluster document", "'document' is missing in row 3"),
    "list of one's own name": (parquet(scores=[[1.0, 2.0]], correct=[[1, 0]], document=[["a"]]),
        "--cluster document", "the list 'document' has 1 entries"),
    "support neither true nor false": (parquet(**ok, support=[1, 0, 2, 1]), "", "'support'",
        "row 3", "0/1"),
    "cluster changes inside a query": (parquet(**ok, cluster=["a", "b", "c", "c"]), "", "'cluster'",
        "row 2"),
    "k larger than a pool": (parquet(**ok), "--k 1,2,4", "K = 4", "'1'", "2 candidates"),
    "k in words": (parquet(**ok), "--k 1,two", "--k", "1,two"),
    "only single candidates": (parquet(query=[1, 2], s=[1.0, 2.0], value=[1.0, 2.0]), "",
        "every pool has one candidate"),
    "lists of different length": (parquet(scores=[[1.0, 2.0], [1.0]], correct=[[1, 0], [1, 0]]), "",
        "row 2", "'correct'", "2", "1"),
    "empty list": (parquet(scores=[[1.0], []], correct=[[1], []]), "", "row 2", "empty"),
    "lists beside numbers": (parquet(scores=[[1.0]], value=[1.0]), "", "'value'", "all be lists"),
    "nan in a list": (text("t.jsonl", '{"scores": [1, null], "correct": [1, 0]}\n'), "", "'scores'",
        "missing", "row 2"),
    "pickled npz": (npz(s=np.array([[object()]]), value=np.ones((1, 1))), "", "t.npz", "pickled"),
    "pickle called npz": (text("t.npz", pickle.dumps({"s": 1})), "", "t.npz"),
    "npz of two shapes": (npz(s=np.ones((2, 3)), value=np.ones((2, 2))), "", "'s'", "(2, 3)"),
    "npz of text": (npz(s=np.array([["a", "b"]]), value=np.ones((1, 2))), "--scores s", "'s'",
        "numbers"),
    "values too large to average": (parquet(**(ok | {"value": [1e300, 0.0, 0.0, 0.0]})), "",
        "1e+300", "rescale"),
    "unknown status": (parquet(**ok), "--fail-on bad", "--fail-on", "'bad'"),
    "no status": (parquet(**ok), "--scores s --fail-on ''", "'' is not"),
    "a comma alone": (parquet(**ok), "--scores s --fail-on ,", "'' is not"),
    "one status empty": (parquet(**ok), "--scores s --fail-on unsafe --fail-on ''", "'' is not"),
    "a check of nobody": (parquet(**ok), "--fail-on unsafe", "which scorers", "--scores"),
    "empty scorers to check": (parquet(**ok), "--scores '' --fail-on unsafe", "which scorers",
        "--scores"),
    "level out of range": (parquet(**ok), "--level 95", "--level", "95"),
    "damaged roles": (lambda folder: _with_metadata(folder, b"{not json"), "", "t.parquet",
        "metadata"),
}  # fmt: skip


def _with_metadata(folder: Path, roles: bytes) -> Path:
    path = folder / "t.parquet"
    pq.write_table(pa.table(ok).replace_schema_metadata({b"toptail": roles}), path)
    return path


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_exit_2_and_no_folder(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, extra, *named = CASES[case]
    path = write(tmp_path)
    before = sorted(tmp_path.iterdir())
    code = main(["audit", str(path), *shlex.split(extra), "--out", str(tmp_path / "out")])
    captured = capsys.readouterr()
    assert code == 2, captured
    message = captured.err.strip()
    assert message.count("\n") == 0
    assert "Traceback" not in message
    for part in named:
        assert part in message
    assert captured.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_good_input_passes_the_same_path(tmp_path: Path) -> None:
    path = parquet(**ok)(tmp_path)
    assert main(["audit", str(path), "--out", str(tmp_path / "out"), "--resamples", "100"]) == 0


def test_a_file_in_the_way_of_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = parquet(**ok)(tmp_path)
    taken = tmp_path / "out"
    taken.write_text("mine")
    assert main(["audit", str(path), "--out", str(taken)]) == 2
    assert "is a file" in capsys.readouterr().err
    assert taken.read_text() == "mine"


def test_no_table_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 2
    assert "--picks" in capsys.readouterr().err


def test_a_data_set_of_the_hub(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "hf://datasets/x/y"]) == 2
    said = capsys.readouterr().err
    assert "hf download x/y --repo-type dataset --local-dir FOLDER" in said


@pytest.mark.parametrize("command", ["audit", "choose", "plan"])
def test_tables_on_both_sides_of_a_flag(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(parquet(**ok)(tmp_path))
    with pytest.raises(SystemExit) as refused:
        main([command, path, "--seed", "1", path])
    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert f"toptail: '{command}': tables stand side by side" in said
    assert ("--baseline" in said) == (command == "audit")


def test_a_number_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(parquet(**ok)(tmp_path))
    for flag, word, expected in (("--rho", "10%", "0.1"), ("--min-pool", "4.5", "64")):
        with pytest.raises(SystemExit) as refused:
            main(["audit", path, flag, word])
        assert refused.value.code == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert f"such as {expected}, not '{word}'" in said
        assert "NoneType" not in said


PICKS = {"query": [1, 1], "selector": ["a", "b"], "value": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"query": [1], "value": [1.0]}, ["'selector'"]),
        (PICKS | {"value": [0.0, float("nan")]}, ["'value'", "row 2"]),
        (PICKS | {"selector": ["a", "a"]}, ["row 2", "replicate"]),
        (PICKS | {"selector": ["a", None]}, ["'selector'", "row 2"]),
        ({"query": [1, 2], "selector": ["a", "a"], "value": [0.0, 1.0]}, ["'a'", "needs two"]),
    ],
)
def test_bad_picks(
    columns: dict[str, object], named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = parquet(**columns)(tmp_path)
    assert main(["audit", "--picks", str(path), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert all(part in message for part in named), message
    assert not (tmp_path / "out").exists()


def _seed_files(folder: Path) -> list[Path]:
    pools = builtin_pools(3, 4)
    endings = ("parquet", "csv", "jsonl", "json", "arrow", "npz", "csv.gz")
    paths = [folder / f"seed.{ending}" for ending in endings]
    for path in paths:
        pools.write(path)
    log = folder / "lists.jsonl"
    log.write_text(json.dumps({"scores": [1, 2.5], "correct": [True, False]}) + "\n")
    return [*paths, log]


def test_damaged_files_are_refused_or_read_never_worse(tmp_path: Path) -> None:
    """Flip, cut and repeat bytes of good files: either pools or an InputError comes back."""
    rng = random.Random(0)
    refused = 0
    for path in _seed_files(tmp_path):
        good = path.read_bytes()
        for _ in range(60):
            data = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(data))
                action = rng.randrange(4)
                if action == 0:
                    data[at] = rng.randrange(256)
                elif action == 1:
                    del data[at : at + rng.randint(1, 40)]
                elif action == 2:
                    data[at:at] = data[max(0, at - rng.randint(1, 40)) : at]
                else:
                    data[at:at] = rng.choice([b",", b"\n", b'"', b"nan", b"\x00", b"[]", b"1e999"])
                if not data:
                    break
            damaged = path.with_name(f"damaged{''.join(path.suffixes)}")
            damaged.write_bytes(data)
            for read in (ScoredPools.read, JudgedPicks.read):
                try:
                    read(damaged)
                except InputError:
                    refused += 1
    assert refused > 300
