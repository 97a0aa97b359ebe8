from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.quick import quick
from tests.tasks.conftest import DATA, SAMPLES, restore_errors
from toptail.errors import InputError
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import MAZE_TOLERANCE, MazeBatch, Simulator
from toptail.lab.tasks.trajectories import Trajectories

simulator_of = lru_cache(maxsize=1)(Simulator)  # a quarter of a gigabyte each
MAZE_NAMES = [name for name in SAMPLES if "navigate" in name]
QUICK = (*MAZE_NAMES, "scene-play-v0")
PLAY_NAMES = [name for name in SAMPLES if "play" in name]


@pytest.mark.parametrize("name", MAZE_NAMES)
def test_in_mazes_the_next_observation_is_found_again(name: str) -> None:
    data = load_file(DATA / f"{name}.npz")
    errors = restore_errors(parse_name(name), data, data.transitions)
    assert errors.max() <= MAZE_TOLERANCE == 1e-4


@pytest.mark.parametrize("name", quick(PLAY_NAMES, QUICK))
def test_in_manipulation_most_are_found_again(name: str) -> None:
    """Contacts magnify the rounding of the stored state, so the tail is not bounded."""
    data = load_file(DATA / f"{name}.npz")
    errors = restore_errors(parse_name(name), data, data.transitions[::3])
    assert np.median(errors) < 1e-5
    assert np.mean(errors < 1e-2) > 0.95


@pytest.mark.parametrize("name", quick(SAMPLES, QUICK))
def test_the_restored_observation_is_the_recorded_one(name: str) -> None:
    data, simulator = load_file(DATA / f"{name}.npz"), simulator_of(parse_name(name))
    for row in (0, 17, 60, 150):
        found = simulator.restore(data, row)
        np.testing.assert_allclose(found, data.observations[row], rtol=1e-5, atol=1e-5)


def rollout(
    simulator: Simulator, data: Trajectories, row: int, steps: int, seed: int
) -> NDArray[np.float64]:
    """Restore a row and follow a noisy policy that depends on what it sees."""
    rng = np.random.default_rng(seed)
    observations = [simulator.restore(data, row)]
    for _ in range(steps):
        size = data.actions.shape[1]
        seen = np.resize(observations[-1], size) * 0.01
        observations.append(simulator.step(np.clip(seen + rng.normal(0, 0.5, size), -1, 1)))
    return np.stack(observations)


@pytest.mark.parametrize("name", quick(SAMPLES, QUICK))
def test_two_restores_with_one_seed_give_bit_equal_rollouts(name: str) -> None:
    data, simulator = load_file(DATA / f"{name}.npz"), simulator_of(parse_name(name))
    first = rollout(simulator, data, 100, steps=8, seed=3)
    rollout(simulator, data, 5, steps=4, seed=4)  # something else in between
    np.testing.assert_array_equal(rollout(simulator, data, 100, steps=8, seed=3), first)
    fresh = rollout(Simulator(parse_name(name)), data, 100, steps=8, seed=3)
    np.testing.assert_array_equal(fresh, first)
    assert not np.array_equal(rollout(simulator, data, 100, steps=8, seed=5), first)


@pytest.mark.parametrize("name", MAZE_NAMES)
def test_a_batch_restores_to_the_same_bits(name: str) -> None:
    task = parse_name(name)
    data, simulator = load_file(DATA / f"{name}.npz"), simulator_of(task)
    rows = np.array([3, 100])
    state = data.simulator_state(rows)
    batch = MazeBatch(task.environment, 2)
    batch.restore(state.qpos, state.qvel)
    batch.step(data.actions[rows])
    for i, row in enumerate(rows):
        simulator.restore(data, int(row))
        found = simulator.step(data.actions[row])
        np.testing.assert_allclose(batch.observations()[i], found, rtol=0, atol=1e-12)


def test_a_foreign_file_and_images_are_refused() -> None:
    point, scene = "pointmaze-medium-navigate-v0", "scene-play-v0"
    data = load_file(DATA / f"{point}.npz")
    with pytest.raises(InputError, match="has 2 positions and 2 velocities"):
        simulator_of(parse_name(scene)).restore(data, 0)
    with pytest.raises(InputError, match="cannot be restored"):
        Simulator(parse_name("visual-scene-play-v0"))
