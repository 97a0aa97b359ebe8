from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import flat
from toptail import InputError, ScoredPools
from toptail.audit.headroom import PooledHeadroom, QueryHeadroom, headroom_of
from toptail.audit.per_query import score_columns
from toptail.audit.settings import Rule, Unit
from toptail.audit.verdict import Status, Steps, _safe_up_to, status_of
from toptail.judging.values import Judgement
from toptail.report.html import render_html
from toptail.stats import cluster_sums, extreme_weights, oracle, unseen_cluster
from toptail.stats.best_of_k import Ints, KGrid

FAST: dict[str, Any] = {"resamples": 1_000}


def steps(low: list[float], high: list[float]) -> Steps:
    """Steps (1,2), (1,4), (2,4) with the given ends."""
    a, b = np.array(low), np.array(high)
    return Steps(KGrid.up_to(4).steps, (a + b) / 2, a, b)


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        ([0.1, 0.2, 0.1], [0.2, 0.3, 0.2], "safe"),
        ([0.1, 0.2, -0.09], [0.2, 0.3, 0.0], "safe"),
        ([0.1, 0.0, 0.1], [0.2, 0.3, 0.2], "no gain"),
        ([0.1, 0.2, -0.11], [0.2, 0.3, 0.2], "inconclusive"),
        ([0.1, 0.2, -0.5], [0.2, 0.3, -0.021], "unsafe"),
        ([0.1, 0.2, -0.5], [0.2, 0.3, -0.019], "inconclusive"),
        ([0.1, 0.2, -0.05], [0.2, 0.3, -0.03], "unsafe"),
        ([0.1, np.nan, 0.1], [0.2, np.nan, 0.2], "inconclusive"),
        ([np.nan] * 3, [np.nan] * 3, "inconclusive"),
    ],
)
def test_the_rule_line_by_line(low: list[float], high: list[float], status: str) -> None:
    assert status_of(steps(low, high), Rule(), enough=True) == status
    few = status_of(steps(low, high), Rule(), enough=False)
    assert few == ("unsafe" if status == "unsafe" else "inconclusive")


def test_safe_up_to_goes_upward_and_stops_at_the_first_failure() -> None:
    rule = Rule()
    cases: list[tuple[list[float], list[float], Status, int | None]] = [
        ([0.1, -0.1, -0.5], [0.2, 0.1, 0.1], "inconclusive", 2),
        ([-0.01, 0.2, 0.1], [0.2, 0.3, 0.2], "safe", 4),  # k_max is a claim of its own
        ([-0.01, 0.2, -0.2], [0.2, 0.3, 0.2], "inconclusive", None),
        ([0.1, 0.2, -0.5], [0.2, 0.3, -0.1], "unsafe", 2),
    ]
    for low, high, status, found in cases:
        assert _safe_up_to(steps(low, high), status, rule, True) == found
        if status != "safe":
            assert _safe_up_to(steps(low, high), status, rule, False) is None


@pytest.mark.parametrize("make", [KGrid.up_to, KGrid.fine])
def test_the_grid_is_fixed_and_ends_at_k_max(make: Callable[..., KGrid]) -> None:
    grid = make(23, [5, 23, 1])
    fine = (*range(1, 17), 18, 20, 22, 23)
    assert grid.deciding == (fine if make == KGrid.fine else (1, 2, 4, 8, 16, 23))
    assert grid.shown == (1, 2, 4, 5, 8, 16, 23)
    assert set(grid.measured) == {*grid.shown, *grid.deciding}
    assert grid.k_max == 23
    assert grid.steps == tuple((a, b) for b in grid.deciding for a in grid.deciding if a < b)
    at = [grid.measured[i] for i in grid.shown_at], [grid.measured[i] for i in grid.deciding_at]
    assert at == (list(grid.shown), list(grid.deciding))
    changes = [
        (grid.measured[a], grid.measured[b]) for a, b in zip(grid.first, grid.second, strict=True)
    ]
    assert changes == [*grid.steps, *((1, k) for k in grid.shown)]
    assert grid.doublings() == KGrid.up_to(23, [5])
    assert KGrid.fine(2).deciding == (1, 2)
    assert KGrid.fine(70).deciding[-8:] == (40, 44, 48, 52, 56, 60, 64, 70)


def test_the_grid_says_which_k_it_leaves_out() -> None:
    assert KGrid.fine(17).any_two == "any two K up to 17"
    assert KGrid.up_to(3).any_two == "any two K up to 3"
    assert KGrid.up_to(12).any_two == "any two of the K looked at (1, 2, 4, 8 and 12)"
    every = "every K up to 16, then 8 for each doubling up to 32"
    assert KGrid.fine(32).any_two == f"any two of the K looked at ({every})"
    assert every in verdict(pools(200, 32, 0.6))["reason"]


def pools(n: int, size: int, strength: float, seed: int = 0, **extra: Any) -> ScoredPools:
    """Normal values and a score that correlates with them."""
    rng = np.random.default_rng(seed)
    value = rng.normal(size=(n, size))
    score = strength * value + np.sqrt(1 - strength**2) * rng.normal(size=value.shape)
    return ScoredPools.from_arrays({"s": score}, value, **extra)


def cursed(n: int, size: int, rate: float, depth: float, seed: int = 0) -> ScoredPools:
    """A fair score that puts a share of deeply bad candidates first."""
    rng = np.random.default_rng(seed)
    value = rng.normal(size=(n, size))
    score = 0.6 * value + 0.8 * rng.normal(size=value.shape)
    bad = rng.random(value.shape) < rate
    return ScoredPools.from_arrays(
        {"s": np.where(bad, 9.0, score)}, np.where(bad, value - depth, value)
    )


def verdict(data: Any, **settings: Any) -> dict[str, Any]:
    content = flat.audit(data, **(FAST | settings)).to_dict()
    found: dict[str, Any] = content["scorers"]["s"]["verdict"]
    return found


def test_a_curve_that_rises_then_falls() -> None:
    found = verdict(cursed(400, 16, 0.05, 4.0))
    assert found["status"] == "unsafe"
    assert (found["k_best"], found["k_safe_max"]) == (2, 3)
    assert found["k_harm"] in (4, 8)


def test_best_of_all_candidates_decides() -> None:
    """With 12 candidates the claim goes to 12, and not to the last power of two."""
    found = verdict(pools(200, 12, 0.5))
    assert found["k_max"] == 12
    assert found["k_safe_max"] == 12
    assert "helps up to K = 12" in found["reason"]
    assert "between any two K up to 12" in found["reason"]
    # Fine up to 8 of 12; the very top score is a trap.
    rng = np.random.default_rng(0)
    value = rng.normal(size=(400, 12))
    order = value.argsort(axis=1).argsort(axis=1).astype(float)
    order[order == 0] = 99.0
    trapped = verdict(ScoredPools.from_arrays({"s": order}, value))
    assert trapped["status"] == "unsafe"
    assert trapped["k_max"] == 12


@pytest.mark.parametrize("unit", ["pooled", "query"])
@pytest.mark.parametrize("cluster", [None, np.repeat(np.arange(4), 3)])
def test_the_unseen_cluster_by_the_slow_way(unit: Unit, cluster: Ints | None) -> None:
    """Each query's worst and best of every change, added up by cluster and weighted by headroom."""
    rng = np.random.default_rng(2)
    value, size = rng.random((12, 20)), np.tile([17, 20, 20], 4)
    data = ScoredPools.from_arrays({"s": value}, value, size=size, cluster=cluster)
    grid, judged = KGrid.fine(17), Judgement(data.values["value"])
    columns = score_columns(data, judged, grid)
    pooled = headroom_of(data, judged, grid, columns, cluster, None)
    assert isinstance(pooled, PooledHeadroom)
    found = (pooled if unit == "pooled" else QueryHeadroom.of(pooled)).unseen
    own = [np.sort(row[:n]) for row, n in zip(value, size, strict=True)]
    top = np.array([[oracle(row[None], [17])[0, 0] - row.mean()] for row in own])
    ends = [
        np.stack(
            [
                row @ extreme_weights(row.size, grid.measured, grid.first, grid.second)[end]
                for row in own
            ]
        )
        for end in (0, 1)
    ]
    if unit == "query":
        ends, top = [end / top for end in ends], np.ones_like(top)
    slow = unseen_cluster([cluster_sums(end, cluster) for end in ends], cluster_sums(top, cluster))
    for name in ("least", "most", "headroom"):
        np.testing.assert_allclose(getattr(found, name), getattr(slow, name), atol=1e-12)


@pytest.mark.parametrize("strength", [0.05, 0.15, 0.6])
def test_what_is_shown_does_not_change_the_verdict(strength: float) -> None:
    data = pools(60, 20, strength)
    plain, more, ends = (verdict(data, k=k) for k in (None, [3, 5, 7, 20], [1, 20]))
    for other in (more, ends):
        for name in ("status", "k_best", "k_safe_max", "k_harm", "queries_needed", "reason"):
            assert other[name] == plain[name]
        for a, b in zip(plain["steps"], other["steps"], strict=True):
            assert a["k"] == b["k"]
            for end in ("value", "low", "high"):
                assert a[end] == pytest.approx(b[end], abs=1e-12)


def test_the_verdict_never_contradicts_the_captured_share() -> None:
    seen = set()
    for seed in range(40):
        data = pools(19 + 2 * seed, 8, (seed % 5) * 0.15 - 0.1, seed)
        entry = flat.audit(data, **FAST).to_dict()["scorers"]["s"]
        low, high = entry["captured_low"][-1], entry["captured_high"][-1]
        found = entry["verdict"]
        (gain,) = (step for step in found["steps"] if step["k"] == [1, 8])
        assert (entry["captured"][-1], low) == (pytest.approx(gain["value"]), gain["low"])
        assert entry["gain"]["low"][-1] == low
        assert entry["gain"]["high"][-1] == high <= gain["high"]
        if found["status"] == "safe":
            assert low > 0
        if found["status"] == "no gain":
            assert low <= 0
        check = next(c for c in found["checks"] if c["name"] == "gain from search")
        assert (check["status"] == "pass") == (low > 0)
        seen.add(found["status"])
    assert {"safe", "inconclusive"} <= seen


def test_two_pairs_of_candidates_decide_nothing() -> None:
    value = np.array([[0.0, 1.0], [0.0, 1.0]])
    found = verdict({"s": value, "value": value})
    assert found["status"] == "inconclusive"
    assert found["queries_needed"] >= 40
    assert verdict({"s": -value, "value": value})["status"] == "inconclusive"
    ranged = verdict({"s": value, "value": value}, value_range=(0, 1))
    assert ranged["status"] == "inconclusive"


def test_identical_queries_have_no_variance_and_do_not_decide_alone() -> None:
    value = np.arange(4.0)
    for n, status in ((10, "inconclusive"), (60, "safe")):
        tile = np.tile(value, (n, 1))
        assert verdict(ScoredPools.from_arrays({"s": tile}, tile))["status"] == status
    constant = ScoredPools.from_arrays({"s": np.zeros((100, 4))}, np.tile(value, (100, 1)))
    assert verdict(constant)["status"] == "no gain"
    reversed_ = ScoredPools.from_arrays({"s": np.tile(-value, (60, 1))}, np.tile(value, (60, 1)))
    assert verdict(reversed_)["status"] == "unsafe"


def test_nineteen_queries_say_how_many_more() -> None:
    found = verdict(pools(19, 8, 0.5))
    assert found["status"] == "inconclusive"
    assert found["queries_needed"] >= 40
    assert "would decide it" in found["reason"]
    many = verdict(pools(found["queries_needed"] * 2, 8, 0.5))
    assert many["status"] == "safe"


def test_what_cannot_be_excluded_is_said_with_its_number() -> None:
    said = verdict(pools(100, 4, 0.5))["unseen"]
    assert "3.6%" in said
    assert "100" in said
    assert "declared range" in verdict(pools(100, 4, 0.5), value_range=(-9, 9))["unseen"]


def test_a_declared_range_counts_harm_beyond_any_candidate_seen() -> None:
    data = pools(60, 8, 0.9)
    near, far = (verdict(data, value_range=(-w, w)) for w in (5, 500))
    assert verdict(data)["status"] == "safe"
    assert far["status"] == "inconclusive"
    assert far["queries_needed"] > 1_000
    assert min(s["low"] for s in far["steps"]) < min(s["low"] for s in near["steps"])


def test_a_declared_range_lets_few_queries_decide() -> None:
    value = np.tile([0.0, 1.0], (36, 1))
    data = ScoredPools.from_arrays({"s": value}, value)
    assert verdict(data)["status"] == "inconclusive"
    rule = {"rho": 0.3, "delta": 0.1}
    assert verdict(data, **rule)["status"] == "inconclusive"
    assert verdict(data, value_range=(0, 1), **rule)["status"] == "safe"


def test_small_values_are_values() -> None:
    """The spread of small values must not vanish: the same verdict as at ordinary size."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=(60, 8))
    value = rng.integers(0, 100, size=(60, 8)).astype(float)
    one, small = (
        flat.audit({"s": score, "value": value * s}, **FAST).to_dict() for s in (1.0, 1e-110)
    )
    a, b = one["scorers"]["s"], small["scorers"]["s"]
    assert a["verdict"]["status"] == b["verdict"]["status"] == "no gain"
    assert a["gain"]["low"] == pytest.approx(b["gain"]["low"], rel=1e-6)
    np.testing.assert_allclose(np.array(b["value"]) / 1e-110, a["value"], rtol=1e-6)
    assert a["tau_b"] == b["tau_b"]


@pytest.mark.parametrize(("size", "words"), [(1e-130, "variance"), (1e101, "averaged")])
def test_values_whose_squares_or_sums_are_no_numbers_are_refused(size: float, words: str) -> None:
    value = np.tile([0.0, size], (60, 1))
    with pytest.raises(InputError, match=f"{words}.*rescale them"):
        flat.audit({"s": value, "value": value}, **FAST)


def test_rounding_is_neither_gain_nor_harm() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-16, (50, 4))
    found = verdict({"s": noise, "value": 0.5 + noise})
    assert found["status"] == "inconclusive"
    assert "no headroom" in found["reason"]
    assert found["k_best"] == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unit": "row"}, r"^unit='row' must be 'pooled' or 'query'"),
        ({"min_pool": 1}, r"^min_pool=1 must be a whole number of at least 2"),
        ({"min_pool": 99}, "min_pool=99 leaves no pool; the largest has 4"),
        ({"value_range": (1, 0)}, "must be the lowest and the highest value"),
        ({"value_range": (0, float("nan"))}, "must be the lowest and the highest value"),
        ({"value_range": 3}, "must be the lowest and the highest value"),
        ({"value_range": (0, 0.1)}, "lies outside value_range="),
        ({"value_range": (0, 9), "unit": "query"}, "says nothing with unit='query'"),
        ({"rho": 10}, r"^rho=10 must be at most 1"),
        ({"delta": 1.5}, r"^delta=1.5 must be at most 1"),
        ({"k": [5]}, "the largest K that every pool allows is 4"),
    ],
)
def test_what_cannot_be_used_is_refused(given: dict[str, Any], said: str) -> None:
    data = ScoredPools.from_arrays({"s": np.eye(4)}, np.eye(4))
    with pytest.raises(InputError, match=said):
        flat.audit(data, **given)


def test_replicates_and_own_headroom_do_not_go_together() -> None:
    rng = np.random.default_rng(0)
    data = ScoredPools.from_arrays(
        {"s": rng.random((5, 4))}, {"a": rng.random((5, 4)), "b": rng.random((5, 4))}
    )
    with pytest.raises(InputError, match="too noisy to divide by"):
        flat.audit(data, replicates=["a", "b"], unit="query")


def test_each_query_in_its_own_headroom() -> None:
    """Half of the queries are a thousand times larger: pooled, only those count."""
    rng = np.random.default_rng(1)
    value = rng.random((200, 8))
    value[:100] *= 1_000.0
    score = np.where(np.arange(200)[:, None] < 100, -value, value)
    value[150:160] = 0.5  # no headroom
    data = ScoredPools.from_arrays({"s": score}, value)
    pooled = flat.audit(data, **FAST).to_dict()
    own = flat.audit(data, unit="query", **FAST).to_dict()
    assert pooled["headroom_spread"] > 10
    assert (pooled["unit"], own["unit"]) == ("pooled", "query")
    assert (pooled["left_out"]["no_headroom"], own["left_out"]["no_headroom"]) == (0, 10)
    entry = own["scorers"]["s"]
    random, best = value.mean(axis=1), value.max(axis=1)
    picked = np.take_along_axis(value, score.argmax(axis=1)[:, None], axis=1)[:, 0]
    keep = best > random
    expected = ((picked - random)[keep] / (best - random)[keep]).mean()
    assert entry["gain"]["value"][-1] == pytest.approx(expected)
    assert entry["captured"][-1] == entry["gain"]["value"][-1]
    assert pooled["other_unit"] == {"s": entry["verdict"]["status"]}
    assert own["other_unit"] == {"s": pooled["scorers"]["s"]["verdict"]["status"]}
    assert pooled["scorers"]["s"]["verdict"]["status"] == "unsafe"
    even = flat.audit(pools(50, 8, 0.5), **FAST).to_dict()
    assert even["other_unit"] is None
    assert even["headroom_spread"] < 10


def sized(sizes: list[int], **extra: Any) -> ScoredPools:
    """Pools of different sizes, the score right."""
    rng = np.random.default_rng(0)
    value = rng.random((len(sizes), max(sizes)))
    return ScoredPools.from_arrays({"s": value}, value, size=np.array(sizes), **extra)


def test_one_small_pool_does_not_cap_k_for_all() -> None:
    content = flat.audit(sized([6] + [50] * 30 + [60] * 20), **FAST).to_dict()
    assert content["k"] == [1, 2, 4, 8, 16, 32, 50]
    assert content["min_pool"] == 50
    assert content["left_out"] == {"single": 0, "small": 1, "no_headroom": 0}
    assert content["queries"] == 50
    assert any("fewer than 50 candidates" in warning for warning in content["warnings"])
    both = content["populations"]
    assert (both["audited"]["queries"], both["all"]["queries"]) == (50, 51)
    assert (both["audited"]["smallest_pool"], both["all"]["smallest_pool"]) == (50, 6)
    assert both["all"]["k"] == both["audited"]["k"] == 6
    every = flat.audit(sized([6] + [50] * 30 + [60] * 20), min_pool=2, **FAST).to_dict()
    assert every["k"] == [1, 2, 4, 6]
    assert every["scorers"]["s"]["value"][-1] == pytest.approx(both["all"]["value"]["s"])
    assert every["populations"] is None
    (stops,) = (warning for warning in every["warnings"] if "K stops at 6" in warning)
    assert "--min-pool 50 (in Python min_pool=50) searches up to 50, in the 50 of 51 pools" in stops


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        (
            [8] * 20 + [10] * 30,
            "--min-pool 10 (in Python min_pool=10) searches up to 10, in the 30",
        ),
        (
            [8] * 25 + [40] * 25,
            "--min-pool 40 (in Python min_pool=40) searches up to 40, in the 25",
        ),
        ([8] * 20 + [9] * 30, ""),  # one K more is not worth half of the queries
        ([8] * 30 + [40] * 20, ""),  # most pools have no more
        ([8] * 50, ""),
    ],
)
def test_a_cap_of_k_is_named_with_what_lifts_it(sizes: list[int], named: str) -> None:
    result = flat.audit(sized(sizes), **FAST)
    stops = [warning for warning in result.warnings if "K stops at 8" in warning]
    assert bool(stops) == bool(named)
    assert all(named in warning for warning in stops)
    said = result.summary()
    capped = "K = 1, 2, 4 and 8, the size of the smallest pool." in " ".join(said.split())
    assert capped == (max(sizes) > 8)
    assert ("--min-pool" in said) == bool(named)
    assert ("--min-pool" in render_html(result.to_dict())) == bool(named)


def test_groups_are_tested_against_each_other() -> None:
    rng = np.random.default_rng(1)
    value = rng.random((150, 8))
    score = np.where(np.arange(150)[:, None] < 50, value, rng.random(value.shape))
    group = np.repeat(["a", "b", "c"], 50)
    content = flat.audit(
        ScoredPools.from_arrays({"s": score}, value, group=group), **FAST
    ).to_dict()
    rows = {tuple(row["groups"]): row for row in content["group_tests"]}
    assert list(rows) == [("a", "b"), ("a", "c"), ("b", "c")]
    gains = {g: content["groups"][g]["scorers"]["s"]["gain"]["value"][-1] for g in "abc"}
    assert rows["a", "b"]["difference"] == pytest.approx(gains["a"] - gains["b"])
    assert rows["a", "b"]["low"] > 0
    assert rows["a", "b"]["p_holm"] < 0.01
    assert rows["b", "c"]["low"] < 0 < rows["b", "c"]["high"]
    assert rows["b", "c"]["p_holm"] >= rows["b", "c"]["p"] > 0.01
    assert content["group_heterogeneity"]["s"] < 1e-6
    alike = ScoredPools.from_arrays({"s": score[50:]}, value[50:], group=group[50:])
    assert flat.audit(alike, **FAST).to_dict()["group_heterogeneity"]["s"] > 0.01


def test_draws_of_groups_are_independent() -> None:
    """Two groups of equal queries: were the draws shared, the difference would not vary."""
    value = np.tile(np.random.default_rng(0).random((30, 4)), (2, 1))
    score = np.tile(np.random.default_rng(1).random((30, 4)), (2, 1))
    data = ScoredPools.from_arrays({"s": score}, value, group=np.repeat(["a", "b"], 30))
    content = flat.audit(data, **FAST).to_dict()
    (row,) = content["group_tests"]
    assert row["difference"] == pytest.approx(0.0)
    gain = content["groups"]["a"]["scorers"]["s"]["captured_high"][-1]
    assert row["high"] - row["low"] > 0.1
    assert gain is not None


def test_a_score_of_minus_infinity_is_the_lowest() -> None:
    value = np.tile([0.0, 1.0, 2.0], (50, 1))
    score = np.tile([-1e9, 1.0, 2.0], (50, 1))
    finite = ScoredPools.from_arrays({"s": score}, value)
    object.__setattr__(finite, "scores", {"s": np.where(score < 0, -np.inf, score).ravel()})
    entry = flat.audit(finite, **FAST).to_dict()["scorers"]["s"]
    assert entry["value"] == [1.0, pytest.approx(5 / 3), 2.0]
    assert entry["selected_score"][1:] == [pytest.approx(5 / 3), 2.0]
    assert entry["selected_score"][0] is None
    assert entry["verdict"]["status"] == "safe"


def test_random_scores_rarely_decide() -> None:
    """Without any information an established effect must come up in at most about 5 % of runs."""
    wrong = sum(
        verdict(pools(40, 8, 0.0, seed), resamples=200)["status"] in ("safe", "unsafe")
        for seed in range(150)
    )
    assert wrong <= 14  # chance below 1 % at a true rate of 5 %


def between_powers(n: int = 400) -> ScoredPools:
    """Pools of 4 worth 1, -2, 1, 0.15 in the order of the score: V = .04, .07, .36, .15."""
    rng = np.random.default_rng(0)
    score = rng.permuted(np.tile(np.arange(4.0), (n, 1)), axis=1)
    value = np.array([1.0, -2.0, 1.0, 0.15])[score.astype(int)]
    return ScoredPools.from_arrays({"s": score}, value)


def test_a_fall_between_the_powers_of_two_is_seen() -> None:
    """It falls by 21 % of the headroom from K = 3 to K = 4, and rises from 1 to 2 to 4."""
    found = verdict(between_powers())
    assert found["status"] == "unsafe"
    assert (found["k_best"], found["k_harm"], found["k_max"]) == (3, 4, 4)
    assert "from K = 3 to K = 4 the value changes by −22%" in found["reason"]
    assert [3, 4] in [step["k"] for step in found["steps"]]


def test_thresholds_are_printed_as_they_were_tested() -> None:
    data = pools(400, 4, 0.9)
    found = verdict(data, rho=0.025, delta=0.005)
    assert found["status"] == "safe"
    assert "a fall of more than 2.5% is ruled out" in found["reason"]
    questions = " ".join(check["question"] for check in found["checks"])
    assert "lose more than 0.5% of the headroom" in questions
    assert "a loss of more than 2.5% of the headroom" in questions
    open_ = verdict(pools(50, 4, 0.1), rho=0.025)
    assert "A fall of more than 2.5% of the headroom cannot be ruled out" in open_["reason"]
    scores = np.zeros((900, 4))
    scores[0, 0] = 1e-9  # a constant score has a reason of its own
    blind = ScoredPools.from_arrays({"s": scores}, np.eye(4)[[1] * 900])
    none = verdict(blind, rho=0.025)
    assert none["status"] == "no gain"
    assert "a fall of more than 2.5% of the headroom is ruled out" in none["reason"]
