"""What an environment must be able to do so that actions can be judged and critics followed in it.

Two optional methods are found by their names. ``reached(goal) -> bool`` makes it a task with goals:
whether the simulation is where this goal observation was recorded, as the task counts success.
Without it the task has rewards, and a return is what counts. ``act(observations, goals)`` is a
policy that goes on after a judged action: rows ``[n, observation]`` in, actions ``[n, action]``
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
    """One recorded row: what an environment is put into."""

    number: int
    """Its number in the data."""
    observation: FloatArray
    """What was observed there, ``[observation]``."""
    qpos: FloatArray | None = None
    """The simulator's positions before the row's action, where the data has them."""
    qvel: FloatArray | None = None
    """The same of its velocities."""
    button_states: IntArray | None = None
    """The same of its buttons."""


class Environment(Protocol):
    """One simulation of a task; see the module for what it may have beside."""

    def restore(self, row: StoredRow) -> Any:
        """Go to a stored row, before its action, and return the observation there."""

    def step(self, action: FloatArray) -> tuple[Any, float, bool]:
        """Take an action within ±1; return observation, reward, and whether the episode ended."""


class EnvironmentBatch(Protocol):
    """Simulations that are stepped together, each in a slot; ``reached`` and ``act`` as above.

    ``reached(slots, goals)`` is here about slots ``[m]`` and goals ``[m, observation]``.
    """

    @property
    def size(self) -> int:
        """Number of slots."""

    def restore(self, slots: IntArray, rows: Sequence[StoredRow]) -> None:
        """Put slots ``[m]`` into stored rows, while the others go on."""

    def observations(self) -> NDArray[Any]:
        """What is observed in every slot, ``[size, observation]``."""

    def step(self, slots: IntArray, actions: FloatArray) -> tuple[Floats, Mask]:
        """Take actions ``[m, action]`` in slots ``[m]``; return rewards, and which have ended."""


def vector(observed: object) -> FloatArray:
    """What was observed, in one slot or in all, as numbers; anything else is refused."""
    try:
        return np.asarray(observed, dtype=np.float32)
    except (TypeError, ValueError) as error:
        kind = f"a {type(observed).__name__}"
        kind += f" ({', '.join(map(str, observed))})" if isinstance(observed, Mapping) else ""
        raise InputError(
            f"The environment observes {kind}: expected a vector of numbers. Dictionaries and the "
            f"like are not supported: name one with {option('env')} FILE.py:make whose restore() "
            "and step() return a vector."
        ) from error


def has_goals(environment: object) -> bool:
    """Whether a task is about reaching goals; otherwise it is about rewards."""
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
"""Copies that are made, at most: they are stepped one by one, so that more save no time."""


class Copies:
    """Up to ``size`` environments as a batch.

    It has ``reached`` and ``act`` where the environment has them. A copy is made when its slot is
    first used.
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
        """Put slots into stored rows."""
        for slot, row in zip(slots.tolist(), rows, strict=True):
            while slot >= len(self._copies):
                self._copies.append(self._make())
            self._observe(slot, self._copies[slot].restore(row))

    def observations(self) -> FloatArray:
        """What was last observed in every slot."""
        if self._observed is None:
            raise InputError("Nothing was restored yet: there is nothing to observe.")
        return self._observed

    def step(self, slots: IntArray, actions: FloatArray) -> tuple[Floats, Mask]:
        """Take one step in each of the slots."""
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
