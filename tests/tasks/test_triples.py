from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.tasks.conftest import hand_made
from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import (
    Triples,
    hard_negatives,
    negatives,
    same_trajectory_pairs,
    sample_triples,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_triples_have_exactly_the_stated_distribution() -> None:
    data, count = hand_made((4, 2, 5)), 60_000
    triples = sample_triples(data, count, rng(), max_offset=2)
    # Every way to draw one, with its probability: a uniform transition, then a uniform offset.
    expected: dict[tuple[int, int], float] = {}
    for row in range(11):
        end = next(end for end in (3, 5, 10) if row <= end)
        longest = min(2, end - row)
        for offset in range(1, longest + 1):
            expected[(row, row + offset)] = 1 / 8 / longest
    drawn = list(zip(triples.rows.tolist(), triples.goal_rows.tolist(), strict=True))
    assert set(drawn) == set(expected)
    counts = [drawn.count(key) for key in expected]
    assert sum(expected.values()) == pytest.approx(1)
    assert stats.chisquare(counts, count * np.array(list(expected.values()))).pvalue > 1e-3
    assert np.array_equal(triples.trajectory, data.trajectory[triples.rows])


def test_the_default_offset_ends_at_sixty_and_value_is_gamma_to_the_distance() -> None:
    data = hand_made((200, 3))
    triples = sample_triples(data, 5000, rng())
    assert triples.distance.min() == 1
    assert triples.distance.max() == 60
    np.testing.assert_allclose(triples.value, [0.99**d for d in triples.distance.tolist()])


def test_the_same_seed_draws_the_same_triples() -> None:
    data = hand_made((30, 30))
    a, b, c = (sample_triples(data, 50, rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(a.rows, b.rows)
    assert np.array_equal(a.goal_rows, b.goal_rows)
    assert not np.array_equal(a.rows, c.rows)


TRIPLES = Triples(
    rows=np.array([0, 6, 1, 4, 7]),
    goal_rows=np.array([1, 8, 3, 5, 10]),
    trajectory=np.array([0, 2, 0, 1, 2]),
    gamma=0.99,
)


def test_negatives_come_from_other_trajectories_each_equally_likely() -> None:
    draws = np.concatenate([negatives(TRIPLES, 2, rng(seed)) for seed in range(3000)], axis=1)
    allowed = {0: [8, 5, 10], 1: [1, 3, 5], 2: [8, 5, 10], 3: [1, 8, 3, 10], 4: [1, 3, 5]}
    for i, goals in allowed.items():
        assert set(draws[i].tolist()) == set(goals)
        pairs = draws[i].reshape(-1, 2)
        assert np.all(pairs[:, 0] != pairs[:, 1]), "no goal twice"
        counts = [np.sum(pairs[:, 0] == goal) for goal in goals]
        assert stats.chisquare(counts).pvalue > 1e-3


def test_too_few_other_trajectories_are_said() -> None:
    assert negatives(TRIPLES, 3, rng()).shape == (5, 3)
    with pytest.raises(InputError, match="Trajectory 0 leaves 3 triples on other"):
        negatives(TRIPLES, 4, rng())
    alone = TRIPLES.take(np.array([0, 2]))
    with pytest.raises(InputError, match="at least two trajectories"):
        hard_negatives(alone, hand_made())


def test_hard_negatives_by_hand() -> None:
    data = hand_made((4, 2, 5))
    observations = np.zeros((11, 2), np.float32)
    observations[[0, 6, 1, 4, 7], 0] = [0.0, 0.4, 0.1, 1.0, 0.9]
    data = Trajectories(observations, data.actions, data.terminals)
    # Triple 0 at 0.0 (trajectory 0): 0.1 is on its own trajectory, so the nearest is 0.4.
    # Triple 1 at 0.4 (2): 0.1. Triple 2 at 0.1 (0): 0.4. Triple 3 at 1.0 (1): 0.9.
    # Triple 4 at 0.9 (2): 1.0.
    assert hard_negatives(TRIPLES, data).tolist() == [8, 3, 8, 10, 5]


def test_hard_negatives_against_a_slow_search() -> None:
    data = hand_made((40,) * 30)
    observations = rng(3).normal(size=(1200, 7)).round(1).astype(np.float32)  # with ties
    data = Trajectories(observations, data.actions, data.terminals)
    triples = sample_triples(data, 700, rng(4))
    found = hard_negatives(triples, data)
    states = observations[triples.rows].astype(np.float64)
    for i in range(0, 700, 7):
        best, best_distance = -1, np.inf
        for j in range(700):
            distance = float(np.sum((states[i] - states[j]) ** 2))
            if triples.trajectory[j] != triples.trajectory[i] and distance < best_distance:
                best, best_distance = j, distance
        assert found[i] == triples.goal_rows[best]


def test_same_trajectory_pairs_have_another_distance_uniformly() -> None:
    data = hand_made((4, 2, 5))
    triples = Triples(
        rows=np.array([0, 4, 6, 2]),
        goal_rows=np.array([2, 5, 8, 3]),
        trajectory=np.array([0, 1, 2, 0]),
        gamma=0.99,
    )
    counts: dict[tuple[int, int], int] = {}
    for seed in range(3000):
        pairs = same_trajectory_pairs(triples, data, rng(seed), max_offset=4)
        assert pairs.triples.rows.tolist() == [0, 6], "rows with one step left have no pair"
        distances = pairs.other_goal_rows - pairs.triples.rows
        for row, distance in zip(pairs.triples.rows, distances, strict=True):
            key = (int(row), int(distance))
            counts[key] = counts.get(key, 0) + 1
    assert set(counts) == {(0, 1), (0, 3), (6, 1), (6, 3), (6, 4)}
    for row in (0, 6):
        seen = [count for (at, _), count in counts.items() if at == row]
        assert stats.chisquare(seen).pvalue > 1e-3


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(InputError, match="Cannot draw 0 triples"):
        sample_triples(hand_made(), 0, rng())
