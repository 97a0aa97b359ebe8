"""Candidates without training, against slow versions, and that draws depend on their keys alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.environments.plane import records
from toptail.errors import InputError
from toptail.lab.proposals import untrained
from toptail.lab.proposals.untrained import (
    CONTINUED,
    CandidateSource,
    NearActions,
    NearBehaviour,
    NearData,
    UniformActions,
)
from toptail.lab.tasks.neighbours import nearest_to_points
from toptail.lab.tasks.trajectories import FloatArray, Trajectories

DATA = records(8, 20, 0)
STATES = records(2, 6, 1).observations
GOALS = records(2, 6, 2).observations
KEYS = np.stack([np.arange(len(STATES)), np.full(len(STATES), 3)], axis=1)


def test_near_rows_are_the_nearest_that_have_a_transition() -> None:
    rows = DATA.transitions
    wanted = rows[nearest_to_points(DATA.observations[rows], STATES, 5)]
    np.testing.assert_array_equal(NearData(DATA).rows_near(STATES, 5), wanted)
    with pytest.raises(InputError, match="fewer than the 1000"):
        NearData(DATA).rows_near(STATES, 1000)


def test_of_wide_observations_only_some_rows_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(untrained, "MOST_ROWS", 30)
    wide = Trajectories(np.repeat(DATA.observations, 5, axis=1), DATA.actions, DATA.terminals)
    rows = NearData(wide).rows
    assert len(rows) == len(set(rows.tolist())) == 30
    assert not wide.terminals[rows].any()
    assert len(NearData(DATA).rows) == len(DATA.transitions)


@pytest.mark.parametrize("source", [UniformActions(2), NearActions(NearData(DATA), 10)])
def test_a_row_is_drawn_for_by_its_keys_alone(source: CandidateSource) -> None:
    drawn = source.draw(KEYS, STATES, GOALS, 4)
    assert drawn.shape == (len(STATES), 4, 2)
    assert drawn.dtype == np.float32
    some = np.array([7, 2])
    np.testing.assert_array_equal(
        source.draw(KEYS[some], STATES[some], GOALS[some], 4), drawn[some]
    )
    fewer = source.draw(KEYS, STATES, GOALS, 2)
    np.testing.assert_array_equal(fewer, drawn[:, :2])
    other = source.draw(KEYS + 1, STATES, GOALS, 4)
    assert (other != drawn).any(axis=(1, 2)).mean() > 0.8


def test_the_box_is_filled_evenly() -> None:
    drawn = UniformActions(2).draw(np.arange(400)[:, None], STATES, GOALS, 25).ravel()
    counts = np.histogram(drawn, bins=10, range=(-1, 1))[0]
    assert counts.sum() == 20_000
    assert np.abs(counts - 2_000).max() < 5 * np.sqrt(2_000)


def test_near_actions_are_those_of_near_states_each_once() -> None:
    drawn = NearActions(NearData(DATA), 10).draw(KEYS, STATES, GOALS, 10)
    near = DATA.actions[NearData(DATA).rows_near(STATES, 10)]
    for own, wanted in zip(drawn, near, strict=True):
        assert sorted(own.tolist()) == sorted(wanted.tolist())
    with pytest.raises(InputError, match="11 candidates"):
        NearActions(NearData(DATA), 10).draw(KEYS, STATES, GOALS, 11)


def test_without_goals_the_mean_of_what_the_data_does_nearby() -> None:
    found = NearBehaviour(NearData(DATA)).act(STATES, np.arange(len(STATES)))
    near = NearData(DATA).rows_near(STATES, CONTINUED)
    np.testing.assert_allclose(found, DATA.actions[near].mean(axis=1), rtol=1e-6)


def slow_towards(state: FloatArray, goal: FloatArray, near: int) -> FloatArray:
    """Follow the records of near states step by step until they pass the goal."""
    data = NearData(DATA)
    passed = set(data.rows_near(goal[None], near)[0].tolist())
    rows = data.rows_near(state[None], 2 * CONTINUED)[0].tolist()
    best, action = None, DATA.actions[rows[:CONTINUED]].mean(axis=0)
    for row in rows:
        at = row
        while at not in passed and not DATA.terminals[at]:
            at += 1
        if at in passed and (best is None or at - row < best):
            best, action = at - row, DATA.actions[row]
    return np.asarray(action)


def test_with_goals_the_record_that_passes_the_goal_soonest() -> None:
    policy = NearBehaviour(NearData(DATA), GOALS, near=30)
    goal = np.arange(len(STATES)) % len(GOALS)
    found = policy.act(STATES, goal)
    wanted = [slow_towards(STATES[i], GOALS[g], 30) for i, g in enumerate(goal.tolist())]
    np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-6)
    mean = NearBehaviour(NearData(DATA)).act(STATES, goal)
    led = (found != mean).any(axis=1)
    assert led.any()
    assert not led.all()
