"""The warning where score and value both follow length, held to SciPy's tau_b by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import toptail

QUERIES, SIZE = 60, 8


def table(score: float, value: float, seed: int = 0) -> dict[str, Any]:
    """Columns of a table whose score and value follow length with these weights."""
    rng = np.random.default_rng(seed)
    length, a, b = rng.normal(size=(3, QUERIES * SIZE))
    return {
        "query": np.repeat(np.arange(QUERIES), SIZE),
        "n_tokens": np.round(100 + 20 * length).astype(int),
        "score": score * length + a,
        "value": value * length + b,
    }


def warned(data: Any, **more: Any) -> list[str]:
    found = toptail.audit(data, resamples=100, **more).to_dict()["warnings"]
    return [warning for warning in found if "length" in warning]


def by_hand(columns: dict[str, Any], name: str) -> float:
    rows = np.split(np.arange(QUERIES * SIZE), QUERIES)
    each = [kendalltau(columns["n_tokens"][at], columns[name][at]).statistic for at in rows]
    return float(np.mean(each))


def test_a_score_and_a_value_that_both_follow_length() -> None:
    columns = table(1.0, 0.7)
    (sentence,) = warned(columns)
    assert "'n_tokens' within queries" in sentence
    said = [float(number) for number in re.findall(r"\((-?\d\.\d\d)\)", sentence)]
    assert said == [pytest.approx(by_hand(columns, n), abs=0.005) for n in ("score", "value")]


@pytest.mark.parametrize(("score", "value"), [(0.0, 1.0), (1.0, 0.0), (1.0, -1.0), (0.1, 0.1)])
def test_no_warning_where_one_does_not_follow_or_both_do_in_turn(
    score: float, value: float
) -> None:
    assert warned(table(score, value)) == []


def test_both_may_follow_shortness() -> None:
    (sentence,) = warned(table(-1.0, -1.0))
    assert "'score' (-0." in sentence


def test_a_length_that_is_itself_the_score() -> None:
    (sentence,) = warned(table(0.0, 1.0), scores=["n_tokens", "score"])
    assert sentence.startswith("'n_tokens' (1.00) and the value")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_texts_are_measured(ending: str, tmp_path: Path) -> None:
    columns = table(1.0, 1.0)
    columns["response"] = ["x" * n for n in columns.pop("n_tokens")]
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        lines = (json.dumps(row, default=lambda x: x.item()) for row in rows)
        path.write_text("\n".join(lines))
    (sentence,) = warned(path)
    assert "both follow 'response'" in sentence


def test_few_clusters_say_little() -> None:
    """Three of four clusters follow length, one the other way: nothing is clear."""
    columns = table(1.0, 1.0)
    columns["cluster"] = columns["query"] % 4
    against = columns["cluster"] == 0
    columns["value"] = np.where(against, -columns["value"], columns["value"])
    assert abs(by_hand(columns, "value")) > 0.2
    assert warned(columns) == []
    del columns["cluster"]
    assert len(warned(columns)) == 1


def test_a_query_with_an_unknown_length_is_left_out() -> None:
    columns = table(1.0, 0.7)
    columns["n_tokens"] = [None, *columns["n_tokens"][1:]]
    assert len(warned(columns)) == 1
