r"""The exact value of PointMaze: the fewest steps to a goal in the task's own dynamics.

A step takes the point from x to P(x + 0.2 a), with a in the box [-1, 1]^2 and P what the simulator
does to a point that was put into a wall: it is moved straight out until 0.177 of the depth is left.
Nothing else moves it, nothing is random, and a goal is reached at Euclidean distance 1. A candidate
is worth

.. math:: Q^*(s, a, g) = \gamma^{\,1 + N(s', g)}, \qquad s' = P(s + 0.2 a),

with N(x, g) the fewest whole steps from x to within 1 of g; so 1 + N counts the judged action, as
the simulator's rollouts do. `discounted` has the convention of -1 for every step, too.

Whole steps are few: most of the candidates of a state tie. The judge ``exact_continuous`` leaves
the rounding out, gamma^(1 + L / 0.2) with L the length below: how far into its last step the point
arrives. It orders candidates as whole steps do wherever these differ, and breaks their ties.

Away from walls N steps reach a square of half-side 0.2 N, so lengths are in the maximum norm: along
any path of length L the point can be placed every 0.2, and N = ceil(L / 0.2). In every norm a
shortest path is a chain of straight pieces between corners. What remains is the effect of a corner,
where the walls help: pressed against the end of a wall, the point is moved out and on. A search in
the dynamics of one corner says that, however it comes along the wall (x growing, the corner at 0),
the point can be at x = t + 0.1185 and y = 0.844 - t after a path of length t from there, both at
once and to 0.01. So paths turn at 0.422 from a corner in both coordinates, and continue 0.1185
further along than they came. The errors were measured against search in the dynamics of whole mazes
and in the simulator, see ``references.md`` in the documentation.

The functions:

- ``PointSteps.of(task).lengths(starts, goals)``: L, shaped as the leading axes of both broadcast
  (``[n, 2]`` with ``[n, 2]`` gives ``[n]``, ``[n, 1, 2]`` with ``[m, 2]`` a table ``[n, m]``), and
  ``.steps(starts, goals)``, the same in whole steps N; 0 within the tolerance.
- ``next_positions(task, states, actions)`` in `toptail.lab.judges.point`: the simulator's s'.
- ``discounted(steps, gamma, step_reward)``: steps as a value, in either convention of rewards.
- ``exact_values(task, states, candidates, goals, gamma)`` and ``continuous_values``: all of it, as
  judges are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import dijkstra

from toptail.errors import InputError
from toptail.lab.judges.point import (
    EXACT,
    EXACT_CONTINUOUS,
    STEP,
    TOLERANCE,
    Points,
    next_positions,
    point_environment,
    wall_corners,
)
from toptail.lab.tasks.maze import UNIT, Maze, Positions
from toptail.lab.tasks.simulator import make_env

CORNER = 0.422
"""Distance in each coordinate from a wall's corner at which the fastest path turns."""
PUSH = 0.1185
"""Extra length of a path that continues straight where a wall ends: the wall's corner pushes the
point on."""
_PRESS = 0.187
"""How much longer a path must be along one axis than along the other to press against a wall."""
_ROUNDING = 1e-9
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class PointSteps:
    """Fewest steps between positions in a maze."""

    maze: Maze
    corner: float = CORNER
    """Distance of paths from a wall's corner, in each coordinate; below half a cell."""
    push: float = PUSH
    """Extra length of a path that continues straight where a wall ends."""
    tolerance: float = TOLERANCE
    """Euclidean distance at which a goal is reached; at most 1."""

    @classmethod
    def of(cls, task: str) -> PointSteps:
        """The steps of a PointMaze data set, by its name or short name."""
        return cls(Maze.of(make_env(point_environment(task))))

    def steps(self, starts: Positions, goals: Positions) -> NDArray[np.int64]:
        """Fewest whole steps from starts ``[..., 2]`` to goals ``[..., 2]``; axes broadcast."""
        return whole_steps(self.lengths(starts, goals))

    def lengths(self, starts: Positions, goals: Positions) -> Points:
        """Length of the shortest path into each goal's tolerance, in the maximum norm."""
        shape = np.broadcast_shapes(starts.shape[:-1], goals.shape[:-1])
        at, to = (np.asarray(x, np.float64).reshape(-1, 2) for x in (starts, goals))
        i, j = (
            np.broadcast_to(np.arange(len(flat)).reshape(x.shape[:-1]), shape).ravel()
            for flat, x in ((at, starts), (to, goals))
        )
        self._require_free(at)
        self._require_free(to)
        legs = _blocks(self._to_nodes, at, len(self.between))
        rest = _blocks(self._from_nodes, to, len(self.between))
        edges, found = self._edges(to), np.empty(len(i))
        for block in range(0, len(i), _BLOCK):
            p, q = i[block : block + _BLOCK], j[block : block + _BLOCK]
            around = (legs[p] + rest[q]).min(axis=1, initial=np.inf)
            found[block : block + _BLOCK] = np.minimum(
                self._direct(at[p], to[q], edges[:, q]), around
            )
        return found.reshape(shape)

    @cached_property
    def boxes(self) -> Points:
        """Obstacles, ``[b, 2, 2]``: the low and the high corner of each wall, enlarged by `corner`.

        Wall cells in a row or a column are one obstacle.
        """
        left, runs = self.maze.walls.copy(), []
        for i, j in np.argwhere(left):
            if left[i, j]:
                wide, tall = (_run(line) for line in (left[i, j:], left[i:, j]))
                end = (i, j + wide - 1) if wide >= tall else (i + tall - 1, j)
                left[i : end[0] + 1, j : end[1] + 1] = False
                runs.append(((i, j), end))
        cells = np.array(runs).reshape(-1, 2, 2) @ np.array([self.maze.walls.shape[1], 1])
        out = np.array([[-1.0], [1.0]]) * (UNIT / 2 + self.corner)
        return np.asarray(self.maze.centre(cells) + out)

    @cached_property
    def _corners(self) -> tuple[Points, Points]:
        """Where paths may turn ``[c, 2]``, and the signs of the direction away from the wall."""
        at, outward = wall_corners(self.maze)
        turns = at + self.corner * outward
        free = ~self._inside(turns)
        return turns[free], outward[free]

    @property
    def vertices(self) -> Points:
        """Points where a shortest path may turn, ``[v, 2]``."""
        return self._corners[0]

    @cached_property
    def exits(self) -> Points:
        """Where paths continue from nodes, ``[3 v, 2]``.

        A node is a vertex with the direction of arrival: moving outward along x, along y, or
        neither (`_along`). A point that moves outward along an axis is pushed on along it.
        """
        at, outward = self._corners
        pushes = self.push * np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        return np.asarray(at + outward * pushes[:, None]).reshape(-1, 2)

    @cached_property
    def between(self) -> Points:
        """Shortest paths from nodes to nodes, ``[3 v, 3 v]``; infinite where there is none."""
        legs = self._to_nodes(self.exits)
        paths: Points = dijkstra(np.where(np.isfinite(legs), legs, 0.0))
        return paths

    def _to_nodes(self, at: Points) -> Points:
        """Straight paths from points ``[n, 2]`` to nodes, infinite where there are none."""
        legs, (vertices, outward) = self._to_vertices(at), self._corners
        arriving = _along((vertices - at[:, None]) * outward)
        return np.concatenate([np.where(arriving == t, legs, np.inf) for t in range(3)], axis=1)

    def _to_vertices(self, at: Points) -> Points:
        """Straight paths from points ``[n, 2]`` to vertices, infinite where hidden: ``[n, v]``.

        Paths from the quadrant away from a corner do not turn there.
        """
        legs = np.full((len(at), len(self.vertices)), np.inf)
        for v, (vertex, outward) in enumerate(zip(*self._corners, strict=True)):
            away = (at - vertex).T
            n = np.flatnonzero(away[0] * away[1] * outward.prod() <= _ROUNDING)
            n = n[self.visible(at[n], np.broadcast_to(vertex, (len(n), 2)))]
            legs[n, v] = np.abs(away[:, n]).max(axis=0)
        return legs

    def _from_nodes(self, to: Points) -> Points:
        """Shortest paths from nodes into the tolerance of goals ``[n, 2]``: ``[n, 3 v]``."""
        edges, rest = self._edges(to), np.full((len(to), len(self.exits)), np.inf)
        for v, vertex in enumerate(self.vertices):
            last = self._direct(np.broadcast_to(vertex, to.shape), to, edges)
            seen = np.flatnonzero(np.isfinite(last))
            for node in range(v, len(self.exits), len(self.vertices)):
                start = np.broadcast_to(self.exits[node], (len(seen), 2))
                last = self._direct(start, to[seen], edges[:, seen])
                rest[seen] = np.minimum(rest[seen], last[:, None] + self.between[:, node])
        return rest

    def _direct(self, at: Points, to: Points, edges: Points) -> Points:
        """Straight paths from points into the tolerance of goals, pair by pair; inf if hidden."""
        away = np.hypot(*(to - at).T)
        found = np.where(away <= self.tolerance, 0.0, np.inf)
        self._shorten(found, at, self._touched(at, to), np.arange(len(at)))
        for edge in edges:
            self._shorten(found, at, edge, np.flatnonzero(np.isfinite(edge[:, 0])))
        # Where that is blocked, the straight path to the goal until its circle is one, too.
        share = 1 - self.tolerance / np.maximum(away, self.tolerance)
        self._shorten(found, at, at + (to - at) * share[:, None], np.flatnonzero(np.isinf(found)))
        return found

    def _shorten(
        self, found: Points, at: Points, targets: Points, pairs: NDArray[np.int64]
    ) -> None:
        """Replace longer paths by straight paths to targets where these are visible."""
        length = np.abs(targets[pairs] - at[pairs]).max(axis=1)
        better = length < found[pairs]
        pairs, length = pairs[better], length[better]
        seen = self.visible(at[pairs], targets[pairs])
        found[pairs[seen]] = length[seen]

    def _touched(self, at: Points, to: Points) -> Points:
        """Where a square that grows around each point first meets the goal's tolerance."""
        gap = np.abs(to - at)
        near, far = gap.min(axis=1), gap.max(axis=1)
        slant = np.sqrt(np.maximum(2 * self.tolerance**2 - (far - near) ** 2, 0.0))
        side = np.where(
            far - self.tolerance >= near, far - self.tolerance, (far + near - slant) / 2
        )
        return np.asarray(at + np.sign(to - at) * np.minimum(gap, np.maximum(side, 0.0)[:, None]))

    def _edges(self, to: Points) -> Points:
        """Where goals' circles cross the edges of a corner's obstacle, ``[2, n, 2]``; NaN if not.

        A goal behind a corner is reached as soon as the path along the wall meets its circle. At
        most one corner lies in a circle, since corners are further apart.
        """
        edges = np.full((2, len(to), 2), np.nan)
        for corner, outward in zip(*self._corners, strict=True):
            n = np.flatnonzero(((to - corner) ** 2).sum(axis=1) < self.tolerance**2)
            reach = np.sqrt(self.tolerance**2 - (to[n] - corner) ** 2)
            for axis in (0, 1):
                edges[axis, n, 1 - axis] = corner[1 - axis]
                edges[axis, n, axis] = to[n, axis] - outward[axis] * reach[:, 1 - axis]
        return edges

    def visible(self, a: Points, b: Points) -> NDArray[np.bool_]:
        """Whether no obstacle is on the straight path between points ``[n, 2]``, pair by pair.

        An obstacle is not on it if one of three directions separates them: x, y, or across.
        """
        free = np.arange(len(a))
        middle, half = ((a + b) / 2).T.copy(), ((b - a) / 2).T.copy()
        size = np.abs(half)
        for low, high in self.boxes:
            (x, y), (w, h) = (low + high) / 2, (high - low) / 2 - _ROUNDING
            dx, dy = middle[0, free] - x, middle[1, free] - y
            apart = np.abs(dx) >= size[0, free] + w
            apart |= np.abs(dy) >= size[1, free] + h
            across = np.abs(half[0, free] * dy - half[1, free] * dx)
            apart |= across >= size[0, free] * h + size[1, free] * w
            free = free[apart]
        seen = np.zeros(len(a), dtype=bool)
        seen[free] = True
        return seen

    def _inside(self, points: Points) -> NDArray[np.bool_]:
        low, high = self.boxes[:, 0] + _ROUNDING, self.boxes[:, 1] - _ROUNDING
        inside = (points[:, None] > low) & (points[:, None] < high)
        return np.asarray(np.any(np.all(inside, axis=2), axis=1))

    def _require_free(self, points: Points) -> None:
        for block in range(0, len(points), _BLOCK):
            inside = self._inside(points[block : block + _BLOCK])
            if inside.any():
                x, y = points[block + int(np.argmax(inside))]
                raise InputError(
                    f"The position ({x:.3f}, {y:.3f}) is inside a wall: these are not states of "
                    "this maze."
                )


def whole_steps(lengths: Points) -> NDArray[np.int64]:
    """Lengths in steps, rounded up."""
    return np.ceil(lengths / STEP - _ROUNDING).astype(np.int64)


def discounted(steps: ArrayLike, gamma: float, step_reward: float = 0.0) -> Points:
    """The value of reaching a goal after a number of steps, which may be infinite.

    With the step reward 0 the goal is worth 1 on arrival: gamma^steps. With -1 every step before
    the arrival costs 1: -(1 - gamma^steps) / (1 - gamma).
    """
    arrival = gamma ** np.asarray(steps, dtype=np.float64)
    return arrival if step_reward == 0.0 else step_reward * (1.0 - arrival) / (1.0 - gamma)


def exact_origin(gamma: float) -> dict[str, Any]:
    """Everything that decides the judge's values, as JSON."""
    return {
        "judge": EXACT,
        "formula": "gamma ** (1 + fewest whole steps to the tolerance after one simulated step)",
        "gamma": gamma,
        "step": STEP,
        "tolerance": TOLERANCE,
        "corner": CORNER,
    }


def continuous_origin(gamma: float) -> dict[str, Any]:
    """The origin of the judge that does not round steps up."""
    formula = "gamma ** (1 + shortest length to the tolerance after one simulated step / step)"
    return exact_origin(gamma) | {"judge": EXACT_CONTINUOUS, "formula": formula}


def exact_values(
    task: str,
    states: NDArray[np.floating],
    candidates: NDArray[np.floating],
    goals: NDArray[np.floating],
    gamma: float,
    tick: Callable[[float], None] | None = None,
    *,
    whole: bool = True,
) -> NDArray[np.float32]:
    """Value candidates ``[queries, n, 2]`` at states and goals ``[queries, 2]``: ``[queries, n]``.

    Larger is better, in (0, gamma]. Only for PointMaze without teleports, where the state is the
    point's position. ``whole`` rounds steps up.
    """
    paths, (queries, n) = PointSteps.of(task), candidates.shape[:2]
    values = np.empty((queries, n), dtype=np.float32)
    block = max(1, _BLOCK * 8 // n)
    for first in range(0, queries, block):
        rows = slice(first, first + block)
        after = next_positions(task, states[rows, None], candidates[rows])
        left = paths.lengths(after, goals[rows, None])
        steps = whole_steps(left) if whole else left / STEP
        values[rows] = discounted(1 + steps, gamma)
        if tick is not None:
            tick(min(1.0, (first + block) / queries))
    return values


continuous_values = partial(exact_values, whole=False)
"""`exact_values` without rounding steps up."""


def _along(outward: Points) -> NDArray[np.int64]:
    """The axis along which paths ``[..., 2]`` arrive moving outward: 0 or 1, and 2 for neither.

    They must be long enough to press against the wall.
    """
    x, y = np.moveaxis(outward, -1, 0)
    along = np.where(x >= np.abs(y) + _PRESS, 0, 2)
    return np.where(y >= np.abs(x) + _PRESS, 1, along)


def _run(line: NDArray[np.bool_]) -> int:
    return int(np.argmin(np.append(line, False)))


def _blocks(function: Callable[[Points], Points], points: Points, width: int) -> Points:
    """Apply a function to points ``[n, 2]``, block by block: ``[n, width]``."""
    found = np.empty((len(points), width))
    for block in range(0, len(points), _BLOCK):
        found[block : block + _BLOCK] = function(points[block : block + _BLOCK])
    return found
