"""Scores towards goals that are asked for again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toptail.lab.scorers import base as scorers
from toptail.lab.scorers.base import Rows, score_towards
from toptail.lab.scorers.runs import RunScore
from toptail.lab.tasks.trajectories import IntArray

ROWS = 70
RNG = np.random.default_rng(0)
STATES, ACTIONS = (RNG.normal(size=(ROWS, 2)).astype(np.float32) for _ in range(2))
GOALS = RNG.normal(size=(5, 2)).astype(np.float32)
GOAL = RNG.integers(0, 5, ROWS)


def known(states: Rows, actions: Rows, goals: Rows) -> Rows:
    """Towards the goal."""
    return np.asarray((actions * (goals - states)).sum(axis=1))


class Known(RunScore):
    """A run whose scores are known; it notes how many rows each call has."""

    def __init__(self, *, factors: bool) -> None:
        super().__init__(lambda: pytest.fail("no network is asked"), "known")
        object.__setattr__(self, "noted", ([], [], factors))

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        self.noted[0].append(len(states))
        return known(states, actions, goals)

    def towards(self, goals: Rows) -> Callable[[Rows, Rows, IntArray], Rows] | None:
        self.noted[1].append(len(goals))

        def score(states: Rows, actions: Rows, asked: IntArray) -> Rows:
            pair, goal = asked.T
            return self(states[pair], actions[pair], goals[goal])

        return score if self.noted[2] else None

    noted: Any


@pytest.mark.parametrize("factors", [True, False])
def test_rows_are_taken_some_at_a_time_and_goals_embedded_once(
    factors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorers, "SOME_ROWS", 32)
    run = Known(factors=factors)
    score = score_towards(run, GOALS)
    for _ in range(2):
        np.testing.assert_array_equal(
            score(STATES, ACTIONS, GOAL), known(STATES, ACTIONS, GOALS[GOAL])
        )
    assert run.noted[:2] == ([32, 32, 6] * 2, [5])


def test_a_function_of_somebody_is_asked_once_for_all_rows() -> None:
    asked: list[int] = []

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        asked.append(len(states))
        return known(states, actions, goals)

    found = score_towards(score, GOALS)(STATES, ACTIONS, GOAL)
    np.testing.assert_array_equal(found, known(STATES, ACTIONS, GOALS[GOAL]))
    assert asked == [ROWS]
