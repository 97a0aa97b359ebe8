"""The split of search error stands in the docs as it is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = json.loads(
    (ROOT / "results/controlled/tables/search-error.json").read_text(encoding="utf-8")
)["rows"]["controlled"]
NAMES = {
    "tdq": "TD-Q",
    "raw": "Raw bilinear",
    "cosine": "Cosine",
    "hybrid": "Hybrid",
    "f_cos": "Two heads: f_cos",
    "q_td": "Two heads: q_td",
}


def digits(x: float) -> str:
    return f"{x:.3f}".removeprefix("0") if x else "0"


@pytest.mark.parametrize("row", NAMES)
def test_the_docs_have_the_stored_split(row: str) -> None:
    terms = [
        f"{digits(c['mean'])} [{digits(c['low'])}, {digits(c['high'])}]" if c["mean"] else "0"
        for c in (ROWS[row][term] for term in ("target", "estimation", "extrapolation"))
    ]
    ends = [digits(ROWS[row][term]["mean"]) for term in ("total", "extrapolation_first")]
    line = f"| {' | '.join([NAMES[row], *terms, *ends])} |"
    assert line.replace("[0,", "[.000,") in (ROOT / "docs/references.md").read_text("utf-8")


def test_terms_add_up_and_ideals_have_their_target_alone() -> None:
    for row in ROWS.values():
        for start in ("", "pooled/"):
            terms = [row[f"{start}{t}"]["mean"] for t in ("target", "estimation", "extrapolation")]
            assert sum(terms) == pytest.approx(row[f"{start}total"]["mean"], abs=1e-9)
    for ideal in ("q_star", "q_behaviour", "log_ratio"):
        assert ROWS[ideal]["total"] == ROWS[ideal]["target"]


def test_ideal_critics_are_rows_of_the_main_table_and_the_radius_sweep() -> None:
    for name in ("toy-support", "r-sweep"):
        path = ROOT / f"results/controlled/tables/{name}.json"
        for rows in json.loads(path.read_text(encoding="utf-8"))["rows"].values():
            assert {"q_star", "q_behaviour", "log_ratio"} <= set(rows)
            assert rows["q_star"]["regret"]["mean"] == pytest.approx(0.0, abs=1e-9)
