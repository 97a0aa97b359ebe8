"""Choices from tables of which only some candidates were judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toptail
from tests.flat import choose
from toptail import InputError, ScoredPools
from toptail.cli import main
from toptail.select.choose import compare
from toptail.select.inputs import ChoiceSettings, choice_data
from validation.choose_honesty import WORLDS, one_table
from validation.judging import planned

FAST: dict[str, Any] = {"resamples": 100, "repeats": 2}
QUERIES, SIZE = 100, 8
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def table() -> Arrays:
    """A good score, one that is fooled off the support, and the support."""
    rng = np.random.default_rng(3)
    value = rng.random((QUERIES, SIZE))
    off = rng.random(value.shape) < 0.2
    return {
        "good": value + rng.normal(0, 0.15, value.shape),
        "fooled": value + np.where(off, 2.0, 0.0),
        "value": np.where(off, 0.0, value),
        "support": ~off,
    }


def drawn(table: Arrays, p: float, seed: int = 0) -> Arrays:
    """Some candidates judged, no query as a whole on purpose."""
    judged = np.random.default_rng(seed).random(table["value"].shape) < p
    return table | {
        "value": np.where(judged, table["value"], np.nan),
        "p_judged": np.full(judged.shape, p),
    }


def long(table: Arrays) -> pa.Table:
    columns = {name: array.reshape(-1) for name, array in table.items()}
    return pa.table({"query": np.repeat(np.arange(QUERIES), SIZE), **columns})


def test_a_full_table_with_chances_gives_the_same_choice(table: Arrays) -> None:
    whole = choose(table, selectors="rank", **FAST).to_dict()
    again = table | {"p_judged": np.ones((QUERIES, SIZE))}
    assert choose(again, selectors="rank", **FAST).to_dict() == whole
    assert "judging" not in whole


def test_every_selector_has_its_value_on_average(table: Arrays) -> None:
    """Exact ones and drawn ones, the filter by another column among them, and the headroom."""
    pools = ScoredPools.from_arrays(
        {n: table[n] for n in ("good", "fooled")}, table["value"], support=table["support"]
    )
    words, settings = ["rank", "trim:0.1", "filter", "soft:8"], ChoiceSettings()

    def means(given: ScoredPools) -> np.ndarray:
        contest = compare(choice_data(given), settings, words).totals
        every = np.hstack([contest.sums, contest.headroom[:, None]])
        return np.asarray(every.sum(axis=0) / QUERIES)

    truth = means(pools)
    found = [means(planned(pools, 320, np.random.default_rng(seed))) for seed in range(16)]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - truth) < 5 * error + 1e-9).all()


def test_the_interval_of_a_choice_from_a_plan_holds_the_truth() -> None:
    world = next(world for world in WORLDS if world.labels < 1)
    found = [one_table(world, 100, [5, at]) for at in range(12)]
    _, low, high, truth = np.array([each.value for each in found]).T
    held = (low <= truth) & (truth <= high)
    assert held.mean() >= 0.8
    assert np.ptp([each.naive for each in found]) > 0  # no table is like another


def test_what_is_clear_is_chosen_from_some_labels(table: Arrays) -> None:
    result = choose(drawn(table, 0.6), scores="fooled", selectors=["filter"], **FAST)
    assert result.selector.called == "filter"
    content = result.to_dict()
    judging = content["judging"]
    assert 0 < judging["labels"] < judging["candidates"] == QUERIES * SIZE
    assert any("were judged" in note for note in content["notes"])


def test_without_whole_queries_there_is_no_oracle(table: Arrays, tmp_path: Path) -> None:
    result = choose(drawn(table, 0.5), selectors=["rank"], **FAST)
    content = result.to_dict()
    assert content["baselines"]["oracle"] == {"value": None, "low": None, "high": None}
    assert content["headroom"] is None
    ends = {each["against"]: each["low"] for each in content["differences"]}
    assert ends["oracle"] is None
    assert ends["random"] is not None
    assert any("there is no oracle" in note for note in content["notes"])
    assert re.search(r"the oracle +not available", result.summary())
    assert result.write(tmp_path / "out").is_file()
    assert toptail.ChoiceResult.read(tmp_path / "out").write(tmp_path / "out").is_file()


def test_queries_judged_whole_or_not_are_the_judged_queries(table: Arrays) -> None:
    judged = np.arange(QUERIES) % 2 == 0
    half = table | {
        "value": np.where(judged[:, None], table["value"], np.nan),
        "p_judged": np.full((QUERIES, SIZE), 0.5),
    }
    alone = choose({n: a[judged] for n, a in table.items()}, selectors="rank", **FAST).to_dict()
    found = choose(half, selectors="rank", **FAST).to_dict()
    assert found["value"] == alone["value"]
    assert found["baselines"] == alone["baselines"]
    assert "50 of 100 queries were judged" in found["warnings"][0]


def test_a_number_for_the_unjudged_is_the_table_filled_in(table: Arrays) -> None:
    blank = {name: array for name, array in drawn(table, 0.5).items() if name != "p_judged"}
    filled = blank | {"value": np.nan_to_num(blank["value"])}
    whole = choose(filled, selectors="rank", **FAST).to_dict()
    assert choose(blank, selectors="rank", unjudged=0, **FAST).to_dict() == whole


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "say with which chance each candidate was chosen"),
        ({"unjudged": "bounds"}, "leaves every selector two values"),
        ({"answers": "x.csv"}, "are those to a plan"),
    ],
)
def test_what_is_not_known_is_refused(table: Arrays, more: dict[str, Any], said: str) -> None:
    blank = {name: array for name, array in drawn(table, 0.5).items() if name != "p_judged"}
    with pytest.raises(InputError, match=said):
        choose(blank, **more)


def test_a_plan_its_answers_and_a_cheap_judge_from_the_command_line(
    table: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    cheap = table["value"] + rng.normal(0, 0.1, table["value"].shape)
    scored = {name: table[name] for name in ("good", "fooled", "support")} | {"judge": cheap}
    pq.write_table(long(scored), tmp_path / "scores.parquet")
    plan = toptail.plan(tmp_path / "scores.parquet", labels=300, scores=["good", "fooled"])
    plan.write(tmp_path / "plan.parquet")
    rows = plan.table.select(["query", "candidate"]).to_pylist()
    said = [row | {"value": float(table["value"][row["query"], row["candidate"]])} for row in rows]
    (tmp_path / "said.json").write_text(json.dumps(said))
    code = main(
        [
            *("choose", str(tmp_path / "scores.parquet"), "--scores", "good,fooled"),
            *("--plan", str(tmp_path / "plan.parquet"), "--answers", str(tmp_path / "said.json")),
            *("--cheap", "judge", "--selectors", "rank,filter", "--resamples", "100"),
            *("--out", str(tmp_path / "out")),
        ]
    )
    assert code == 0
    stored = json.loads((tmp_path / "out" / "choice.json").read_text())
    assert stored["judging"]["labels"] == plan.labels
    assert stored["baselines"]["oracle"]["value"] > stored["baselines"]["random"]["value"]
    assert "were judged" in capsys.readouterr().out


def test_pairs_are_a_judge(table: Arrays) -> None:
    rng = np.random.default_rng(6)
    rows = []
    for query in range(QUERIES):
        for _ in range(12):
            a, b = (int(x) for x in rng.choice(SIZE, 2, replace=False))
            wins = float(table["value"][query, a] > table["value"][query, b])
            rows.append({"query": query, "a": a, "b": b, "wins": wins})
    scores = {name: table[name] for name in ("good", "fooled")}
    pools = ScoredPools.from_arrays(scores, table["value"])
    found = choose(pools, pairs=pa.Table.from_pylist(rows), selectors=["rank"], **FAST)
    assert found.selector.columns == ("good",)
    assert found.baselines["random"].value == pytest.approx(0.5)
