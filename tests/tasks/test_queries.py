from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tasks.conftest import DATA, hand_made
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.lab.tasks.queries import QueryConfig, freeze_queries, load_queries
from toptail.lab.tasks.triples import sample_triples

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
