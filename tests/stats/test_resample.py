from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.stats import slow
from toptail.stats import (
    bootstrap_p,
    bootstrap_sums,
    cluster_sums,
    holm,
    max_t_band,
    percentile_interval,
    wilson,
)


def test_resampled_sums_equal_a_loop_over_the_same_draws() -> None:
    sums = np.random.default_rng(1).normal(size=(13, 4))
    fast = bootstrap_sums(sums, np.random.default_rng(7), 50)
    draws = np.random.default_rng(7).integers(13, size=(50, 13))
    expected = [sum(sums[i] for i in draw) for draw in draws]
    np.testing.assert_allclose(fast, expected)


def test_blocks_of_resamples_join_and_the_seed_decides_every_bit() -> None:
    sums = np.random.default_rng(1).normal(size=(3_000, 2))
    a = bootstrap_sums(sums, np.random.default_rng(7), 1_500)  # more than one block of draws
    b = bootstrap_sums(sums, np.random.default_rng(7), 1_500)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, bootstrap_sums(sums, np.random.default_rng(8), 1_500))
    spread = sums.std(axis=0) * np.sqrt(3_000)
    np.testing.assert_allclose(a.std(axis=0), spread, rtol=0.08)


def test_clusters_move_together() -> None:
    per_query = np.arange(12.0).reshape(6, 2)
    cluster = np.array([2, 0, 1, 0, 2, 2])
    expected = [per_query[cluster == c].sum(axis=0) for c in range(3)]
    np.testing.assert_allclose(cluster_sums(per_query, cluster), expected)
    assert cluster_sums(per_query, None) is per_query


def test_percentile_interval_cuts_equal_tails() -> None:
    low, high = percentile_interval(np.arange(1_001.0)[:, None], 0.9)
    np.testing.assert_allclose([low[0], high[0]], [50.0, 950.0])


def _draws(data: np.ndarray, seed: int) -> np.ndarray:
    n = data.shape[0]
    return np.asarray(bootstrap_sums(data, np.random.default_rng(seed), 400) / n)


def test_band_covers_all_entries_together() -> None:
    rng = np.random.default_rng(0)
    missed = pointwise_missed = 0
    for trial in range(300):
        data = rng.normal(size=(25, 6))  # true mean 0
        draws = _draws(data, trial)
        band = max_t_band(data.mean(axis=0), draws, clusters=25)
        missed += bool(((band.low > 0) | (band.high < 0)).any())
        low, high = percentile_interval(draws)
        pointwise_missed += bool(((low > 0) | (high < 0)).any())
    assert missed <= 28  # 5 % of 300 is 15; 28 has a chance below 0.2 %
    assert pointwise_missed > 45  # the test can fail: pointwise intervals miss far more often


def test_entries_without_variance_are_left_out() -> None:
    draws = np.column_stack([np.full(100, 3.0), np.random.default_rng(0).normal(size=100)])
    band = max_t_band([3.0, 0.0], draws, clusters=50)
    assert band.low[0] == band.high[0] == 3.0
    alone = max_t_band([0.0], draws[:, 1:], clusters=50)
    np.testing.assert_allclose(band.critical, alone.critical)
    none = max_t_band([3.0], draws[:, :1], clusters=50)
    assert none.critical == 0.0


def test_one_cluster_or_nan_gives_no_band() -> None:
    draws = np.zeros((10, 1))
    assert np.isnan(max_t_band([0.0], draws, clusters=1).low).all()
    assert np.isnan(max_t_band([np.nan], draws, clusters=5).high).all()


def test_few_clusters_widen_the_band() -> None:
    draws = np.random.default_rng(0).normal(size=(2_000, 1))
    few, many = (max_t_band([0.0], draws, clusters=c) for c in (3, 1_000))
    assert few.high[0] > 2 * many.high[0]


def test_bootstrap_p_counts_both_tails() -> None:
    draws = np.array([[-1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [2.0, 3.0, 0.0]])
    np.testing.assert_allclose(bootstrap_p(draws), [1.0, 0.5, 1.0])
    assert np.isnan(bootstrap_p(np.array([[np.nan], [1.0]]))).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_equals_the_step_down_procedure(p: list[float]) -> None:
    np.testing.assert_allclose(holm(p), slow.holm(p))


def test_holm_leaves_nan_out() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])


@given(st.integers(1, 200), st.data())
def test_wilson_equals_scipy(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    low, high = wilson(successes, trials)
    np.testing.assert_allclose([low, high], [expected.low, expected.high], atol=1e-12)


def test_wilson_without_trials_is_unknown() -> None:
    assert np.isnan(wilson(0, 0)[0])
