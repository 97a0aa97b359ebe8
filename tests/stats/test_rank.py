from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stats import slow
from toptail.stats import (
    auc,
    decile_gap,
    decile_means,
    kendall_tau_b,
    paired_win_rate,
    rank,
    recall_at_k,
    row_auc,
    spearman,
)
from toptail.stats.rank import (
    OrderStatistics,
    categories,
    category_shares,
    count_inversions,
    edge_ranks,
)

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


# Order statistics of a stream against a sort of everything.


RNG = np.random.default_rng(0)
NUMBERS = {
    "normal": RNG.normal(size=3_001),
    "one number": np.zeros(500),
    "ties": RNG.integers(-3, 3, 2_000).astype(np.float64),
    "lowest": np.concatenate([np.full(400, -np.inf), RNG.normal(size=300)]),
    "close together": 1.0 + 1e-14 * RNG.integers(0, 9, 2_000),
    "far apart": RNG.normal(size=1_000) * 10.0 ** RNG.integers(-300, 300, 1_000),
}


@pytest.mark.parametrize("few", [1 << 22, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_stream_gives_what_a_sort_gives(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "_FEW", few)
    numbers = NUMBERS[name]
    ranks = np.unique([0, numbers.size - 1, *RNG.integers(0, numbers.size, 9)])
    found = OrderStatistics(ranks)
    while found.found is None:
        one, other = found.blank(), found.blank()
        for piece in np.array_split(numbers, 5):
            (one if piece.size % 2 else other).add(piece)
        found.merge(one)
        found.merge(other)
        found.end()
    assert np.array_equal(found.found, np.sort(numbers)[ranks])


def test_no_rank_needs_no_pass() -> None:
    assert OrderStatistics(np.empty(0, dtype=np.int64)).found is not None


few_values = st.integers(0, 5).map(float)
pools = st.lists(st.tuples(few_values, few_values), min_size=1, max_size=35)


@given(pools, st.sampled_from([2, 3, 10]))
def test_means_equal_dealing_out_pieces(pool: list[tuple[float, float]], bins: int) -> None:
    scores, values = (list(z) for z in zip(*pool, strict=True))
    expected = slow.decile_means(scores, values, bins)
    np.testing.assert_allclose(decile_means(scores, values, bins), expected, atol=1e-9)


@given(pools, st.sampled_from([2, 3, 10]))
def test_bins_without_sorting_give_the_same_means(
    pool: list[tuple[float, float]], bins: int
) -> None:
    scores, values = (np.array(z) for z in zip(*pool, strict=True))
    edges = np.unique(np.sort(scores)[edge_ranks(scores.size, bins)])
    category = categories(scores, edges)
    counts = np.bincount(category, minlength=2 * edges.size + 1)
    weight = category_shares(counts, bins)[category]  # [n, bins]
    np.testing.assert_allclose(weight.sum(axis=1), 1.0)
    np.testing.assert_allclose(weight.sum(axis=0), scores.size / bins)
    means = (values[:, None] * weight).sum(axis=0) / weight.sum(axis=0)
    np.testing.assert_allclose(means, decile_means(scores, values, bins), atol=1e-9)


def test_constant_scores_are_flat_and_a_perfect_score_rises() -> None:
    values = np.arange(100.0)
    np.testing.assert_allclose(decile_means(np.zeros(100), values), 49.5)
    rising = decile_means(values, values)
    assert (np.diff(rising) > 0).all()
    np.testing.assert_allclose(decile_gap(rising), 90.0)
    np.testing.assert_allclose(decile_gap(decile_means(-values, values)), -90.0)


def test_nan_and_huge_scores() -> None:
    assert np.isnan(decile_means([[1.0, np.nan]], [[1.0, 2.0]])).all()
    np.testing.assert_allclose(decile_means([-1e308, 1e308], [0.0, 1.0], bins=2), [0.0, 1.0])
