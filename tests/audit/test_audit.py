from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import toptail
from tests import flat
from tests.stats import slow
from toptail import InputError, ScoredPools, builtin_pools
from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.cli import main
from toptail.judging.values import judged_pools
from toptail.pools.builtin import expected
from toptail.results import read_audit
from toptail.stats.best_of_k import SERIAL, steady_product
from toptail.stats.resample import Sample, merged

FAST: dict[str, Any] = {"resamples": 400}


def audit(pools: ScoredPools, **settings: Any) -> dict[str, Any]:
    """The content of ``audit.json`` by the public call."""
    return flat.audit(pools, **settings).to_dict()


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return audit(builtin_pools(), resamples=2_000)


def ragged(seed: int = 0, **extra: Any) -> ScoredPools:
    """Small ragged pools with ties, a single candidate, two scorers and two seeds of a third."""
    rng = np.random.default_rng(seed)
    size = np.array([5, 2, 5, 1, 3, 2])
    shape = (size.size, 5)
    scores = {name: rng.integers(0, 4, shape).astype(float) for name in ("a", "b", "c@1", "c@2")}
    values = rng.integers(0, 3, shape).astype(float)
    support = rng.random(shape) < 0.5
    return ScoredPools.from_arrays(scores, values, support=support, size=size, **extra)


@pytest.mark.parametrize(
    ("scorer", "status"),
    [
        ("perfect", "safe"),
        ("noisy", "safe"),
        ("cursed", "unsafe"),
        ("reversed", "unsafe"),
        ("constant", "no gain"),
    ],
)
def test_the_built_in_scorers_get_the_verdict_they_deserve(
    result: dict[str, Any], scorer: str, status: str
) -> None:
    assert result["scorers"][scorer]["verdict"]["status"] == status


@pytest.mark.parametrize("scorer", ["perfect", "cursed", "reversed", "constant"])
def test_curves_agree_with_the_closed_form(result: dict[str, Any], scorer: str) -> None:
    entry = result["scorers"][scorer]
    truth = expected(scorer)(np.array(result["k"], dtype=float))
    slack = 0.01  # K = 64 is the whole pool, whose bad share differs from the proposal's
    assert (np.array(entry["band_low"]) - slack <= truth).all()
    assert (truth <= np.array(entry["band_high"]) + slack).all()


def test_the_cursed_scorer_peaks_and_then_falls(result: dict[str, Any]) -> None:
    verdict = result["scorers"]["cursed"]["verdict"]
    assert verdict["k_best"] == 7
    assert verdict["k_safe_max"] == 9
    assert verdict["k_harm"] == 10  # the first K below an earlier one beyond doubt
    assert verdict["checks"][0]["status"] == "fail"
    off = result["scorers"]["cursed"]["off_support"]
    p = off["base_rate"]
    k = np.array(result["k"][:-1])
    np.testing.assert_allclose(off["rate"][:-1], 1 - (1 - p) ** k, atol=0.02)
    assert off["excess"][0] == 0.0


def test_normalized_regret_is_0_for_the_oracle_and_1_for_no_information(
    result: dict[str, Any],
) -> None:
    assert result["scorers"]["perfect"]["nregret"][0] is None
    np.testing.assert_allclose(result["scorers"]["perfect"]["nregret"][1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(result["scorers"]["constant"]["nregret"][1:], 1.0, atol=1e-9)
    assert result["scorers"]["reversed"]["nregret"][-1] > 1.5


def test_diagnostics_of_the_built_in_scorers(result: dict[str, Any]) -> None:
    entries = result["scorers"]
    assert entries["perfect"]["tau_b"]["mean"] == pytest.approx(1.0)
    assert entries["constant"]["tau_b"] | {"histogram": None} == {
        "mean": None,
        "low": None,
        "high": None,
        "undefined": 400,
        "histogram": None,
    }
    assert entries["perfect"]["decile_gap"]["mean"] > 0.85
    assert entries["reversed"]["decile_gap"]["mean"] < -0.85
    np.testing.assert_allclose(entries["constant"]["deciles"], result["random"], rtol=1e-9)
    assert entries["cursed"]["deciles_within"][-1] < entries["cursed"]["deciles_within"][-2]
    assert sum(entries["noisy"]["tau_b"]["histogram"]["counts"]) == 400
    assert any("sign reversed" in warning for warning in result["warnings"])


def test_comparisons_are_paired_and_corrected(result: dict[str, Any]) -> None:
    rows = {(r["a"], r["b"]): r for r in result["comparisons"]}
    assert len(rows) == 10
    best = rows["perfect", "noisy"]
    curves = [result["scorers"][name]["value"][-1] for name in ("perfect", "noisy")]
    assert best["difference"] == pytest.approx(curves[0] - curves[1])
    assert best["low"] > 0
    assert all(r["p_holm"] >= r["p"] for r in rows.values())


def test_ragged_pools_equal_enumeration() -> None:
    pools = ragged()
    result = audit(pools, **FAST)
    assert result["k"] == [1, 2]
    assert result["queries"] == 5
    assert result["single_candidate_pools"] == 1
    assert any("one candidate" in warning for warning in result["warnings"])

    def mean(score: str, k: int, column: np.ndarray) -> float:
        return float(
            np.mean(
                [
                    slow.best_of_k(
                        pools.scores[score][a:b].tolist(), column[a:b].astype(float).tolist(), k
                    )
                    for a, b in zip(pools.offsets, pools.offsets[1:], strict=False)
                    if b - a > 1
                ]
            )
        )

    value = pools.values["value"]
    for at, k in enumerate(result["k"]):
        for name in ("a", "b"):
            entry = result["scorers"][name]
            assert entry["value"][at] == pytest.approx(mean(name, k, value))
            assert entry["selected_score"][at] == pytest.approx(mean(name, k, pools.scores[name]))
            assert pools.support is not None
            rate = mean(name, k, ~pools.support)
            assert entry["off_support"]["rate"][at] == pytest.approx(rate)
        seeds = [mean(f"c@{seed}", k, value) for seed in (1, 2)]
        assert result["scorers"]["c"]["value"][at] == pytest.approx(np.mean(seeds))
        own = [result["scorers"]["c"]["seeds"][seed]["value"][at] for seed in ("1", "2")]
        assert own == pytest.approx(seeds)
    assert result["scorers"]["c"]["seeds"]["1"]["verdict"]["status"]
    assert "seeds" not in result["scorers"]["a"]


def test_pooled_diagnostics_equal_slow_versions() -> None:
    rng = np.random.default_rng(4)
    score, value = rng.integers(0, 6, (30, 7)) * 1.0, rng.integers(0, 2, (30, 7)) * 1.0
    result = audit(ScoredPools.from_arrays({"s": score}, value), **FAST)
    entry = result["scorers"]["s"]
    flat = score.ravel().tolist(), value.ravel().tolist()
    np.testing.assert_allclose(entry["deciles"], slow.decile_means(*flat, 10), atol=1e-9)
    within = [slow.decile_means(list(s), list(v), 10) for s, v in zip(score, value, strict=True)]
    np.testing.assert_allclose(entry["deciles_within"], np.mean(within, axis=0), atol=1e-9)
    assert entry["auc"] == pytest.approx(slow.auc(flat[0], [v == 1 for v in flat[1]]))
    each = [slow.auc(list(s), list(v == 1)) for s, v in zip(score, value, strict=True)]
    assert entry["auc_within"]["mean"] == pytest.approx(np.nanmean(each))
    assert entry["auc_within"]["undefined"] == np.isnan(each).sum()
    tau = [slow.tau_b(list(s), list(v)) for s, v in zip(score, value, strict=True)]
    assert entry["tau_b"]["mean"] == pytest.approx(np.nanmean(tau))


def test_the_auc_interval_agrees_with_resampling_everything() -> None:
    rng = np.random.default_rng(5)
    value = (rng.random((40, 6)) < 0.4) * 1.0
    score = value + rng.normal(0, 1, value.shape) + rng.normal(0, 1, (40, 1))
    entry = audit(ScoredPools.from_arrays({"s": score}, value))["scorers"]["s"]
    draws = rng.integers(40, size=(400, 40))
    areas = [
        slow.auc(score[d].ravel().tolist(), (value[d] == 1).ravel().tolist()) for d in draws[:60]
    ]
    width = entry["auc_high"] - entry["auc_low"]
    assert width == pytest.approx(2 * 1.96 * np.std(areas), rel=0.35)


def test_seed_decides_every_bit_and_threads_nothing() -> None:
    pools = builtin_pools(60, 16)
    first, second = (audit(pools, seed=3, **FAST) for _ in range(2))
    assert first == second
    assert (
        audit(pools, seed=4, **FAST)["scorers"]["noisy"]["low"] != first["scorers"]["noisy"]["low"]
    )


def test_k_goes_up_to_the_smallest_pool_and_more_can_be_shown() -> None:
    pools = builtin_pools(10, 25)
    assert audit(pools, **FAST)["k"] == [1, 2, 4, 8, 16, 25]
    assert audit(pools, k=[25, 5], **FAST)["k"] == [1, 2, 4, 5, 8, 16, 25]
    assert audit(pools, k=[25, 5], **FAST)["k_grid"] == [*range(1, 17), 18, 20, 22, 24, 25]
    only = audit(pools, k=[1], **FAST)["scorers"]["noisy"]["verdict"]
    assert only["status"] == "inconclusive"


def test_clusters_widen_intervals_of_repeated_queries() -> None:
    base = builtin_pools(20, 8)
    copies = 10
    block = next(base.blocks())
    scores = {"noisy": np.repeat(block.take(base.scores["noisy"]), copies, axis=0)}
    values = np.repeat(block.take(base.values["value"]), copies, axis=0)
    cluster = np.repeat(np.arange(20), copies)
    free = audit(ScoredPools.from_arrays(scores, values), **FAST)
    tied = audit(ScoredPools.from_arrays(scores, values, cluster=cluster), **FAST)
    assert tied["clusters"] == 20

    def width(r: dict[str, Any]) -> float:
        return float(r["scorers"]["noisy"]["high"][-1] - r["scorers"]["noisy"]["low"][-1])

    assert width(tied) > 2 * width(free)


def test_pools_of_one_query_are_counted_as_such() -> None:
    rng = np.random.default_rng(3)
    score, value = rng.random((2, 40, 8))
    query = np.repeat(np.arange(20), 2)
    pools = ScoredPools.from_arrays({"s": score}, value, cluster=query)
    apart = audit(pools, **FAST)
    called = replace(pools, called={"cluster": "prompt"})
    shared = pools_content(judged_pools(called), Settings(pools_per_query=2, **FAST))
    assert (apart["pools"], apart["queries"]) == (40, 40)
    assert (shared["pools"], shared["queries"]) == (40, 20)
    assert (apart["cluster_column"], shared["cluster_column"]) == ("cluster", "prompt")
    assert apart["scorers"]["s"]["low"] == shared["scorers"]["s"]["low"]
    needed = [r["scorers"]["s"]["verdict"]["queries_needed"] for r in (apart, shared)]
    assert needed[1] == pytest.approx(needed[0] / 2, abs=1)


@pytest.mark.parametrize(
    "cluster", [None, np.arange(6), np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 0, 1, 0, 1])]
)
def test_pools_of_one_query_must_share_a_cluster(cluster: np.ndarray | None) -> None:
    value = np.random.default_rng(0).random((6, 4))
    pools = ScoredPools.from_arrays({"s": value}, value, cluster=cluster)
    for count in (0, 3, 4):
        with pytest.raises(InputError, match=f"6 pools are not {count} of each query"):
            pools_content(judged_pools(pools), Settings(pools_per_query=count, **FAST))


def test_groups_are_audits_of_their_own() -> None:
    rng = np.random.default_rng(0)
    value = rng.random((100, 8))
    score = np.concatenate([value[:50], -value[50:]])
    group = ["near"] * 50 + ["far"] * 50
    pools = ScoredPools.from_arrays({"s": score}, value, group=group)
    result = audit(pools, **FAST)
    near, far = result["groups"]["near"], result["groups"]["far"]
    assert near["scorers"]["s"]["verdict"]["status"] == "safe"
    assert far["scorers"]["s"]["verdict"]["status"] == "unsafe"
    alone = audit(pools.select(np.array(group) == "near"), **FAST)
    assert near["scorers"]["s"]["value"] == alone["scorers"]["s"]["value"]


def test_replicates_take_the_luck_out_of_the_oracle() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 16))
    judged = {f"v{i}": truth + rng.normal(0, 2, truth.shape) for i in (1, 2)}
    pools = ScoredPools.from_arrays({"s": truth}, judged)
    single = audit(pools, values="v1", **FAST)
    both = audit(pools, replicates=["v1", "v2"], **FAST)
    best = truth.max(axis=1).mean()
    assert single["oracle"][-1] > best + 0.5
    assert both["oracle"][-1] < best
    assert any("upward" in note for note in single["notes"])
    assert both["replicates"] == ["v1", "v2"]


@pytest.mark.parametrize(
    ("values", "why"),
    [(np.ones((5, 4)), "no headroom"), (np.arange(4.0)[None], "at least 2")],
)
def test_not_computable_is_inconclusive_never_safe(values: np.ndarray, why: str) -> None:
    result = audit(ScoredPools.from_arrays({"s": values}, values), **FAST)
    verdict = result["scorers"]["s"]["verdict"]
    assert verdict["status"] == "inconclusive"
    assert why in verdict["reason"]
    if len(values) == 1:
        assert result["scorers"]["s"]["low"] == [None, None, None]


def test_huge_scores_change_nothing() -> None:
    pools = builtin_pools(30, 16)
    block = next(pools.blocks())
    score, value = block.take(pools.scores["noisy"]), block.take(pools.values["value"])
    both = {"plain": score, "huge": score / np.abs(score).max() * 1.7e308}
    entries = audit(ScoredPools.from_arrays(both, value), **FAST)["scorers"]
    assert entries["plain"]["value"] == entries["huge"]["value"]
    assert entries["huge"]["verdict"]["status"] == entries["plain"]["verdict"]["status"]
    assert all(np.isfinite(entries["huge"]["selected_score"][1:]))


def one_bad_group() -> ScoredPools:
    """A perfect score on 300 far queries and 10 others that inverts the order on 20 near ones."""
    value = np.random.default_rng(0).normal(size=(330, 8))
    group = np.array(["near"] * 20 + ["few"] * 10 + ["far"] * 300)
    score = np.where((group == "near")[:, None], -value, value)
    return ScoredPools.from_arrays({"s": score}, value, group=group)


def test_a_group_that_a_safe_scorer_is_worse_than_random_in_is_named(tmp_path: Path) -> None:
    result = flat.audit(one_bad_group(), resamples=300)
    assert result.verdicts["s"].status == "safe"
    near = r"unsafe from best of 2 in group = near \(captured −.* τ_b −1.00 .* worse than a random"
    safe = rf"^safe .* up to best of 8 of pools like these: .*; but {near}"
    assert re.search(safe, result.summary(), re.MULTILINE)
    result.write(tmp_path / "out")
    for name in ("report.html", "audit.md"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "unsafe from best of 2 in group = near" in text
    fine = ScoredPools.from_arrays({"s": np.eye(60)}, np.eye(60), group=["a"] * 30 + ["b"] * 30)
    assert "worse than" not in flat.audit(fine, resamples=300).summary()


def test_a_check_fails_where_a_group_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "pools.parquet"
    one_bad_group().write(table)
    arguments = ["audit", str(table), "--out", str(tmp_path / "out"), "--resamples", "300"]
    gate = [*arguments, "--scores", "s", "--fail-on"]
    assert main([*gate, "inconclusive"]) == 1
    assert (
        "--fail-on: s is inconclusive up to best of 8 in the group few" in capsys.readouterr().out
    )
    assert main([*gate, "unsafe"]) == 1
    assert "--fail-on: s is unsafe from best of 2 in the group near" in capsys.readouterr().out
    assert main([*gate, "no gain"]) == 0


@pytest.mark.parametrize("scale", [1.0, 2.0**-300])
def test_the_peak_is_the_value_at_the_best_k(scale: float) -> None:
    pools = builtin_pools(30, 16)
    block = next(pools.blocks())
    score, value = block.take(pools.scores["cursed"]), block.take(pools.values["value"]) * scale
    best = audit(ScoredPools.from_arrays({"s": score}, value), **FAST)["scorers"]["s"]
    k = best["verdict"]["k_best"]
    shown = audit(ScoredPools.from_arrays({"s": score}, value), k=[k], **FAST)
    assert best["peak_value"] == shown["scorers"]["s"]["value"][shown["k"].index(k)] > 0


def test_a_correlation_just_below_zero_is_not_printed_as_zero() -> None:
    left, left_over, score = 391, list(range(40)), []  # 391 of 780 pairs the wrong way round
    for _ in range(40):
        at = min(left, len(left_over) - 1)
        score.append(left_over.pop(at))
        left -= at
    value = np.tile(np.arange(40.0), (3, 1))
    result = audit(ScoredPools.from_arrays({"s": np.tile(score, (3, 1))}, value), **FAST)
    assert result["scorers"]["s"]["tau_b"]["high"] == pytest.approx(-2 / 780)
    assert "(tau_b at most -0.0026)" in result["warnings"][0]


def test_group_labels_too_many_to_report() -> None:
    value = np.random.default_rng(0).random((60, 2))
    pools = ScoredPools.from_arrays({"s": value}, value, group=np.arange(60))
    result = audit(pools, **FAST)
    assert "groups" not in result
    assert any("60 different labels" in warning for warning in result["warnings"])


def test_the_command_writes_everything_and_report_renders_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "pools.parquet", tmp_path / "out"
    builtin_pools(40, 16).write(table)
    arguments = ["audit", str(table), "--out", str(out), "--resamples", "300"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    for name in ("perfect", "cursed", "constant"):
        assert name in printed
    assert "unsafe" in printed
    wanted = {"audit.json", "audit.md", "audit.tex", "report.html", "figures"}
    assert {p.name for p in out.iterdir()} == wanted
    stored = read_audit(out)
    assert stored["record"]["sha256"] is not None
    page = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    toptail.AuditResult.read(out).write(out)
    assert (out / "report.html").read_bytes() == page
    assert main([*arguments, "--scores", "perfect,cursed", "--fail-on", "unsafe"]) == 1
    assert main([*arguments, "--scores", "perfect", "--fail-on", "unsafe,inconclusive"]) == 0


def test_a_failure_while_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr("toptail.report.figures.save_figures", broken)
    with pytest.raises(RuntimeError, match="disk full"):
        flat.audit(builtin_pools(5, 4), **FAST).write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# The warning where score and value both follow length, held to SciPy's tau_b by hand.


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


# Intervals of very many queries: random groups of them say what all of them would.


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 400 clusters are many, and make 200 groups."""
    module = import_module("toptail.stats.resample")
    monkeypatch.setattr(module, "MANY", 400)
    monkeypatch.setattr(module, "GROUPS", 200)


def test_groups_are_even_and_hold_every_cluster_once() -> None:
    sums = np.arange(1_000.0)[:, None] * [1.0, -2.0] + [0.0, 5.0]
    groups = merged(sums, np.random.default_rng(0), 64)
    assert groups.shape == (64, 2)
    np.testing.assert_allclose(groups.sum(axis=0), sums.sum(axis=0))
    ones = merged(np.ones((1_000, 1)), np.random.default_rng(0), 64)[:, 0]
    assert set(ones) == {15.0, 16.0}


def interval(per_query: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The 95 % interval of a mean over queries."""
    sample = Sample(len(per_query), None)
    sample.add("x", per_query)
    sample.weigh(rng, 400)
    low, high = sample.mean("x").interval(0.95)
    return float(low[0]), float(high[0])


@pytest.mark.usefixtures("_few")
def test_the_cheap_interval_covers_as_the_full_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 skewed tables, the share of intervals that hold the truth, and their widths."""
    rng = np.random.default_rng(0)
    tables = [rng.exponential(size=1_000) for _ in range(600)]
    cheap = np.array([interval(table, rng) for table in tables])
    monkeypatch.setattr(import_module("toptail.stats.resample"), "MANY", 10_000)
    full = np.array([interval(table, rng) for table in tables])
    held = [((ends[:, 0] <= 1.0) & (ends[:, 1] >= 1.0)).mean() for ends in (cheap, full)]
    # Two standard errors of a share of 600 are 0.018.
    assert min(held) > 0.92
    assert abs(held[0] - held[1]) < 0.02
    widths = np.diff(cheap)[:, 0] / np.diff(full)[:, 0]
    assert widths.mean() == pytest.approx(1.0, abs=0.02)


@pytest.mark.usefixtures("_few")
def test_an_audit_of_many_queries_says_what_the_full_one_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    value = rng.random((2_000, 4))
    table = {"good": value + 0.2 * rng.random(value.shape), "value": value}
    cheap = toptail.audit(table, resamples=400).to_dict()["scorers"]["good"]
    monkeypatch.setattr(import_module("toptail.stats.resample"), "MANY", 10_000)
    full = toptail.audit(table, resamples=400).to_dict()["scorers"]["good"]
    assert cheap["value"] == full["value"]
    assert cheap["verdict"]["status"] == full["verdict"]["status"] == "safe"
    widths = [entry["gain"]["high"][-1] - entry["gain"]["low"][-1] for entry in (cheap, full)]
    assert widths[0] == pytest.approx(widths[1], rel=0.2)
    assert cheap["low"] != full["low"]


# How many threads BLAS has changes no bit of an audit.


AUDITS = """
import json, sys
import numpy as np
import toptail

rng = np.random.default_rng(0)
for shape in ((150, 1000), (4, 20_000)):
    value = rng.random(shape)
    table = {"query": np.repeat(np.arange(shape[0]), shape[1]), "value": value.ravel(),
             "score": (value + rng.normal(size=shape)).ravel(), "score_b": rng.random(value.size)}
    for resamples, extra in ((100, {}), (100, {"p_judged": np.full(value.size, 0.5)})):
        data = {**table, **extra}
        if extra:
            data["value"] = np.where(rng.random(value.size) < 0.5, table["value"], np.nan)
        result = toptail.audit(data, resamples=resamples).to_dict()
        result.pop("record", None)
        sys.stdout.write(json.dumps(result, default=str) + "\\n")
"""


def output(script: str, threads: int) -> str:
    """The output of the script in a process with so many BLAS threads."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
    )
    return done.stdout


@pytest.mark.slow
def test_an_audit_has_the_same_bits_with_any_number_of_threads() -> None:
    one = output(AUDITS, 1)
    assert one.count("\n") == 4
    assert one == output(AUDITS, 3)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (1, 9, 3), (7, 5, 1), (9, SERIAL // 8, 2), (131, 1_000, 11), (3, 0, 2), (0, 4, 2)],
)
def test_the_product_is_the_product(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m + n + k)
    left, right = rng.normal(size=(m, n)), rng.normal(size=(n, k))
    np.testing.assert_allclose(steady_product(left, right), left @ right, rtol=1e-11, atol=1e-11)
