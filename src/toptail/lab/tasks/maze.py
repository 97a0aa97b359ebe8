"""The cells of a maze, which of them are free, and shortest paths between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from toptail.lab.tasks.trajectories import IntArray

Positions = NDArray[np.floating[Any]]

UNIT = 4.0
"""Side of a cell."""
POINT_REACH = 0.701
"""PointMaze's point has radius 0.7: a wall further away than this cannot touch it."""
_OFFSET = 4.0
# The order in which the package's search looks at neighbours: ties go to the first.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1))


@dataclass(frozen=True, eq=False)
class Maze:
    """A grid of walls and free cells; cell (i, j) has its centre at x = 4j − 4, y = 4i − 4.

    Cells are also numbered row by row, ``number = i · columns + j``, and every table below is
    indexed by these numbers.
    """

    walls: NDArray[np.bool_]
    """``[rows, columns]``, true where the cell is a wall."""

    @classmethod
    def of(cls, env: Any) -> Maze:
        return cls(np.asarray(env.unwrapped.maze_map) == 1)

    @cached_property
    def free(self) -> IntArray:
        """Numbers of the free cells."""
        return np.flatnonzero(~self.walls.ravel()).astype(np.int64)

    @cached_property
    def vertices(self) -> IntArray:
        """Numbers of the free cells that are not part of a straight corridor."""
        i, j = np.divmod(self.free, self.walls.shape[1])
        up, down = self.walls[i - 1, j], self.walls[i + 1, j]
        left, right = self.walls[i, j - 1], self.walls[i, j + 1]
        vertical = ~up & ~down & left & right
        horizontal = up & down & ~left & ~right
        vertices: IntArray = self.free[~(vertical | horizontal)]
        return vertices

    def cell(self, positions: Positions) -> IntArray:
        """Return the number of the cell that each position (``[..., 2]``) is in."""
        cells = np.floor((positions + _OFFSET + UNIT / 2) / UNIT).astype(np.int64)
        numbers: IntArray = cells[..., 1] * self.walls.shape[1] + cells[..., 0]
        return numbers

    def centre(self, cells: IntArray) -> NDArray[np.float64]:
        """Return the centre of each cell, ``[..., 2]``."""
        i, j = np.divmod(cells, self.walls.shape[1])
        return np.stack([j * UNIT - _OFFSET, i * UNIT - _OFFSET], axis=-1)

    @cached_property
    def steps(self) -> IntArray:
        """Length of a shortest path in cells, ``[from, to]``; −1 where there is none."""
        edges = np.zeros((self.walls.size, self.walls.size))
        for cell in range(self.walls.size):  # the last cell of a path may be a wall
            edges[self._free_neighbours(cell), cell] = 1.0
        steps = shortest_path(edges, unweighted=True)
        return np.where(np.isinf(steps), -1.0, steps).astype(np.int64)

    @cached_property
    def next_cell(self) -> IntArray:
        """The next cell of a shortest path, ``[from, to]``; the same cell where there is none.

        Among several shortest paths, that of the package: the first neighbour in the order up,
        left, down, right.
        """
        cells = self.walls.size
        table = np.tile(np.arange(cells)[:, None], (1, cells))
        best = self.steps.copy()
        for cell in range(cells):
            for neighbour in self._free_neighbours(cell):
                better = self.steps[neighbour] < best[cell]
                table[cell, better] = neighbour
                best[cell, better] = self.steps[neighbour, better]
        return table

    def subgoal(self, positions: Positions, goals: Positions) -> NDArray[np.float64]:
        """The centre of the next cell of the path to each goal, ``[n, 2]``."""
        return self.centre(self.next_cell[self.cell(positions), self.cell(goals)])

    def clear_of_walls(self, positions: Positions, radius: float) -> NDArray[np.bool_]:
        """Whether a square of half-side ``radius`` (at most 2) around a position meets no wall."""
        flat = self.walls.ravel()
        clear = np.ones(positions.shape[:-1], dtype=bool)
        for corner in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            clear &= ~flat[self.cell(positions + radius * np.array(corner))]
        return clear

    def _free_neighbours(self, cell: int) -> list[int]:
        rows, columns = self.walls.shape
        i, j = divmod(cell, columns)
        around = [(i + di, j + dj) for di, dj in _NEIGHBOURS]
        return [
            a * columns + b
            for a, b in around
            if 0 <= a < rows and 0 <= b < columns and not self.walls[a, b]
        ]
