from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.tasks.conftest import hand_made
from tests.tasks.test_trajectories import TRIPLES, rng
from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import Triples, sample_triples
from toptail_paper.triples.draws import hard_negatives, same_trajectory_pairs


def test_one_trajectory_has_no_hard_negatives() -> None:
    with pytest.raises(InputError, match="at least two trajectories"):
        hard_negatives(TRIPLES.take(np.array([0, 2])), hand_made())


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
