from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.stats import slow
from toptail.stats import decile_gap, decile_means
from toptail.stats.rank import categories, category_shares, edge_ranks

few = st.integers(0, 5).map(float)
pools = st.lists(st.tuples(few, few), min_size=1, max_size=35)


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
