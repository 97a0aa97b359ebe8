"""The judge of the controlled world: its exact value, known everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toptail.lab.tasks.controlled import ControlledWorld, Queries, exact_value


@dataclass(frozen=True)
class ClosedFormJudge:
    """Values every candidate by the closed form Q*(s, a, g)."""

    world: ControlledWorld
    """The world whose value it states."""

    trust: str = "exact: the value is known in closed form on and off the support"
    """Whether and why the values may be believed."""

    def values(self, queries: Queries, candidates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value candidates [m, n, 2] of m queries; one exact replicate: [m, n, 1]."""
        value = exact_value(self.world, queries.states[:, None], candidates, queries.goals[:, None])
        return value[..., None]
