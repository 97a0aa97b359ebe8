from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import optimize, stats

from tests.stats import slow
from toptail.stats import (
    Shares,
    Unseen,
    extreme_weights,
    rare_share,
    shares,
    unseen_cluster,
    weighted_sums,
)
from toptail.stats.ends import extreme_changes, moved_weight, unseen_weights

K = [1, 2, 3, 5]


@pytest.mark.parametrize("values", [[3.0, -1.0, 0.5, 7.0, 2.0], [0.0, 1.0, 1.0, 0.0, 0.0]])
def test_no_order_changes_more_than_the_extremes_say(values: list[float]) -> None:
    """Every order of five candidates by a score, by enumeration of every pool of K."""
    steps = list(combinations(range(len(K)), 2))
    first, second = (np.array([step[at] for step in steps]) for at in (0, 1))
    least, most = extreme_weights(5, K, first, second)
    changes = []
    for order in permutations(range(5)):
        curve = [slow.best_of_k(list(order), values, k) for k in K]
        changes.append([curve[b] - curve[a] for a, b in steps])
    np.testing.assert_allclose(np.sort(values) @ least, np.min(changes, axis=0), atol=1e-12)
    np.testing.assert_allclose(np.sort(values) @ most, np.max(changes, axis=0), atol=1e-12)


def some_shares(n: int, seed: int = 0, resamples: int = 4_000, unseen: bool = True) -> Shares:
    """Shares of two changes of n clusters."""
    rng = np.random.default_rng(seed)
    headroom = rng.gamma(4.0, 1.0, (n, 1))
    change = headroom * 0.3 + rng.normal(0, 1.0, (n, 2))
    sums = np.concatenate([change, headroom], axis=1)
    draws, weight = weighted_sums(sums, np.random.default_rng(seed + 1), resamples)
    worst = unseen_cluster([-headroom * np.ones(2), headroom * np.ones(2)], headroom)
    none = Unseen(np.zeros(2), np.zeros(2), np.zeros(1))
    ghost = worst if unseen else none
    return shares(change, headroom, draws.T[:2], draws.T[2:], weight, ghost)


def test_weights_are_a_dirichlet_of_one_cluster_more() -> None:
    sums = np.eye(4)
    draws, weight = weighted_sums(sums, np.random.default_rng(0), 40_000)
    np.testing.assert_allclose(draws.sum(axis=1), 4.0)
    share = np.column_stack([draws, weight]) / (4.0 + weight)[:, None]
    for column in share.T:  # each of n + 1 shares is Beta(1, n)
        assert stats.kstest(column[:5_000], stats.beta(1, 4).cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.asarray(np.corrcoef(share.T))[0, 1:], -1 / 4, atol=0.02)


def test_tiles_join_and_the_seed_decides_every_bit() -> None:
    sums = np.random.default_rng(1).normal(size=(3_000, 2))  # several tiles and blocks
    a, one = weighted_sums(sums, np.random.default_rng(7), 600)
    b, other = weighted_sums(sums, np.random.default_rng(7), 600)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(a, weighted_sums(sums, np.random.default_rng(8), 600)[0])
    np.testing.assert_allclose(a.std(axis=0), sums.std(axis=0) * np.sqrt(3_000), rtol=0.1)


def test_progress_of_the_weights_is_told() -> None:
    told: list[float] = []
    weighted_sums(np.ones((3_000, 1)), np.random.default_rng(0), 600, told.append)
    assert told[-1] == 1.0
    assert told == sorted(told)


def test_two_values_give_the_end_of_clopper_and_pearson() -> None:
    """Changes of 0 and 1 over a headroom of 1, the unseen one at 0: the exact binomial end."""
    n, successes = 30, 21
    change = (np.arange(n) < successes).astype(float)[:, None]
    ones = np.ones((n, 1))
    draws, weight = weighted_sums(
        np.concatenate([change, ones], axis=1), np.random.default_rng(0), 100_000
    )
    found = shares(
        change, ones, draws.T[:1], draws.T[1:], weight, Unseen(np.zeros(1), ones[0], ones[0])
    )
    exact = stats.binomtest(successes, n).proportion_ci(0.95, "exact")
    assert np.quantile(found.lower, 0.025) == pytest.approx(exact.low, abs=0.004)
    assert np.quantile(found.upper, 0.975) == pytest.approx(exact.high, abs=0.004)


def test_ends_equal_another_route_to_the_same_law() -> None:
    """Gamma variables drawn by SciPy and a loop give the same quantiles."""
    found = some_shares(12, resamples=60_000)
    rng = np.random.default_rng(0)
    headroom = rng.gamma(4.0, 1.0, (12, 1))
    change = headroom * 0.3 + rng.normal(0, 1.0, (12, 2))
    ghost_headroom = float((headroom**4).sum() / (headroom**3).sum())
    ghost_change = -ghost_headroom  # every cluster loses its headroom at worst
    w = stats.dirichlet.rvs(np.ones(13), size=60_000, random_state=5)
    drawn = [
        (np.dot(row[1:], change[:, 0]) + row[0] * ghost_change)
        / (np.dot(row[1:], headroom[:, 0]) + row[0] * ghost_headroom)
        for row in w
    ]
    for tail in (0.025, 0.2, 0.5):
        slack = 0.02 * np.std(drawn)
        assert np.quantile(found.lower[0], tail) == pytest.approx(
            np.quantile(drawn, tail), abs=slack + 0.01
        )


def test_student_ends_are_where_the_test_of_the_difference_stops_rejecting() -> None:
    found = some_shares(15)
    rng = np.random.default_rng(0)
    headroom = rng.gamma(4.0, 1.0, 15)
    change = (headroom[:, None] * 0.3 + rng.normal(0, 1.0, (15, 2)))[:, 0]

    def p_above(share: float) -> float:
        test = stats.ttest_1samp(change - share * headroom, 0.0, alternative="greater")
        return float(test.pvalue) - 0.025

    low = optimize.brentq(p_above, found.value[0] - 5, found.value[0])
    assert found.student(0.025)[0][0] == pytest.approx(low)


def test_headroom_that_may_be_zero_has_no_ends() -> None:
    headroom = np.array([[-1.0], [1.0], [0.5]])
    draws, weight = weighted_sums(
        np.concatenate([headroom, headroom], axis=1), np.random.default_rng(0), 50
    )
    ghost = Unseen(np.zeros(1), np.zeros(1), np.zeros(1))
    found = shares(headroom, headroom, draws.T[:1], draws.T[1:], weight, ghost)
    assert np.isneginf(found.student(0.025)[0]).all()
    assert np.isposinf(found.student(0.025)[1]).all()


def test_the_unseen_cluster_only_widens() -> None:
    with_it, without = some_shares(20), some_shares(20, unseen=False)
    assert (with_it.low(0.025) < without.low(0.025)).all()
    assert (with_it.high(0.025) > without.high(0.025)).all()


def test_simultaneous_ends_hold_together_and_risk_alike() -> None:
    rng = np.random.default_rng(3)
    data = rng.normal(0, 1, (30, 5)) * np.array([1, 1, 3, 1, 1])
    ones = np.ones((30, 1))
    draws, weight = weighted_sums(np.concatenate([data, ones], axis=1), rng, 4_000)
    ghost = Unseen(np.full(5, -3.0), np.full(5, 3.0), np.ones(1))
    found = shares(data, ones, draws.T[:5], draws.T[5:], weight, ghost)
    high, risk = found.simultaneous_high(0.05, 0.025)
    assert (high >= found.high(0.025)).all()
    assert 0.05 / 5 <= risk[0] < 0.025  # between five separate ends and one
    outside = found.upper > np.quantile(found.upper, 1 - risk[0], axis=1)[:, None]
    assert outside.any(axis=0).mean() == pytest.approx(0.05, abs=0.002)
    each = outside.mean(axis=1)
    np.testing.assert_allclose(each, each[0], atol=1e-3)


def test_a_batch_is_its_parts() -> None:
    rng = np.random.default_rng(4)
    change, headroom = rng.normal(0, 1, (3, 9, 2)), rng.gamma(3, 1, (3, 9, 1))
    sums = np.concatenate([change, headroom], axis=2)
    weights = rng.exponential(size=(200, 9))
    drawn, extra = np.einsum("rn,bnc->bcr", weights, sums), rng.exponential(size=200)
    ghost = unseen_cluster([-headroom, headroom], headroom)
    both = shares(change, headroom, drawn[:, :2], drawn[:, 2:], extra, ghost)
    for at in range(3):
        one = shares(
            *(change[at], headroom[at], drawn[at, :2], drawn[at, 2:], extra),
            unseen_cluster([-headroom[at], headroom[at]], headroom[at]),
        )
        np.testing.assert_allclose(both.low(0.1)[at], one.low(0.1))
        np.testing.assert_allclose(
            both.simultaneous_high(0.2, 0.1)[0][at], one.simultaneous_high(0.2, 0.1)[0]
        )


def test_rare_harm_that_nobody_saw() -> None:
    n = 50
    share = rare_share(n, 0.025)
    assert (1 - share) ** n == pytest.approx(0.025)
    assert share == pytest.approx(stats.binomtest(0, n).proportion_ci(0.95, "exact").high)


def test_steps_are_the_shares_of_their_differences() -> None:
    """Draws made a few steps at a time, variances from products: the same as all at once."""
    rng = np.random.default_rng(5)
    headroom = rng.gamma(4.0, 1.0, (25, 1))
    curve = np.cumsum(rng.normal(0.1, 0.5, (25, 40)), axis=1)
    drawn, weight = weighted_sums(np.hstack([curve, headroom]), rng, 3_000)
    first, second = (np.array(x) for x in zip(*combinations(range(40), 2), strict=True))
    ends = rng.uniform(-3, 0, first.size), rng.uniform(0, 3, first.size)
    ghost = Unseen(*ends, headroom.max(axis=0))
    top = drawn[:, -1:].T
    fast = shares(curve, headroom, drawn[:, :-1].T, top, weight, ghost, (first, second))
    change = curve[:, second] - curve[:, first]
    draws = (drawn[:, second] - drawn[:, first]).T
    whole = shares(change, headroom, draws, top, weight, ghost)
    np.testing.assert_allclose(fast.value, whole.value)
    np.testing.assert_allclose(fast.se, whole.se)
    lower = (draws + ends[0][:, None] * weight) / (top + ghost.headroom * weight)
    low = np.minimum(np.quantile(lower, 0.025, axis=1), whole.student(0.025)[0])
    np.testing.assert_allclose(fast.low(0.025), low)
    upper = (draws + ends[1][:, None] * weight) / (top + ghost.headroom * weight)
    together, risk = fast.simultaneous_high(0.05, 0.025)
    rank = np.argsort(np.argsort(upper, axis=1), axis=1)  # the slow way: rank every draw
    c = max(np.sort(rank.max(axis=0))[int(np.ceil(0.95 * 3_000)) - 1], np.ceil(0.975 * 2_999))
    assert risk[0] == pytest.approx(1 - c / 3_000)
    slow_high = np.maximum(np.sort(upper, axis=1)[:, int(c)], whole.student(risk[0])[1])
    np.testing.assert_allclose(together, slow_high)


def test_draws_that_are_not_known_have_no_ends() -> None:
    """Some resampled headroom is not above 0: whatever the other draws say, no end is known."""
    headroom = np.array([[-1.0], [1.0], [0.5], [0.2]])
    change = np.arange(8.0).reshape(4, 2)
    drawn, weight = weighted_sums(np.hstack([change, headroom]), np.random.default_rng(0), 500)
    ghost = Unseen(np.zeros(1), np.zeros(1), np.zeros(1))
    steps = np.array([0]), np.array([1])
    found = shares(change, headroom, drawn[:, :2].T, drawn[:, 2:].T, weight, ghost, steps)
    assert (drawn[:, 2] <= 0).any()
    assert np.isnan(found.low(0.025)).all()
    assert np.isnan(found.simultaneous_high(0.05, 0.025)[0]).all()


def test_extremes_of_several_pools_add_up_and_ranges_bound_them() -> None:
    rng = np.random.default_rng(6)
    values = np.sort(rng.random((6, 9)), axis=1)
    first, second = (np.array(x) for x in zip(*combinations(range(5), 2), strict=True))
    k = [1, 2, 4, 7, 9]
    weights = extreme_weights(9, k, first, second)
    times = rng.random(6)
    found = extreme_changes(times @ values, k, first, second)
    for end, weight in zip(found, weights, strict=True):
        np.testing.assert_allclose(end, times @ (values @ weight))
    moved = moved_weight(9, k, first, second)
    assert (np.abs(values @ weights[0]) <= moved + 1e-12).all()
    step = np.array([0.0] * 8 + [1.0])  # from 1 to 9 the last rank gains all but a ninth
    assert moved[3] == pytest.approx(step @ weights[1][:, 3])
    np.testing.assert_allclose(unseen_weights(np.array([[1.0], [2.0], [0.0]]))[:, 0] * 9, [1, 8, 0])
