"""Bootstrap replicates of the cells of a study's tables: ``replicates/TASK.npz``.

All numbers of a task share their resamples, so that the replicates of a difference or a ratio of
two of them are those of a paired comparison. A file has one array of 32-bit floats for each cell,
under the name ``TABLE/ROW/METRIC``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import entries

REPLICATES: Final = "replicates"
"""Folder of the files, and name of what is read from them among a study's results."""

DRAWS: Final = "draws"
"""Key of a cell's replicates before it is stored."""

MOST: Final = 1_000
"""Replicates of a cell, at most."""

MOST_BYTES: Final = 1_400_000
"""Size of a task's file, about: with many cells, each has fewer replicates."""

Replicates = Mapping[str, Mapping[str, NDArray[Any]]]
"""Task -> ``TABLE/ROW/METRIC`` -> replicates."""


def key_of(table: str, row: str, metric: str) -> str:
    return f"{table}/{row}/{metric}"


def split_tables(
    tables: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, NDArray[Any]]]]:
    """The tables without replicates in their cells, and the replicates by task and key.

    A cell that several tables have stands among the replicates once, under the first.
    """
    found: dict[str, dict[str, NDArray[Any]]] = {}
    stored: set[int] = set()

    def plain(name: str, task: str, row: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
        cells = {}
        for metric, cell in metrics.items():
            if DRAWS in cell and id(cell[DRAWS]) not in stored:
                stored.add(id(cell[DRAWS]))
                found.setdefault(task, {})[key_of(name, row, metric)] = cell[DRAWS]
            cells[metric] = {key: value for key, value in cell.items() if key != DRAWS}
        return cells

    clean: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        rows = {
            task: {row: plain(name, task, row, cells) for row, cells in by_row.items()}
            for task, by_row in table["rows"].items()
        }
        clean[name] = {**table, "rows": rows}
    return clean, found


def write_replicates(folder: Path, replicates: Replicates) -> None:
    """Write a file for each task, and delete those of an earlier call that have none now."""
    for task, cells in replicates.items():
        count = min(MOST, max(1, MOST_BYTES // (4 * len(cells))))
        arrays = {key: np.asarray(draws[:count], np.float32) for key, draws in cells.items()}
        write_arrays(folder / f"{task}.npz", arrays)
    for path in entries(folder, "*.npz"):
        if path.stem not in replicates:
            path.unlink()


def read_replicates(folder: Path) -> dict[str, dict[str, NDArray[np.float64]]]:
    """The replicates of every task that a study's folder has, by key."""
    return {
        path.stem: {key: np.asarray(draws, np.float64) for key, draws in read_arrays(path).items()}
        for path in entries(folder / REPLICATES, "*.npz")
    }
