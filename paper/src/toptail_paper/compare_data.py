"""Comparing a data set with its recipe and with other files, by statistics of trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from toptail.errors import InputError
from toptail.lab.tasks.maze import POINT_REACH, Maze
from toptail.lab.tasks.names import TaskName, published_recipe
from toptail.lab.tasks.simulator import make_env, package_randomness
from toptail.lab.tasks.trajectories import IntArray, Trajectories


def reference_episodes(task: TaskName, episodes: int, rows: int, seed: int) -> Trajectories:
    """Collect PointMaze episodes by the published recipe, step by step in the environment."""
    recipe = published_recipe(task)
    if task.family != "pointmaze" or recipe is None:
        raise InputError(
            f"There is no slow reference for {task.name}: expected a PointMaze data set, medium "
            "or large, navigate or stitch."
        )
    env = make_env(task.environment, terminate_at_goal=False, max_episode_steps=rows)
    collected: list[dict[str, NDArray[Any]]] = []
    for sequence in np.random.SeedSequence([seed, 7]).spawn(episodes):
        rng = np.random.default_rng(sequence.spawn(1)[0])
        with package_randomness(sequence) as reset_seed:
            collected.append(_episode(env, task.kind, recipe.noise, rng, reset_seed))
    arrays: dict[str, Any] = {
        name: np.concatenate([episode[name] for episode in collected]) for name in collected[0]
    }
    return Trajectories(**arrays, source=f"the slow reference of {task.name}")


def _episode(
    env: Any, kind: str, noise: float, rng: np.random.Generator, reset_seed: int
) -> dict[str, NDArray[Any]]:
    """Run one episode until the environment's time limit."""
    free, vertices = _cells(env.unwrapped.maze_map)
    start = free[rng.integers(len(free))]
    candidates = vertices if kind == "navigate" else _cells_four_away(env.unwrapped, start, free)
    info = {"init_ij": start, "goal_ij": candidates[rng.integers(len(candidates))]}
    observation, _ = env.reset(seed=reset_seed, options={"task_info": info})
    rows: dict[str, list[Any]] = {}
    done = False
    while not done:
        here, goal = env.unwrapped.get_xy(), env.unwrapped.cur_goal_xy
        towards = env.unwrapped.get_oracle_subgoal(here, goal)[0] - here
        direction = towards / (np.linalg.norm(towards) + 1e-6)
        action = np.clip(direction + rng.normal(0.0, noise, 2), -1.0, 1.0).astype(np.float32)
        row = {"observations": observation, "actions": action}
        observation, _, terminated, truncated, after = env.step(action)
        done = terminated or truncated
        row |= {"terminals": done, "qpos": after["prev_qpos"], "qvel": after["prev_qvel"]}
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
        if kind == "navigate" and after["success"]:
            centre = env.unwrapped.ij_to_xy(vertices[rng.integers(len(vertices))])
            env.unwrapped.set_goal(goal_xy=tuple(np.array(centre) + rng.uniform(-1, 1, 2)))
    types: dict[str, Any] = {"terminals": bool}
    return {name: np.array(rows[name], dtype=types.get(name, np.float32)) for name in rows}


def _cells(maze_map: NDArray[Any]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return all free cells, and those that are not in a straight corridor."""
    free, vertices = [], []
    for i, j in np.argwhere(maze_map == 0).tolist():
        free.append((i, j))
        open_sides = [
            maze_map[i + di, j + dj] == 0 for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1))
        ]
        if open_sides not in ([True, True, False, False], [False, False, True, True]):
            vertices.append((i, j))
    return free, vertices


def _cells_four_away(
    env: Any, start: tuple[int, int], free: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the free cells that the package's search finds four cells away."""
    xy = np.array(env.ij_to_xy(start), dtype=float)
    _, steps = env.get_oracle_subgoal(xy, xy)
    return [cell for cell in free if steps[cell] == 4] or [start]


PerTrajectory = NDArray[np.float64]
"""One number for each trajectory."""

_POINT_STEP = 0.2
_INNER = 1.0
"""A cell counts as visited within this distance of its centre on both axes."""


def describe(
    trajectories: Trajectories, maze: Maze | None, family: str = ""
) -> dict[str, PerTrajectory]:
    """Statistics of each trajectory, by name: of actions, and in mazes of steps and cells.

    For ants and humanoids also of the body's posture.
    """
    length = np.abs(trajectories.actions.reshape(len(trajectories), -1))
    found = {
        "rows": trajectories.lengths.astype(np.float64),
        "mean |action|": _per_trajectory(trajectories, length.mean(axis=1)),
        "mean action²": _per_trajectory(trajectories, (length**2).mean(axis=1)),
        "share of actions at ±1": _per_trajectory(trajectories, (length >= 1.0).mean(axis=1)),
    }
    if maze is None:
        return found
    posture = _posture(trajectories.observations, family)
    found |= {name: _per_trajectory(trajectories, rows) for name, rows in posture.items()}
    steps = step_lengths(trajectories)
    split = [steps[a:b] for a, b in zip(trajectories.starts, trajectories.ends, strict=True)]
    found["mean step length"] = np.array([part.mean() for part in split])
    for share in (5, 50, 95):
        name = f"step length, {share}th percentile"
        found[name] = np.array([np.percentile(part, share) for part in split])
    xy = trajectories.observations[:, :2].astype(np.float64)
    visits = [visited_cells(part, maze) for part in np.split(xy, trajectories.starts[1:])]
    found["cells visited"] = np.array([len(np.unique(cells)) for cells in visits], dtype=float)
    found["legs"] = np.array([shortest_path_legs(cells, maze) for cells in visits], dtype=float)
    return found


def _posture(observations: NDArray[np.floating], family: str) -> dict[str, NDArray[Any]]:
    """Height of the head or torso in every row, and whether the body has fallen."""
    if family == "humanoidmaze":
        height = observations[:, 23]
        return {"height of the head": height, "share of rows fallen": height < 0.8}
    if family in ("antmaze", "antsoccer"):
        _, x, y, _ = observations[:, 3:7].T
        flipped = 1 - 2 * (x**2 + y**2) < 0  # the torso's own vertical points down
        return {"height of the torso": observations[:, 2], "share of rows flipped": flipped}
    return {}


def step_lengths(trajectories: Trajectories) -> PerTrajectory:
    """‖xy_{t+1} − xy_t‖ of every row; not meaningful on the last row of a trajectory."""
    xy = trajectories.observations[:, :2].astype(np.float64)
    return np.asarray(np.linalg.norm(np.diff(xy, axis=0, append=xy[-1:]), axis=1))


def visited_cells(positions: NDArray[np.floating], maze: Maze) -> IntArray:
    """The cells that a path ``[rows, 2]`` visits, in order, without immediate repetition.

    Only the inner part of a cell counts, so that a path along a border does not alternate.
    """
    cells = maze.cell(positions)
    inner = np.all(np.abs(positions - maze.centre(cells)) <= _INNER, axis=1)
    cells = cells[inner]
    changed = np.concatenate([[True], cells[1:] != cells[:-1]]) if len(cells) else cells > 0
    visited: IntArray = cells[changed]
    return visited


def shortest_path_legs(cells: IntArray, maze: Maze) -> int:
    """The smallest number of shortest paths that a sequence of cells can be cut into.

    Files do not store goals. But the path to each goal is a shortest path, so this number is at
    most one more than the number of goals that were reached.
    """
    if len(cells) < 2:
        return 0
    legs, start, walked = 1, cells[0], 0
    for here, there in pairwise(cells):
        walked += maze.steps[here, there]
        if walked > maze.steps[start, there]:
            legs, start, walked = legs + 1, here, maze.steps[here, there]
    return legs


@dataclass(frozen=True)
class Difference:
    """One statistic of two files."""

    name: str
    mean: float
    """Mean over the trajectories of the first file."""
    other_mean: float
    """Mean over the trajectories of the other file."""
    low: float
    """Lower end of the 95 % interval of the difference (Welch, trajectories as units)."""
    high: float
    """Upper end of that interval."""
    p: float
    """p-value of no difference."""
    same: bool
    """Whether the difference is within chance (at 0.001) or below 1 % of the value."""


def compare(ours: dict[str, PerTrajectory], theirs: dict[str, PerTrajectory]) -> list[Difference]:
    """Compare two files statistic by statistic."""
    return [_difference(name, ours[name], theirs[name]) for name in ours if name in theirs]


def occupancy_distance(ours: Trajectories, theirs: Trajectories, maze: Maze) -> float:
    """Return the total variation distance between the cells that two files spend time in."""
    shares = []
    for trajectories in (ours, theirs):
        cells = maze.cell(trajectories.observations[:, :2].astype(np.float64))
        shares.append(np.bincount(cells, minlength=maze.walls.size) / len(cells))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


@dataclass(frozen=True)
class Fact:
    """A number that the recipe fixes, and the number in the file."""

    name: str
    found: str
    expected: str
    holds: bool | None
    """None where the file is only of another size."""


def recipe_facts(trajectories: Trajectories, task: TaskName, maze: Maze | None) -> list[Fact]:
    """What the published recipe fixes about a file, compared with the file."""
    facts = []
    recipe = published_recipe(task)
    if recipe is not None:
        count, rows = len(trajectories.ends), np.unique(trajectories.lengths)
        splits = (recipe.episodes, recipe.episodes // 10)
        expected = " or ".join(str(n) for n in splits)
        facts.append(Fact("trajectories", str(count), expected, count in splits or None))
        found = str(rows[0]) if len(rows) == 1 else f"{rows[0]} to {rows[-1]}"
        wanted = str(recipe.rows)
        facts.append(Fact("rows per trajectory", found, wanted, found == wanted))
    if maze is not None:
        facts += _maze_facts(trajectories, maze)
    if task.family == "pointmaze" and maze is not None:
        facts.append(_free_step_fact(trajectories, maze))
    return facts


def _maze_facts(trajectories: Trajectories, maze: Maze) -> list[Fact]:
    xy = trajectories.observations[:, :2].astype(np.float64)
    cells, free = maze.cell(xy), len(maze.free)
    visited = len(np.intersect1d(cells, maze.free))
    jumps = int(np.sum(maze.steps[cells[:-1], cells[1:]][~trajectories.terminals[:-1]] > 2))
    starts = xy[trajectories.starts]
    offset = float(np.abs(starts - maze.centre(maze.cell(starts))).max())
    counts = np.array([np.sum(maze.cell(starts) == cell) for cell in maze.free])
    p = float(stats.chisquare(counts).pvalue)
    return [
        Fact("free cells covered", f"{visited} of {free}", f"{free} of {free}", visited == free),
        Fact("steps that jump over a cell", str(jumps), "0", jumps == 0),
        Fact("start's offset from its cell", f"{offset:.3f}", "at most 1", offset <= 1.001),
        Fact("start cells uniform, p", f"{p:.3f}", "at least 0.001", p >= 1e-3),
    ]


def _free_step_fact(trajectories: Trajectories, maze: Maze) -> Fact:
    """Away from walls the point moves by exactly 0.2 · action."""
    rows = trajectories.transitions
    xy = trajectories.observations.astype(np.float64)
    target = xy[rows] + _POINT_STEP * trajectories.actions[rows]
    clear = maze.clear_of_walls(target, POINT_REACH)
    error = np.abs(xy[rows + 1] - target)[clear].max(initial=0.0)
    name = f"step − 0.2 · action away from walls ({clear.mean():.1%} of steps)"
    return Fact(name, f"{error:.1e}", "below 1e-5", bool(error < 1e-5))


def _difference(name: str, ours: PerTrajectory, theirs: PerTrajectory) -> Difference:
    mean, other = float(ours.mean()), float(theirs.mean())
    if min(len(ours), len(theirs)) < 2 or (np.ptp(ours) == 0 and np.ptp(theirs) == 0):
        same = bool(np.isclose(mean, other, rtol=0.01, atol=0))
        gap = mean - other
        return Difference(name, mean, other, gap, gap, 1.0 if same else 0.0, same)
    test = stats.ttest_ind(ours, theirs, equal_var=False)
    interval = test.confidence_interval(0.95)
    close = abs(mean - other) <= 0.01 * abs(other)
    p = float(test.pvalue)
    same = bool(p >= 1e-3 or close)
    return Difference(name, mean, other, float(interval.low), float(interval.high), p, same)


def _per_trajectory(trajectories: Trajectories, values: NDArray[np.floating]) -> PerTrajectory:
    sums = np.add.reduceat(values.astype(np.float64), trajectories.starts)
    return np.asarray(sums / trajectories.lengths)
