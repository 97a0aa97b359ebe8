"""The exact value of PointMaze: by hand, on a fine grid, by search, and in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from tests.judges.slow_steps import Search, moved_out
from toptail.errors import InputError
from toptail.lab.judges.exact import (
    CORNER,
    PUSH,
    PointSteps,
    continuous_origin,
    continuous_values,
    discounted,
    exact_origin,
    exact_values,
)
from toptail.lab.judges.point import STEP, TOLERANCE, next_positions
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.simulator import MazeBatch

Points = NDArray[np.float64]

TASK = "pointmaze-medium-navigate-v0"
TOUCHES_NOTHING = 0.7 / np.sqrt(2)


def maze(*rows: str) -> Maze:
    return Maze(np.array([[cell == "#" for cell in row] for row in rows]))


# A hook around one inner wall, with a second wall touching it across a corner.
SMALL = maze("#####", "#   #", "# # #", "#  ##", "#####")
# One corner, at (2, 6): the way along the upper wall goes on downwards, or straight on.
BEND = maze("######", "#    #", "##   #", "##   #", "######")
TWO = maze("#######", "#     #", "# # # #", "#  #  #", "#######")
OPEN = maze("######", "#    #", "#    #", "#    #", "######")


def free_points(steps: PointSteps, n: int, seed: int = 0) -> Points:
    """Positions at which the point touches nothing."""
    high = 4.0 * np.array(steps.maze.walls.shape[::-1]) - 10
    points = np.random.default_rng(seed).uniform(-2, high, (40 * n, 2))
    return points[steps.maze.clear_of_walls(points, 0.7)][:n]


@pytest.mark.parametrize(
    ("start", "goal", "length"),
    [
        ((0, 0), (6, 0), 5.0),  # along an axis, up to the tolerance
        ((0, 0), (6, 6), 6 - 1 / np.sqrt(2)),  # on the diagonal both coordinates move at once
        ((0, 0), (6, 3), 5.0),  # the shorter coordinate is free
        ((0, 0), (5, 4.9), (9.9 - np.sqrt(2 - 0.01)) / 2),  # by hand: (5 - t)^2 + (4.9 - t)^2 = 1
        ((0, 0), (0.6, 0.8), 0.0),  # at the tolerance
        ((0, 0), (0.0, 0.0), 0.0),
    ],
)
def test_on_open_floor_by_hand(
    start: tuple[float, float], goal: tuple[float, float], length: float
) -> None:
    steps = PointSteps(OPEN)
    at, to = np.array(start, float), np.array(goal, float)
    assert steps.lengths(at, to) == pytest.approx(length)
    assert steps.steps(at, to) == np.ceil(length / STEP - 1e-9)


def test_whole_steps_are_rounded_up_and_rounding_is_forgiven() -> None:
    starts = np.array([[0.0, 0.0], [0.01, 0.0], [0.19, 0.0], [0.2, 0.0]])
    found = PointSteps(OPEN).steps(starts, np.array([6.0, 0.0]))
    np.testing.assert_array_equal(found, [25, 25, 25, 24])


def test_around_one_corner_by_hand() -> None:
    """Along x to 0.422 past the corner at (2, 2), then along y from 0.422 above it."""
    steps = PointSteps(BEND)
    start, goal = np.array([-1.0, 0.5]), np.array([3.0, 8.0])
    wanted = (2 + CORNER + 1) + (8 - 1 - (2 - CORNER))
    assert steps.lengths(start, goal) == pytest.approx(wanted)
    # Without touching the walls, the corner of the way is on the circle around the wall's.
    free = PointSteps(BEND, corner=TOUCHES_NOTHING, push=0.0)
    wanted += 2 * (TOUCHES_NOTHING - CORNER)
    assert free.lengths(start, goal) == pytest.approx(wanted)


def test_straight_on_where_a_wall_ends_the_point_is_pushed() -> None:
    start, goal = np.array([-1.0, 0.0]), np.array([11.0, 0.0])
    assert PointSteps(BEND).lengths(start, goal) == pytest.approx(11 - PUSH)
    assert PointSteps(BEND).lengths(goal, start) == pytest.approx(11)
    assert PointSteps(OPEN).lengths(start, goal) == pytest.approx(11)


def test_a_goal_around_a_corner_is_reached_where_its_circle_sticks_out() -> None:
    steps = PointSteps(BEND, push=0.0)
    corner = np.array([2 + CORNER, 2 - CORNER])
    start, goal = np.array([-1.0, 1.0]), corner + np.array([0.3, 0.6])
    # Along y = 1.578 the circle around the goal begins at x.
    x = goal[0] - np.sqrt(1 - 0.6**2)
    assert x < corner[0]
    assert steps.lengths(start, goal) == pytest.approx(x - start[0])


def test_no_way_through_walls_that_touch_at_a_corner() -> None:
    """The cells (2, 3) and (3, 2) are neighbours across a corner: the way is all around."""
    start, goal = np.array([8.0, 4.0]), np.array([4.0, 8.0])
    assert PointSteps(SMALL).lengths(start, goal) > 13
    closed = maze("#####", "# # #", "#####")
    assert np.isinf(PointSteps(closed).lengths(np.array([0.0, 0.0]), np.array([8.0, 0.0])))


def grid_lengths(steps: PointSteps, starts: Points, goal: Points, h: float) -> Points:
    """Dijkstra over a grid that the walls' outlines lie on: eight neighbours, each at h.

    In the maximum norm that is exact between positions on the grid.
    """
    side = [np.arange(-2, 4 * n - 10 + h / 2, h) for n in steps.maze.walls.shape[::-1]]
    grid = np.stack(np.meshgrid(*side, indexing="ij"), axis=-1)
    number = np.arange(grid[..., 0].size).reshape(grid.shape[:2])

    def clear(points: Points) -> NDArray[np.bool_]:
        low, high = steps.boxes[:, 0] + 1e-6, steps.boxes[:, 1] - 1e-6
        inside = (points[..., None, :] > low) & (points[..., None, :] < high)
        return np.asarray(~inside.all(axis=-1).any(axis=-1))

    edges = []
    for x, y in ((1, 0), (0, 1), (1, 1), (1, -1)):
        n, m = (len(part) for part in side)
        here = (slice(0, n - x), slice(max(0, -y), m - max(0, y)))
        there = (slice(x, n), slice(max(0, y), m + min(0, y)))
        ok = clear(grid[here]) & clear(grid[there]) & clear((grid[here] + grid[there]) / 2)
        edges.append((number[here][ok], number[there][ok]))
    i, j = (np.concatenate(part) for part in zip(*edges, strict=True))
    graph = coo_matrix((np.full(len(i), h), (i, j)), shape=(number.size,) * 2).tocsr()
    flat = grid.reshape(-1, 2)
    at = [int(np.argmin(np.hypot(*(flat - p).T))) for p in (*starts, goal)]
    found: Points = dijkstra(graph, directed=False, indices=[at[-1]])[0, at[:-1]]
    return found


@pytest.mark.parametrize("walls", [SMALL, TWO])
def test_ways_are_those_of_a_grid(walls: Maze) -> None:
    """Walls moved out by 0.4 lie on a grid of 0.2, whose ways are exact in the maximum norm."""
    h = 0.2
    steps = PointSteps(walls, corner=0.4, push=0.0, tolerance=1e-6)
    points = np.round(free_points(steps, 60) / h) * h
    around = 0
    for goal in points[:6]:
        found, wanted = steps.lengths(points, goal), grid_lengths(steps, points, goal, h)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        around += int((wanted > np.abs(points - goal).max(axis=1) + 0.1).sum())
    assert around > 5, "too few ways go around a corner"


def test_one_corner_does_what_the_constants_say() -> None:
    """Search over one corner, from far on either side: the turn, the push, and both at once."""
    search = Search(BEND, 0.02)
    turn, on = np.array([3.0, 8.0]), np.array([11.0, 0.0])
    row = np.flatnonzero(np.abs(search.positions[:, 1] - 1.0) < 1e-9)
    row = row[(search.positions[row, 0] >= -1.2) & (search.positions[row, 0] < -0.2)]
    x = search.positions[row, 0]
    for goal, wanted in ((turn, 2 + 2 * CORNER + 8 - 1 - 2), (on, 11 - 1 - PUSH)):
        steps = search.steps(goal)[row]
        # The furthest start of every number of steps: the length is just that many steps.
        ends = [x[steps == n].min() for n in np.unique(steps)[:-1]]
        lengths = [0.2 * n + end for n, end in zip(np.unique(steps), ends, strict=False)]
        assert len(lengths) >= 3
        np.testing.assert_allclose(lengths, wanted, atol=0.03)


@pytest.mark.parametrize("walls", [SMALL, BEND])
def test_steps_are_those_of_search(walls: Maze) -> None:
    """Nine of ten pairs to the step, and never off by more than one."""
    search, steps = Search(walls, 0.02), PointSteps(walls)
    rng = np.random.default_rng(0)
    at = rng.choice(np.flatnonzero(search.gap >= 0.7), 3_000)
    for goal in free_points(steps, 3, seed=1):
        wanted, found = search.steps(goal)[at], steps.steps(search.positions[at], goal)
        assert np.abs(found - wanted).max() <= 1
        assert (found == wanted).mean() > 0.85
        assert abs((found - wanted).mean()) < 0.15
        # Not touching walls is a way, too: never less steps than there are.
        free = PointSteps(walls, corner=TOUCHES_NOTHING, push=0.0)
        assert (free.steps(search.positions[at], goal) >= wanted).all()


def test_what_touches_nothing_is_symmetric_and_keeps_the_triangle_inequality() -> None:
    steps = PointSteps(SMALL, corner=TOUCHES_NOTHING, push=0.0, tolerance=1e-6)
    points = free_points(steps, 25, seed=2)
    table = steps.lengths(points[:, None], points)
    np.testing.assert_allclose(table, table.T, atol=1e-5)
    assert (table[:, None] <= table[:, :, None] + table[None] + 1e-5).all()


@pytest.mark.parametrize("flip", [lambda w: w[::-1], lambda w: w[:, ::-1], lambda w: w.T])
def test_a_mirrored_maze_has_mirrored_ways(flip: object) -> None:
    assert callable(flip)
    there, here = PointSteps(Maze(flip(SMALL.walls))), PointSteps(SMALL)
    a, b = free_points(here, 300, seed=3), free_points(here, 300, seed=4)
    n = 4.0 * (len(SMALL.walls) - 1) - 8
    mirrored = [
        {0: p * [1, -1] + [0, n], 1: p * [-1, 1] + [n, 0], 2: p[:, ::-1]}[
            0 if (flip(SMALL.walls) == SMALL.walls[::-1]).all() else
            1 if (flip(SMALL.walls) == SMALL.walls[:, ::-1]).all() else 2
        ]
        for p in (a, b)
    ]  # fmt: skip
    np.testing.assert_allclose(there.lengths(*mirrored), here.lengths(a, b), atol=1e-9)


def test_a_batch_is_its_single_pairs() -> None:
    steps = PointSteps(SMALL)
    starts, goals = free_points(steps, 20, seed=5), free_points(steps, 7, seed=6)
    table = steps.lengths(starts[:, None], goals)
    assert table.shape == (20, 7)
    for i, j in ((0, 0), (19, 6), (4, 3), (11, 5)):
        assert steps.lengths(starts[i], goals[j]) == table[i, j]
    np.testing.assert_array_equal(steps.lengths(starts[:7], goals), np.diagonal(table))
    np.testing.assert_array_equal(steps.steps(starts[:, None], goals), np.ceil(table / STEP - 1e-9))


def test_a_position_in_a_wall_is_refused() -> None:
    inside, free = np.array([[0.0, 0.0], [4.0, 4.0]]), np.array([0.0, 0.0])
    with pytest.raises(InputError, match=r"\(4\.000, 4\.000\) is inside a wall"):
        PointSteps(SMALL).lengths(inside, free)
    with pytest.raises(InputError, match="inside a wall"):
        PointSteps(SMALL).lengths(free, inside)


def test_values_in_both_conventions() -> None:
    steps = np.array([0.0, 1.0, 2.0, np.inf])
    np.testing.assert_allclose(discounted(steps, 0.5), [1, 0.5, 0.25, 0])
    # A step costs 1: 0, 1, 1 + 0.5, and 2 for ever.
    np.testing.assert_allclose(discounted(steps, 0.5, -1.0), [0, -1, -1.5, -2])
    # Bellman: V(n) = r + gamma V(n - 1).
    values = discounted(np.arange(5), 0.9, -1.0)
    np.testing.assert_allclose(values[1:], -1 + 0.9 * values[:-1])


def test_the_constants_are_the_simulators() -> None:
    batch = MazeBatch("pointmaze-medium-v0", 1)
    assert batch.goal_tolerance == TOLERANCE
    batch.restore(np.zeros((1, 2)), np.zeros((1, 2)))
    batch.step(np.array([[1.0, -0.5]]))
    np.testing.assert_allclose(batch.positions(), [[STEP, -STEP / 2]])


def test_the_simulator_moves_the_point_as_search_says() -> None:
    """Open floor to the bit; walls and corners as modelled, but for where two cells meet."""
    steps = PointSteps.of(TASK)
    rng = np.random.default_rng(0)
    states = free_points(steps, 500, seed=7).astype(np.float32)
    actions = rng.uniform(-1, 1, (500, 2)).astype(np.float32)
    found = next_positions(TASK, states, actions)
    batch = MazeBatch("pointmaze-medium-v0", 500)
    batch.restore(states, np.zeros((500, 2)))
    batch.step(actions)
    np.testing.assert_array_equal(found, batch.positions())
    pressed = states + STEP * actions.astype(np.float64)
    touching = np.abs(found - pressed).max(axis=1) > 1e-9
    assert touching.sum() > 20
    off = np.abs(found - moved_out(steps.maze, pressed)).max(axis=1)
    assert np.median(off[touching]) < 1e-3
    assert off.max() < 0.035


def test_the_simulator_gets_there_in_as_many_steps() -> None:
    """Who always goes where the way is shortest arrives in N steps, give or take one."""
    steps = PointSteps.of(TASK)
    # Along a corridor, around one corner, around two, and on the diagonal.
    at = np.array([[0.0, 0.3], [0.0, 4.5], [8.0, 9.0], [0.0, 0.0]])
    goals = np.array([[4.0, 0.0], [4.3, 8.0], [12.0, 4.0], [4.0, 4.0]])
    wanted = steps.steps(at, goals)
    side = np.linspace(-1, 1, 5)
    actions = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    arrived = np.full(len(at), -1)
    for t in range(int(wanted.max()) + 2):
        there = np.hypot(*(at - goals).T) <= TOLERANCE
        arrived[there & (arrived < 0)] = t
        if (arrived >= 0).all():
            break
        after = next_positions(TASK, at[:, None], actions)
        best = steps.lengths(after, goals[:, None]).argmin(axis=1)
        at = after[np.arange(len(at)), best]
    assert (arrived >= wanted - 1).all()
    assert (arrived <= wanted + 1).all()


def test_candidates_are_worth_the_step_and_what_is_left() -> None:
    states = np.array([[0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    goals = np.array([[0.9, 0.0], [0.0, 4.05]], dtype=np.float32)
    actions = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    shares: list[float] = []
    found = exact_values(TASK, states, np.stack([actions] * 2), goals, 0.99, shares.append)
    # Already within 1 of the first goal: one step, unless the action leads out. Of the second the
    # tolerance is 3.05 away, which is 16 steps, and 15 after an action towards it.
    np.testing.assert_allclose(found, 0.99 ** np.array([[1, 2, 1], [17, 17, 16]]), rtol=1e-6)
    assert shares == [1.0]
    for other in ("antmaze-medium-navigate-v0", "pointmaze-teleport-navigate-v0"):
        with pytest.raises(InputError, match="is no such PointMaze"):
            exact_values(other, states, actions[None], goals, 0.99)


@pytest.mark.parametrize("size", ["medium", "large", "giant"])
def test_every_free_cell_of_every_maze_is_reached(size: str) -> None:
    steps = PointSteps.of(f"pointmaze-{size}-navigate-v0")
    centres = steps.maze.centre(steps.maze.free)
    table = steps.steps(centres[:, None], centres)
    # Cells are 4 apart and ways turn within them: between the fewest cells and all of them.
    cells = steps.maze.steps[np.ix_(steps.maze.free, steps.maze.free)]
    assert (table <= 20 * cells).all()
    assert (table >= 20 * cells / 2 - 5 - 10).all()


def test_continuous_values_break_the_ties_of_whole_steps_by_hand() -> None:
    states = np.zeros((1, 2), dtype=np.float32)
    goals = np.array([[0.0, 4.05]], dtype=np.float32)
    actions = np.array([[[-1.0, 0.0], [0.0, 0.0], [0.0, 0.5], [0.0, 1.0]]], dtype=np.float32)
    found = continuous_values(TASK, states, actions, goals, 0.99)
    # The tolerance is 3.05 away, and 0.1 or 0.2 less after the last two actions. From (-0.2, 0)
    # a growing square meets the circle at x = 0: the shorter coordinate is free.
    lengths = np.array([[3.05, 3.05, 2.95, 2.85]])
    np.testing.assert_allclose(found, 0.99 ** (1 + lengths / 0.2), rtol=1e-6)
    whole = exact_values(TASK, states, actions, goals, 0.99)
    np.testing.assert_allclose(whole, 0.99 ** np.array([[17, 17, 16, 16]]), rtol=1e-6)


def test_continuous_values_are_in_the_order_of_whole_steps() -> None:
    steps, rng = PointSteps.of(TASK), np.random.default_rng(3)
    states, goals = (free_points(steps, 40, seed).astype(np.float32) for seed in (11, 12))
    actions = rng.uniform(-1, 1, (40, 32, 2)).astype(np.float32)
    whole, continuous = (
        judge(TASK, states, actions, goals, 0.99).astype(np.float64)
        for judge in (exact_values, continuous_values)
    )
    exponents = np.log(continuous) / np.log(0.99)
    np.testing.assert_allclose(whole, 0.99 ** np.ceil(exponents - 1e-4), rtol=1e-6)
    for a, b in zip(whole, continuous, strict=True):
        assert ((a[:, None] <= a) | (b[:, None] > b)).all()
    assert len(np.unique(continuous[0])) > 20 > 3 >= len(np.unique(whole[0]))
    origins = [origin(0.99) for origin in (exact_origin, continuous_origin)]
    assert origins[0] != origins[1]


@pytest.mark.parametrize("walls", [SMALL, BEND])
def test_lengths_are_those_of_search_with_a_first_step_of_any_size(walls: Maze) -> None:
    """Points between the positions of the grid; the search rounds up by a tenth of a step."""
    search, steps = Search(walls, 0.02), PointSteps(walls)
    points = free_points(steps, 800, seed=8)
    off = []
    for goal in free_points(steps, 3, seed=1):
        wanted = search.continuous_steps(points, goal, search.steps(goal))
        off.append(steps.lengths(points, goal) / STEP - wanted)
    error = np.concatenate(off)
    assert abs(np.median(error)) < 0.1
    assert np.quantile(np.abs(error), 0.9) < 0.25
    assert np.abs(error).max() < 1
