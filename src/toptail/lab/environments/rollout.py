"""Walks: from stored rows, by any policy, for as long as the horizon, many at a time."""

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
"""Walks that are stepped together, where there are as many simulations."""
RESTORED = 1e-3
"""How far a restored observation may be from the recorded one, relative to its numbers."""

Policy: TypeAlias = Callable[[IntArray, IntArray, FloatArray], FloatArray]
"""(numbers of walks [m], steps that each has taken [m], observations [m, o]) -> actions [m, a]."""

Maker: TypeAlias = Callable[[int], EnvironmentBatch]
"""Number of slots -> the simulations."""


@dataclass(frozen=True, eq=False)
class WalkStarts:
    """Where n walks start, and where those of a task with goals should lead."""

    trajectories: Trajectories
    """What the rows are rows of."""
    rows: IntArray
    """Row that each walk starts in, ``[n]``."""
    goals: NDArray[np.floating[Any]] | None
    """Goal of each walk, ``[n, observation]``; None in a task without goals."""

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class WalkRules:
    """How long a walk is, and what it is worth."""

    horizon: int = 200
    """Steps of a walk, at most."""
    gamma: float = 0.99
    """Discount of later steps."""

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon, 1)
        if not 0 < self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma:g}: expected a number above 0, at most 1.")


@dataclass(frozen=True, eq=False)
class Walked:
    """How n walks went."""

    reached: IntArray
    """Steps after which the goal was first reached, ``[n]``; 0 where it never was."""
    discounted: Floats
    r"""``[n]``: :math:`\gamma^t` of the step that reaches the goal, or in a task without goals
    :math:`\sum_t \gamma^{t-1} r_t`."""
    rewards: Floats
    """Sum of the rewards without a discount, ``[n]``."""
    ended: Mask
    """Whether the environment ended the walk, ``[n]``."""


def walk(
    make: Maker,
    starts: WalkStarts,
    policy: Policy,
    rules: WalkRules,
    tick: Callable[[float], None] | None = None,
    slots: int = SLOTS,
) -> Walked:
    """Walk from every start until the goal is reached, the episode ends, or the horizon.

    Where the restored state is already at the goal does not count: no action can change that. The
    policy is asked once per step for all walks that go on, ``slots`` of them at most; one that ends
    makes room for the next.
    """
    return _Way(make(slots), starts, rules).all(policy, tick)


class _Way:
    """Walks on their way through the slots."""

    def __init__(self, batch: EnvironmentBatch, starts: WalkStarts, rules: WalkRules) -> None:
        self._starts, self._rules, n = starts, rules, len(starts)
        self._batch = batch
        if has_goals(self._batch) != (starts.goals is not None):
            raise InputError(
                "Goals and environment do not go together: one that says when a goal is "
                "reached is walked with goals, and no other."
            )
        self._walk = np.full(self._batch.size, -1)
        """Which walk each slot has; -1 where none is left for it."""
        self._taken = np.zeros(n, dtype=np.int64)
        self._waiting = 0
        self._reached = np.zeros(n, dtype=np.int64)
        self._discounted, self._rewards = np.zeros(n), np.zeros(n)
        self._ended = np.zeros(n, dtype=bool)
        # One table of powers: a power's last bit may depend on how many are taken at once.
        self._discount = rules.gamma ** np.arange(rules.horizon + 1.0)

    def all(self, policy: Policy, tick: Callable[[float], None] | None) -> Walked:
        ended = 0
        while True:
            self._fill()
            slots = np.flatnonzero(self._walk >= 0)
            if not slots.size:
                break
            walks = self._walk[slots]
            seen = vector(self._batch.observations())[slots]
            self._require_seen(walks, seen)
            actions = np.asarray(policy(walks, self._taken[walks], seen), np.float32)
            self._require_actions(walks, actions)
            over = self._step(slots, walks, actions)
            self._walk[slots[over]] = -1
            ended += int(over.sum())
            if tick is not None:
                tick(ended / len(self._starts))
        return Walked(self._reached, self._discounted, self._rewards, self._ended)

    def _fill(self) -> None:
        """Start waiting walks in the free slots."""
        free = np.flatnonzero(self._walk < 0)[: len(self._starts) - self._waiting]
        if not free.size:
            return
        walks = np.arange(self._waiting, self._waiting + free.size)
        self._walk[free], self._waiting = walks, self._waiting + free.size
        data, rows = self._starts.trajectories, self._starts.rows[walks]
        self._batch.restore(free, stored_rows(data, rows))
        _require_restored(vector(self._batch.observations())[free], data, rows)

    def _require_seen(self, walks: IntArray, seen: FloatArray) -> None:
        """Refuse an environment that has come to where there are no numbers."""
        bad = np.flatnonzero(~np.isfinite(seen).all(axis=1))
        if bad.size:
            raise InputError(
                f"The environment observes {seen[bad[0]].tolist()} {self._taken[walks[bad[0]]]} "
                f"steps after row {self._starts.rows[walks[bad[0]]]}: expected finite numbers."
            )

    def _require_actions(self, walks: IntArray, actions: FloatArray) -> None:
        """Refuse what is not one action within ±1 for each walk."""
        wanted = (len(walks), self._starts.trajectories.actions.shape[1])
        if actions.shape != wanted or not (np.abs(actions) <= 1).all():
            raise InputError(
                f"The policy returned actions of shape {actions.shape} for {len(walks)} walks: "
                f"expected {wanted}, finite and within ±1."
            )

    def _step(self, slots: IntArray, walks: IntArray, actions: FloatArray) -> Mask:
        """Take one step of each walk; returns which of them are over."""
        rewards, over = self._batch.step(slots, actions)
        self._rewards[walks] += rewards
        self._ended[walks] = over
        if self._starts.goals is None:
            self._discounted[walks] += self._discount[self._taken[walks]] * rewards
        self._taken[walks] += 1
        taken = self._taken[walks]
        if self._starts.goals is not None:
            hit = self._batch.reached(slots, self._starts.goals[walks])  # type: ignore[attr-defined]
            self._reached[walks[hit]] = taken[hit]
            self._discounted[walks[hit]] = self._discount[taken[hit]]
            over = over | hit
        return np.asarray(over | (taken >= self._rules.horizon))


def _require_restored(found: FloatArray, data: Trajectories, rows: IntArray) -> None:
    """Refuse an environment that is not where the data says it should be."""
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
            "qpos and qvel with the data, or mend restore()."
        )
