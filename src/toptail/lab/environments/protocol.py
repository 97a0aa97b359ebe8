"""The methods that an environment needs so that actions can be judged and critics followed in it.

Two optional methods are found by their names. ``reached(goal) -> bool`` makes it a task with goals:
whether the simulation is where this goal observation was recorded, as the task counts success.
Without it the task has rewards, and returns are compared. ``act(observations, goals)`` is a
policy that continues after a judged action: rows ``[n, observation]`` in, actions ``[n, action]``
out; ``goals`` is None in a task without goals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StoredRow:
    """One recorded row, into which an environment can be put."""

    number: int
    """Its number in the data."""
    observation: FloatArray
    """Its observation, ``[observation]``."""
    qpos: FloatArray | None = None
    """The simulator's positions before the row's action, where the data has them."""
    qvel: FloatArray | None = None
    button_states: IntArray | None = None


class Environment(Protocol):
    """One simulation of a task; the module names two optional methods."""

    def restore(self, row: StoredRow) -> Any:
        """Go to a stored row, before its action, and return the observation there."""

    def step(self, action: FloatArray) -> tuple[Any, float, bool]:
        """Take an action within ±1; return observation, reward, and whether the episode ended."""


class EnvironmentBatch(Protocol):
    """Simulations that are stepped together, each in a slot; ``reached`` and ``act`` are optional.

    ``reached(slots, goals)`` takes slots ``[m]`` and goals ``[m, observation]``.
    """

    @property
    def size(self) -> int:
        """Number of slots."""

    def restore(self, slots: IntArray, rows: Sequence[StoredRow]) -> None:
        """Put slots ``[m]`` into stored rows; the other slots are not changed."""

    def observations(self) -> NDArray[Any]:
        """The observation of every slot, ``[size, observation]``."""

    def step(self, slots: IntArray, actions: FloatArray) -> tuple[Floats, Mask]:
        """Take actions ``[m, action]`` in slots ``[m]``; return rewards, and which have ended."""


def vector(observed: object) -> FloatArray:
    """Observations of one slot or of all as numbers; anything else is refused."""
    try:
        return np.asarray(observed, dtype=np.float32)
    except (TypeError, ValueError) as error:
        kind = f"a {type(observed).__name__}"
        kind += f" ({', '.join(map(str, observed))})" if isinstance(observed, Mapping) else ""
        raise InputError(
            f"The environment observes {kind}: expected a vector of numbers, or a dictionary of a "
            "gymnasium environment with 'observation'. Anything else is not supported: name one "
            f"with {option('env')} FILE.py:make whose restore() and step() return a vector."
        ) from error


def has_goals(environment: object) -> bool:
    """Whether a task is about reaching goals (it has ``reached``) and not about rewards."""
    return callable(getattr(environment, "reached", None))


def stored_rows(trajectories: Trajectories, rows: IntArray) -> list[StoredRow]:
    """Rows of the data as environments take them."""

    def at(array: NDArray[Any] | None, row: int) -> Any:
        return None if array is None else array[row]

    simulated = (trajectories.qpos, trajectories.qvel, trajectories.button_states)
    return [
        StoredRow(row, trajectories.observations[row], *(at(array, row) for array in simulated))
        for row in rows.tolist()
    ]


MOST = 32
"""Copies of an environment, at most: they are stepped one by one, so that more save no time."""


class Copies:
    """Up to ``size`` environments as a batch, each made when its slot is first used.

    It has ``reached`` and ``act`` where the environment has them.
    """

    def __init__(self, make: Callable[[], Environment], size: int) -> None:
        self._make, self.size = make, min(size, MOST)
        self._copies: list[Any] = [make()]
        self._observed: FloatArray | None = None
        if has_goals(self._copies[0]):
            self.reached = self._reached
        if callable(act := getattr(self._copies[0], "act", None)):
            self.act = act

    def restore(self, slots: IntArray, rows: Sequence[StoredRow]) -> None:
        for slot, row in zip(slots.tolist(), rows, strict=True):
            while slot >= len(self._copies):
                self._copies.append(self._make())
            self._observe(slot, self._copies[slot].restore(row))

    def observations(self) -> FloatArray:
        if self._observed is None:
            raise InputError("Nothing was restored yet: there is nothing to observe.")
        return self._observed

    def step(self, slots: IntArray, actions: FloatArray) -> tuple[Floats, Mask]:
        rewards, ended = np.zeros(len(slots)), np.zeros(len(slots), dtype=bool)
        for i, slot in enumerate(slots.tolist()):
            observed, rewards[i], ended[i] = self._copies[slot].step(actions[i])
            self._observe(slot, observed)
        return rewards, ended

    def _reached(self, slots: IntArray, goals: FloatArray) -> Mask:
        pairs = zip(slots.tolist(), goals, strict=True)
        return np.array([bool(self._copies[slot].reached(goal)) for slot, goal in pairs])

    def _observe(self, slot: int, observed: Any) -> None:
        row = vector(observed)
        if self._observed is None:
            self._observed = np.zeros((self.size, *row.shape), np.float32)
        self._observed[slot] = row
