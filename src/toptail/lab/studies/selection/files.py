"""The stage files of a task's folder: what each was made from, and whether it still fits.

A stage file is a `Stored`: arrays, a JSON header that says what they were made from, and a hash
over both. A stage whose file is there and fits is not repeated. A file that does not fit is
refused and never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.studies.stored import Stored
from toptail.lab.training.records import differences

REFERENCE, GEODESIC = "reference", "geodesic"
"""The two judges that value every candidate: the ensemble of reference critics, which every task
has, and the distance through the maze."""


@dataclass(frozen=True)
class SelectionFolder:
    """Where each stage of one task's study lies."""

    path: Path
    """``OUT/TASK``."""

    @property
    def declared(self) -> Path:
        """The criteria that were fixed before anything was scored."""
        return self.path / "declared.json"

    @property
    def queries(self) -> Path:
        """The frozen queries (`toptail.lab.tasks.queries`)."""
        return self.path / "queries.npz"

    @property
    def pools(self) -> Path:
        """The candidates and their labels of local support."""
        return self.path / "pools.npz"

    @property
    def rollouts(self) -> Path:
        """The returns of the simulator's rollouts."""
        return self.path / "rollouts.npz"

    def values(self, judge: str) -> Path:
        """A judge's values of every candidate."""
        return self.path / "values" / f"{judge}.npz"

    def scores(self, column: str) -> Path:
        """One scorer's scores of every candidate; ``raw@42`` is seed 42 of ``raw``."""
        return self.path / "scores" / f"{column}.npz"

    def scored(self) -> list[Path]:
        """The files that exist and could not have been made before something was scored."""
        found = [*self.path.glob("scores/*.npz"), *self.path.glob("values/*.npz")]
        return sorted(found) + ([self.rollouts] if self.rollouts.is_file() else [])


def fitting(path: Path, expected: Mapping[str, Any]) -> Stored | None:
    """The stage file at ``path`` if it was made from what is expected; None if there is none.

    Parameters
    ----------
    path
        Where the stage's file lies or will lie.
    expected
        Entries that its header must have; others may be there, too.

    Raises
    ------
    InputError
        If the file was changed after it was written, or was made from something else.
    """
    if not path.is_file():
        return None
    stored = Stored.read(path)
    changed = differences(pick(stored.header, expected), plain(expected))
    if changed:
        raise InputError(
            f"{path} does not fit this study: it has and the study needs, in this order, "
            f"{'; '.join(changed)}. Give the settings it was made with, choose another --out, or "
            "move the file away to make it again."
        )
    return stored


def check_shape(path: Path, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that has another shape (-1: any length) or a number that is not finite."""
    same = array.ndim == len(shape)
    if not same or any(b not in (-1, a) for a, b in zip(array.shape, shape, strict=True)):
        wanted = ", ".join("any" if n == -1 else str(n) for n in shape)
        raise InputError(f"{path}: '{name}' has the shape {array.shape}, expected ({wanted}).")
    if not np.isfinite(array).all():
        at = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
        raise InputError(f"{path}: '{name}' is not finite at {at}; every entry must be a number.")


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping as JSON has it: tuples become lists, keys become text."""
    result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return result


def pick(header: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a header that have one of the names."""
    return {name: header[name] for name in names if name in header}
