from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from tests.tasks.conftest import hand_made
from toptail.errors import InputError


def test_ends_starts_lengths_and_transitions_by_hand() -> None:
    data = hand_made((4, 2, 5))
    assert data.ends.tolist() == [3, 5, 10]
    assert data.starts.tolist() == [0, 4, 6]
    assert data.lengths.tolist() == [4, 2, 5]
    assert data.trajectory.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]
    assert data.transitions.tolist() == [0, 1, 2, 4, 6, 7, 8, 9]
    assert data.remaining(np.arange(11)).tolist() == [3, 2, 1, 0, 1, 0, 4, 3, 2, 1, 0]


def test_future_goals_stay_on_their_trajectory() -> None:
    data = hand_made((4, 2, 5))
    rng = np.random.default_rng(0)
    rows = rng.choice(data.transitions, 5000)
    goals = data.geometric_goals(rows, 0.9, rng)
    assert np.all(goals > rows)
    assert np.array_equal(data.trajectory[goals], data.trajectory[rows])


def test_geometric_goals_have_the_stated_distribution() -> None:
    data, gamma = hand_made((6,)), 0.7
    rng = np.random.default_rng(1)
    goals = data.geometric_goals(np.ones(20_000, dtype=np.int64), gamma, rng)
    # From row 1 four steps remain: 1, 2, 3 as they are, and everything beyond is cut to 4.
    expected = [0.3, 0.3 * 0.7, 0.3 * 0.7**2, 0.7**3]
    counts = np.bincount(goals - 1, minlength=5)[1:]
    assert stats.chisquare(counts, 20_000 * np.array(expected)).pvalue > 1e-3


def test_a_last_row_has_no_future() -> None:
    data = hand_made((4, 2))
    assert data.geometric_goals(np.array([3]), 0.9, np.random.default_rng(0)).tolist() == [3]


def test_a_discount_of_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"gamma is 1\.0"):
        hand_made().geometric_goals(np.array([0]), 1.0, np.random.default_rng(0))


def test_simulator_state_of_rows() -> None:
    data = hand_made((4, 2))
    state = data.simulator_state(np.array([5, 0]))
    assert state.qpos[:, 0].tolist() == [5, 0]
    assert state.button_states is None
    without = dataclasses.replace(data, qpos=None, qvel=None)
    with pytest.raises(InputError, match="holds no simulator state"):
        without.simulator_state(np.array([0]))


def test_select_keeps_whole_trajectories() -> None:
    chosen = hand_made((4, 2, 5)).select(np.array([2, 0]))
    assert chosen.observations[:, 1].tolist() == [2] * 5 + [0] * 4
    assert chosen.lengths.tolist() == [5, 4]


def test_the_hash_sees_every_number_and_type() -> None:
    data = hand_made()
    assert data.sha256 == hand_made().sha256
    changed = data.actions.copy()
    changed[3, 1] = np.nextafter(changed[3, 1], np.float32(2))
    others = [
        dataclasses.replace(data, actions=changed),
        dataclasses.replace(data, observations=data.observations.astype(np.float64)),
        dataclasses.replace(data, qvel=None),
    ]
    assert len({data.sha256, *(other.sha256 for other in others)}) == 4
