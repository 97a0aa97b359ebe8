"""Horvitz–Thompson arithmetic: unbiased by enumeration of every sample that could be drawn."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from toptail.judging.design import chances, contrast_sizes, expected_largest
from toptail.judging.plan import level_at
from toptail.stats.best_of_k import best_of_k
from toptail.stats.sampled import cross_fitted, difference_values, query_centres


def every_sample(p: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Each sample of independent draws, with its probability."""
    found = []
    for drawn in product((False, True), repeat=p.size):
        chosen = np.array(drawn)
        found.append((chosen, float(np.where(chosen, p, 1 - p).prod())))
    return found


def test_curves_from_samples_have_the_right_mean_ties_included() -> None:
    score = np.array([[1.0, 2.0, 2.0, 5.0, 4.0]])
    value, p = np.array([3.0, -1.0, 4.0, 1.0, 5.0]), np.array([0.2, 0.9, 0.5, 0.3, 0.7])
    predicted = np.array([1.0, 0.0, 2.0, 2.0, 9.0])
    mean = np.zeros(3)
    for chosen, chance in every_sample(p):
        z = difference_values(np.where(chosen, value, np.nan), p, predicted)
        mean += chance * best_of_k(score, z[None], [1, 2, 5])[0]
    np.testing.assert_allclose(mean, best_of_k(score, value[None], [1, 2, 5])[0])


def test_the_querys_other_candidates_may_correct_a_prediction() -> None:
    value, p = np.array([3.0, -1.0, 4.0, 6.0]), np.array([0.2, 0.9, 0.5, 0.6])
    query, fold = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    # Another fold with two queries that differ, so that centres are not shrunk to nothing.
    more = np.array([0.0, 0.1, 9.0, 9.1])
    queries = np.concatenate([query, [1, 1, 2, 2]])
    folds = np.concatenate([fold, np.ones(4, dtype=np.int64)])
    mean, moved = np.zeros(4), 0.0
    for chosen, chance in every_sample(p):
        own = np.concatenate([chosen, np.ones(4, dtype=bool)])
        missed = np.where(own, np.concatenate([value, more]), 0.0)
        centre = query_centres(missed, own, queries, folds)[:4]
        moved = max(moved, float(np.abs(centre).max()))
        mean += chance * difference_values(np.where(chosen, value, np.nan), p, centre)
    np.testing.assert_allclose(mean, value)
    assert moved > 1.0


def test_predictions_do_not_look_at_their_own_fold() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1))
    value, fold = 3.0 * x[:, 0] + 1.0, np.arange(40) % 4
    p = np.full(40, 0.5)
    before = cross_fitted(value, p, x, fold)
    np.testing.assert_allclose(before, value, atol=1e-9)
    value[fold == 2] += 100.0
    after = cross_fitted(value, p, x, fold)
    np.testing.assert_array_equal(after[fold == 2], before[fold == 2])
    assert not np.allclose(after[fold != 2], before[fold != 2])


def test_a_feature_that_says_nothing_is_shrunk_away() -> None:
    slopes = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, value = rng.normal(size=(60, 1)), rng.normal(size=60)
        spread = cross_fitted(value, np.full(60, 0.5), x, np.arange(60) % 3)
        plain = cross_fitted(value, np.full(60, 0.5), x[:, :0], np.arange(60) % 3)
        slopes.append(np.abs(spread - plain).max())
    assert np.mean(np.array(slopes) == 0.0) > 0.1


def test_weights_of_contrasts_by_brute_force_ties_included() -> None:
    score = np.array([[1.0, 2.0, 2.0, 5.0], [4.0, 3.0, 2.0, 1.0]])
    sizes = contrast_sizes(score, (1, 2, 4), np.array([0, 1]), np.array([2, 2]))
    for i in range(4):
        unit = np.tile(np.eye(4)[i], (2, 1))
        curve = best_of_k(score, unit, [1, 2, 4])
        slow = (curve[:, 2] - curve[:, 0]) ** 2 + (curve[:, 2] - curve[:, 1]) ** 2
        np.testing.assert_allclose(sizes[:, i], slow, atol=1e-12)


def test_chances_add_up_and_stay_inside() -> None:
    size = np.array([0.0, 1.0, 2.0, 50.0, 3.0])
    found = chances(size, 2.5, 0.2)
    assert found.sum() == pytest.approx(2.5, rel=1e-6)
    assert found.min() == pytest.approx(0.2 * 2.5 / 5)
    assert found.max() == 1.0
    assert found[2] == pytest.approx(2 * found[1])


def test_the_expected_largest_of_normal_numbers() -> None:
    assert expected_largest(1) == pytest.approx(0.0, abs=1e-9)
    draws = np.random.default_rng(0).normal(size=(200_000, 8)).max(axis=1)
    assert expected_largest(8) == pytest.approx(draws.mean(), abs=0.01)


@pytest.mark.parametrize("looks", [1, 2, 10])
def test_looks_together_spend_what_one_would(looks: int) -> None:
    spent = [1 - level_at(0.95, at, looks) for at in range(1, looks + 1)]
    assert sum(spent) == pytest.approx(0.05)
    assert min(spent) > 0
    assert spent[-1] == max(spent) or looks > 2
