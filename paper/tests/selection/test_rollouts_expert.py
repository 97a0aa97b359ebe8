"""Rollouts that the collecting policy continues: its actions, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.judges.rollouts import ExpertContinuation
from toptail.lab.tasks.episodes import DirectionExpert, Navigator, Situation
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import make_env
from toptail.lab.walkers.experts import CLOSE, STUCK_STEPS, SoccerExpert, expert_for
from toptail_paper.selection.expert_rollouts import expert_continuation
from toptail_paper.study.main_settings import main_settings

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


def test_in_soccer_it_plays_as_the_collector_does_until_that_is_stuck() -> None:
    """Walking to the ball and dribbling, both of which the rows of an episode have."""
    task = "antsoccer-arena-navigate-v0"
    name, continuation = parse_name(task), expert_continuation(task)[0]
    expert = expert_for(name, main_settings("AntSoccer").walkers)
    assert isinstance(expert, SoccerExpert)
    navigator = Navigator(name, STUCK_STEPS, 0.0, expert)
    rows = navigator.collect([np.random.SeedSequence(5)])[0].arrays["observations"]
    maze = Maze.of(make_env(name.environment))
    goals = np.repeat(rows[:1], len(rows), axis=0)
    goals[:, :2], goals[:, 15:17] = 99.0, (6.0, -6.0)  # where the agent is does not count
    own = continuation(np.zeros((len(rows), 3), dtype=np.int64), rows, goals)
    expert.start([np.random.default_rng(0)])
    near = np.linalg.norm(rows[:, :2] - rows[:, 15:17], axis=1) <= CLOSE
    assert 0 < near.sum() < len(rows)
    for row, goal, action in zip(rows.astype(np.float64), goals, own, strict=True):
        at, to = row[None, :2], goal[None, 15:17].astype(np.float64)
        played = expert.actions(Situation(row[None], at, to, np.zeros((1, 2)), maze))
        np.testing.assert_allclose(action, np.clip(played[0], -1, 1), atol=1e-4)


@pytest.mark.parametrize("task", ["cube-single-play-v0", "antmaze-teleport-navigate-v0"])
def test_a_task_without_such_a_policy_is_refused(task: str) -> None:
    with pytest.raises(InputError, match="There is no policy that reaches goals"):
        expert_continuation(task)
