"""Collected PointMaze data is the published recipe's: compared with a slow collector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.tasks.slow_collector import Rows, slow_episodes
from toptail.lab.tasks.collect import Collection, make_collector
from toptail.lab.tasks.episodes import DirectionExpert, Episode, Navigator
from toptail.lab.tasks.maze import POINT_REACH, Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import make_env

POINT = parse_name("pointmaze-medium-navigate-v0")
MEDIUM = Maze.of(make_env("pointmaze-medium-v0"))
Floats = NDArray[np.float64]


def seeds(count: int) -> list[np.random.SeedSequence]:
    return [np.random.SeedSequence([0, 0, episode]) for episode in range(count)]


@pytest.fixture(scope="module")
def collected() -> list[Episode]:
    return make_collector(Collection(POINT.name)).collect(seeds(40))


def statistics(episodes: Sequence[tuple[Rows, int]], maze: Maze) -> dict[str, Floats]:
    """Numbers of each episode, by name."""
    found: dict[str, list[float]] = {}
    for rows, goals in episodes:
        xy, size = rows["observations"][:, :2].astype(np.float64), np.abs(rows["actions"])
        steps = np.linalg.norm(np.diff(xy, axis=0), axis=1)
        numbers = {
            "rows": len(xy),
            "mean |action|": size.mean(),
            "mean action²": (size**2).mean(),
            "share of actions at ±1": (size >= 1.0).mean(),
            "mean step": steps.mean(),
            **{f"step, {q}th percentile": np.percentile(steps, q) for q in (5, 50, 95)},
            "cells": len(np.unique(maze.cell(xy))),
            "goals": goals,
        }
        for name, number in numbers.items():
            found.setdefault(name, []).append(float(number))
    return {name: np.array(numbers) for name, numbers in found.items()}


def differing(ours: dict[str, Floats], theirs: dict[str, Floats]) -> set[str]:
    """Statistics whose means differ beyond chance (Welch, p < 0.001) and by more than 1 %."""
    found = set()
    for name, own in ours.items():
        gap, scale = abs(own.mean() - theirs[name].mean()), abs(theirs[name].mean())
        constant = np.ptp(own) == 0 and np.ptp(theirs[name]) == 0
        chance = 0.0 if constant else stats.ttest_ind(own, theirs[name], equal_var=False).pvalue
        if gap > 0.01 * scale and chance < 1e-3:
            found.add(name)
    return found


def described(episodes: Sequence[Episode], maze: Maze = MEDIUM) -> dict[str, Floats]:
    return statistics([(episode.arrays, episode.goals) for episode in episodes], maze)


def test_collected_data_is_the_recipes_data(collected: list[Episode]) -> None:
    slow = statistics(slow_episodes(POINT, episodes=12, rows=1001, seed=1), MEDIUM)
    assert differing(described(collected), slow) == set()


def test_stitched_data_is_the_recipes_data() -> None:
    task = parse_name("pointmaze-large-stitch-v0")
    maze = Maze.of(make_env("pointmaze-large-v0"))
    ours = described(make_collector(Collection(task.name)).collect(seeds(50)), maze)
    slow = statistics(slow_episodes(task, episodes=25, rows=201, seed=1), maze)
    assert differing(ours, slow) == set()


@pytest.mark.parametrize("noise", [0.2, 0.6])
def test_data_of_another_recipe_is_noticed(collected: list[Episode], noise: float) -> None:
    other = Navigator(POINT, 1001, noise, DirectionExpert()).collect(seeds(40))
    # The mean step hardly changes: more noise, and more of it clipped. Its spread does.
    noticed = {"mean |action|", "share of actions at ±1", "step, 5th percentile"}
    assert noticed <= differing(described(other), described(collected))


def test_what_the_recipe_fixes_holds(collected: list[Episode]) -> None:
    paths = [e.arrays["observations"].astype(np.float64) for e in collected]
    starts = np.stack([path[0] for path in paths])
    cells = MEDIUM.cell(starts)
    assert np.abs(starts - MEDIUM.centre(cells)).max() <= 1.001
    counts = [int(np.sum(cells == cell)) for cell in MEDIUM.free]
    assert stats.chisquare(counts).pvalue >= 1e-3
    assert set(MEDIUM.free) <= set(MEDIUM.cell(np.concatenate(paths)))
    for path, episode in zip(paths, collected, strict=True):
        visited = MEDIUM.cell(path)
        assert MEDIUM.steps[visited[:-1], visited[1:]].max() <= 2  # no step jumps over a cell
        aimed = path[:-1] + 0.2 * episode.arrays["actions"][:-1]
        clear = MEDIUM.clear_of_walls(aimed, POINT_REACH)
        assert clear.mean() > 0.9
        np.testing.assert_allclose(path[1:][clear], aimed[clear], atol=1e-5)
