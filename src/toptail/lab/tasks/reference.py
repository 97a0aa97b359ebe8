"""The maze recipe, one environment at a time: slow, and written apart from the collector.

It steps the package's own environment and asks the package's own oracle for every step, so
that a collected file can be compared with something that shares no code with the collector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.names import TaskName, published_recipe
from toptail.lab.tasks.simulator import make_env, package_randomness
from toptail.lab.tasks.trajectories import Trajectories


def reference_episodes(task: TaskName, episodes: int, rows: int, seed: int) -> Trajectories:
    """Collect PointMaze episodes by the published recipe, step by step."""
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
    kept: dict[str, list[Any]] = {}
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
            kept.setdefault(name, []).append(value)
        if kind == "navigate" and after["success"]:
            centre = env.unwrapped.ij_to_xy(vertices[rng.integers(len(vertices))])
            env.unwrapped.set_goal(goal_xy=tuple(np.array(centre) + rng.uniform(-1, 1, 2)))
    types: dict[str, Any] = {"terminals": bool}
    return {name: np.array(kept[name], dtype=types.get(name, np.float32)) for name in kept}


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
