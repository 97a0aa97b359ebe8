"""Tables as people have them: formats, separators, lowest scores, columns that are no scores."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import toptail
from toptail import InputError, ScoredPools
from toptail.cli import main
from toptail.pools.read import not_scores_by_name

COLUMNS: dict[str, list[Any]] = {
    "query": ["a", "a", "b", "b"],
    "rm": [0.5, 1.25, -2.0, 3.0],
    "value": [0.0, 1.0, 1.0, 0.0],
}
POOLS = ScoredPools.from_arrow(COLUMNS)
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def separated(by: str) -> str:
    lines = [list(COLUMNS), *(list(row.values()) for row in ROWS)]
    return "".join(by.join(map(str, line)) + "\n" for line in lines)


FILES = {
    "rows.json": json.dumps(ROWS),
    "indented.json": json.dumps(ROWS, indent=2),
    "columns.json": json.dumps(COLUMNS),
    "pandas.json": json.dumps({n: dict(enumerate(c)) for n, c in COLUMNS.items()}),
    "lines.json": "".join(json.dumps(row) + "\n" for row in ROWS),
    "semicolons.csv": separated(";"),
    "tabs.csv": separated("\t"),
    "commas.tsv": separated(","),
    "byte order mark.csv": "\ufeff" + separated(";"),
    "quoted.csv": separated(";").replace("rm", '"rm"'),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_the_same_table_in_every_format(name: str, packed: bool, tmp_path: Path) -> None:
    path, text = tmp_path / (f"{name}.gz" if packed else name), FILES[name].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    assert ScoredPools.read(path) == POOLS


def test_a_comma_inside_a_quoted_name_separates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('query;"rm, raw, of, all";value\n1;0.5;1\n1;0.25;0\n')
    assert list(ScoredPools.read(path).scores) == ["rm, raw, of, all"]


def test_lists_in_json(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"scores": [1, 2.5], "correct": [True, False]}]))
    assert ScoredPools.read(path).sizes.tolist() == [2]


@pytest.mark.slow
def test_a_packed_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl.gz"
    row = {"scores": [0.123456789] * 1_500_000, "correct": [1] * 1_500_000}
    path.write_bytes(gzip.compress(json.dumps(row).encode() + b"\n", 1))
    assert ScoredPools.read(path).sizes.tolist() == [1_500_000]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json"])
def test_minus_infinity_in_text(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    rows = [("-inf", 0), ("1.5", 1)]
    if ending == "csv":
        path.write_text("query,s,value\n" + "".join(f"1,{s},{v}\n" for s, v in rows))
    else:
        lines = [json.dumps({"query": 1, "s": float(s), "value": v}) for s, v in rows]
        path.write_text("\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]")
    assert ScoredPools.read(path).scores["s"].tolist() == [-math.inf, 1.5]


def test_minus_infinity_is_a_lowest_score() -> None:
    """Everything but the mean score of the pick is as with any score below all others."""
    rng = np.random.default_rng(0)
    value = rng.random((60, 8)) < 0.5
    score = value + rng.normal(size=value.shape)
    score[rng.random(score.shape) < 0.2] = -math.inf
    finite = np.where(np.isneginf(score), -1e6, score)
    results = []
    for scores in (score, finite):
        content = toptail.audit({"mine": scores, "value": value * 1.0}, resamples=200).to_dict()
        results.append(content["scorers"]["mine"])
        assert content["constant_scores"] == []
    lowest, plain = results
    selected, expected = lowest.pop("selected_score"), plain.pop("selected_score")
    assert lowest == plain
    assert selected[0] is None  # the mean of all scores is not finite
    assert expected[0] is not None


def test_the_selected_score_is_known_where_the_lowest_is_never_picked() -> None:
    score = [[-math.inf, 1.0, 2.0, 4.0]] * 2
    content = toptail.audit({"mine": score, "value": [[0.0, 0, 0, 1]] * 2}, k=[1, 4]).to_dict()
    selected = dict(zip(content["k"], content["scorers"]["mine"]["selected_score"], strict=True))
    assert (selected[1], selected[4]) == (None, 4.0)


def test_constant_scores_are_named() -> None:
    data: dict[str, Any] = {"good": [[0.0, 1.0], [0.0, 1.0]], "flat": [[1.0, 1.0], [2.0, 2.0]]}
    data |= {"a@1": [[0.0, 0.0]] * 2, "a@2": [[0.0, 1.0]] * 2, "b@1": [[-math.inf] * 2] * 2}
    data = {name: np.array(column) for name, column in data.items()}
    result = toptail.audit(data | {"value": np.array([[0.0, 1.0]] * 2)}, resamples=100)
    assert result.to_dict()["constant_scores"] == ["flat", "b"]  # of 'a' one seed does choose
    line = next(line for line in result.summary().splitlines() if "same score" in line)
    assert line.startswith("“flat” and “b” give")


def test_no_number_of_queries_would_decide_about_a_constant_score() -> None:
    value = np.random.default_rng(0).normal(size=(20, 8))
    data = {"flat": np.ones_like(value), "noise": value[::-1], "value": value}
    data["group"] = np.repeat(["x", "y"], 10)
    result = toptail.audit(data, resamples=200)
    flat, noise = (result.verdicts[name] for name in ("flat", "noise"))
    assert flat.status == noise.status == "inconclusive"
    assert noise.queries_needed is not None
    assert flat.queries_needed is None
    for part in (result.to_dict(), *result.to_dict()["groups"].values()):
        about = {name: entry["verdict"]["reason"] for name, entry in part["scorers"].items()}
        assert [name for name, reason in about.items() if "cannot choose" in reason] == ["flat"]


# ------------------------------------------------------------------- columns that are no scores

LOOKS = {
    "an index": [
        *("index", "idx", "Unnamed: 0", "", "rank", "sample", "sample_idx", "step"),
        "candidateIndex",
    ],
    "a length": ["len", "length", "response_length", "tokens", "n_tokens", "responseLen"],
    "a count": ["count", "vote_count", "n_votes", "n-best"],
    "a seed": ["seed", "random_seed", "trainSeed"],
    "an id": ["id", "ID", "prompt_id", "uuid", "question-id"],
}
SCORES = [
    *("rm", "logprob", "token_logprob", "length_normalized_logprob", "n_gram_score", "valid", "中"),
    *("raw@42", "rankgen", "stepwise", "seedling", "lenient", "identity", "rouge_1", "i2"),
]


@pytest.mark.parametrize("look", LOOKS)
def test_names_that_are_no_scores(look: str) -> None:
    assert not_scores_by_name(LOOKS[look]) == dict.fromkeys(LOOKS[look], f"named like {look}")


def test_names_that_may_be_scores() -> None:
    assert not_scores_by_name(SCORES) == {}


def table(**columns: Any) -> dict[str, Any]:
    """Twelve rows, three candidates a query, with a real score."""
    real = np.random.default_rng(0).normal(size=12).tolist()
    return {"query": np.repeat(range(4), 3), "rm": real, "value": [0, 1, 0] * 4, **columns}


CONTENT: dict[str, tuple[Any, str | None]] = {
    "from nought": (range(12), "whole numbers in the order of the rows"),
    "from one": (range(1, 13), "whole numbers in the order of the rows"),
    "all different": ([7, 3, 99, 12, 5, 1, 8, 2, 4, 6, 11, 13], "whole numbers that are all"),
    "places": ([0, 1, 2] * 4, "whole numbers in the order of each query's rows"),
    "places from one": ([1, 2, 3] * 4, "whole numbers in the order of each query's rows"),
    "votes": ([0, 1, 2, 2, 1, 0, 0, 0, 3, 1, 1, 1], None),
    "broken numbers": ([x + 0.5 for x in range(12)], None),
}


@pytest.mark.parametrize("case", CONTENT)
def test_content_that_is_no_score(case: str) -> None:
    column, why = CONTENT[case]
    pools = ScoredPools.from_arrow(table(mystery=list(column)))
    assert ("mystery" in pools.scores) == (why is None)
    assert pools.skipped.get("mystery", "").startswith(why or "")
    assert (pools.skipped == {}) == (why is None)
    named = ScoredPools.from_arrow(table(mystery=list(column)), scores=["rm", "mystery"])
    assert list(named.scores) == ["rm", "mystery"]
    assert named.skipped == {}


def test_places_are_found_in_any_order_of_the_queries() -> None:
    columns = {"query": [0, 1, 2, 3] * 3, "place": np.repeat(range(3), 4)}
    assert list(ScoredPools.from_arrow(table(**columns)).skipped) == ["place"]


def test_few_rows_say_nothing_about_a_column() -> None:
    few = {"query": [1, 1, 1], "s": [1, 2, 3], "value": [0, 1, 1]}
    assert list(ScoredPools.from_arrow(few).scores) == ["s"]


def test_columns_that_say_that_they_are_scores_are_never_left_out(tmp_path: Path) -> None:
    named = {"query": np.repeat(range(4), 3), "score_rank": range(12), "value": [0, 1, 0] * 4}
    assert list(ScoredPools.from_arrow(named).scores) == ["score_rank"]
    chosen = ScoredPools.from_arrow(table(rank=list(range(12))), scores="rank")
    chosen.write(tmp_path / "t.parquet")  # which records the scores
    assert list(ScoredPools.read(tmp_path / "t.parquet").scores) == ["rank"]


def test_left_out_in_files_lists_and_arrays(tmp_path: Path) -> None:
    columns = table(seed=[1] * 12, mystery=list(range(12)))
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    assert list(ScoredPools.read(path).skipped) == ["seed", "mystery"]
    lists = [{"rm": [0.5, 1.0], "n_tokens": [3, 4], "turn_id": 5, "correct": [1, 0]}] * 2
    pools = ScoredPools.from_arrow(lists)
    assert list(pools.skipped) == ["n_tokens", "turn_id"]
    assert list(pools.scores) == ["rm"]
    np.savez(
        tmp_path / "t.npz",
        rm=np.ones((4, 3)),
        place=np.arange(12).reshape(4, 3),
        value=np.eye(4, 3),
    )
    assert list(ScoredPools.read(tmp_path / "t.npz").skipped) == ["place"]


def test_what_was_left_out_is_said() -> None:
    result = toptail.audit(table(prompt_id=[7] * 12), resamples=100)
    assert result.to_dict()["skipped_columns"] == [{"name": "prompt_id", "why": "named like an id"}]
    assert "“prompt_id” (named like an id)" in result.summary()
    with pytest.raises(
        InputError, match=r"'seed' \(named like a seed\) was left out.*scores=\.\.\."
    ):
        toptail.audit({"query": [1, 1], "seed": [1, 2], "value": [0, 1]})


# Answers that are digits: text in the file is no score, and what was left out is said.


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
    with pytest.raises(InputError, match=r"row 1 holds '1' as text; write numbers without quotes"):
        ScoredPools.read(tmp_path / "t.jsonl")
    for yes, no in (("yes", "no"), ("True", "False"), ("right", "wrong")):
        lines(rows(["a"], correct=[yes, no] * 50), tmp_path / "t.jsonl")
        remedy = rf"'correct' must hold numbers, but row 1 holds '{yes}'; .* 1 for yes and 0 for no"
        with pytest.raises(InputError, match=remedy):
            ScoredPools.read(tmp_path / "t.jsonl")


def test_tables_in_memory_have_types_too() -> None:
    table = pa.table(rows(["42", "17"], judge=["0.5", "0.7"] * 50))
    found = toptail.audit(table, resamples=200).to_dict()
    assert {each["name"] for each in found["skipped_columns"]} == {"answer", "judge"}
