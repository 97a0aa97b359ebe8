"""Shortest ways through a maze against other methods: by hand, a fine grid, no pruning."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from toptail.errors import InputError
from toptail.lab.judges.point import STEP, is_point_maze
from toptail.lab.tasks.maze import Maze
from toptail_paper.study.point_judges import EuclideanPaths, euclidean_values

Points = NDArray[np.float64]

# A hook around one inner wall, with a second wall touching it across a corner.
SMALL = Maze(
    np.array(
        [
            [1, 1, 1, 1, 1],
            [1, 0, 0, 0, 1],
            [1, 0, 1, 0, 1],
            [1, 0, 0, 1, 1],
            [1, 1, 1, 1, 1],
        ],
        dtype=bool,
    )
)
RADIUS = 0.7


def tangent_way(start: Points, goal: Points, corner: Points, radius: float) -> float:
    """Counterclockwise around one circle: two tangents and the arc between them."""
    a, b = start - corner, goal - corner
    p, q = np.linalg.norm(a), np.linalg.norm(b)
    between = (np.arctan2(b[1], b[0]) - np.arctan2(a[1], a[0])) % (2 * np.pi)
    arc = between - np.arccos(radius / p) - np.arccos(radius / q)
    return float(np.sqrt(p**2 - radius**2) + np.sqrt(q**2 - radius**2) + radius * arc)


def wall_gap(points: Points) -> Points:
    """Distance to the nearest wall, from the outlines of the small maze's free cells.

    A point in a free cell has walls behind those sides and corners whose neighbour is one.
    """
    i, j = (np.floor((points[..., axis] + 6) / 4).astype(int) for axis in (1, 0))
    dx, dy = points[..., 0] - (4 * j - 4), points[..., 1] - (4 * i - 4)
    gap = np.full(points.shape[:-1], 9.0)
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            x = np.where(dj == 0, 0.0, 2.0 - dj * dx)
            y = np.where(di == 0, 0.0, 2.0 - di * dy)
            wall = SMALL.walls[np.clip(i + di, 0, 4), np.clip(j + dj, 0, 4)]
            gap = np.where(wall, np.minimum(gap, np.hypot(x, y)), gap)
    return gap


def grid_ways(starts: Points, goal: Points, h: float) -> Points:
    """Dijkstra on a grid whose edges go in many directions and stay ``radius`` from walls."""
    reach = 5
    moves = [
        (x, y)
        for x in range(-reach, reach + 1)
        for y in range(-reach, reach + 1)
        if gcd(abs(x), abs(y)) == 1
    ]
    side = np.arange(-1.3, 9.3 + h / 2, h)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    n = len(side)
    number = np.arange(n * n).reshape(n, n)
    edges: list[tuple[NDArray[np.int64], NDArray[np.int64], Points]] = []

    def clear(a: Points, b: Points) -> NDArray[np.bool_]:
        """Looked at point by point, every 0.04."""
        t = np.linspace(0, 1, 2 + int(np.abs(b - a).max() / 0.04))[:, None, None]
        return np.asarray((wall_gap(a + t * (b - a)) >= RADIUS - 1e-3).all(axis=0))

    for x, y in moves:
        rows = slice(max(0, -x), n - max(0, x)), slice(max(0, -y), n - max(0, y))
        to = slice(max(0, x), n + min(0, x)), slice(max(0, y), n + min(0, y))
        a, b = grid[rows].reshape(-1, 2), grid[to].reshape(-1, 2)
        ok = clear(a, b)
        length = np.full(ok.sum(), h * np.hypot(x, y))
        edges.append((number[rows].ravel()[ok], number[to].ravel()[ok], length))
    i, j, w = (np.concatenate(part) for part in zip(*edges, strict=True))
    graph = coo_matrix((w, (i, j)), shape=(n * n, n * n)).tocsr()
    flat = grid.reshape(-1, 2)
    at = [int(np.argmin(np.linalg.norm(flat - p, axis=1))) for p in (*starts, goal)]
    return dijkstra(graph, indices=[at[-1]])[0, at[:-1]]


def test_straight_where_nothing_is_in_the_way() -> None:
    ways = EuclideanPaths(SMALL)
    starts = np.array([[0.0, 0.0], [1.0, 0.5], [8.0, -1.0]])
    goal = np.array([4.0, -1.0])
    np.testing.assert_allclose(
        ways.distance(starts, goal), np.linalg.norm(starts - goal, axis=1), rtol=1e-12
    )


def test_around_one_corner_by_hand() -> None:
    ways = EuclideanPaths(SMALL)
    start, goal, corner = np.array([0.0, 4.0]), np.array([4.5, 0.0]), np.array([2.0, 2.0])
    exact = tangent_way(start, goal, corner, RADIUS)
    found = ways.distance(start[None], goal)[0]
    assert tangent_way(start, goal, corner, ways.clearance) <= found <= exact + 1e-12
    # More chords come closer to the arc from below.
    gaps = [
        exact - EuclideanPaths(SMALL, chords=n).distance(start[None], goal)[0] for n in (2, 8, 64)
    ]
    assert gaps[0] > gaps[1] > gaps[2] > -1e-12
    assert gaps[2] < 1e-4


def test_between_the_bounds_of_a_fine_grid() -> None:
    ways, h = EuclideanPaths(SMALL), 0.2
    rng = np.random.default_rng(0)
    side = np.arange(-1.3, 9.3 + h / 2, h)
    points = side[rng.integers(0, len(side), (4_000, 2))]
    points = points[ways.wall_distance(points) >= RADIUS + 0.05][:60]
    goal = np.array([side[46], side[21]])
    assert ways.wall_distance(goal) >= RADIUS
    grid, found = grid_ways(points, goal, h), ways.distance(points, goal)
    straight = np.linalg.norm(points - goal, axis=1)
    assert (found > straight + 0.01).sum() > 30, "too few ways go around a corner"
    # A way on the grid is a way, but for the tolerance with which its edges were looked at ...
    assert (found <= grid + 0.01).all()
    # ... and one in its directions is at most 1 / cos(atan(1/5) / 2) longer, plus grid steps.
    assert (grid <= found * 1.006 + 3 * h).all()


def test_pruning_loses_nothing() -> None:
    ways = EuclideanPaths(SMALL)
    rng = np.random.default_rng(1)
    points = rng.uniform(-1.3, 9.3, (3_000, 2))
    points = points[ways.wall_distance(points) >= RADIUS]
    for goal in points[:5]:
        rest = ways.to_goal(goal)
        leg = np.linalg.norm(points[:, None] - ways.vertices[None], axis=2) + rest
        leg[~ways.visible(points[:, None], ways.vertices[None])] = np.inf
        direct = np.linalg.norm(points - goal, axis=1)
        direct[~ways.visible(points, goal[None])] = np.inf
        expected = np.minimum(direct, leg.min(axis=1))
        np.testing.assert_allclose(ways.distance(points, goal), expected, rtol=1e-12)


def test_ways_are_symmetric_and_keep_the_triangle_inequality() -> None:
    ways = EuclideanPaths(SMALL)
    rng = np.random.default_rng(2)
    points = rng.uniform(-1.3, 9.3, (400, 2))
    points = points[ways.wall_distance(points) >= RADIUS][:25]
    table = np.array([ways.distance(points, goal) for goal in points])
    np.testing.assert_allclose(table, table.T, atol=1e-9)
    assert (table[:, None] <= table[:, :, None] + table[None] + 1e-9).all()


def test_visibility_against_points_along_the_way() -> None:
    ways = EuclideanPaths(SMALL)
    rng = np.random.default_rng(3)
    points = rng.uniform(-1.3, 9.3, (2_000, 2))
    points = points[ways.wall_distance(points) >= RADIUS]
    half = len(points) // 2
    a, b = points[:half], points[half : 2 * half]
    t = np.linspace(0, 1, 2_001)[:, None, None]
    along = a + t * (b - a)
    closest = wall_gap(along).min(axis=0)
    np.testing.assert_allclose(closest, ways.wall_distance(along).min(axis=0), atol=1e-12)
    sure = np.abs(closest - ways.clearance) > 1e-3
    seen = ways.visible(a, b)
    np.testing.assert_array_equal(seen[sure], closest[sure] > ways.clearance)
    assert 0.1 < seen.mean() < 0.9


def test_no_way_through_walls_that_touch_at_a_corner() -> None:
    """The cells (2, 3) and (3, 2) are neighbours across a corner: the way is all around."""
    ways = EuclideanPaths(SMALL)
    start, goal = np.array([8.0, 4.0]), np.array([4.0, 8.0])
    assert not ways.visible(start[None], goal[None])[0]
    assert ways.distance(start[None], goal)[0] > 2.5 * np.linalg.norm(start - goal)


def test_a_soft_contact_is_moved_out_and_counted() -> None:
    ways = EuclideanPaths(SMALL)
    free, pressed = np.array([0.0, -1.3]), np.array([0.0, -1.35])
    goal = np.array([0.0, 0.0])
    moved, by = ways.moved_out(np.stack([free, pressed, [-1.4, -1.4]]))
    inside = -2 + ways.clearance
    expected = np.array([[0.0, -1.3], [0.0, inside], [inside, inside]])
    np.testing.assert_allclose(moved, expected, atol=1e-12)
    np.testing.assert_allclose(by[:2], [0.0, inside + 1.35], atol=1e-12)
    found = ways.distance(pressed[None], goal)[0]
    np.testing.assert_allclose(found, 1.35, atol=1e-9)
    with pytest.raises(InputError, match="inside a wall"):
        ways.distance(np.array([[4.0, 4.0]]), goal)


def test_values_are_of_the_state_that_the_action_leads_to() -> None:
    task = "pointmaze-medium-navigate-v0"
    states = np.array([[0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    goals = np.array([[1.0, 0.0], [0.0, 4.0]], dtype=np.float32)
    actions = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    shares: list[float] = []
    found = euclidean_values(task, states, np.stack([actions] * 2), goals, 0.99, shares.append)
    after = states[:, None] + STEP * actions
    distance = np.linalg.norm(after - goals[:, None], axis=2)
    np.testing.assert_allclose(found, 0.99 ** (distance / 0.2), rtol=1e-6)
    assert found[0].argmax() == 0
    assert found[1].argmax() == 2
    assert shares == [0.5, 1.0]
    for other in ("antmaze-medium-navigate-v0", "pointmaze-teleport-navigate-v0"):
        with pytest.raises(InputError, match="is no such PointMaze"):
            euclidean_values(other, states, actions[None], goals, 0.99)


def test_shortest_ways_are_known_in_pointmaze_without_teleports() -> None:
    known = ("PointMaze", "pointmaze-medium-navigate-v0", "pointmaze-giant-stitch-v0")
    unknown = ("pointmaze-teleport-navigate-v0", "AntMaze", "antmaze-large-explore-v0", "walks")
    assert [is_point_maze(task) for task in known] == [True] * 3
    assert [is_point_maze(task) for task in unknown] == [False] * 4


def test_a_wall_stops_the_action() -> None:
    """At the wall x = -1.3, pushing on changes nothing, and pushing back does."""
    state, goal = np.array([[-1.29, 0.0]]), np.array([[0.0, 0.0]])
    actions = np.array([[[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]])
    push, stay, back = euclidean_values("pointmaze-medium-navigate-v0", state, actions, goal, 0.99)[
        0
    ]
    assert back > stay
    assert abs(push - stay) < (back - stay) / 2
