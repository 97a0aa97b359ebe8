"""OGBench's tasks behind the protocol: restored, stepped, and reached as the task counts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tasks.conftest import DATA
from toptail.errors import InputError
from toptail.lab.environments.ogbench import ManipulationEnvironment, ogbench_batch
from toptail.lab.environments.protocol import StoredRow, stored_rows
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.names import parse_name

MAZES = ("pointmaze-medium-navigate-v0", "antsoccer-arena-navigate-v0")
ARMS = ("cube-double-play-v0", "puzzle-3x3-play-v0")


@pytest.mark.parametrize("name", [*MAZES, *ARMS])
def test_slots_go_on_as_recorded_and_reach_where_they_are(name: str) -> None:
    data = load_file(DATA / f"{name}.npz")
    batch: Any = ogbench_batch(parse_name(name), 3)
    rows, slots = np.array([5, 70]), np.array([2, 0])
    if name in ARMS:  # an arm is slow to make
        rows, slots = rows[:1], np.array([0])
    batch.restore(slots, stored_rows(data, rows))
    np.testing.assert_allclose(batch.observations()[slots], data.observations[rows], atol=1e-3)
    rewards, ended = batch.step(slots, data.actions[rows])
    assert not rewards.any()
    assert not ended.any()
    found = batch.observations()[slots]
    tolerance = 2e-3 if parse_name(name).is_maze else 0.2
    np.testing.assert_allclose(found, data.observations[rows + 1], atol=tolerance)
    assert batch.reached(slots, found).all()
    assert batch.reached(slots, data.observations[240 - rows]).any() == np.False_


def test_everything_that_can_be_moved_must_be_where_the_goal_has_it() -> None:
    name = "scene-play-v0"
    data = load_file(DATA / f"{name}.npz")
    env = ManipulationEnvironment(parse_name(name))
    seen = env.restore(stored_rows(data, np.array([0]))[0])
    assert env.reached(seen)
    # cube, first button, drawer, window; then an arm elsewhere, which does not matter
    for column, by, reached in (
        *((19, 0.41, False), (19, 0.39, True), (28, 1.0, False), (36, 0.73, False)),
        *((36, 0.71, True), (38, 0.61, False), (38, 0.59, True), (0, 1.0, True), (22, 1.0, True)),
    ):
        goal = seen.copy()
        goal[column] += by
        assert env.reached(goal) == reached, column


def test_what_cannot_be_restored_is_refused() -> None:
    for name in ("pointmaze-teleport-navigate-v0", "visual-cube-single-play-v0"):
        with pytest.raises(InputError, match="cannot be stepped from a stored row"):
            ogbench_batch(parse_name(name), 2)
    batch = ogbench_batch(parse_name(MAZES[0]), 2)
    with pytest.raises(InputError, match="no qpos and qvel"):
        batch.restore(np.array([0]), [StoredRow(0, np.zeros(2, np.float32))])
    wide = StoredRow(0, np.zeros(2, np.float32), np.zeros(15, np.float32), np.zeros(14, np.float32))
    with pytest.raises(InputError, match="another task"):
        batch.restore(np.array([0]), [wide])
