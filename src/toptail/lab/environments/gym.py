"""Gymnasium's environments: put into a stored state, and stepped without their time limit.

Goal environments in the style of gymnasium-robotics observe a dictionary with ``observation``,
``achieved_goal`` and ``desired_goal``, and have ``compute_reward(achieved, desired, info)``. Their
rows are the vector ``observation``, or ``observation`` and ``achieved_goal`` side by side, as the
data has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.environments.protocol import StoredRow, vector
from toptail.lab.tasks.simulator import load_module, quiet
from toptail.lab.tasks.trajectories import FloatArray

_SAMPLES = 6
"""Resets, each with a step, by which the columns of the achieved goal are found."""


class GymEnvironment:
    """A gymnasium environment by its id, or the object itself.

    A row is restored by what the environment offers: MuJoCo's ``set_state(qpos, qvel)``; the
    attribute ``state`` of the classic control tasks; otherwise ``reset(options={"state": ...})``.
    The last two take qpos and qvel side by side, or the observation where the data has neither.
    The observation there is the environment's own: of ``_get_obs()``, or of ``reset``.
    Actions of the data lie within ±1 and are stretched to the environment's box. A goal environment
    has the method ``reached``.
    """

    def __init__(self, environment: Any) -> None:
        if isinstance(environment, str):
            environment = _make(environment)
        self._env = environment.unwrapped
        box = self._env.action_space
        if type(box).__name__ != "Box" or not np.isfinite([box.low, box.high]).all():
            raise InputError(
                f"{environment} has actions of the kind {box}: expected vectors within bounds."
            )
        self._middle = (box.high.astype(np.float64) + box.low) / 2
        self._half = (box.high.astype(np.float64) - box.low) / 2
        with quiet():
            observed = self._env.reset(seed=0)[0]
            self._goals = _GoalObservations.of(self._env, observed)
        vector(self._vector(observed))
        if self._goals is not None and self._goals.can_succeed:
            self.reached = self._goals.reached

    def restore(self, row: StoredRow) -> Any:
        """Go to a row, before its action; nothing of earlier steps is left."""
        if self._goals is not None:
            self._goals.expect(row.observation.size, self._named())
        return self._vector(self._restored(row))

    def step(self, action: FloatArray) -> tuple[NDArray[Any], float, bool]:
        """Take one step; the environment's own end counts, its time limit does not."""
        taken = (self._middle + self._half * action).astype(np.float32)
        observed, reward, ended, _, _ = self._env.step(taken)
        return self._vector(observed), float(reward), bool(ended)

    def _vector(self, observed: Any) -> Any:
        if self._goals is None:
            return observed if isinstance(observed, Mapping) else np.asarray(observed)
        return self._goals.vector(observed)

    def _restored(self, row: StoredRow) -> Any:
        """Put the environment into a row; returns what it observes there."""
        env = self._env
        if hasattr(env, "set_state") and hasattr(env, "model"):
            return self._simulated(row)
        state, getter = _state(row), getattr(env, "_get_obs", None)
        if not hasattr(env, "state"):
            return env.reset(options={"state": state})[0]
        observed, _ = env.reset(seed=0, options=None if getter else {"state": state})
        if np.shape(env.state) != state.shape:
            raise InputError(
                f"Row {row.number} has a state of {state.size} numbers, and {self._named()} has "
                f"{np.size(env.state)}: store the state as qpos and qvel."
            )
        if getter is None and np.allclose(env.state, state):
            return observed  # the reset took the state
        shown = np.shape(observed) == state.shape and np.allclose(observed, env.state)
        env.state = state
        if getter is None and not shown:
            raise InputError(
                f"What {self._named()} observes in row {row.number} is not known: its attribute "
                "'state' is not what it observes, and it has no _get_obs() and does not take "
                'reset(options={"state": ...}): give it one of these.'
            )
        if getter is None:
            return np.asarray(state, observed.dtype)
        seen = getter()
        return seen if isinstance(seen, Mapping) else np.asarray(seen, observed.dtype)

    def _simulated(self, row: StoredRow) -> Any:
        env = self._env
        if row.qpos is None or row.qvel is None:
            raise InputError(
                f"Row {row.number} has no qpos and qvel, which {self._named()} is put into: store "
                "both with the data."
            )
        if (row.qpos.size, row.qvel.size) != (env.model.nq, env.model.nv):
            raise InputError(
                f"Row {row.number} has {row.qpos.size} positions and {row.qvel.size} velocities, "
                f"and {self._named()} has {env.model.nq} and {env.model.nv}: the data is of "
                "another task."
            )
        load_module("mujoco").mj_resetData(env.model, env.data)
        env.set_state(row.qpos.astype(np.float64), row.qvel.astype(np.float64))
        return env._get_obs()

    def _named(self) -> str:
        spec = getattr(self._env, "spec", None)
        return type(self._env).__name__ if spec is None else str(spec.id)


class _GoalObservations:
    """Dictionary observations as vectors, and whether a goal row is reached.

    A goal is a recorded row. The goal that it achieves is in the columns beside the observation, or
    in those columns of the observation that have repeated ``achieved_goal`` in all samples.
    """

    def __init__(self, env: Any) -> None:
        self._env, samples = env, _samples(env)
        self._width = np.size(samples[0]["observation"])
        self._achieved: Any = samples[0].get("achieved_goal")
        self._beside = False
        success = callable(getattr(env, "_is_success", None))
        self.can_succeed = self._achieved is not None and (
            success or hasattr(env, "compute_reward")
        )
        self._columns = _columns(samples) if self.can_succeed else None
        if self.can_succeed and not success:
            goals = [sample["achieved_goal"] for sample in samples]
            rewards = {float(env.compute_reward(a, b, {})) for a in goals for b in goals}
            if len(rewards) > 2:
                raise InputError(
                    f"{type(env).__name__} pays {len(rewards)} different rewards by compute_reward "
                    f"among {len(goals)} goals, so that success is not known: make it with sparse "
                    "rewards, or give it a method _is_success(achieved_goal, desired_goal)."
                )

    @classmethod
    def of(cls, env: Any, observed: Any) -> _GoalObservations | None:
        """The adapter, where an environment observes dictionaries with a part ``observation``."""
        usable = isinstance(observed, Mapping) and "observation" in observed
        return cls(env) if usable else None

    def expect(self, width: int, named: str) -> None:
        """Learn from the width of the data's rows whether they include achieved goals."""
        if not self.can_succeed:
            return
        self._beside = width == self._width + np.size(self._achieved)
        if width == self._width and self._columns is None:
            raise InputError(
                f"{named}: the data's rows have {width} numbers, the part 'observation', and no "
                "column of these repeats 'achieved_goal', so that a row does not say which goal it "
                "achieves: store 'observation' and 'achieved_goal' side by side."
            )

    def vector(self, observed: Mapping[str, Any]) -> NDArray[Any]:
        parts = [np.ravel(observed["observation"])]
        if self._achieved is not None:
            self._achieved = np.array(observed["achieved_goal"])
        if self._beside:
            parts.append(np.ravel(observed["achieved_goal"]))
        return np.concatenate(parts)

    def reached(self, goal: NDArray[Any]) -> bool:
        """Whether the goal of a row is achieved, as the environment counts success."""
        columns = slice(-np.size(self._achieved), None) if self._beside else self._columns
        desired = goal[columns].reshape(np.shape(self._achieved)).astype(self._achieved.dtype)
        if callable(success := getattr(self._env, "_is_success", None)):
            return bool(success(self._achieved, desired))
        reward = self._env.compute_reward
        return bool(reward(self._achieved, desired, {}) >= reward(desired, desired, {}))


def _samples(env: Any) -> list[dict[str, NDArray[Any]]]:
    """Observations after resets, and after a random action from each."""
    found: list[Any] = []
    rng, box = np.random.default_rng(0), env.action_space
    for seed in range(_SAMPLES):
        found.append(env.reset(seed=seed)[0])
        found.append(env.step(rng.uniform(box.low, box.high).astype(np.float32))[0])
    return [{name: np.array(part) for name, part in observed.items()} for observed in found]


def _columns(samples: list[dict[str, NDArray[Any]]]) -> list[int] | None:
    """For each number of the achieved goal the first column of the observation that repeats it."""
    rows = np.stack([np.ravel(sample["observation"]) for sample in samples])
    goals = np.stack([np.ravel(sample["achieved_goal"]) for sample in samples])
    same = np.isclose(rows[:, :, None], goals[:, None, :], rtol=0, atol=1e-6).all(axis=0)
    return same.argmax(axis=0).tolist() if same.any(axis=0).all() else None


def _make(name: str) -> Any:
    gymnasium = load_module("gymnasium")
    try:
        with quiet(), unlogged():
            return gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        raise InputError(f"gymnasium has no environment '{name}' ({error}).") from error


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep MuJoCo from warning about a model in every copy, and from logging that in a file."""
    if find_spec("mujoco") is None:
        yield
        return
    mujoco = load_module("mujoco")
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _state(row: StoredRow) -> NDArray[np.float64]:
    """The state that a row stores; its observation where it stores none."""
    if row.qpos is None or row.qvel is None:
        return row.observation.astype(np.float64)
    return np.concatenate([row.qpos, row.qvel]).astype(np.float64)
