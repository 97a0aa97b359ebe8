"""Where the stage files of a task's folder lie, and what their arrays must look like.

A stage file is a `Stored`. A stage whose file is there and fits is not repeated; one that does
not fit is refused (see `toptail.lab.store.units`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.store.units import columns

REFERENCE = "reference"
"""The judge of every candidate that every task has: the ensemble of reference critics."""
SIMULATED = "simulated"
"""The judge that is an environment which values every candidate."""


class SelectionFolder:
    """Where each stage of one task's study lies, in ``OUT/TASK``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.declared = path / "declared.json"
        """The criteria that were fixed before anything was scored."""
        self.queries = path / "queries.npz"
        """The frozen queries (`toptail.lab.tasks.queries`)."""
        self.pools = path / "pools.npz"
        """The candidates and their labels of local support."""
        self.rollouts = path / "rollouts.npz"
        """The returns of the simulator's rollouts."""
        self.planned = path / "planned_rollouts.npz"
        """The returns of candidates that a plan chose."""

    def values(self, judge: str) -> Path:
        """A judge's values of every candidate."""
        return self.path / "values" / f"{judge}.npz"

    def scores(self, column: str) -> Path:
        """One scorer's scores of every candidate; ``raw@42`` is seed 42 of ``raw``."""
        return self.path / "scores" / f"{column}.npz"

    def norms(self, column: str) -> Path:
        """The norm of phi of every candidate, for a scorer that has one."""
        return self.path / "norms" / f"{column}.npz"

    def normed(self) -> dict[str, Path]:
        """The stored norms by column; scorers without embeddings, and older folders, have none."""
        return columns(self.path / "norms")

    def columns(self) -> dict[str, Path]:
        """The stored scores by column."""
        return columns(self.path / "scores")

    def judges(self) -> dict[str, Path]:
        """The stored values by judge."""
        return columns(self.path / "values")

    def forget(self) -> None:
        """Remove the declaration with the queries and candidates that it is about."""
        for path in (self.declared, self.queries, self.pools):
            path.unlink(missing_ok=True)

    def scored(self) -> list[Path]:
        """The files that exist and could not have been made before something was scored."""
        found = [*self.columns().values(), *self.judges().values()]
        return found + [path for path in (self.rollouts, self.planned) if path.is_file()]


def check_shape(path: Path, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that has another shape (-1: any length) or a number that is not finite."""
    same = array.ndim == len(shape)
    if not same or any(b not in (-1, a) for a, b in zip(array.shape, shape, strict=True)):
        wanted = ", ".join("any" if n == -1 else str(n) for n in shape)
        raise InputError(f"{path}: '{name}' has the shape {array.shape}, expected ({wanted}).")
    if not np.isfinite(array).all():
        at = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
        raise InputError(f"{path}: '{name}' is not finite at {at}; every entry must be a number.")
