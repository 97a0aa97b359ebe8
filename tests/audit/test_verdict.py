from __future__ import annotations

import numpy as np
import pytest

from toptail.audit.settings import Rule
from toptail.audit.verdict import Steps, Verdict, _queries_needed, _status, judge
from toptail.stats import bootstrap_sums

K = [1, 2, 4]


def steps(low: list[float], high: list[float]) -> Steps:
    """Steps (1,2), (1,4), (2,4) with the given ends."""
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    a, b = np.array(low), np.array(high)
    return Steps(first, second, (a + b) / 2, a, b)


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
    assert _status(steps(low, high), Rule()) == status


def test_how_many_queries_would_decide_it() -> None:
    # Half-width 0.2 around +0.05: ruling out -0.10 needs 0.15, so (0.2/0.15)^2 of 90 queries.
    found = _queries_needed(steps([0.1, 0.2, -0.15], [0.2, 0.3, 0.25]), 90, Rule())
    assert found == 160
    # Around -0.08: establishing -0.02 needs 0.06, ruling out -0.10 would need 0.02.
    found = _queries_needed(steps([0.1, 0.2, -0.20], [0.2, 0.3, 0.04]), 90, Rule())
    assert found == 360


def run(curves: np.ndarray, headroom: float = 1.0, seed: int = 0) -> Verdict:
    """Judge per-query curves [queries, 3]."""
    n = curves.shape[0]
    draws = bootstrap_sums(curves, np.random.default_rng(seed), 1_000) / n
    return judge(
        K,
        curves.mean(axis=0),
        draws,
        np.array([0.0, headroom / 2, headroom]),
        clusters=n,
        queries=n,
        scale=1.0,
        rule=Rule(),
    )


def test_a_curve_that_rises_then_falls() -> None:
    rng = np.random.default_rng(0)
    curves = np.array([0.0, 0.6, 0.2]) + rng.normal(0, 0.3, (400, 3))
    verdict = run(curves)
    assert verdict.status == "unsafe"
    assert (verdict.k_best, verdict.k_safe_max, verdict.k_harm) == (2, 2, 4)


def test_identical_queries_have_no_variance_and_still_a_verdict() -> None:
    assert run(np.tile([0.0, 0.5, 1.0], (10, 1))).status == "safe"
    assert run(np.tile([0.0, 0.0, 0.0], (10, 1))).status == "no gain"
    assert run(np.tile([0.0, 0.5, 0.4], (10, 1))).status == "unsafe"


def test_rounding_is_neither_gain_nor_harm() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-16, (50, 3))
    verdict = run(0.5 + noise)
    assert verdict.status == "no gain"
    assert verdict.k_best == 1


def test_a_flat_scorer_is_rarely_called_unsafe_or_safe() -> None:
    """Under no effect at all, an established effect must come up in at most about 5 % of runs."""
    rng = np.random.default_rng(1)
    wrong = sum(
        run(rng.normal(0, 0.5, (40, 3)), seed=trial).status in ("safe", "unsafe")
        for trial in range(200)
    )
    assert wrong <= 20  # chance below 0.5 % at a true rate of 5 %


def test_few_noisy_queries_are_inconclusive_and_say_how_many_more() -> None:
    curves = np.array([0.0, 0.1, 0.1]) + np.random.default_rng(2).normal(0, 0.5, (12, 3))
    verdict = run(curves)
    assert verdict.status == "inconclusive"
    assert isinstance(verdict.queries_needed, int)
    assert verdict.queries_needed > 12
    assert "would decide it" in verdict.reason
