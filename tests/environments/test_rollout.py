"""Rollouts through many slots against one at a time, and what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.environments.plane import GoalPlane, Plane, records
from toptail.errors import InputError
from toptail.lab.environments import rollout as module
from toptail.lab.environments.protocol import Copies, has_goals, stored_rows
from toptail.lab.environments.rollout import RolloutRules, RolloutStarts, roll_out
from toptail.lab.tasks.trajectories import FloatArray, IntArray

DATA = records(6, 10, 0)
RULES = RolloutRules(horizon=7, gamma=0.9)
ROWS = np.array([0, 3, 11, 25, 31, 40, 52])


def spiral(numbers: IntArray, taken: IntArray, seen: FloatArray) -> FloatArray:
    """A policy that depends on all its arguments."""
    turn = 0.3 * taken[:, None] + 0.1 * numbers[:, None]
    return np.clip(np.cos(turn + seen), -1, 1).astype(np.float32)


def slow(row: int, number: int, goal: FloatArray | None) -> tuple[int, float, float]:
    """One roll_out, step by step: when it reached, what it returned with and without a discount."""
    env = GoalPlane()
    env.restore(stored_rows(DATA, np.array([row]))[0])
    discounted = rewards = 0.0
    for step in range(RULES.horizon):
        seen = env.at.astype(np.float32)[None]
        action = spiral(np.array([number]), np.array([step]), seen)[0]
        _, reward, ended = env.step(action)
        rewards += reward
        if goal is None:
            discounted += RULES.gamma**step * reward
        elif env.reached(goal):
            return step + 1, RULES.gamma ** (step + 1), rewards
        if ended:
            break
    return 0, discounted, rewards


@pytest.mark.parametrize("slots", [2, 256])
@pytest.mark.parametrize("goals", [False, True])
def test_rollouts_are_those_of_one_environment_at_a_time(
    monkeypatch: pytest.MonkeyPatch, slots: int, goals: bool
) -> None:
    monkeypatch.setattr(module, "SLOTS", slots)
    aims = DATA.observations[ROWS] + np.float32(0.3) if goals else None
    made = partial(Copies, GoalPlane if goals else Plane)
    found = roll_out(made, RolloutStarts(DATA, ROWS, aims), spiral, RULES)
    for i, row in enumerate(ROWS.tolist()):
        reached, discounted, rewards = slow(row, i, None if aims is None else aims[i])
        assert found.reached[i] == reached
        assert found.discounted[i] == pytest.approx(discounted, abs=1e-12)
        assert found.rewards[i] == pytest.approx(rewards, abs=1e-12)
    assert (found.reached > 0).any() == goals


def test_progress_is_told_up_to_the_end() -> None:
    told: list[float] = []
    roll_out(partial(Copies, Plane), RolloutStarts(DATA, ROWS, None), spiral, RULES, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_goals_and_environment_must_go_together() -> None:
    with pytest.raises(InputError, match="do not go together"):
        roll_out(
            partial(Copies, Plane),
            RolloutStarts(DATA, ROWS, DATA.observations[ROWS]),
            spiral,
            RULES,
        )
    assert has_goals(GoalPlane())
    assert not has_goals(Plane())


class Shifted(Plane):
    """Does not restore what it is given."""

    def restore(self, row: object) -> np.ndarray:
        return super().restore(row) + 0.5  # type: ignore[arg-type]


class Wide(Plane):
    """Observes more than the data has."""

    def restore(self, _row: object) -> np.ndarray:
        return np.zeros(3)


@pytest.mark.parametrize(("kind", "word"), [(Shifted, "not restored"), (Wide, "not of one task")])
def test_an_environment_that_is_elsewhere_is_refused(kind: type[Plane], word: str) -> None:
    with pytest.raises(InputError, match=word):
        roll_out(partial(Copies, kind), RolloutStarts(DATA, ROWS, None), spiral, RULES)


@pytest.mark.parametrize("bad", [{"horizon": 0}, {"gamma": 0.0}, {"gamma": 1.1}])
def test_rules_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        RolloutRules(**bad)  # type: ignore[arg-type]


def test_nothing_is_observed_before_it_was_restored() -> None:
    with pytest.raises(InputError, match="restored"):
        Copies(Plane, 2).observations()


class Bottomless(Plane):
    """Falls out of the numbers."""

    def step(self, action: FloatArray) -> tuple[np.ndarray, float, bool]:
        return super().step(action)[0] * np.nan, 0.0, False


def test_what_is_no_number_is_refused_where_it_comes_up() -> None:
    starts = RolloutStarts(DATA, ROWS, None)
    with pytest.raises(InputError, match="1 steps after row 0: expected finite numbers"):
        roll_out(partial(Copies, Bottomless), starts, spiral, RULES)
    for wrong in (np.full((7, 2), np.nan), np.full((7, 2), 1.5), np.zeros((7, 3)), np.zeros(7)):
        with pytest.raises(InputError, match=r"expected \(7, 2\), finite and within ±1"):
            roll_out(partial(Copies, Plane), starts, lambda *_, wrong=wrong: wrong, RULES)


def test_it_is_told_which_rollouts_the_environment_ended() -> None:
    starts = RolloutStarts(DATA, ROWS, None)
    outward = roll_out(
        partial(Copies, Plane), starts, lambda *at: np.sign(at[2]).astype(np.float32), RULES
    )
    inward = roll_out(
        partial(Copies, Plane), starts, lambda *at: -np.sign(at[2]).astype(np.float32), RULES
    )
    far = np.linalg.norm(np.abs(DATA.observations[ROWS]) + 0.1 * RULES.horizon, axis=1) > 1.6
    assert (outward.ended == far).all()
    assert far.any()
    assert not inward.ended.any()
