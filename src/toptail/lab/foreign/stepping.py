"""Where one simulated step leads, for critics that know states only."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.foreign.networks import Rows
from toptail.lab.tasks.batch import MazeBatch
from toptail.lab.tasks.files import find, load_file, split_path
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.restore import Simulator
from toptail.lab.tasks.simulator import available_cores
from toptail.lab.tasks.trajectories import Trajectories

_WHOLE: Final = ("pointmaze", "antmaze", "antsoccer")
"""Families whose observation is the simulator's whole state."""
_BLOCK: Final = 1_024
"""Simulations stepped together."""


class Stepper:
    """An environment that is put into a state and takes one action.

    Mazes whose observation is the simulator's whole state are stepped many at a time. In any other
    environment a state must be an observation of the task's data set, whose row has the
    simulator's state, and is stepped alone.
    """

    def __init__(self, name: str) -> None:
        self.task = parse_name(name)
        if self.task.dimensions is None:
            raise InputError(f"{name} shows images: a step from a state needs states.")

    def next_states(self, states: Rows, actions: Rows) -> Rows:
        """Observations ``[n, s]`` one step after each action; equal rows are stepped once."""
        width = states.shape[1]
        if (width, actions.shape[1]) != self.task.dimensions:
            raise InputError(
                f"{self.task.name} has observations and actions of {self.task.dimensions} numbers, "
                f"not of {(width, actions.shape[1])}: the critic is of another task."
            )
        pairs = np.concatenate([states, actions], axis=1)
        own, back = np.unique(pairs, axis=0, return_inverse=True)
        whole = self.task.has_batches and self.task.family in _WHOLE
        step = self._together if whole else self._one_by_one
        return step(own[:, :width], own[:, width:])[back].astype(np.float32)

    @cached_property
    def _batch(self) -> MazeBatch:
        return MazeBatch(self.task.environment, _BLOCK, available_cores())

    def _together(self, states: Rows, actions: Rows) -> NDArray[np.float64]:
        """Step mazes in blocks; the last block is filled up with its first row."""
        positions = self._batch.qpos.shape[1]
        result = np.empty(states.shape)
        for start in range(0, len(states), _BLOCK):
            rows = np.minimum(np.arange(start, start + _BLOCK), len(states) - 1)
            qpos, qvel = states[rows, :positions], states[rows, positions:]
            velocities = qvel if qvel.shape[1] else np.zeros((_BLOCK, self._batch.qvel.shape[1]))
            self._batch.restore(qpos, velocities)
            self._batch.step(actions[rows])
            count = min(_BLOCK, len(states) - start)
            result[start : start + count] = self._batch.observations()[:count]
        return result

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self.task)

    @cached_property
    def _splits(self) -> list[tuple[Trajectories, dict[bytes, int]]]:
        """The data set's files, with the row of each observation."""
        path = find(self.task.name)
        found = [load_file(p) for p in (path, split_path(path, "val")) if p.exists()]
        return [
            (data, {row.tobytes(): i for i, row in enumerate(data.observations)}) for data in found
        ]

    def _one_by_one(self, states: Rows, actions: Rows) -> NDArray[np.float64]:
        """Step one simulator from the rows of the data that have these observations."""
        result = np.empty(states.shape)
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            key = np.ascontiguousarray(state, np.float32).tobytes()
            place = next(((d, rows[key]) for d, rows in self._splits if key in rows), None)
            if place is None:
                raise InputError(
                    f"A state that is no observation of {self.task.name}'s data cannot be stepped "
                    "from: there its observation does not say the simulator's whole state."
                )
            self._simulator.restore(*place)
            result[i] = self._simulator.step(action)
        return result
