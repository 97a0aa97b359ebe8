"""Many simulations made of copies of one environment, stepped one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toptail.errors import InputError
from toptail.lab.environments.protocol import (
    Environment,
    Floats,
    Mask,
    StoredRow,
    has_goals,
    vector,
)
from toptail.lab.tasks.trajectories import FloatArray, IntArray

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
