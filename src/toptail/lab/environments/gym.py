"""Gymnasium's environments: put into a stored state, and stepped without their time limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.environments.protocol import StoredRow, vector
from toptail.lab.tasks.simulator import load_module, quiet
from toptail.lab.tasks.trajectories import FloatArray


class GymEnvironment:
    """A gymnasium environment by its id, or one that somebody made.

    A row is restored by what the environment offers: MuJoCo's ``set_state(qpos, qvel)``; the
    attribute ``state`` of the classic control tasks; otherwise ``reset(options={"state": ...})``.
    The last two take qpos and qvel side by side, or the observation where the data has neither.
    What is observed there is what the environment says: ``_get_obs()``, or what ``reset`` returns.
    Actions of the data lie within ±1 and are stretched to the environment's box.
    """

    def __init__(self, environment: Any) -> None:
        if isinstance(environment, str):
            environment = _made(environment)
        self._env = environment.unwrapped
        box = self._env.action_space
        if type(box).__name__ != "Box" or not np.isfinite([box.low, box.high]).all():
            raise InputError(
                f"{environment} has actions of the kind {box}: expected vectors within bounds."
            )
        self._middle = (box.high.astype(np.float64) + box.low) / 2
        self._half = (box.high.astype(np.float64) - box.low) / 2
        with quiet():
            vector(self._env.reset(seed=0)[0])

    def restore(self, row: StoredRow) -> NDArray[Any]:
        """Go to a row, before its action; nothing of what was done before is left."""
        env = self._env
        if hasattr(env, "set_state") and hasattr(env, "model"):
            return self._simulated(row)
        state, getter = _state(row), getattr(env, "_get_obs", None)
        if not hasattr(env, "state"):
            return np.asarray(env.reset(options={"state": state})[0])
        observed, _ = env.reset(seed=0, options=None if getter else {"state": state})
        if np.shape(env.state) != state.shape:
            raise InputError(
                f"Row {row.number} has a state of {state.size} numbers, and {self._named()} has "
                f"{np.size(env.state)}: store the state as qpos and qvel."
            )
        if getter is None and np.allclose(env.state, state):
            return np.asarray(observed)  # it was reset to the state
        shown = np.shape(observed) == state.shape and np.allclose(observed, env.state)
        env.state = state
        if getter is None and not shown:
            raise InputError(
                f"What {self._named()} observes in row {row.number} is not known: its attribute "
                "'state' is not what it observes, and it has no _get_obs() and does not take "
                'reset(options={"state": ...}): give it one of these.'
            )
        return np.asarray(getter() if getter is not None else state, observed.dtype)

    def step(self, action: FloatArray) -> tuple[NDArray[Any], float, bool]:
        """Take one step; only an end of the environment's own is one, not its time limit."""
        taken = (self._middle + self._half * action).astype(np.float32)
        observed, reward, ended, _, _ = self._env.step(taken)
        return np.asarray(observed), float(reward), bool(ended)

    def _simulated(self, row: StoredRow) -> NDArray[Any]:
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
        return np.asarray(env._get_obs())

    def _named(self) -> str:
        spec = getattr(self._env, "spec", None)
        return type(self._env).__name__ if spec is None else str(spec.id)


def _made(name: str) -> Any:
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
