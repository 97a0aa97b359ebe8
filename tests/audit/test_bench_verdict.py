"""The simulation behind the promise: its truths, both of its rules, and that it is the audit's."""

from __future__ import annotations

import numpy as np
import pytest

import toptail
from toptail.audit.family import Family
from toptail.audit.settings import Rule
from toptail.bench.verdict import _SEED, _shares, bench_verdict, cells_of
from toptail.bench.verdict_before import status_before
from toptail.bench.verdict_cases import CASES, Case, clusters_of
from toptail.stats import bootstrap_sums, max_t_band


def cases() -> list[Case]:
    return [make(np.random.default_rng([_SEED, at])) for at, make in enumerate(CASES)]


@pytest.fixture(scope="module")
def every() -> list[Case]:
    return cases()


def test_the_truth_of_every_case_is_what_its_name_says(every: list[Case]) -> None:
    rule = Rule()
    for case in every:
        truth = case.truth()
        gain = truth[case.family.steps.index((1, case.family.k_max))]
        if "= ρ" in case.name:
            assert truth.min() == pytest.approx(-rule.rho)
        if "= δ" in case.name:
            assert truth.min() == pytest.approx(-rule.delta)
        if "gain = 0" in case.name:
            assert gain == pytest.approx(0.0, abs=1e-12)
        if case.wrong == "safe":
            assert truth.min() <= -rule.rho + 1e-12 or gain <= 1e-12
        if case.wrong == "unsafe":
            assert truth.min() >= -rule.delta - 1e-12
        assert 0.0 <= case.bad <= 1.0
    assert {case.wrong for case in every} == {"safe", "unsafe", "none"}


def test_the_simulation_judges_as_the_audit_does() -> None:
    """One table through both: the same shares, and ends that differ by the draws alone."""
    rng = np.random.default_rng(0)
    value = rng.normal(size=(60, 8))
    score = 0.4 * value + rng.normal(size=value.shape)
    family = Family.up_to(8)
    drawn = clusters_of(score, value, family)
    case = Case("one table", "none", (drawn, drawn), 0.0, family)
    table = type(drawn)(*(np.asarray(x)[None] for x in vars(drawn).values()))
    found = _shares(case, table, 20_000, rng)
    steps = toptail.audit({"s": score, "value": value}, resamples=20_000).verdicts["s"].steps
    assert steps is not None
    value, low, high = (
        np.array([step[end] for step in steps], dtype=float) for end in ("value", "low", "high")
    )
    np.testing.assert_allclose(found.value[0], value)
    np.testing.assert_allclose(found.low(0.025)[0], low, atol=0.01)
    np.testing.assert_allclose(found.simultaneous_high(0.05, 0.025)[0][0], high, atol=0.015)


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.4])
def test_the_rule_before_is_one_band_around_all_steps(shift: float) -> None:
    rng = np.random.default_rng(1)
    curves = rng.normal(0, 0.6, (30, 3)) + np.array([0.0, shift, 2 * shift])
    draws = bootstrap_sums(curves, rng, 500) / 30
    pairs = [(0, 1), (0, 2), (1, 2)]  # ordered by the larger K
    change = np.array([curves[:, b].mean() - curves[:, a].mean() for a, b in pairs])
    drawn = np.stack([draws[:, b] - draws[:, a] for a, b in pairs])
    band = max_t_band(change, drawn.T, 30)
    rule = Rule()
    expected = (
        "unsafe"
        if (band.high < -rule.delta).any()
        else "inconclusive"
        if (band.low < -rule.rho).any()
        else "safe"
        if band.low[1] > 0
        else "no gain"
    )
    found = status_before(change[None], drawn[None], np.ones(1), 30, 1.0, rule)
    assert found.tolist() == [expected]


def test_errors_are_rare_and_good_scorers_are_found(every: list[Case]) -> None:
    """A small simulation; at a true rate of 5 % a cell of 100 exceeds 12 in 0.1 % of runs."""
    for at in (0, 4, 16):  # loss = ρ, a tenth harmful, loss = δ
        (cell,) = cells_of(every[at], Rule(), 100, 200, at, (50,))
        assert cell.ours <= 0.12
    good = next(case for case in every if case.name == "good, correlation 0.5")
    few, many = cells_of(good, Rule(), 100, 200, 0, (20, 100))
    assert few.ours == 0.0
    assert many.ours > 0.9
    assert many == cells_of(good, Rule(), 100, 200, 0, (100,))[0]


def test_rows_name_the_truth_and_both_sides() -> None:
    rows = bench_verdict(2, 50)
    next(rows)
    row = next(rows)
    assert "wrong safe: loss = ρ (worst step -10.0%" in row.what
    assert row.result.count("/") == 7
    assert row.against.startswith("before: ")
