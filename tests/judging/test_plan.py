"""Plans: how many, which, with which chances; and how they meet their answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import toptail
from tests import flat
from tests.stored import problems
from toptail.audit.verdict import Interval
from toptail.cli import main
from toptail.judging.design import Assumptions, Contrasts, design, draw, drawn_within
from toptail.judging.labels import answered
from toptail.judging.plan import PLAN
from toptail.results import read_audit


@pytest.fixture(scope="module")
def pools() -> toptail.ScoredPools:
    rng = np.random.default_rng(3)
    value = rng.random((150, 10))
    scores = {"good": value + rng.normal(0, 0.2, value.shape), "other": rng.random(value.shape)}
    return toptail.ScoredPools.from_arrays(scores, value)


@pytest.fixture
def unjudged(pools: toptail.ScoredPools, tmp_path: Path) -> Path:
    """The table without values, as a file."""
    table = pools.to_arrow().drop_columns(["value"]).replace_schema_metadata(None)
    names = pa.array([f"c{at % 10}" for at in range(pools.rows)])
    path = tmp_path / "table.parquet"
    pq.write_table(table.append_column("candidate", names), path)
    return path


def answers(pools: toptail.ScoredPools, table: pa.Table) -> pa.Table:
    """What a judge would make of a plan: its ids and a value."""
    query = table["query"].to_numpy()
    place = [int(str(label).removeprefix("c")) for label in table["candidate"].to_pylist()]
    value = pools.values["value"][query * 10 + np.array(place)]
    return table.select(["query", "candidate"]).append_column("value", pa.array(value))


def test_draws_have_the_chances_that_the_plan_states(pools: toptail.ScoredPools) -> None:
    about = Contrasts.of(pools)
    plan = design(about, 500, Assumptions())
    draws = [draw(plan, seed) for seed in range(400)]
    share = np.mean([each.judged for each in draws], axis=0)
    error = np.sqrt(plan.p_judged * (1 - plan.p_judged) / len(draws))
    assert (np.abs(share - plan.p_judged) < 5 * error + 1e-9).all()
    expected, spread = plan.labels
    counts = [each.judged.sum() for each in draws]
    assert np.mean(counts) == pytest.approx(expected, abs=5 * spread / 20)
    assert np.std(counts) == pytest.approx(spread, rel=0.2)


def test_a_plan_asks_for_what_decides(pools: toptail.ScoredPools) -> None:
    about = Contrasts.of(
        toptail.ScoredPools.from_arrays(
            {"good": pools.scores["good"].reshape(-1, 10)}, np.zeros((150, 10))
        )
    )
    chance = design(about, 600, Assumptions(), share=0.3).p_judged.reshape(-1, 10)
    rank = pools.scores["good"].reshape(-1, 10).argsort(axis=1).argsort(axis=1)
    by_rank = [float(chance[rank == at].mean()) for at in range(10)]
    assert by_rank[9] == max(by_rank)
    assert by_rank[9] > 2 * by_rank[4]
    assert min(by_rank) > 0


@pytest.mark.parametrize("labels", [130, 400, 900])
def test_no_more_than_may_be_judged(pools: toptail.ScoredPools, labels: int) -> None:
    for seed in range(30):
        found = toptail.plan(pools, labels=labels, seed=seed)
        assert 0.6 * labels < found.labels <= labels


def test_all_labels_is_everything(pools: toptail.ScoredPools) -> None:
    found = toptail.plan(pools, labels=1_500)
    assert found.labels == 1_500
    assert set(found.table["p_judged"].to_pylist()) == {1.0}


def test_the_expected_half_width_is_about_what_comes_out(pools: toptail.ScoredPools) -> None:
    found = []
    for seed in range(5):
        plan = toptail.plan(pools, labels=500, values="value", seed=seed)
        joined = flat.audit(pools, plan=answers_with(pools, plan.table), resamples=300)
        found.append(np.mean([half_width(s.captured) for s in joined.scorers.values()]))
    assert plan.half_width == pytest.approx(np.mean(found), rel=0.35)


def half_width(share: Interval) -> float:
    assert share.low is not None
    assert share.high is not None
    return (share.high - share.low) / 2


def answers_with(pools: toptail.ScoredPools, table: pa.Table) -> pa.Table:
    return table.append_column("value", answers(pools, table)["value"])


def test_a_half_width_is_answered_with_labels(pools: toptail.ScoredPools) -> None:
    wide, narrow = (toptail.plan(pools, half_width=x, values="value") for x in (0.3, 0.15))
    assert wide.labels < narrow.labels < 1_500
    assert narrow.half_width <= 0.15
    with pytest.raises(toptail.InputError, match="more queries"):
        toptail.plan(pools, half_width=0.001)


def test_a_larger_plan_contains_the_smaller(pools: toptail.ScoredPools) -> None:
    first = toptail.plan(pools, labels=300, seed=4, looks=3)
    second = toptail.plan(pools, labels=600, extend=first.table)
    third = toptail.plan(pools, labels=900, extend=second)

    def ids(table: pa.Table) -> set[tuple[int, int]]:
        return set(zip(table["query"].to_pylist(), table["candidate"].to_pylist(), strict=True))

    assert ids(first.table) < ids(second.table) < ids(third.table)
    assert third.table["batch"].to_numpy().max() == 3
    assert third.fresh == third.labels - second.labels
    with pytest.raises(toptail.InputError, match="declared 3 looks"):
        toptail.plan(pools, labels=1_200, extend=third)
    with pytest.raises(toptail.InputError, match="more labels"):
        toptail.plan(pools, labels=200, extend=second)


def test_a_fresh_plan_is_the_extended_one(pools: toptail.ScoredPools) -> None:
    """Extending is planning at once: chances and candidates are those of one larger plan."""
    about = Contrasts.of(pools)
    _, small = drawn_within(about, 300, Assumptions(), 7, 0.4)
    plan, large = drawn_within(about, 700, Assumptions(), 7, 0.4)
    assert (large.judged | ~small.judged).all()
    assert (large.judged == draw(plan, 7).judged).all()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"labels": 20}, "too few"),
        ({}, "labels=.* or half_width="),
        ({"labels": 300, "spread": -1.0}, "above 0"),
        ({"labels": 300, "judged": toptail.HowJudged(cheap="nobody")}, "nobody"),
        (
            {"labels": 300, "judged": toptail.HowJudged(pairs={})},
            "pairs=... says nothing to a plan",
        ),
        ({"labels": 300, "looks": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_planned(
    pools: toptail.ScoredPools, how: dict[str, Any], words: str
) -> None:
    with pytest.raises(toptail.InputError, match=words):
        toptail.plan(pools, **how)


def test_from_the_command_line_plan_judge_audit(
    pools: toptail.ScoredPools, unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unjudged.parent
    to_judge, said, out = (str(folder / name) for name in ("j.parquet", "said.csv", "out"))
    assert main(["plan", str(unjudged), "--labels", "500", "--looks", "2", "--out", to_judge]) == 0
    assert "expected half-width" in capsys.readouterr().out
    pa.csv.write_csv(answers(pools, pq.read_table(to_judge)), said)
    more = ["--plan", to_judge, "--answers", said, "--out", out]
    assert main(["audit", str(unjudged), *more]) == 0
    printed = capsys.readouterr().out
    assert "safe          good" in printed
    assert "Look 1 of 2" in printed
    stored = toptail.AuditResult.read(out).to_dict()
    assert not problems(stored)
    assert stored["judging"]["look"] == {"at": 1, "of": 2, "level": 0.95}
    assert stored["thresholds"]["level"] > 0.99
    assert main(["plan", str(unjudged), "--half-width", "0.2", "--out", to_judge]) == 0
    capsys.readouterr()
    assert main(["plan", str(unjudged), "--out", to_judge]) == 2
    assert "Give either --labels or --half-width." in capsys.readouterr().err


def test_a_plan_of_arrays_needs_no_values(pools: toptail.ScoredPools) -> None:
    scores = {name: column.reshape(pools.queries, -1) for name, column in pools.scores.items()}
    plan = toptail.plan(scores, labels=500)
    assert plan.table.equals(toptail.plan(pools, labels=500).table)
    given = answers(pools, plan.table)
    said = flat.audit(scores, plan=plan, answers=given, resamples=200).to_dict()
    assert (
        said["scorers"]
        == (flat.audit(pools, plan=plan, answers=given, resamples=200).to_dict()["scorers"])
    )


def test_answers_meet_the_plan(pools: toptail.ScoredPools) -> None:
    table = toptail.plan(pools, labels=300).table
    said = answers(pools, table)
    found = answered(
        pools, table, said.slice(0).take(pa.array(range(said.num_rows)[::-1])), "value"
    )
    judged = ~np.isnan(found.values["value"])
    assert judged.sum() == table.num_rows
    np.testing.assert_array_equal(found.values["value"][judged], pools.values["value"][judged])

    stranger = pa.table({"query": [0], "candidate": [99], "value": [1.0]})
    more = pa.concat_tables([said, stranger.cast(said.schema)])
    for given, message in (
        ((table, more, "value"), "was not asked for"),
        ((table, said.slice(1), "value"), "have no answer"),
        ((table, pa.concat_tables([said, said.slice(0, 1)]), "value"), "repeats"),
        ((pa.table({"query": [0], "candidate": [99]}), said, "value"), "not in the table"),
        ((table, said, "score"), "no column 'score'"),
    ):
        with pytest.raises(toptail.InputError, match=message):
            answered(pools, *given)


def test_a_plan_extended_without_declared_looks_is_warned_of(pools: toptail.ScoredPools) -> None:
    first = toptail.plan(pools, labels=300)
    second = toptail.plan(pools, labels=600, extend=first)
    result = flat.audit(pools, plan=answers_with(pools, second.table), resamples=200)
    assert any("without declared looks" in warning for warning in result.warnings)
    assert result.to_dict()["thresholds"]["level"] == 0.95


def test_plans_that_cannot_be_extended_say_so(pools: toptail.ScoredPools, tmp_path: Path) -> None:
    plan = toptail.plan(pools, labels=300)
    plan.write(tmp_path / "plan.csv")
    with pytest.raises(toptail.InputError, match="records how it was made"):
        toptail.plan(pools, labels=600, extend=tmp_path / "plan.csv")
    with pytest.raises(toptail.InputError, match="a plan is a table with ids"):
        plan.write(tmp_path / "plan.npz")


@pytest.mark.parametrize("facts", [b"{", b"[1]", b'{"looks": "three"}'])
def test_a_plan_whose_record_is_broken_is_refused(facts: bytes) -> None:
    pools = toptail.builtin_pools(queries=60)
    table = toptail.plan(pools, labels=1_000).table
    broken = table.replace_schema_metadata({PLAN: facts})
    with pytest.raises(toptail.InputError, match="The plan does not say"):
        flat.audit(pools, plan=broken)


# Candidates without a label are numbered by their row: other rows under these numbers are refused.


def turned(pools: toptail.ScoredPools) -> pa.Array:
    """The rows of the pools, each query's from the last to the first."""
    return pa.array(np.arange(pools.rows).reshape(pools.queries, -1)[:, ::-1].ravel())


def backwards(pools: toptail.ScoredPools) -> pa.Table:
    """The table of the pools in that order, without values."""
    table = pools.to_arrow().drop_columns(["value"]).take(turned(pools))
    return table.replace_schema_metadata(None)


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_numbered_candidates_are_refused_in_another_order(
    pools: toptail.ScoredPools, tmp_path: Path, kind: str
) -> None:
    plan = toptail.plan(pools, labels=300)
    assert plan.numbered
    asked = tmp_path / f"plan.{kind}"
    plan.write(asked)
    said = answers_with(pools, plan.table)
    for given in (answers(pools, plan.table), said):
        with pytest.raises(toptail.InputError, match="keep the rows in the order") as refused:
            flat.audit(backwards(pools), plan=asked, answers=given, resamples=100)
    for part in (str(asked), "another 'good'", "of query '", "candidate=...", "(the first in row"):
        assert part in str(refused.value)
    assert not order_warnings(flat.audit(pools, plan=asked, answers=said, resamples=100))
    one = flat.audit(pools, plan=asked, answers=said, scores="other", resamples=100)
    assert not order_warnings(one)


def order_warnings(result: toptail.AuditResult) -> list[str]:
    return [warning for warning in result.warnings if "could not be checked" in warning]


def test_what_cannot_be_checked_is_warned_of(pools: toptail.ScoredPools) -> None:
    plan = toptail.plan(pools, labels=300, scores=["good"])
    said = answers(pools, plan.table)
    (warning,) = order_warnings(flat.audit(pools, plan=plan, answers=said, resamples=100))
    assert warning.startswith("answers: there is no column 'mark:...'")
    older = plan.table.drop_columns(["mark:good"])
    (warning,) = order_warnings(flat.audit(pools, plan=older, answers=said, resamples=100))
    assert warning.startswith("plan: candidates are numbered")
    others = flat.audit(pools, plan=plan, answers=said, scores="other", resamples=100)
    assert order_warnings(others) == [warning]


def test_answers_to_another_order_are_refused(pools: toptail.ScoredPools) -> None:
    """Answers know their rows, too, when the plan was made again for a table in another order."""
    other = backwards(pools)
    said = answers_with(pools, toptail.plan(pools, labels=1_500).table)
    plan = toptail.plan(other, labels=1_500)
    with pytest.raises(toptail.InputError, match=r"^answers: in .* another 'good'"):
        flat.audit(other, plan=plan, answers=said, resamples=100)


def test_own_ids_are_not_taken_for_row_numbers(pools: toptail.ScoredPools) -> None:
    ids = pa.array(np.tile(np.arange(10)[::-1], pools.queries))
    table = pools.to_arrow().drop_columns(["value"]).replace_schema_metadata(None)
    table = table.append_column("id", ids)
    plan = toptail.plan(pools, labels=300)
    with pytest.raises(toptail.InputError, match="numbered by their row"):
        flat.audit(table, candidate="id", plan=answers_with(pools, plan.table), resamples=100)


def test_labelled_candidates_may_come_in_any_order(
    pools: toptail.ScoredPools, unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = toptail.plan(unjudged, labels=300)
    assert not plan.numbered
    assert not any(name.startswith("mark:") for name in plan.table.column_names)
    table, said = pq.read_table(unjudged), answers(pools, plan.table)
    results = [
        flat.audit(rows, plan=plan, answers=said, resamples=100)
        for rows in (table, table.take(turned(pools)))
    ]
    assert not any(map(order_warnings, results))
    one, other = (np.asarray(result.scorers["good"].curve.value) for result in results)
    np.testing.assert_allclose(one, other, rtol=1e-9)
    out = unjudged.parent / "to_judge.csv"
    assert main(["plan", str(unjudged), "--labels", "300", "--out", str(out)]) == 0
    assert "the number of its row" not in capsys.readouterr().out
    pq.write_table(pq.read_table(unjudged).drop_columns(["candidate"]), unjudged)
    assert main(["plan", str(unjudged), "--labels", "300", "--out", str(out)]) == 0
    assert "No column names candidates (--candidate)" in capsys.readouterr().out


def test_a_plan_is_not_extended_by_a_table_in_another_order(pools: toptail.ScoredPools) -> None:
    first = toptail.plan(pools, labels=300)
    with pytest.raises(toptail.InputError, match=r"The plan to extend: .* another 'good'"):
        toptail.plan(backwards(pools), labels=600, extend=first)


def test_marks_are_the_same_after_a_file_of_text(tmp_path: Path) -> None:
    """Scores in single precision keep their marks as the decimals that a CSV file has of them."""
    score = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    score[0, :3] = -np.inf, 1e-40, -0.0
    rows = {"query": np.repeat(np.arange(60), 8), "score": score.ravel()}
    pq.write_table(pa.table(rows), tmp_path / "table.parquet")
    pa.csv.write_csv(pa.table(rows), tmp_path / "table.csv")
    kept, text = (
        toptail.plan(tmp_path / f"table.{kind}", labels=480) for kind in ("parquet", "csv")
    )
    assert kept.table["mark:score"].equals(text.table["mark:score"])
    assert len(set(kept.table["mark:score"].to_pylist())) == np.unique(score).size


# The commands of docs/howto/partial.md: plan, judge, audit, ask for more, as printed.


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "partial.md"
QUERIES, SIZE = 100, 32


def commands(page: str) -> list[list[str]]:
    """The first block of commands, without its comments."""
    block = re.search(r"```\n(toptail plan.*?)```", page, re.DOTALL)
    assert block is not None
    lines = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("toptail")]


def judge(plan: Path, answers: Path) -> None:
    """Answer what a plan asks: the value of a candidate is its place."""
    rows = pq.read_table(plan).select(["query", "candidate"])
    value = rows["candidate"].to_numpy() / SIZE
    pa.csv.write_csv(rows.append_column("value", pa.array(value)), answers)


@pytest.mark.slow
def test_the_four_steps_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    place = np.tile(np.arange(SIZE), QUERIES)
    scored = {"query": np.repeat(np.arange(QUERIES), SIZE), "score": place + rng.normal(size=3200)}
    pq.write_table(pa.table(scored), "scores.parquet")  # a table without values
    plan, audit, more, again = commands(PAGE.read_text(encoding="utf-8"))
    assert [each[0] for each in (plan, audit, more, again)] == ["plan", "audit", "plan", "audit"]
    assert main(plan) == 0
    first = pq.read_table("to_judge.parquet").num_rows
    judge(Path("to_judge.parquet"), Path("judged.csv"))
    assert main([*audit, "--resamples", "200"]) == 0
    look = read_audit(Path("toptail-audit"))["judging"]["look"]
    assert (look["at"], look["of"]) == (1, 3)
    assert main(more) == 0
    assert pq.read_table("to_judge.parquet").num_rows > first
    judge(Path("to_judge.parquet"), Path("judged.csv"))
    assert main([*again, "--resamples", "200"]) == 0
    found = toptail.AuditResult.read("toptail-audit")
    assert found.to_dict()["judging"]["look"]["at"] == 2
    assert found.verdicts["score"].status == "safe"
    assert "Look 2 of 3" in capsys.readouterr().out
