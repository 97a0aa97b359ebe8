r"""The computed judges of PointMaze: the library's exact values, and the Euclidean length of paths.

To the Euclidean judge a candidate is worth

.. math:: \gamma^{\,d(s', g) / 0.2}

with s' the state that one simulated step with the action leads to, and d the Euclidean length of
the point's shortest path from s' to the goal's position. This is not the task's value: an action
moves the point by 0.2 in each coordinate, so that diagonals are faster, and the environment's
tolerance of 1 around the goal is ignored. `toptail.lab.judges.exact` has the value.

The point has a radius of 0.7, so its centre stays that far from walls and goes around a wall's
corner on an arc. Here the arc is a chain of chords with vertices at distance r = 0.7, and every
piece of a path stays at least r cos(chord angle / 2) from walls. The computed length is therefore
at most that of the shortest path at clearance r, and at least that at the slightly smaller
clearance. With eight chords per corner the two clearances differ by 0.5 %.

A shortest path goes straight from the start to a vertex, from vertex to vertex, and straight to
the goal. Contacts are soft, so that the point may be a few hundredths closer to a wall than its
radius: it is then first moved straight out of the wall, and that length is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from toptail.errors import InputError
from toptail.lab.judges.exact import (
    continuous_origin,
    continuous_values,
    exact_origin,
    exact_values,
)
from toptail.lab.judges.point import (
    EXACT,
    EXACT_CONTINUOUS,
    POINT_RADIUS,
    STEP,
    Points,
    next_positions,
    point_environment,
    wall_corners,
)
from toptail.lab.tasks.maze import UNIT, Maze, Positions
from toptail.lab.tasks.simulator import make_env

EUCLIDEAN = "euclidean"
"""Name of the Euclidean judge in files and tables."""
_CHORDS = 8
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class EuclideanPaths:
    """Shortest paths through a maze at a distance from its walls."""

    maze: Maze
    radius: float = POINT_RADIUS
    """Distance r of the vertices from the walls' corners; below half a cell."""
    chords: int = _CHORDS
    """Chords of a quarter of a circle around a corner."""

    @property
    def clearance(self) -> float:
        """Distance from the walls that every piece of a path keeps: r cos(chord angle / 2)."""
        return float(self.radius * np.cos(np.pi / 4 / self.chords))

    @cached_property
    def corners(self) -> tuple[Points, Points]:
        """Corners where a wall juts into free space: positions and outward signs, ``[c, 2]``."""
        return wall_corners(self.maze)

    @cached_property
    def vertices(self) -> Points:
        """Points where a shortest path may turn, ``[v, 2]``."""
        at, outward = self.corners
        angle = np.linspace(0.0, np.pi / 2, self.chords + 1)
        arc = np.stack([np.cos(angle), np.sin(angle)], axis=1) * self.radius
        points = (at[:, None] + outward[:, None] * arc).reshape(-1, 2)
        return points[self.wall_distance(points) >= self.clearance - _ROUNDING]

    @cached_property
    def between(self) -> Points:
        """Shortest paths between vertices, ``[v, v]``; infinite where there is none."""
        v = self.vertices
        length = np.linalg.norm(v[:, None] - v[None], axis=2)
        length[~self.visible(v[:, None], v[None])] = np.inf
        np.fill_diagonal(length, 0.0)
        paths: Points = dijkstra(np.where(np.isfinite(length), length, 0.0), directed=False)
        return paths

    def wall_distance(self, points: Points) -> Points:
        """Distance of each point (``[..., 2]``) to the nearest wall; 0 inside one."""
        nearest = np.full(points.shape[:-1], np.inf)
        for centre in self.maze.centre(np.flatnonzero(self.maze.walls.ravel())):
            gap = np.maximum(np.abs(points - centre) - UNIT / 2, 0.0)
            nearest = np.minimum(nearest, np.hypot(gap[..., 0], gap[..., 1]))
        return nearest

    def visible(self, a: Points, b: Points) -> NDArray[np.bool_]:
        """Whether the straight path between points keeps the clearance; leading axes broadcast.

        Both ends must keep it themselves. Then the path does so unless it passes a wall's corner
        too closely or crosses a wall.
        """
        direction = b - a
        square = np.maximum((direction**2).sum(axis=-1), 1e-300)
        free = ~self._crosses(a, direction)
        for corner in self.corners[0]:
            t = np.clip(((corner - a) * direction).sum(axis=-1) / square, 0.0, 1.0)
            gap = ((a + t[..., None] * direction - corner) ** 2).sum(axis=-1)
            free &= gap >= (self.clearance - _ROUNDING) ** 2
        return free

    def _crosses(self, a: Points, direction: Points) -> NDArray[np.bool_]:
        """Whether a straight path enters a wall through one of the lines between cells."""
        walls = self.maze.walls.ravel()
        crossed = np.zeros(np.broadcast_shapes(a.shape, direction.shape)[:-1], dtype=bool)
        for axis in (0, 1):
            # Lines x = const lie between columns, lines y = const between rows.
            for k in range(1, self.maze.walls.shape[1 - axis]):
                line = (k - 0.5) * UNIT - UNIT
                move = direction[..., axis]
                t = (line - a[..., axis]) / np.where(move == 0.0, np.inf, move)
                at = a + np.clip(t, 0.0, 1.0)[..., None] * direction
                at[..., axis] = line
                sides = []
                for side in (-1e-6, 1e-6):
                    beside = at.copy()
                    beside[..., axis] += side
                    cell = self.maze.cell(beside).clip(0, walls.size - 1)
                    sides.append(walls[cell])
                crossed |= (t > 0) & (t < 1) & (sides[0] | sides[1])
        return crossed

    def moved_out(self, points: Points) -> tuple[Points, Points]:
        """Points ``[n, 2]`` moved straight out of walls to the clearance, and how far each went."""
        moved = points.copy()
        close = np.flatnonzero(self.wall_distance(points) < self.clearance)
        passes = 2 if len(close) else 0
        for _ in range(passes):  # the second pass settles points between two walls
            for centre in self.maze.centre(np.flatnonzero(self.maze.walls.ravel())):
                at = moved[close]
                foot = centre + np.clip(at - centre, -UNIT / 2, UNIT / 2)
                away = at - foot
                gap = np.linalg.norm(away, axis=1)
                if np.any(gap == 0.0):
                    x, y = at[np.argmin(gap)]
                    raise InputError(
                        f"The position ({x:.3f}, {y:.3f}) is inside a wall: these are not states "
                        "of this maze."
                    )
                inside = gap < self.clearance
                at[inside] = foot[inside] + away[inside] * (self.clearance / gap[inside])[:, None]
                moved[close] = at
        return moved, np.linalg.norm(moved - points, axis=1)

    def to_goal(self, goal: Points) -> Points:
        """Shortest path from each vertex to a goal ``[2]`` that keeps the clearance: ``[v]``."""
        direct = np.linalg.norm(self.vertices - goal, axis=1)
        direct[~self.visible(self.vertices, goal)] = np.inf
        paths: Points = (self.between + direct).min(axis=1, initial=np.inf)
        return paths

    def distance(self, starts: Positions, goal: Positions) -> Points:
        """Length of the shortest path from each start ``[n, 2]`` to one goal ``[2]``: ``[n]``.

        Fast where the starts are near each other: vertices that cannot be on the shortest path of
        any start are skipped.
        """
        (to,), (extra,) = self.moved_out(goal[None].astype(np.float64))
        at, moved = self.moved_out(starts.astype(np.float64))
        straight = np.linalg.norm(at - to, axis=1)
        best = np.where(self.visible(at, to[None]), straight, np.inf)
        hidden = np.flatnonzero(np.isinf(best))
        if len(hidden):
            best[hidden] = self._around_corners(at[hidden], self.to_goal(to))
        return np.asarray(best + moved + extra)

    def _around_corners(self, at: Points, rest: Points) -> Points:
        """The shortest |at - vertex| + rest over the vertices that each point sees."""
        total = np.linalg.norm(at[:, None] - self.vertices[None], axis=2) + rest
        best = np.full(len(at), np.inf)
        # Vertices in the order of their lower bounds, until none can improve a length.
        for vertex in np.argsort(total.min(axis=0)):
            shorter = np.flatnonzero(total[:, vertex] < best)
            if not len(shorter):
                if total[:, vertex].min() >= best.max():
                    break
                continue
            visible = self.visible(at[shorter], self.vertices[vertex][None])
            best[shorter[visible]] = total[shorter[visible], vertex]
        return best


def euclidean_origin(gamma: float) -> dict[str, Any]:
    """Everything that decides the judge's values, as JSON."""
    return {
        "judge": EUCLIDEAN,
        "formula": "gamma ** (length of the shortest way after one simulated step / step)",
        "gamma": gamma,
        "step": STEP,
        "radius": POINT_RADIUS,
        "chords": _CHORDS,
    }


def euclidean_values(
    task: str,
    states: NDArray[np.floating],
    candidates: NDArray[np.floating],
    goals: NDArray[np.floating],
    gamma: float,
    tick: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    """Value candidates ``[queries, n, 2]`` at states and goals ``[queries, 2]``: ``[queries, n]``.

    Larger is better, in (0, 1]. Only for PointMaze without teleports, where the state is the
    point's position.
    """
    paths, queries = EuclideanPaths(Maze.of(make_env(point_environment(task)))), len(candidates)
    after = next_positions(task, states[:, None], candidates)
    values = np.empty(after.shape[:2], dtype=np.float32)
    for query in range(queries):
        distance = paths.distance(after[query], goals[query])
        values[query] = gamma ** (distance / STEP)
        if tick is not None:
            tick((query + 1) / queries)
    return values


@dataclass(frozen=True)
class PointJudge:
    """A judge of PointMaze's candidates that is computed, not trained."""

    name: str
    origin: Callable[[float], dict[str, Any]]
    """Discount to everything that decides its values, as JSON."""
    values: Callable[..., NDArray[np.float32]]
    """The values of candidates, with the arguments of `exact_values`."""


POINT_JUDGES: Final[Mapping[str, PointJudge]] = {
    EXACT: PointJudge(EXACT, exact_origin, exact_values),
    EXACT_CONTINUOUS: PointJudge(EXACT_CONTINUOUS, continuous_origin, continuous_values),
    EUCLIDEAN: PointJudge(EUCLIDEAN, euclidean_origin, euclidean_values),
}
"""The judges by name, the preferred one first."""
