"""The judge that walks, against walks by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.environments.plane import STEP, GoalPlane, Plane, records
from toptail.lab.environments.protocol import Copies
from toptail.lab.environments.rollout import RolloutRules, RolloutStarts
from toptail.lab.judges.rollouts import candidate_returns
from toptail.lab.tasks.trajectories import FloatArray, IntArray

DATA = records(3, 8, 0)
ROWS = np.array([1, 9, 17])
RULES = RolloutRules(horizon=4, gamma=0.9)
CANDIDATES = np.random.default_rng(0).uniform(-1, 1, (3, 2, 2)).astype(np.float32)


def goes_on(keys: IntArray, seen: FloatArray, goals: None) -> FloatArray:
    """Depends on query, repetition and step."""
    assert goals is None
    turn = keys @ np.array([1.0, 2.0, 3.0])
    chosen: FloatArray = np.stack([np.cos(turn), seen[:, 0]], axis=1).astype(np.float32)
    return chosen.clip(-1, 1)


def test_the_candidate_acts_first_and_the_policy_goes_on() -> None:
    found = candidate_returns(
        partial(Copies, Plane),
        RolloutStarts(DATA, ROWS, None),
        CANDIDATES,
        goes_on,
        RULES,
        repeats=2,
    )
    assert found.shape == (2, 3, 2)
    for repeat in range(2):
        for query, row in enumerate(ROWS.tolist()):
            for i in range(2):
                at, total = DATA.observations[row].astype(np.float64), 0.0
                action = CANDIDATES[query, i]
                for step in range(RULES.horizon):
                    if step:
                        key = np.array([[query, repeat, step]])
                        action = goes_on(key, at.astype(np.float32)[None], None)[0]
                    at = at + STEP * action.astype(np.float64)
                    total -= RULES.gamma**step * float(np.linalg.norm(at))
                assert found[repeat, query, i] == pytest.approx(total, abs=1e-12)


def test_with_goals_a_value_is_the_discounted_success() -> None:
    goals = DATA.observations[ROWS] + np.array([0.3, 0.0], np.float32)
    towards = np.tile(np.array([1.0, 0.0], np.float32), (3, 1, 1))
    found = candidate_returns(
        partial(Copies, GoalPlane),
        RolloutStarts(DATA, ROWS, goals),
        np.concatenate([towards, -towards], axis=1),
        lambda keys, *_: np.tile(np.array([1.0, 0.0], np.float32), (len(keys), 1)),
        RULES,
        repeats=1,
    )
    # 0.3 away and reached within 0.15: two steps of 0.1; one step away first, and four are needed.
    np.testing.assert_allclose(found[0], [[0.9**2, 0.9**4]] * 3)
