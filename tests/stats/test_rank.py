from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stats import slow
from toptail.stats import auc, kendall_tau_b, paired_win_rate, recall_at_k, row_auc, spearman
from toptail.stats.rank import count_inversions

few = st.integers(0, 4).map(float)
pairs = st.lists(st.tuples(few, few), min_size=1, max_size=20)


@given(pairs)
def test_tau_b_equals_counting_pairs(pool: list[tuple[float, float]]) -> None:
    x, y = (list(z) for z in zip(*pool, strict=True))
    np.testing.assert_allclose(kendall_tau_b(x, y), slow.tau_b(x, y), atol=1e-12)


def test_tau_b_of_a_batch_equals_rows_one_by_one() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 64, 65, 300):
        x, y = rng.integers(0, n, (7, n)).astype(float), rng.normal(size=(7, n))
        expected = [slow.tau_b(list(a), list(b)) for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(kendall_tau_b(x, y), expected, atol=1e-12)


def test_tau_b_without_variation_is_undefined_not_zero() -> None:
    assert np.isnan(kendall_tau_b([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
    assert np.isnan(kendall_tau_b([1.0], [2.0]))
    assert np.isnan(kendall_tau_b([1.0, np.nan, 2.0], [1.0, 2.0, 3.0]))


def test_tau_b_survives_huge_scores_and_many_candidates() -> None:
    assert kendall_tau_b([-1e308, 0.0, 1e308], [1.0, 2.0, 3.0]) == 1.0
    n = 50_000  # packed ranks no longer fit 32 bits
    x = np.random.default_rng(0).permutation(n).astype(float)
    assert kendall_tau_b(x, x) == 1.0
    assert kendall_tau_b(x, -x) == -1.0


@given(st.lists(st.integers(0, 6), min_size=1, max_size=7), st.integers(1, 3))
def test_inversions_equal_counting_pairs(ranks: list[int], rows: int) -> None:
    n = len(ranks)
    ranks = [min(r, n - 1) for r in ranks]
    expected = sum(ranks[i] > ranks[j] for i in range(n) for j in range(i + 1, n))
    np.testing.assert_array_equal(count_inversions(np.array([ranks] * rows)), expected)


@given(pairs)
def test_spearman_equals_the_definition(pool: list[tuple[float, float]]) -> None:
    x, y = (list(z) for z in zip(*pool, strict=True))
    np.testing.assert_allclose(spearman(x, y), slow.spearman(x, y), atol=1e-9)


@given(st.lists(st.tuples(few, st.booleans()), min_size=1, max_size=15))
def test_auc_equals_counting_pairs(pool: list[tuple[float, bool]]) -> None:
    scores, positive = (list(z) for z in zip(*pool, strict=True))
    expected = slow.auc(scores, positive)
    np.testing.assert_allclose(auc(scores, positive), expected, atol=1e-12)
    np.testing.assert_allclose(row_auc([scores], [positive]), [expected], atol=1e-12)


def test_auc_of_ties_is_half_and_of_one_class_undefined() -> None:
    assert auc([1.0, 1.0], [True, False]) == 0.5
    assert np.isnan(auc([1.0, 2.0], [True, True]))
    assert np.isnan(auc([np.nan, 2.0], [True, False]))


@given(st.lists(few, min_size=1, max_size=9), st.data())
def test_recall_equals_all_orders_of_ties(scores: list[float], data: st.DataObject) -> None:
    target = data.draw(st.integers(0, len(scores) - 1))
    k = data.draw(st.integers(1, len(scores)))
    expected = slow.recall_at_k(scores, target, k)
    np.testing.assert_allclose(recall_at_k([scores], [target], k), [expected], atol=1e-12)


def test_paired_win_rate_counts_ties_half() -> None:
    result = paired_win_rate([2.0, 1.0, 0.0, np.nan], [1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(result, [1.0, 0.5, 0.0, np.nan])


def test_shapes_must_match() -> None:
    with pytest.raises(ValueError, match="must both be"):
        kendall_tau_b([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="must both be"):
        spearman([1.0, 2.0], [1.0])
