"""PointMaze episodes by the published recipe, step by step in one environment.

Shares no code with the collector of the library: paths come from the package's own oracle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.tasks.names import TaskName, published_recipe
from toptail.lab.tasks.simulator import make_env, package_randomness

Rows = dict[str, NDArray[Any]]
Cell = tuple[int, int]


def slow_episodes(task: TaskName, episodes: int, rows: int, seed: int) -> list[tuple[Rows, int]]:
    """Observations and actions of each episode, and how many goals were reached in it."""
    recipe = published_recipe(task)
    assert recipe is not None
    env = make_env(task.environment, terminate_at_goal=False, max_episode_steps=rows)
    collected = []
    for sequence in np.random.SeedSequence([seed, 7]).spawn(episodes):
        rng = np.random.default_rng(sequence.spawn(1)[0])
        with package_randomness(sequence) as reset_seed:
            collected.append(_episode(env, task.kind, recipe.noise, rng, reset_seed))
    return collected


def _episode(
    env: Any, kind: str, noise: float, rng: np.random.Generator, reset_seed: int
) -> tuple[Rows, int]:
    """Run one episode until the environment's time limit."""
    inner = env.unwrapped
    free, vertices = _cells(inner.maze_map)
    start = free[rng.integers(len(free))]
    candidates = vertices if kind == "navigate" else _cells_four_away(inner, start, free)
    info = {"init_ij": start, "goal_ij": candidates[rng.integers(len(candidates))]}
    observation, _ = env.reset(seed=reset_seed, options={"task_info": info})
    observations, actions, reached = [], [], []
    done = False
    while not done:
        here = inner.get_xy()
        towards = inner.get_oracle_subgoal(here, inner.cur_goal_xy)[0] - here
        direction = towards / (np.linalg.norm(towards) + 1e-6)
        action = np.clip(direction + rng.normal(0.0, noise, 2), -1.0, 1.0).astype(np.float32)
        observations.append(observation)
        actions.append(action)
        observation, _, terminated, truncated, after = env.step(action)
        done = terminated or truncated
        reached.append(bool(after["success"]))
        if kind == "navigate" and after["success"]:
            centre = inner.ij_to_xy(vertices[rng.integers(len(vertices))])
            inner.set_goal(goal_xy=tuple(np.array(centre) + rng.uniform(-1, 1, 2)))
    goals = sum(reached) if kind == "navigate" else int(any(reached))
    rows = {"observations": observations, "actions": actions}
    return {name: np.array(column, np.float32) for name, column in rows.items()}, goals


def _cells(maze_map: NDArray[Any]) -> tuple[list[Cell], list[Cell]]:
    """All free cells, and those that are not in a straight corridor."""
    free, vertices = [], []
    for i, j in np.argwhere(maze_map == 0).tolist():
        free.append((i, j))
        open_sides = [
            maze_map[i + di, j + dj] == 0 for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1))
        ]
        if open_sides not in ([True, True, False, False], [False, False, True, True]):
            vertices.append((i, j))
    return free, vertices


def _cells_four_away(env: Any, start: Cell, free: list[Cell]) -> list[Cell]:
    """The free cells that the package's search finds four cells away."""
    xy = np.array(env.ij_to_xy(start), dtype=float)
    _, steps = env.get_oracle_subgoal(xy, xy)
    return [cell for cell in free if steps[cell] == 4] or [start]
