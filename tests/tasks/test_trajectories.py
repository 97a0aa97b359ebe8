"""Trajectories, frozen queries and triples."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.tasks.conftest import DATA, hand_made
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.lab.tasks.queries import QueryConfig, freeze_queries, load_queries
from toptail.lab.tasks.triples import (
    Triples,
    negatives,
    sample_triples,
)


def test_ends_starts_lengths_and_transitions_by_hand() -> None:
    data = hand_made((4, 2, 5))
    assert data.ends.tolist() == [3, 5, 10]
    assert data.starts.tolist() == [0, 4, 6]
    assert data.lengths.tolist() == [4, 2, 5]
    assert data.trajectory.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]
    assert data.transitions.tolist() == [0, 1, 2, 4, 6, 7, 8, 9]
    assert data.remaining(np.arange(11)).tolist() == [3, 2, 1, 0, 1, 0, 4, 3, 2, 1, 0]


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


CONFIG = QueryConfig(per_group=40, near=(1, 3), medium=(4, 10), far=(11, 30))


def test_groups_keep_their_bounds_and_their_trajectory() -> None:
    data = hand_made((35, 20, 8))
    queries = freeze_queries(data, CONFIG)
    assert len(queries) == 120
    for name, (low, high) in CONFIG.groups().items():
        chosen = queries.group == name
        assert chosen.sum() == 40
        assert queries.distance[chosen].min() >= low
        assert queries.distance[chosen].max() <= high
    assert np.array_equal(data.trajectory[queries.rows], data.trajectory[queries.goal_rows])
    assert np.array_equal(queries.trajectory, data.trajectory[queries.rows])
    assert np.array_equal(queries.states[:, 0], queries.rows)
    assert np.array_equal(queries.goals[:, 0], queries.goal_rows)
    assert np.array_equal(queries.actions, data.actions[queries.rows])


def test_states_are_not_repeated_while_there_are_enough() -> None:
    queries = freeze_queries(hand_made((60, 60)), CONFIG)
    for name in CONFIG.groups():
        assert len(np.unique(queries.rows[queries.group == name])) == 40


def test_frozen_queries_come_back_with_their_hash(tmp_path: Path) -> None:
    data = hand_made((35, 20))
    queries = freeze_queries(data, CONFIG)
    assert queries.sha256 == freeze_queries(data, CONFIG).sha256
    other = QueryConfig(per_group=40, near=(1, 3), medium=(4, 10), far=(11, 30), seed=1)
    assert queries.sha256 != freeze_queries(data, other).sha256
    queries.save(tmp_path / "queries.npz")
    again = load_queries(tmp_path / "queries.npz")
    assert again.sha256 == queries.sha256
    assert again.config == CONFIG
    assert again.data_sha256 == data.sha256


def test_changed_queries_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "queries.npz"
    freeze_queries(hand_made((35, 20)), CONFIG).save(path)
    arrays = {name: array.copy() for name, array in read_arrays(path).items()}
    arrays["goals"][0, 0] += 1
    write_arrays(path, arrays)
    with pytest.raises(InputError, match="was changed after it was written"):
        load_queries(path)
    with pytest.raises(InputError, match="not a file of frozen queries"):
        load_queries(DATA / "scene-play-v0.npz")


def test_a_group_that_no_trajectory_reaches_is_said() -> None:
    with pytest.raises(InputError, match=r"no row with 11 steps left .* far group"):
        freeze_queries(hand_made((8, 8)), CONFIG)
    with pytest.raises(InputError, match="near group has bounds 3"):
        freeze_queries(hand_made((8, 8)), QueryConfig(near=(3, 1)))


def test_the_draws_of_triples_and_queries_are_apart() -> None:
    data = hand_made((200, 200))
    triples = sample_triples(data, 20, np.random.default_rng(0))
    queries = freeze_queries(data, QueryConfig(per_group=20))
    assert not np.array_equal(triples.rows, queries.rows[:20])


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


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(InputError, match="Cannot draw 0 triples"):
        sample_triples(hand_made(), 0, rng())
