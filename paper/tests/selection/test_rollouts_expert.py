"""Rollouts that the collecting policy continues: its actions, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.judges.rollouts import ExpertContinuation
from toptail.lab.tasks.episodes import DirectionExpert, Navigator
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import make_env
from toptail_paper.selection.expert_rollouts import expert_continuation

TASK = "pointmaze-medium-navigate-v0"


def test_it_acts_as_the_collector_does_without_noise() -> None:
    """In every row that heads for another cell than the goal's, which alone the two treat apart."""
    name = parse_name(TASK)
    navigator = Navigator(name, 60, 0.0, DirectionExpert())
    episode = navigator.collect([np.random.SeedSequence(3)])[0].arrays
    states, actions = episode["observations"][:-1], episode["actions"][:-1]
    maze = Maze.of(make_env(name.environment))
    continuation, _ = expert_continuation(TASK)
    cells = maze.cell(states.astype(np.float64))
    matched = 0
    for goal in np.unique(cells):
        goals = np.repeat(maze.centre(np.array([goal])), len(states), axis=0).astype(np.float32)
        keys = np.zeros((len(states), 3), dtype=np.int64)
        own = continuation(keys, states, goals)
        expected = maze.centre(maze.next_cell[cells, goal]) - states
        expected /= np.linalg.norm(expected, axis=1, keepdims=True) + 1e-6
        np.testing.assert_allclose(own, expected, atol=2e-6)
        matched = max(matched, int((np.abs(own - actions).max(axis=1) < 1e-4).sum()))
    assert matched >= 20  # the episode's own goal is among them


def test_the_goal_itself_is_headed_for_in_its_cell() -> None:
    maze = Maze.of(make_env(parse_name(TASK).environment))
    cell = np.array([0])
    goal = (maze.centre(cell) + 0.7).astype(np.float32)
    state = (maze.centre(cell) - 0.3).astype(np.float32)
    action = ExpertContinuation(maze)(np.zeros((1, 3), dtype=np.int64), state, goal)
    np.testing.assert_allclose(action, np.full((1, 2), np.sqrt(0.5)), atol=1e-5)


@pytest.mark.parametrize("task", ["antsoccer-arena-navigate-v0", "antmaze-teleport-navigate-v0"])
def test_a_task_without_such_a_policy_is_refused(task: str) -> None:
    with pytest.raises(InputError, match="There is no policy that reaches goals"):
        expert_continuation(task)
