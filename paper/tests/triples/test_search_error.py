"""The split of the regret of search, by hand and against a slow version over all subsets."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from toptail_paper.triples.search_error import search_error

CASES = {
    # critic, ideal, value, on support; K = 3; target, estimation, extrapolation, and the last two
    # terms the other way round (extrapolation first, estimation last).
    "a perfect critic of the value": ([3, 2, 1], [3, 2, 1], [3, 2, 1], [1, 1, 0], (0, 0, 0, 0, 0)),
    "a perfect critic of another thing": (
        *([1, 2, 3], [1, 2, 3], [5, 4, 1], [1, 1, 0]),
        (4, 0, 0, 0, 0),
    ),
    "a swap on the support": ([1, 2, 0], [2, 1, 0], [7, 4, 0], [1, 1, 0], (0, 3, 0, 0, 3)),
    "a bad one off it": ([2, 1, 3], [3, 2, 1], [7, 4, 0], [1, 1, 0], (0, 0, 7, 7, 0)),
    "a swap hidden behind a bad one off it": (
        *([1, 2, 3], [3, 2, 1], [7, 4, 0], [1, 1, 0]),
        (0, 3, 4, 7, 0),
    ),
    "the objective's fault is undone": (
        [1, 2, 0],
        [2, 1, 0],
        [4, 7, 0],
        [1, 1, 0],
        (3, -3, 0, 0, -3),
    ),
    "all on support": ([1, 2, 3], [3, 2, 1], [7, 4, 0], [1, 1, 1], (0, 7, 0, 0, 7)),
    "all off support": ([1, 2, 3], [3, 2, 1], [7, 4, 0], [0, 0, 0], (0, 0, 7, 7, 0)),
    "the ideal says nothing off support": (
        *([1, 2, 3], [2, 1, -np.inf], [7, 4, 9], [1, 1, 0]),
        (2, 3, -5, -2, 0),
    ),
    "an ideal that holds all equal": (
        *([1, 2, 3], [0, 0, 0], [8, 4, 0], [1, 1, 1]),
        (4, 4, 0, 0, 4),
    ),
    "a tie shares its places": ([1, 1, 0], [2, 1, 0], [7, 4, 0], [1, 1, 0], (0, 1.5, 0, 0, 1.5)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_cases_by_hand(case: tuple[Any, ...]) -> None:
    *columns, (target, estimation, extrapolation, first, last) = case
    critic, ideal, value, support = (np.array([x]) for x in columns)
    split = search_error(critic, ideal, value, support, [3])
    given = [float(term[0, 0]) for term in split]
    total = target + estimation + extrapolation
    assert given == [target, estimation, extrapolation, total, last, first]


def slow_mixed(
    places: list[float], order: list[float], value: list[float], on: list[bool], k: int
) -> float:
    """Mean over all K-subsets of the value at the best place, without ties."""
    supported = [i for i in range(len(on)) if on[i]]
    at = dict(enumerate(value))
    by_place = sorted(supported, key=lambda i: places[i])
    by_order = sorted(supported, key=lambda i: order[i])
    for place, taken in zip(by_place, by_order, strict=True):
        at[place] = value[taken]
    sets = combinations(range(len(on)), k)
    return float(np.mean([at[max(chosen, key=lambda i: places[i])] for chosen in sets]))


def test_slow_version_over_all_subsets() -> None:
    rng = np.random.default_rng(4)
    critic, ideal, value = rng.normal(size=(3, 5, 8))
    on = rng.random((5, 8)) < 0.6
    k = [1, 2, 5, 8]
    split = search_error(critic, ideal, value, on, k)
    for row in range(5):
        f, best, v, s = (x[row].tolist() for x in (critic, ideal, value, on))
        for i, count in enumerate(k):
            sets = list(combinations(range(8), count))
            top = np.mean([max(v[i] for i in chosen) for chosen in sets])
            ideal_, all_ = slow_mixed(best, best, v, s, count), slow_mixed(f, f, v, s, count)
            mixed, other = slow_mixed(best, f, v, s, count), slow_mixed(f, best, v, s, count)
            wanted = [top - ideal_, ideal_ - mixed, mixed - all_, top - all_]
            wanted += [other - all_, ideal_ - other]
            np.testing.assert_allclose([term[row, i] for term in split], wanted, atol=1e-12)


def test_terms_add_up_both_ways_with_ties() -> None:
    rng = np.random.default_rng(5)
    critic, ideal, value = rng.integers(0, 4, size=(3, 40, 9)).astype(float)
    split = search_error(critic, ideal, value, rng.random((40, 9)) < 0.5, [1, 3, 9])
    for parts in (
        split.target + split.estimation + split.extrapolation,
        split.target + split.extrapolation_first + split.estimation_last,
    ):
        np.testing.assert_allclose(parts, split.total, atol=1e-12)


def test_only_orders_count() -> None:
    rng = np.random.default_rng(6)
    critic, ideal, value = rng.normal(size=(3, 7, 9))
    on = rng.random((7, 9)) < 0.5
    plain = search_error(critic, ideal, value, on, [2, 9])
    scaled = search_error(np.exp(critic), 100 + 3 * ideal, value, on, [2, 9])
    np.testing.assert_allclose(scaled, plain, atol=1e-12)


def test_a_nan_spoils_its_query_alone() -> None:
    critic, ideal, value = np.random.default_rng(7).normal(size=(3, 3, 6))
    critic[0, 2] = ideal[2, 1] = np.nan
    split = search_error(critic, ideal, value, np.ones((3, 6), bool), [6])
    assert np.isnan(split.estimation).any(axis=1).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="do not match"):
        search_error(critic, ideal[:2], value, np.ones((3, 6), bool), [6])
