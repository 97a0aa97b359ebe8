from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stats import slow
from toptail.stats import (
    best_of_k,
    divergence_bound,
    normalized_regret,
    oracle,
    selection_weights,
    split_oracle,
)

small = st.integers(0, 3).map(float)  # few distinct scores: many ties
pools = st.lists(st.tuples(small, st.integers(-5, 5).map(float)), min_size=1, max_size=7)


@given(pools)
def test_equals_enumeration(pool: list[tuple[float, float]]) -> None:
    """With ties, of one candidate and of equal scores, too; `test_battery` has what follows."""
    scores, values = (list(x) for x in zip(*pool, strict=True))
    k = list(range(1, len(pool) + 1))
    exact = best_of_k([scores], [values], k)[0]
    np.testing.assert_allclose(exact, [slow.best_of_k(scores, values, i) for i in k], atol=1e-12)


@given(st.integers(1, 60), st.data())
def test_binary_values_scored_by_themselves_give_pass_at_k(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n))
    values = np.array([[1.0] * correct + [0.0] * (n - correct)])
    k = list(range(1, n + 1))
    pass_at_k = [1 - comb(n - correct, i) / comb(n, i) for i in k]
    np.testing.assert_allclose(oracle(values, k)[0], pass_at_k, atol=1e-12)


def test_weights_are_ratios_of_binomials() -> None:
    n, k = 30, [1, 2, 7, 29, 30]
    expected = [[comb(j - 1, i - 1) / comb(n, i) for j in range(1, n + 1)] for i in k]
    np.testing.assert_allclose(selection_weights(n, k), expected, rtol=1e-12)


def test_no_overflow_at_100_000_candidates() -> None:
    n = 100_000
    k = [1, 2, 1_000, 65_536, n]
    weights = selection_weights(n, k)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
    # With values = ranks, the mean maximum of K draws without replacement is K(n+1)/(K+1).
    curve = weights @ np.arange(1.0, n + 1)
    np.testing.assert_allclose(curve, [i * (n + 1) / (i + 1) for i in k], rtol=1e-9)


def test_huge_scores_and_a_stack_of_columns() -> None:
    scores = np.array([[-1e308, 0.0, 1e308], [1e308, 1e308, -1e308]])
    columns = np.stack([np.arange(6.0).reshape(2, 3), np.ones((2, 3))])
    curve = best_of_k(scores, columns, [1, 3])
    np.testing.assert_allclose(curve[0], [[1.0, 2.0], [4.0, 3.5]])
    np.testing.assert_allclose(curve[1], 1.0)


def test_nan_stays_nan_and_does_not_spread_to_other_queries() -> None:
    scores = np.array([[0.0, np.nan, 1.0], [0.0, 1.0, 2.0]])
    values = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, 5.0]])
    curve = best_of_k(scores, values, [1, 3])
    assert np.isnan(curve[0]).all()
    assert np.isnan(curve[1, 0])
    clean = best_of_k(scores[1:], np.array([[1.0, 2.0, 5.0]]), [3])
    assert clean[0, 0] == 5.0


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_outside_the_pool_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=rf"K = {k} is outside 1\.\.3"):
        selection_weights(3, [k])


def test_shapes_must_match() -> None:
    with pytest.raises(ValueError, match="do not match"):
        best_of_k(np.zeros((2, 3)), np.zeros((3, 2)), [1])


def test_split_oracle_does_not_reward_noise() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 4_000, 16))  # no candidate is truly better than another
    k = [1, 16]
    biased = oracle(noise.mean(axis=0), k).mean(axis=0)
    split = split_oracle(noise, k).mean(axis=0)
    assert biased[1] > 1.0
    assert abs(split[1]) < 0.05


def test_split_oracle_equals_oracle_without_noise() -> None:
    values = np.random.default_rng(0).random((5, 8))
    np.testing.assert_allclose(split_oracle(np.stack([values] * 4), [1, 4]), oracle(values, [1, 4]))
    with pytest.raises(ValueError, match="two replicates"):
        split_oracle(values[None], [1])


def test_normalized_regret_reads_0_at_the_oracle_and_1_at_random() -> None:
    result = normalized_regret([3.0, 1.0, 0.0, 2.0], [3.0, 3.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(result[:3], [0.0, 1.0, 1.5])
    assert np.isnan(result[3])  # no headroom: nothing to normalize by


def test_divergence_bound_is_the_exact_divergence_of_a_uniform() -> None:
    # The maximum of K uniforms has density K u^(K-1): its divergence from the uniform in numbers.
    u = (np.arange(200_000) + 0.5) / 200_000
    for k in (1, 2, 8, 64):
        log_density = np.log(k) + (k - 1) * np.log(u)
        divergence = (np.exp(log_density) * log_density).mean()
        np.testing.assert_allclose(divergence_bound(k), divergence, atol=1e-4)
