"""Answers that are digits: text in the file is no score, and what was left out is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import toptail
from toptail.cli import main
from toptail.errors import InputError
from toptail.pools import ScoredPools


def rows(answers: list[Any], **more: list[Any]) -> dict[str, list[Any]]:
    """Fifty prompts with two answers each, the second one right and liked."""
    n = 100
    table: dict[str, list[Any]] = {
        "query": [i // 2 for i in range(n)],
        "reward": [float(i % 2) + i / 1_000 for i in range(n)],
        "correct": [i % 2 == 1 for i in range(n)],
    }
    return {**table, **more, "answer": (answers * n)[:n]}


def lines(table: dict[str, list[Any]], path: Path) -> None:
    each = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    path.write_text("".join(json.dumps(row) + "\n" for row in each))


WRITERS: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "t.jsonl": lines,
    "t.json": lambda table, path: path.write_text(json.dumps(table)),
    "t.parquet": lambda table, path: pa.parquet.write_table(pa.table(table), path),
    "t.feather": lambda table, path: pa.feather.write_feather(pa.table(table), str(path)),
    "t.csv": lambda table, path: pa.csv.write_csv(pa.table(table), path),
}


@pytest.mark.parametrize("answers", [["42", "17"], ["42", "17", "none"]], ids=["digits", "mixed"])
@pytest.mark.parametrize("name", WRITERS)
def test_an_answer_is_never_taken_for_a_score(
    name: str, answers: list[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    WRITERS[name](rows(answers), path)
    pools = ScoredPools.read(path)
    assert list(pools.scores) == ["reward"]
    if name != "t.parquet":  # a column of text is not even read there
        assert pools.skipped["answer"] == "named like an answer"


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.feather"])
def test_other_text_of_numbers_is_left_out(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](rows(["a"], judge=["0.5", "0.7"] * 50), path)
    pools = ScoredPools.read(path)
    assert list(pools.scores) == ["reward"]
    assert pools.skipped["judge"] == "text, though most entries are numbers"
    with pytest.raises(InputError, match=r"'judge' must hold numbers, but row 1 holds '0\.5' as"):
        ScoredPools.read(path, scores=["judge"])


def test_the_command_needs_no_flag_and_says_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(rows(["42", "17"], judge=["0.5", "0.7"] * 50), tmp_path / "t.jsonl")
    out = ["--out", str(tmp_path / "out"), "--resamples", "200"]
    assert main(["audit", str(tmp_path / "t.jsonl"), *out]) == 0
    said = capsys.readouterr().out
    assert "“judge” (text, though most entries are numbers)" in said
    assert "“answer” (named like an answer)" in said


def test_where_nothing_else_is_a_score_the_column_is_named(tmp_path: Path) -> None:
    table = rows(["a"], reward=["0.5", "0.7"] * 50)
    lines(table, tmp_path / "t.jsonl")
    with pytest.raises(InputError, match=r"'reward' \(text, though .* left out"):
        ScoredPools.read(tmp_path / "t.jsonl")


def test_a_csv_has_no_types_so_that_a_typo_in_a_score_is_refused(tmp_path: Path) -> None:
    judge = ["0.5"] * 99 + ["O.7"]
    pa.csv.write_csv(pa.table(rows(["a"], judge=judge)), tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"'judge' must hold numbers, but row 100 holds 'O\.7'"):
        ScoredPools.read(tmp_path / "t.csv")


def test_values_that_are_text_are_refused_whatever_the_file(tmp_path: Path) -> None:
    lines(rows(["a"], correct=["1", "0"] * 50), tmp_path / "t.jsonl")
    with pytest.raises(InputError, match=r"'correct' must hold numbers, but row 1 holds '1' as"):
        ScoredPools.read(tmp_path / "t.jsonl")


def test_tables_in_memory_have_types_too() -> None:
    table = pa.table(rows(["42", "17"], judge=["0.5", "0.7"] * 50))
    found = toptail.audit(table, resamples=200).to_dict()
    assert {each["name"] for each in found["skipped_columns"]} == {"answer", "judge"}
