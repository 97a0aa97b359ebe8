"""Recorded trajectories: rows, ends, transitions, simulator state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]

ARRAYS = ("observations", "actions", "terminals", "qpos", "qvel", "button_states")
"""The arrays of a data set file, in the order in which they are hashed."""


@dataclass(frozen=True)
class SimulatorState:
    """The simulator's state at some rows."""

    qpos: FloatArray
    """Positions, ``[rows, nq]``."""
    qvel: FloatArray
    """Velocities, ``[rows, nv]``."""
    button_states: IntArray | None
    """States of the buttons, ``[rows, buttons]``; None where the task has none."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Trajectories one after another, as OGBench stores them.

    Row ``t`` holds the observation, the action taken there, and the simulator's state *before*
    that action. A trajectory of T rows has T − 1 transitions; ``terminals`` marks its last row,
    whose action is not followed by a row.
    """

    observations: NDArray[Any]
    """``[rows, observation]`` float32 (uint8 images in the visual data sets)."""
    actions: NDArray[Any]
    """``[rows, action]`` float32 within ±1 (integers in Powderworld)."""
    terminals: NDArray[np.bool_]
    """``[rows]``, true at the last row of each trajectory."""
    qpos: FloatArray | None = None
    """Simulator positions before the action, ``[rows, nq]``."""
    qvel: FloatArray | None = None
    """Simulator velocities before the action, ``[rows, nv]``."""
    button_states: IntArray | None = None
    """Button states before the action, ``[rows, buttons]``."""
    source: str = "these trajectories"
    """Where the rows come from, for messages."""

    @classmethod
    def of_episodes(
        cls, episodes: Sequence[Mapping[str, NDArray[Any]]], source: str
    ) -> Trajectories:
        """Episodes one after another, with the arrays that all of them have."""
        names = [name for name in episodes[0] if all(name in episode for episode in episodes)]
        arrays: dict[str, Any] = {
            name: np.concatenate([episode[name] for episode in episodes]) for name in names
        }
        terminals = np.zeros(len(arrays["actions"]), dtype=bool)
        terminals[np.cumsum([len(episode["actions"]) for episode in episodes]) - 1] = True
        return cls(**arrays, terminals=terminals, source=source)

    def __len__(self) -> int:
        return len(self.terminals)

    @cached_property
    def ends(self) -> IntArray:
        """Last row of each trajectory, ``[trajectories]``."""
        return np.flatnonzero(self.terminals).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """First row of each trajectory, ``[trajectories]``."""
        return np.concatenate([[0], self.ends[:-1] + 1]).astype(np.int64)

    @cached_property
    def lengths(self) -> IntArray:
        """Rows of each trajectory, ``[trajectories]``."""
        return self.ends - self.starts + 1

    @cached_property
    def trajectory(self) -> IntArray:
        """The trajectory that each row belongs to, ``[rows]``."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    @cached_property
    def transitions(self) -> IntArray:
        """Rows that have a next row on the same trajectory."""
        return np.flatnonzero(~self.terminals).astype(np.int64)

    def remaining(self, rows: IntArray) -> IntArray:
        """Steps from each row to the end of its trajectory; 0 on the last row."""
        ends: IntArray = self.ends[self.trajectory[rows]]
        return ends - rows

    def simulator_state(self, rows: IntArray) -> SimulatorState:
        """Return the simulator's state before the action of each row."""
        if self.qpos is None or self.qvel is None:
            raise InputError(
                f"{self.source} holds no simulator state (qpos and qvel): restoring needs a file "
                "with both, as OGBench publishes and `toptail data collect` writes."
            )
        buttons = None if self.button_states is None else self.button_states[rows]
        return SimulatorState(self.qpos[rows], self.qvel[rows], buttons)

    def select(self, trajectories: IntArray) -> Trajectories:
        """Return some of the trajectories, in the given order."""
        rows = np.concatenate(
            [np.arange(self.starts[i], self.ends[i] + 1) for i in trajectories],
        )
        arrays = {name: array[rows] for name, array in self.arrays().items()}
        return Trajectories(**arrays, source=self.source)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a data set file holds, by name."""
        named = {name: getattr(self, name) for name in ARRAYS}
        return {name: array for name, array in named.items() if array is not None}

    @cached_property
    def sha256(self) -> str:
        """Hash of the arrays' names, types, shapes and numbers, independent of the file."""
        digest = hashlib.sha256()
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()
