"""PointMaze's point: its constants, its walls, and one simulated step."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.maze import POINT_REACH, UNIT, Maze
from toptail.lab.tasks.names import is_ogbench, parse_name
from toptail.lab.tasks.simulator import MazeBatch

Points = NDArray[np.float64]

EXACT, EXACT_CONTINUOUS = "exact", "exact_continuous"
"""Names of PointMaze's judges in files and tables."""

POINT_RADIUS = 0.7
"""Radius of PointMaze's agent."""
STEP = 0.2
"""How far an action of 1 moves the point in a coordinate."""
TOLERANCE = 1.0
"""Distance within which PointMaze counts a goal as reached."""
_SIMULATIONS = 64


def is_point_maze(task: str) -> bool:
    """Whether a data set is PointMaze's, without teleports: then its exact value is known."""
    if not is_ogbench(task):
        return False
    name = parse_name(task)
    return name.family == "pointmaze" and name.variant != "teleport"


def point_environment(task: str) -> str:
    """The environment's id of a PointMaze data set; other data sets are refused."""
    if not is_point_maze(task):
        raise InputError(
            f"Shortest paths are known in PointMaze without teleports, and '{task}' is no such "
            "PointMaze: use the other judges."
        )
    return parse_name(task).environment


def wall_corners(maze: Maze) -> tuple[Points, Points]:
    """Corners where a wall juts into free space: positions and outward signs, ``[c, 2]``."""
    walls = np.pad(maze.walls, 1, constant_values=True)
    found: list[tuple[Points, tuple[int, int]]] = []
    for i, j in np.argwhere(maze.walls):
        centre = maze.centre(np.array(i * maze.walls.shape[1] + j))
        for dx, dy in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            beside, above = walls[i + 1, j + 1 + dx], walls[i + 1 + dy, j + 1]
            if not (beside or above):
                found.append((centre + UNIT / 2 * np.array([dx, dy]), (dx, dy)))
    at, outward = (np.array([each[side] for each in found], dtype=float) for side in (0, 1))
    return at.reshape(-1, 2), outward.reshape(-1, 2)


@cache
def _simulations(environment: str) -> MazeBatch:
    """The simulations, made once: starting the simulator takes longer than stepping it."""
    return MazeBatch(environment, _SIMULATIONS)


def next_positions(
    task: str, states: NDArray[np.floating[Any]], actions: NDArray[np.floating[Any]]
) -> Points:
    """Where the simulator takes the point from ``[..., 2]`` by ``[..., 2]``; axes broadcast.

    Only points that may touch a wall are simulated, to the same bits: see `MazeBatch`.
    """
    shape = np.broadcast_shapes(states.shape, actions.shape)
    at, by = (np.broadcast_to(x, shape).reshape(-1, 2) for x in (states, actions))
    batch = _simulations(point_environment(task))
    # As the simulator computes it: the position in float64, the action's product in its own type.
    after = at.astype(np.float64) + STEP * by
    touching = np.flatnonzero(~batch.maze.clear_of_walls(after, POINT_REACH))
    for block in range(0, len(touching), batch.size):
        rows = touching[block : block + batch.size]
        padded = np.resize(rows, batch.size)  # the last block repeats its rows
        batch.restore(at[padded], np.zeros((batch.size, 2)))
        batch.step(by[padded])
        after[rows] = batch.positions()[: len(rows)]
    return after.reshape(shape)
