"""PointMaze's fewest steps by search: every position on a grid, every action to one, one by one.

Slow and independent of `toptail.lab.judges.exact`: it knows no ways, only what one step does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from toptail.lab.tasks.maze import Maze

Points = NDArray[np.float64]

RADIUS, LEFT = 0.7, 0.1772
"""The point's radius, and the share of its depth in a wall that a step leaves."""
DEEPEST = 0.3
"""No point gets deeper into a wall: 0.06 are left of a step, and 0.2 a coordinate are added."""


def moved_out(maze: Maze, points: Points) -> Points:
    """What the simulator does to points ``[n, 2]`` in walls: sides first, then free corners.

    Where two cells of a wall meet, the simulator also pushes aside, by up to 0.03; not here.
    """
    walls = maze.walls
    i, j = (np.floor((points[:, axis] + 6) / 4).astype(int) for axis in (1, 0))
    i, j = np.clip(i, 1, walls.shape[0] - 2), np.clip(j, 1, walls.shape[1] - 2)
    offset = points - np.stack([4.0 * j - 4, 4.0 * i - 4], axis=1)
    moved = points.copy()
    for sign in (-1, 1):
        for axis, wall in ((0, walls[i, j + sign]), (1, walls[i + sign, j])):
            depth = RADIUS - (2 - sign * offset[:, axis])
            moved[:, axis] -= np.where(wall & (depth > 0), sign * (1 - LEFT) * depth, 0.0)
        for other in (-1, 1):
            away = offset - 2 * np.array([sign, other])
            gap = np.hypot(*away.T)
            free = ~walls[i, j + sign] & ~walls[i + other, j]
            hit = walls[i + other, j + sign] & free & (gap < RADIUS) & (gap > 0)
            push = (1 - LEFT) * (RADIUS - gap[hit]) / gap[hit]
            moved[hit] += away[hit] * push[:, None]
    return moved


@dataclass(frozen=True, eq=False)
class Search:
    """All positions of a maze at a spacing that divides 0.2."""

    maze: Maze
    """Where the walls are."""
    spacing: float
    """Distance of neighbouring positions."""
    contact: Callable[[Maze, Points], Points] = moved_out
    """What becomes of a position in a wall; the result is rounded to the next position."""

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Positions along x and y."""
        rows, columns = self.maze.walls.shape
        across, up = (round((4 * n - 8) / self.spacing) + 1 for n in (columns, rows))
        return across, up

    @cached_property
    def positions(self) -> Points:
        """All positions, ``[n, 2]``."""
        sides = (-2 + self.spacing * np.arange(n) for n in self.shape)
        return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def gap(self) -> Points:
        """Distance of each position from the nearest wall."""
        nearest = np.full(len(self.positions), np.inf)
        for i, j in np.argwhere(self.maze.walls):
            away = np.abs(self.positions - np.array([4.0 * j - 4, 4.0 * i - 4])) - 2
            nearest = np.minimum(nearest, np.hypot(*np.maximum(away, 0.0).T))
        return nearest

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Positions that a step may put the point into, before the walls answer."""
        return self.gap >= RADIUS - DEEPEST

    @cached_property
    def landing(self) -> NDArray[np.int64]:
        """Number of the position that the walls leave of each."""
        at = self.positions.copy()
        at[self.possible] = self.contact(self.maze, at[self.possible])
        x, y = np.rint((at + 2) / self.spacing).astype(int).T
        width, height = self.shape
        return np.asarray(np.clip(x, 0, width - 1) * height + np.clip(y, 0, height - 1))

    def steps(self, goal: Points, tolerance: float = 1.0) -> NDArray[np.int64]:
        """Fewest steps from every position to within the tolerance of a goal ``[2]``; else -1."""
        reached = (np.hypot(*(self.positions - goal).T) <= tolerance + 1e-9) & self.possible
        steps, size = np.where(reached, 0, -1), 2 * round(0.2 / self.spacing) + 1
        for step in range(1, 10_000):
            good = (reached[self.landing] & self.possible).reshape(self.shape).astype(np.uint8)
            for axis in (0, 1):
                good = maximum_filter1d(good, size, axis=axis, mode="constant")
            new = (good.ravel() > 0) & self.possible & (steps < 0)
            if not new.any():
                break
            steps[new], reached = step, reached | new
        return steps

    def continuous_steps(
        self, at: Points, goal: Points, steps: NDArray[np.int64], tolerance: float = 1.0
    ) -> Points:
        """Fewest steps from any points ``[n, 2]``, the first of which may be a part of one.

        A part c of a step has actions in [-c, c]^2 and costs c; it ends on a position of the grid,
        from where ``steps`` are left. Up to a spacing of 1 / 10 of a step this is the shortest
        length in steps of 0.2.
        """
        reach = round(0.2 / self.spacing)
        side = np.arange(-reach, reach + 1)
        first = np.rint((at + 2) / self.spacing).astype(int)
        x, y = (first[:, axis, None, None] + side.reshape(shape) for axis, shape in
                ((0, (-1, 1)), (1, (1, -1))))  # fmt: skip
        inside = (x >= 0) & (x < self.shape[0]) & (y >= 0) & (y < self.shape[1])
        cell = np.where(inside, x, 0) * self.shape[1] + np.where(inside, y, 0)
        left = steps[self.landing[cell]]
        away = np.abs(self.positions[cell] - at[:, None, None]).max(axis=-1)
        ok = inside & self.possible[cell] & (left >= 0) & (away <= 0.2 + 1e-9)
        cost = np.where(ok, left + away / 0.2, np.inf).min(axis=(1, 2))
        return np.where(np.hypot(*(at - goal).T) <= tolerance, 0.0, cost)
