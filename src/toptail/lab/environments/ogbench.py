"""OGBench's tasks as environments: mazes in batches, manipulation one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.environments.protocol import Copies, EnvironmentBatch, Floats, Mask, StoredRow
from toptail.lab.tasks.names import TaskName, seeker_at
from toptail.lab.tasks.simulator import MazeBatch, Simulator
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

_ARM, _CUBE, _BUTTON = 19, 9, 4
"""Numbers of a manipulation observation: of the arm, of each cube, of each button."""
_CUBE_SCALE, _DRAWER_SCALE, _WINDOW_SCALE = 10.0, 18.0, 15.0
_TOLERANCE = 0.04
"""Distance of cubes, drawer and window from their places in the goal, at most, in metres."""


def ogbench_batch(task: TaskName, size: int) -> EnvironmentBatch:
    """The environments of an OGBench data set; those that cannot be restored are refused."""
    if task.has_batches:
        return MazeEnvironments(task.environment, size)
    if task.is_maze or task.dimensions is None:
        raise InputError(
            f"{task.name} cannot be stepped from a stored row: expected a maze without teleports, "
            "or a manipulation task whose observations are states."
        )
    return Copies(partial(ManipulationEnvironment, task), size)


class MazeEnvironments:
    """A maze, or the soccer arena, in which many agents are stepped on MuJoCo's own threads."""

    def __init__(self, environment: str, size: int) -> None:
        self._batch, self.size = MazeBatch(environment, size, threads=0), size

    def restore(self, slots: IntArray, rows: Sequence[StoredRow]) -> None:
        order = np.argsort(slots)
        state = [[getattr(rows[i], name) for i in order] for name in ("qpos", "qvel")]
        if any(array is None for arrays in state for array in arrays):
            raise InputError("The data has no qpos and qvel, which a maze is restored from.")
        qpos, qvel = (np.stack(arrays) for arrays in state)
        if (qpos.shape[1], qvel.shape[1]) != (self._batch.qpos.shape[1], self._batch.qvel.shape[1]):
            raise InputError(
                f"The data has {qpos.shape[1]} positions and {qvel.shape[1]} velocities per row, "
                f"which this {self._batch.family} does not have: it is of another task."
            )
        self._batch.restore(qpos, qvel, slots[order])

    def observations(self) -> NDArray[Any]:
        return self._batch.observations().astype(np.float32)

    def step(self, slots: IntArray, actions: FloatArray) -> tuple[Floats, Mask]:
        """Take one step; a maze pays no reward and never ends."""
        every = np.zeros((self._batch.size, self._batch.action_size), np.float32)
        every[slots] = actions
        self._batch.step(every, np.sort(slots))
        return np.zeros(len(slots)), np.zeros(len(slots), dtype=bool)

    def reached(self, slots: IntArray, goals: FloatArray) -> Mask:
        """Whether the agent, or the ball in soccer, is within the maze's own tolerance."""
        away = self._batch.goal_seekers()[slots] - goals[:, seeker_at(self._batch.family)]
        return np.asarray(np.linalg.norm(away, axis=1) <= self._batch.goal_tolerance)


class ManipulationEnvironment:
    """A robot arm with cubes, buttons, a drawer and a window, as far as the task has them."""

    def __init__(self, task: TaskName) -> None:
        self._task, self._simulator = task, Simulator(task)
        self._observed: NDArray[np.float64] = np.zeros(0)

    def restore(self, row: StoredRow) -> NDArray[np.float64]:
        named = ("qpos", "qvel", "button_states")
        state: dict[str, Any] = {name: getattr(row, name) for name in named}
        alone = Trajectories(
            observations=row.observation[None],
            actions=np.zeros((1, 1), np.float32),
            terminals=np.ones(1, dtype=bool),
            **{name: None if array is None else array[None] for name, array in state.items()},
            source=f"row {row.number}",
        )
        self._observed = self._simulator.restore(alone, 0)
        return self._observed

    def step(self, action: FloatArray) -> tuple[NDArray[np.float64], float, bool]:
        """Take one step; without a goal there is no reward and no end."""
        self._observed = self._simulator.step(action)
        return self._observed, 0.0, False

    def reached(self, goal: NDArray[Any]) -> bool:
        """Whether cubes, buttons, drawer and window are as in the goal, by OGBench's tolerance."""
        away, cubes, buttons = np.abs(self._observed - goal), *self._movable()
        after_cubes = _ARM + _CUBE * cubes
        places = away[_ARM:after_cubes].reshape(cubes, _CUBE)[:, :3]
        near = np.linalg.norm(places, axis=1) <= _TOLERANCE * _CUBE_SCALE
        after = after_cubes + _BUTTON * buttons
        pressed = away[after_cubes:after].reshape(buttons, _BUTTON)[:, :2] < 0.5
        scales = (_DRAWER_SCALE, _WINDOW_SCALE) if self._task.family == "scene" else ()
        slides = [away[after + 2 * i] <= _TOLERANCE * scale for i, scale in enumerate(scales)]
        return bool(near.all() and pressed.all() and all(slides))

    def _movable(self) -> tuple[int, int]:
        """Cubes and buttons of the task, as its observation has room for."""
        rest = len(self._observed) - _ARM
        if self._task.family == "cube":
            return rest // _CUBE, 0
        return (1, 2) if self._task.family == "scene" else (0, rest // _BUTTON)
