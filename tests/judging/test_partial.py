"""Audits of tables of which only some candidates have a value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toptail
from tests import flat
from tests.stored import problems
from toptail.audit.headroom import EstimatedHeadroom, WholePools, headroom_of
from toptail.audit.per_query import score_columns
from toptail.audit.verdict import Interval
from toptail.cli import main
from toptail.judging.oracle import SelectionLimits, _of_values
from toptail.judging.values import judgement
from toptail.pools.columns import Columns
from toptail.pools.read import to_pools
from toptail.report.html import render_html
from toptail.stats import best_of_k
from toptail.stats.best_of_k import KGrid
from toptail.stats.ends import WidenedShares
from toptail.stats.resample import Sample

QUERIES, SIZE = 120, 8
Arrays = dict[str, np.ndarray]


@pytest.fixture
def table() -> Arrays:
    rng = np.random.default_rng(5)
    value = rng.random((QUERIES, SIZE))
    return {
        "good": value + rng.normal(0, 0.2, value.shape),
        "bad": -value,
        "value": value,
    }


def sampled(table: Arrays, p: float, w: float = 0.0, seed: int = 0) -> Arrays:
    """The table, judged by a plan's design: queries whole with chance w, others by draws."""
    rng = np.random.default_rng(seed)
    shape = table["value"].shape
    own = rng.random(shape) < p
    judged = own | (rng.random((shape[0], 1)) < w)
    return table | {
        "value": np.where(judged, table["value"], np.nan),
        "p_judged": np.full(shape, w + (1 - w) * p),
        "p_whole": np.full(shape, w),
        "own": own.astype(float),
    }


def audit(data: Arrays, **how: Any) -> toptail.AuditResult:
    return flat.audit(data, resamples=200, **how)


def ends(share: Interval) -> tuple[float, float, float]:
    """Lower end, value and upper end, all of which there must be."""
    found = share.low, share.value, share.high
    assert None not in found
    return found  # type: ignore[return-value]


def test_a_full_table_with_chances_is_the_full_table(table: Arrays) -> None:
    whole = audit(table).to_dict()
    same = audit(table | {"p_judged": np.ones((QUERIES, SIZE))}).to_dict()
    assert same == whole
    assert "judging" not in whole


def test_curves_from_samples_are_right_on_average(table: Arrays) -> None:
    truth = audit(table).scorers["good"].curve.value
    found = [
        audit(sampled(table, 0.3, 0.1, seed)).scorers["good"].curve.value for seed in range(40)
    ]
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - truth) < 4 * error).all()


def test_verdicts_and_headroom_from_some_labels(table: Arrays) -> None:
    result = audit(sampled(table, 0.4, 0.2))
    content = result.to_dict()
    assert not problems(content)
    assert {n: v.status for n, v in result.verdicts.items()} == {"good": "safe", "bad": "unsafe"}
    true = audit(table).to_dict()["headroom"][-1]
    assert content["headroom"][-1] == pytest.approx(true, rel=0.15)
    assert result.scorers["good"].tau_b.value is None
    assert 0 < content["judging"]["labels"] < content["judging"]["candidates"]
    assert "were judged" in result.summary()


def has_no_share(result: toptail.AuditResult) -> None:
    """Whether captured shares are left out everywhere, with a reason."""
    content = result.to_dict()
    for scorer in content["scorers"].values():
        for name in ("captured", "captured_low", "captured_high", "nregret"):
            assert set(scorer[name]) == {None}
        assert {number for ends in scorer["gain"].values() for number in ends} == {None}
    assert not problems(content)
    assert "captured not available" in result.summary()
    assert "There is no captured share" in result.summary()


def test_without_whole_queries_the_headroom_is_bounded(table: Arrays) -> None:
    data = sampled(table, 0.6)
    del data["p_whole"], data["own"]
    open_range = audit(data)
    assert open_range.verdicts["good"].status == "safe"
    assert open_range.verdicts["bad"].status == "inconclusive"  # nothing says how much there is
    declared = audit(data, value_range=(0, 1))
    assert declared.verdicts["bad"].status == "unsafe"
    for result in (open_range, declared):
        has_no_share(result)


def test_whole_queries_or_none_give_the_headroom(table: Arrays) -> None:
    judged = np.arange(QUERIES) % 3 > 0
    data = table | {
        "value": np.where(judged[:, None], table["value"], np.nan),
        "p_judged": np.full((QUERIES, SIZE), 2 / 3),
    }
    found, alone = audit(data).to_dict(), {name: each[judged] for name, each in table.items()}
    assert "80 of 120 queries were judged" in found["warnings"][0]
    assert found["scorers"] == audit(alone).to_dict()["scorers"]
    data["p_judged"] = np.repeat(np.where(np.arange(QUERIES) < 60, 0.5, 0.8)[:, None], SIZE, axis=1)
    unequal = audit(data)
    assert unequal.to_dict()["judging"]["whole_queries"] == judged.sum()
    assert unequal.to_dict()["oracle"][-1] is not None


def test_unjudged_as_a_number_is_the_table_filled_in(table: Arrays) -> None:
    data = sampled(table, 0.5)
    blank = {name: data[name] for name in ("good", "bad", "value")}
    filled = audit(blank | {"value": np.nan_to_num(blank["value"])}).to_dict()
    assert audit(blank, unjudged=0).to_dict() == filled


def test_bounds_decide_only_what_both_cases_agree_on(table: Arrays) -> None:
    blank = table["value"].copy()
    blank[::10, 0] = np.nan
    few = audit(table | {"value": blank}, unjudged="bounds", value_range=(0, 1))
    assert {n: v.status for n, v in few.verdicts.items()} == {"good": "safe", "bad": "unsafe"}
    for verdict, known in zip(few.verdicts.values(), audit(table).verdicts.values(), strict=True):
        truths = {tuple(step["k"]): step for step in known.steps or ()}
        common = [
            (s, truths[tuple(s["k"])]) for s in verdict.steps or () if tuple(s["k"]) in truths
        ]
        assert len(common) >= 6  # the pairs of powers of two are in both
        for step, truth in common:
            assert step["low"] is not None
            assert step["high"] is not None
            assert step["low"] <= truth["value"] <= step["high"]
    has_no_share(few)
    many = np.where(np.arange(SIZE) % 2 > 0, table["value"], np.nan)
    unknown = audit(table | {"value": many}, unjudged="bounds")
    assert {v.status for v in unknown.verdicts.values()} == {"inconclusive"}
    assert not problems(unknown.to_dict())


def test_bounds_say_what_their_numbers_are(table: Arrays) -> None:
    """Values count unjudged candidates at the middle of a range, which is no estimate."""
    blank = table["value"].copy()
    blank[:, 0] = np.nan
    result = audit(table | {"value": blank}, unjudged="bounds", value_range=(0, 4))
    said = result.summary()
    assert result.to_dict()["judging"]["unjudged_as"] == 2.0
    assert "(with unjudged ones at 2, the middle of what they may be worth); best possible" in said
    assert (
        f"{blank.size - len(blank):,} of {blank.size:,} candidates were judged; in no query" in said
    )
    assert (
        "may be worth anything from 0 to 4, the declared range: values and curves count it" in said
    )
    page = render_html(result.to_dict())
    assert "(with unjudged ones at 2, the middle of what they may be worth): " in page
    assert "possible not available" not in page
    assert not problems(result.to_dict())
    few = table["value"].copy()
    few[::10, 0] = np.nan
    known = audit(table | {"value": few}, unjudged="bounds", value_range=(0, 1))
    good, bad = (known.verdicts[name].reason for name in ("good", "bad"))
    assert re.search(r"helps up to K = \d+ by at least \+\d+% of the headroom;", good)
    assert re.search(r"the value changes by −\d+% to −\d+% of the headroom\.", bad)
    assert f"; in {len(few) - len(few[::10])} queries every one." in known.summary()


def test_bounds_that_leave_no_headroom_ask_for_more_values() -> None:
    value = np.where(np.arange(4) == 1, np.nan, np.arange(4) / 3) * np.ones((60, 1))
    score = np.arange(4.0) * np.ones((60, 1))
    result = audit({"s": score, "value": value}, unjudged="bounds", value_range=(0, 5))
    assert "does not show that there is any headroom; judge more" in result.verdicts["s"].reason


def test_the_worst_case_is_the_worst_of_all_completions() -> None:
    """By brute force over all ways to fill in two unjudged values of a query."""
    score = np.array([[3.0, 1.0, 2.0, 2.0]])
    value = np.array([[np.nan, 0.5, np.nan, 0.25]])
    tables = []
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            filled = value.copy()
            filled[0, 0], filled[0, 2] = a, b
            tables.append(filled)
    grid = KGrid.up_to(4)
    pools = toptail.ScoredPools.from_arrays({"score": score}, value, missing_values=True)
    low, high = np.where(np.isnan(value), 0.0, value), np.where(np.isnan(value), 1.0, value)
    found = _of_values(pools, low.reshape(-1), high.reshape(-1), grid)
    curves = np.stack([best_of_k(score, filled, grid.shown)[0] for filled in tables])
    change = curves[:, grid.second] - curves[:, grid.first]
    assert (found.least["score"][0] <= change.min(axis=0) + 1e-12).all()
    assert (found.most["score"][0] >= change.max(axis=0) - 1e-12).all()
    gain = len(grid.steps) + grid.shown.index(4)
    assert found.least["score"][0, gain] == pytest.approx(change.min(axis=0)[gain])


def test_a_cheap_judge_narrows_and_a_useless_one_costs_little(table: Arrays) -> None:
    rng = np.random.default_rng(1)
    good = table["value"] + rng.normal(0, 0.05, table["value"].shape)
    widths: dict[str, list[float]] = {"none": [], "good": [], "useless": []}
    for seed in range(10):
        data = sampled(table, 0.3, 0.2, seed)
        for name, cheap in (("none", None), ("good", good), ("useless", rng.random(good.shape))):
            more = {} if cheap is None else {"value_cheap": cheap}
            how = {} if cheap is None else {"cheap": "value_cheap"}
            curve = audit(data | more, **how).scorers["good"].curve
            widths[name].append(float((curve.high - curve.low)[-1]))
    mean = {name: np.mean(each) for name, each in widths.items()}
    assert mean["good"] < 0.8 * mean["none"]
    assert mean["useless"] < 1.03 * mean["none"]


def test_the_report_says_what_the_cheap_judge_alone_would_have_claimed(table: Arrays) -> None:
    data = sampled(table, 0.4, 0.2) | {"value_cheap": -table["good"]}
    result = audit(data, cheap="value_cheap")
    alone = result.to_dict()["judging"]["cheap"]["scorers"]
    assert alone["good"]["status"] == "unsafe"
    assert result.verdicts["good"].status == "safe"
    assert "“good” unsafe up to best of 8 instead of safe" in result.summary()
    assert alone["good"]["too_high_by_decile"][-1] < -1.0
    assert not problems(result.to_dict())


@pytest.mark.parametrize(
    ("change", "how", "words"),
    [
        ({}, {}, r"p_judged=.*unjudged=.*'bounds'"),
        ({"p_judged": 0.0}, {}, "p_judged' holds 0"),
        ({"p_judged": np.nan}, {}, "'p_judged' is blank"),
        ({"p_judged": 0.5}, {"unit": "query"}, "needs every candidate's value"),
        ({"p_judged": 0.5}, {"cheap": "value"}, "beside 'value'"),
        ({}, {"unjudged": "nil"}, "must be a finite number"),
        ({}, {"answers": "x.csv"}, "plan"),
    ],
)
def test_what_cannot_be_used_is_refused(
    table: Arrays, change: Arrays, how: dict[str, Any], words: str
) -> None:
    data = sampled(table, 0.5)
    data = {name: data[name] for name in ("good", "bad", "value")}
    data |= {name: np.full((QUERIES, SIZE), number) for name, number in change.items()}
    with pytest.raises(toptail.InputError, match=words):
        audit(data, **how)


def test_missing_values_of_a_file_name_the_row_and_the_three_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"query": [1, 1, 2, 2], "score": [0.1, 0.2, 0.3, 0.4], "value": [1.0, None, 0.5, 0.2]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    assert main(["audit", str(tmp_path / "t.parquet")]) == 2
    said = capsys.readouterr().err
    assert "row 2" in said
    assert "--p-judged" in said
    assert "--unjudged bounds" in said
    out = str(tmp_path / "out")
    assert main(["audit", str(tmp_path / "t.parquet"), "--unjudged", "0", "--out", out]) == 0
    assert main(["audit", str(tmp_path / "t.parquet"), "--unjudged", "x", "--out", out]) == 2


def test_a_partly_judged_table_survives_writing(tmp_path: Path, table: Arrays) -> None:
    pools = toptail.ScoredPools.from_arrays(
        {"good": table["good"]},
        np.where(table["value"] > 0.5, table["value"], np.nan),
        design={"p_judged": np.full((QUERIES, SIZE), 0.5)},
    )
    for ending in ("parquet", "npz", "arrow"):
        path = tmp_path / f"t.{ending}"
        pools.write(path)
        assert toptail.ScoredPools.read(path) == pools


def test_other_tables_may_call_a_score_own(table: Arrays) -> None:
    result = audit({"own": table["good"], "value": table["value"]})
    assert list(result.verdicts) == ["own"]


def test_a_partly_judged_table_is_not_compared_with_another(table: Arrays) -> None:
    data = sampled(table, 0.5, 0.2)
    with pytest.raises(toptail.InputError, match="every candidate has its value"):
        audit(data, baseline=table)


def test_pools_judged_whole_stand_for_those_of_their_cluster() -> None:
    cluster = np.array([0, 0, 0, 1, 1, 2, 3])
    full = np.array([True, False, True, True, True, False, True])
    headroom = np.ones((5, 2))
    possible = SelectionLimits(headroom, headroom, headroom, lambda _: {})
    whole = WholePools.of(possible, headroom, cluster, np.flatnonzero(full), 0.0)
    assert whole.cluster is not None
    assert whole.cluster.tolist() == [0, 0, 1, 1, 3]
    np.testing.assert_array_equal(whole.times, [1.5, 1.5, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(whole.sums(headroom), [[3.0] * 2, [2.0] * 2, [1.0] * 2])
    alone = WholePools.of(possible, headroom, None, np.flatnonzero(full), 0.0)
    assert alone.times.tolist() == [1.0] * 5


def test_clusters_judged_whole_are_as_narrow_as_the_full_table() -> None:
    """Nearly every query judged whole: the unseen cluster is that of the full table."""
    rng = np.random.default_rng(5)
    value = rng.random((240, SIZE)) * np.exp(1.2 * rng.normal(size=(240, 1)))
    full = {"good": value + rng.normal(0, 0.2, value.shape), "value": value}
    cluster, widths = {"cluster": np.arange(240) // 6}, []
    for each in (full, sampled(full, 0.2, 0.95)):
        low, _, high = ends(audit(each | cluster, scores="good").scorers["good"].captured)
        widths.append(high - low)
    assert widths[1] < 1.2 * widths[0]


def test_no_more_than_all_of_the_headroom_is_captured() -> None:
    rng = np.random.default_rng(2)
    value = rng.random((QUERIES, SIZE)) * np.exp(rng.normal(size=(QUERIES, 1)))
    for seed in range(4):
        content = audit(sampled({"best": value, "value": value}, 0.3, 0.2, seed)).to_dict()
        scorer = content["scorers"]["best"]
        for name in ("captured", "captured_low", "captured_high"):
            assert max(share for share in scorer[name] if share is not None) <= 1.0


def test_ends_count_a_large_query_that_was_not_drawn_to_be_judged_whole() -> None:
    """The ends of the captured share, resample by resample, from the weights of the queries."""
    rng = np.random.default_rng(4)
    value = rng.random((QUERIES, SIZE)) * np.exp(rng.normal(size=(QUERIES, 1)))
    table = sampled({"good": value + rng.normal(0, 0.3, value.shape), "value": value}, 0.3, 0.2)
    pools = to_pools(table, Columns(scores=["good"]))
    grid = KGrid.up_to(SIZE)
    judged, _ = judgement(pools, "value")
    columns = score_columns(pools, judged, grid)
    estimate = headroom_of(pools, judged, grid, columns, None, None)
    assert isinstance(estimate, EstimatedHeadroom)
    sample = Sample(QUERIES, None)
    sample.add("oracle", estimate.oracle)
    estimate.add_to(sample)
    sample.add("good/value", columns["good"].value)
    sample.add("weights", np.eye(QUERIES))
    sample.weigh(np.random.default_rng(0), 300)
    share = estimate.captured_shares(sample, "good/")

    known = table["value"]
    whole = ~np.isnan(known).any(axis=1)
    p, z = table["p_judged"], judged.value.reshape(QUERIES, SIZE)
    off = np.fmax.reduce(np.abs(z - known) * p / (1 - p), axis=1)  # z = f + (y - f)/p
    wider = np.nanmax(off) / off[whole].max()
    assert wider > 1.0  # the value furthest off is that of a query judged in part
    curve = columns["good"].value
    change, headroom = curve[:, -1] - curve[:, 0], estimate.oracle[:, -1] - curve[:, 0]
    truth = (known.max(axis=1) - known.mean(axis=1))[whole]
    chance = 1 / estimate.weight[whole]
    predicted = (headroom[whole] - truth / chance) / (1 - 1 / chance)
    base = np.where(whole, 0.0, headroom)
    base[whole] = predicted
    like = truth**3 / (truth**3).sum()
    pools_of_best = np.sort(known[whole], axis=1)
    least = like @ (pools_of_best[:, 0] - known[whole].mean(axis=1)) * wider
    unseen_missed = like @ ((truth * wider - predicted) / chance)
    unseen_weight, unseen_base = like @ (1 / chance), like @ predicted
    draws, extra = sample.total("weights").draws, sample.unseen
    drawn = []
    for w, w0 in zip(draws, extra, strict=True):
        weights, found = w[whole] / chance, truth - predicted
        seen_only = (
            QUERIES * (weights @ found) / weights.sum() + w @ base + w0 * (like @ truth * wider)
        )
        both = (weights @ found + w0 * unseen_missed) / (weights.sum() + w0 * unseen_weight)
        with_it = QUERIES * both + w @ base + w0 * unseen_base
        drawn.append([(w @ change + w0 * least) / room for room in (seen_only, with_it)])
    slow = np.quantile(drawn, 0.025, axis=0)
    assert slow[1] < slow[0]
    assert isinstance(share, WidenedShares)
    assert slow.min() < share.student(0.025)[0][-1]
    assert share.low(0.025)[-1] == pytest.approx(slow[1])
