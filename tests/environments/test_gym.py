"""Gymnasium's environments restored from stored rows: classic control, MuJoCo, reset-to-state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from examples.gym_data import episode
from toptail.errors import InputError
from toptail.lab.environments.gym import GymEnvironment, unlogged
from toptail.lab.environments.protocol import StoredRow, stored_rows
from toptail.lab.tasks.files import check_arrays
from toptail.lab.tasks.trajectories import Trajectories


def recorded(name: str) -> tuple[Trajectories, Any]:
    with unlogged():
        arrays: dict[str, Any] = episode(gymnasium.make(name), 12, 0.3, 0)
    check_arrays(arrays, name, None)
    rewards = arrays.pop("rewards")
    return Trajectories(**arrays), rewards


@pytest.mark.parametrize("name", ["Pendulum-v1", "HalfCheetah-v5"])
def test_a_row_is_restored_and_goes_on_as_it_was_recorded(name: str) -> None:
    data, rewards = recorded(name)
    env = GymEnvironment(name)
    for row in (7, 2, 2):  # in any order, and again
        (stored,) = stored_rows(data, np.array([row]))
        np.testing.assert_allclose(env.restore(stored), data.observations[row], atol=1e-5)
        seen, reward, ended = env.step(data.actions[row])
        np.testing.assert_allclose(seen, data.observations[row + 1], atol=2e-3)
        assert reward == pytest.approx(rewards[row], abs=2e-3)
        assert not ended


def test_a_state_that_is_the_observation_needs_nothing_beside() -> None:
    env = GymEnvironment("MountainCarContinuous-v0")
    seen = np.array([-0.4, 0.01], np.float32)
    np.testing.assert_allclose(env.restore(StoredRow(0, seen)), seen)
    after, _, ended = env.step(np.ones(1, np.float32))
    assert after[1] > seen[1] - 0.01
    assert not ended
    top, reward, ended = (
        env.restore(StoredRow(1, np.array([0.449, 0.07], np.float32))),
        0.0,
        False,
    )
    _, reward, ended = env.step(np.ones(1, np.float32))
    assert ended
    assert reward > 90
    assert top.shape == (2,)


class Corridor:
    """Resets to a state, and has neither ``state`` nor a simulator."""

    def __init__(self) -> None:
        from gymnasium.spaces import Box

        self.action_space = Box(-4.0, 2.0, (1,))
        self.unwrapped = self

    def reset(self, options: Any = None, **_: Any) -> Any:
        self.at = np.zeros(1) if options is None else options["state"].copy()
        return self.at, {}

    def step(self, action: Any) -> Any:
        self.at = self.at + action
        return self.at, 1.5, False, True, {}


def test_reset_to_state_and_actions_stretched_to_the_box() -> None:
    env = GymEnvironment(Corridor())
    assert env.restore(StoredRow(0, np.array([3.0], np.float32))) == [3.0]
    seen, reward, ended = env.step(np.array([-1.0], np.float32))
    assert (seen.tolist(), reward, ended) == ([-1.0], 1.5, False)  # the time limit is no end
    assert env.step(np.array([1.0], np.float32))[0] == [1.0]


@pytest.mark.parametrize(
    ("name", "row", "word"),
    [
        ("Pendulum-v1", StoredRow(4, np.zeros(3, np.float32)), "Row 4 has a state of 3"),
        ("HalfCheetah-v5", StoredRow(4, np.zeros(17, np.float32)), "no qpos and qvel"),
        (
            "HalfCheetah-v5",
            StoredRow(
                4, np.zeros(17, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float32)
            ),
            "another task",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(name: str, row: StoredRow, word: str) -> None:
    with pytest.raises(InputError, match=word):
        GymEnvironment(name).restore(row)


def test_environments_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match="expected vectors within bounds"):
        GymEnvironment("CartPole-v1")
    with pytest.raises(InputError, match="no environment 'Nothing-v0'"):
        GymEnvironment("Nothing-v0")


class Unicycle:
    """Has a ``state`` of three numbers, observes four, and resets to a state if it is ``able``."""

    def __init__(self, able: bool) -> None:
        from gymnasium.spaces import Box

        self.action_space = Box(-1.0, 1.0, (2,))
        self.unwrapped, self.able = self, able

    def _seen(self) -> Any:
        x, y, angle = self.state
        return np.array([x, y, np.cos(angle), np.sin(angle)], np.float32)

    def reset(self, options: Any = None, **_: Any) -> Any:
        self.state = np.zeros(3)
        if self.able and options is not None:
            self.state = options["state"].copy()
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.state = self.state + np.append(action, 0.0)
        return self._seen(), 0.0, False, False, {}


def test_what_is_observed_is_the_environments_own_and_not_its_state() -> None:
    row = StoredRow(
        3,
        np.array([1.0, 2.0, np.cos(0.5), np.sin(0.5)], np.float32),
        np.array([1.0, 2.0], np.float32),
        np.array([0.5], np.float32),
    )
    env = GymEnvironment(Unicycle(able=True))
    np.testing.assert_allclose(env.restore(row), row.observation, atol=1e-6)
    assert env.step(np.ones(2, np.float32))[0][0] == pytest.approx(2.0)
    with pytest.raises(InputError, match=r"Unicycle.*_get_obs\(\).*reset\(options="):
        GymEnvironment(Unicycle(able=False)).restore(row)


class Goals(Corridor):
    """Observes a dictionary, as gymnasium-robotics' tasks do."""

    def reset(self, options: Any = None, **_: Any) -> Any:
        at, _ = super().reset(options)
        return {"observation": at, "desired_goal": at}, {}


def test_dictionaries_of_gymnasium_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"observes a dict \(observation, desired_goal\)"):
        GymEnvironment(Goals())
