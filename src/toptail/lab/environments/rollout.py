"""Rollouts: from stored rows, by any policy, until goal, end or horizon, many at a time.

This is the one loop through environments: a check's closed loop, the judge by rollouts
(`toptail.lab.judges.rollouts`) and deployed policies are policies that `roll_out` asks for actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, check_whole
from toptail.lab.environments.protocol import (
    EnvironmentBatch,
    Floats,
    Mask,
    has_goals,
    stored_rows,
    vector,
)
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

SLOTS = 256
"""Rollouts that are stepped together, where there are as many simulations."""
RESTORED = 1e-3
"""How far a restored observation may be from the recorded one, relative to its numbers."""

Policy: TypeAlias = Callable[[IntArray, IntArray, FloatArray], FloatArray]
"""(numbers of rollouts [m], steps that each has taken [m], observations [m, o]) -> actions
[m, a]."""

BatchMaker: TypeAlias = Callable[[int], EnvironmentBatch]
"""Number of slots -> the simulations."""


@dataclass(frozen=True, eq=False)
class RolloutStarts:
    """Rows in which n rollouts start, and the goals that they should reach."""

    trajectories: Trajectories
    rows: IntArray
    """Row that each rollout starts in, ``[n]``."""
    goals: NDArray[np.floating[Any]] | None
    """Goal of each rollout, ``[n, observation]``; None in a task without goals."""

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class RolloutRules:
    """Length and discount of a rollout."""

    horizon: int = 200
    gamma: float = 0.99

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon, 1)
        if not 0 < self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma:g}: expected a number above 0, at most 1.")


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Results of n rollouts."""

    reached: IntArray
    """Steps after which the goal was first reached, ``[n]``; 0 where it never was."""
    discounted: Floats
    r"""``[n]``: :math:`\gamma^t` of the step that reaches the goal, or in a task without goals
    :math:`\sum_t \gamma^{t-1} r_t`."""
    rewards: Floats
    """Sum of the rewards without a discount, ``[n]``."""
    ended: Mask
    """Whether the environment ended the rollout, ``[n]``."""


def roll_out(
    make: BatchMaker,
    starts: RolloutStarts,
    policy: Policy,
    rules: RolloutRules,
    tick: Callable[[float], None] | None = None,
    slots: int = SLOTS,
) -> Rollouts:
    """Step from every start until the goal is reached, the episode ends, or the horizon.

    Success is looked at after each step: a restored state that is at the goal does not count, as no
    action can change that. The policy is asked once per step for all running rollouts, at most
    ``slots`` of them; one that is over makes room for the next.
    """
    return _Running(make(slots), starts, rules).run(policy, tick)


class _Running:
    """The rollouts that are in the slots of a batch, and those that wait."""

    def __init__(self, batch: EnvironmentBatch, starts: RolloutStarts, rules: RolloutRules) -> None:
        self._starts, self._rules, n = starts, rules, len(starts)
        self._batch = batch
        if has_goals(self._batch) != (starts.goals is not None):
            raise InputError(
                "Goals and environment do not go together: goals need an environment that says "
                "when a goal is reached, and such an environment needs goals."
            )
        self._number = np.full(self._batch.size, -1)
        """Which rollout each slot has; -1 where none is left for it."""
        self._taken = np.zeros(n, dtype=np.int64)
        self._waiting = 0
        self._reached = np.zeros(n, dtype=np.int64)
        self._discounted, self._rewards = np.zeros(n), np.zeros(n)
        self._ended = np.zeros(n, dtype=bool)
        # One table of powers: a power's last bit may depend on how many are taken at once.
        self._discount = rules.gamma ** np.arange(rules.horizon + 1.0)

    def run(self, policy: Policy, tick: Callable[[float], None] | None) -> Rollouts:
        over_so_far = 0
        while True:
            self._fill()
            slots = np.flatnonzero(self._number >= 0)
            if not slots.size:
                break
            numbers = self._number[slots]
            observed = vector(self._batch.observations())[slots]
            self._require_finite(numbers, observed)
            actions = np.asarray(policy(numbers, self._taken[numbers], observed), np.float32)
            self._require_actions(numbers, actions)
            over = self._step(slots, numbers, actions)
            self._number[slots[over]] = -1
            over_so_far += int(over.sum())
            if tick is not None:
                tick(over_so_far / len(self._starts))
        return Rollouts(self._reached, self._discounted, self._rewards, self._ended)

    def _fill(self) -> None:
        """Start waiting rollouts in the free slots."""
        free = np.flatnonzero(self._number < 0)[: len(self._starts) - self._waiting]
        if not free.size:
            return
        numbers = np.arange(self._waiting, self._waiting + free.size)
        self._number[free], self._waiting = numbers, self._waiting + free.size
        data, rows = self._starts.trajectories, self._starts.rows[numbers]
        self._batch.restore(free, stored_rows(data, rows))
        _require_restored(vector(self._batch.observations())[free], data, rows)

    def _require_finite(self, numbers: IntArray, observed: FloatArray) -> None:
        bad = np.flatnonzero(~np.isfinite(observed).all(axis=1))
        if bad.size:
            number = numbers[bad[0]]
            raise InputError(
                f"The environment observes {observed[bad[0]].tolist()} {self._taken[number]} steps "
                f"after row {self._starts.rows[number]}: expected finite numbers."
            )

    def _require_actions(self, numbers: IntArray, actions: FloatArray) -> None:
        wanted = (len(numbers), self._starts.trajectories.actions.shape[1])
        if actions.shape != wanted or not (np.abs(actions) <= 1).all():
            raise InputError(
                f"The policy returned actions of shape {actions.shape} for {len(numbers)} "
                f"rollouts: expected {wanted}, finite and within ±1."
            )

    def _step(self, slots: IntArray, numbers: IntArray, actions: FloatArray) -> Mask:
        """Take one step of each rollout; returns which of them are over."""
        rewards, over = self._batch.step(slots, actions)
        self._rewards[numbers] += rewards
        self._ended[numbers] = over
        if self._starts.goals is None:
            self._discounted[numbers] += self._discount[self._taken[numbers]] * rewards
        self._taken[numbers] += 1
        taken = self._taken[numbers]
        if self._starts.goals is not None:
            hit = self._batch.reached(slots, self._starts.goals[numbers])  # type: ignore[attr-defined]
            self._reached[numbers[hit]] = taken[hit]
            self._discounted[numbers[hit]] = self._discount[taken[hit]]
            over = over | hit
        return np.asarray(over | (taken >= self._rules.horizon))


def _require_restored(found: FloatArray, data: Trajectories, rows: IntArray) -> None:
    """Refuse an environment whose observation is not the recorded one."""
    recorded = data.observations[rows].astype(np.float64)
    if found.shape != recorded.shape:
        raise InputError(
            f"The environment observes {found.shape[1:]} numbers, and {data.source} has rows of "
            f"{recorded.shape[1:]}: they are not of one task."
        )
    away = np.abs(found - recorded) / np.maximum(1.0, np.abs(recorded))
    wrong = np.flatnonzero(~(away.max(axis=1) <= RESTORED))
    if wrong.size:
        row, column = rows[wrong[0]], int(np.argmax(away[wrong[0]]))
        raise InputError(
            f"The environment was put into row {row} of {data.source} and observes "
            f"{found[wrong[0], column]:.6g} in column {column}, where "
            f"{recorded[wrong[0], column]:.6g} was recorded: its state is not restored; store "
            "qpos and qvel with the data, or correct restore()."
        )
