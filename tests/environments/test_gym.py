"""Gymnasium's environments restored from stored rows: classic control, MuJoCo, reset-to-state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from examples.gym_data import episode
from tests.environments.plane import small
from toptail.errors import InputError
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.run import check
from toptail.lab.environments.gym import GymEnvironment, unlogged
from toptail.lab.environments.protocol import StoredRow, has_goals, stored_rows
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
        self.action_space = gymnasium.spaces.Box(-4.0, 2.0, (1,))
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
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
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


class Reach:
    """A goal environment in the style of gymnasium-robotics: a point that should reach a place.

    It observes velocity and position, and has sparse or dense rewards.
    """

    def __init__(self, *, sparse: bool = True, repeats: bool = True) -> None:
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
        self.unwrapped, self.sparse, self.repeats = self, sparse, repeats

    def reset(self, options: Any = None, seed: int | None = None) -> Any:
        rng = np.random.default_rng(seed)
        self.at, self.speed = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
        if options is not None:
            self.at, self.speed = options["state"][:2].copy(), options["state"][2:4].copy()
        self.goal = rng.uniform(-1, 1, 2)
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        place = self.at if self.repeats else self.at**3
        seen = np.concatenate([self.speed, place]).astype(np.float32)
        return {
            "observation": seen,
            "achieved_goal": self.at.astype(np.float32),
            "desired_goal": self.goal.astype(np.float32),
        }

    def step(self, action: Any) -> Any:
        self.speed = np.asarray(action, np.float64)
        self.at = self.at + 0.1 * self.speed
        seen = self._seen()
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        return seen, reward, False, False, {}

    def compute_reward(self, achieved: Any, desired: Any, _info: Any) -> Any:
        away = np.linalg.norm(achieved - desired, axis=-1)
        return -(away > 0.15).astype(float) if self.sparse else -away


ROW = np.array([0.3, -0.2, 0.5, 0.1], np.float32)
STATE: dict[str, Any] = {
    "qpos": np.array([0.5, 0.1], np.float32),
    "qvel": np.array([0.3, -0.2], np.float32),
}


@pytest.mark.parametrize("beside", [False, True])
def test_goals_of_dictionary_observations_are_reached_as_the_environment_says(beside: bool) -> None:
    env = GymEnvironment(Reach(repeats=not beside))
    assert has_goals(env)
    place = np.array([0.5, 0.1], np.float32)
    row = np.concatenate([ROW[:2], place**3, place]) if beside else ROW
    np.testing.assert_allclose(env.restore(StoredRow(0, row, **STATE)), row, atol=1e-6)
    near = np.array([9, 9, 9, 9, 0.72, 0.1]) if beside else np.array([9, 9, 0.72, 0.1])
    assert not env.reached(near)  # 0.22 away
    seen, reward, ended = env.step(np.array([1.0, 0.0], np.float32))
    assert seen.shape == row.shape
    assert env.reached(near)  # 0.12 away, whatever the velocity in the goal's row
    assert not ended
    assert reward in (0.0, -1.0)


def test_goal_environments_that_do_not_say_what_is_reached_are_refused() -> None:
    with pytest.raises(InputError, match=r"Reach pays .* different rewards.* make it with sparse"):
        GymEnvironment(Reach(sparse=False))
    dense = Reach(sparse=False)
    dense._is_success = lambda a, b: np.linalg.norm(a - b) < 0.15  # type: ignore[attr-defined]
    assert has_goals(GymEnvironment(dense))
    hidden = GymEnvironment(Reach(repeats=False))
    with pytest.raises(
        InputError, match=r"no column of these repeats 'achieved_goal'.*side by side"
    ):
        hidden.restore(StoredRow(0, ROW, **STATE))


class Partial(Corridor):
    """Observes a dictionary without an achieved goal."""

    def reset(self, options: Any = None, **_: Any) -> Any:
        at, _ = super().reset(options)
        return self.seen(at), {}

    def seen(self, at: Any) -> Any:
        return {"observation": at}

    def step(self, action: Any) -> Any:
        at, *rest = super().step(action)
        return self.seen(at), *rest


class Unnamed(Partial):
    """Has no part ``observation`` either."""

    def seen(self, at: Any) -> Any:
        return {"position": at}


def test_dictionaries_without_goals_are_vectors_or_refused() -> None:
    env = GymEnvironment(Partial())
    assert not has_goals(env)
    assert env.restore(StoredRow(0, np.array([3.0], np.float32))) == [3.0]
    with pytest.raises(InputError, match=r"observes a dict \(position\): expected a vector"):
        GymEnvironment(Unnamed())


def test_a_goal_environment_is_checked() -> None:
    rng = np.random.default_rng(0)
    arrays = []
    for _ in range(2):
        actions = rng.uniform(-1, 1, (60, 12, 2)).astype(np.float32)
        moved = np.cumsum(0.1 * actions, axis=1) + rng.uniform(-1, 1, (60, 1, 2))
        qpos = np.concatenate([moved[:, :1] - 0.1 * actions[:, :1], moved[:, :-1]], axis=1)
        qvel = np.concatenate([np.zeros((60, 1, 2)), actions[:, :-1]], axis=1)
        split = {"qpos": qpos, "qvel": qvel, "actions": actions}
        split |= {"observations": np.concatenate([qvel, qpos], axis=2)}
        flat = {name: array.reshape(-1, array.shape[-1]) for name, array in split.items()}
        arrays.append(flat | {"terminals": np.tile(np.arange(12) == 11, 60)})

    def towards(states: Any, actions: Any, goals: Any) -> Any:
        return -np.linalg.norm(states[:, 2:] + 0.1 * actions - goals[:, 2:], axis=1)

    config = CheckConfig(**small(per_group=20, starts=30))
    scorers = {"towards": towards, "away": lambda s, a, g: -towards(s, a, g)}
    result = check(tuple(arrays), scorers, env=Reach, pools="uniform", config=config)
    assert (result.content["goals"], result.content["environment"]) == (True, "Reach")
    worth = {
        name: entry["parts"][0]["closed_loop"]["worth"]["K = 8"]["mean"]
        for name, entry in result.content["scorers"].items()
    }
    assert worth["towards"] > 0.8
    assert worth["away"] < 0.4
