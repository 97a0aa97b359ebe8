"""Episodes of other libraries in the layout of this project's data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories

Arrays = dict[str, NDArray[Any]]
_KINDS: Final = {"button_states": np.int64}


@dataclass(frozen=True)
class Imported:
    """Episodes as they were found."""

    episodes: Sequence[Arrays]
    """For each the arrays of a data set but ``terminals``, one row per time step."""
    notes: tuple[str, ...] = ()
    """What was done to them, in sentences."""

    def checked(self, source: str) -> Imported:
        """Without episodes of a single row, which have no transition; all of one width."""
        for name in self.episodes[0] if self.episodes else ():
            widths = {e[name].shape[1] for e in self.episodes if name in e}
            if len(widths) > 1:
                told = ", ".join(map(str, sorted(widths)))
                raise InputError(f"{source}: '{name}' is of different width in episodes ({told}).")
        kept = [episode for episode in self.episodes if len(episode["observations"]) > 1]
        short = len(self.episodes) - len(kept)
        if not kept:
            raise InputError(f"{source} has no episode of two rows or more.")
        note = (f"{short} episodes of a single row were left out.",) if short else ()
        return Imported(kept, (*self.notes, *note))


def trajectories(episodes: Sequence[Mapping[str, NDArray[Any]]], source: str) -> Trajectories:
    """Episodes one after another, the last row of each marked as its end."""
    names = [name for name in episodes[0] if all(name in episode for episode in episodes)]
    arrays = {
        name: np.concatenate([np.asarray(e[name], _KINDS.get(name, np.float32)) for e in episodes])
        for name in names
    }
    ends = np.cumsum([len(episode["observations"]) for episode in episodes]) - 1
    terminals = np.zeros(len(arrays["observations"]), np.bool_)
    terminals[ends] = True
    return Trajectories(**arrays, terminals=terminals, source=source)


def split_rows(arrays: Arrays, ends: NDArray[np.bool_]) -> list[Arrays]:
    """Flat arrays cut into episodes after each end, and after the last row."""
    cuts = np.flatnonzero(ends[:-1]) + 1
    pieces = {name: np.split(array, cuts) for name, array in arrays.items()}
    return [{name: pieces[name][i] for name in pieces} for i in range(len(cuts) + 1)]


def as_rows(array: NDArray[Any], name: str, source: str) -> NDArray[Any]:
    """An array of numbers a row; images and the like are refused."""
    rows = array[:, None] if array.ndim == 1 else array
    if rows.ndim != 2:
        raise InputError(
            f"{source}: '{name}' has shape {array.shape[1:]} a row; only vectors are imported."
        )
    return rows


def padded(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """An array with its last row repeated; a last row's action leads nowhere."""
    return np.concatenate([array, np.repeat(array[-1:], rows - len(array), axis=0)])
