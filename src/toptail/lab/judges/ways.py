"""The judges that know the ways of PointMaze, by the names that files and tables give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.lab.judges.euclidean import euclidean_origin, euclidean_values
from toptail.lab.judges.exact import exact_origin, exact_values
from toptail.lab.judges.point import EUCLIDEAN, EXACT, GEODESIC


@dataclass(frozen=True)
class WayJudge:
    """An untrained judge of PointMaze's candidates."""

    name: str
    """Its name."""
    origin: Callable[[float], dict[str, Any]]
    """What decides its values for a discount, as JSON has it."""
    values: Callable[..., NDArray[np.float32]]
    """Task, states, candidates, goals, discount and a tick to values: see `exact_values`."""

    def file(self, folder: Path) -> Path:
        """Where its values lie in a folder: under an older name, where they have one there."""
        older = folder / f"{GEODESIC}.npz"
        return older if self.name == EUCLIDEAN and older.is_file() else folder / f"{self.name}.npz"


WAYS: Final[Mapping[str, WayJudge]] = {
    EXACT: WayJudge(EXACT, exact_origin, exact_values),
    EUCLIDEAN: WayJudge(EUCLIDEAN, euclidean_origin, euclidean_values),
}
"""The judges by name; the one that leads is first."""
