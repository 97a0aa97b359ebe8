"""Judge two: take one candidate's step in the simulator, go on as the data would, and see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Protocol

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.lab.proposals.sampling import row_keys
from toptail.lab.tasks.batch import MazeBatch
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.lab.training.defaults import on_gpu

Returns = NDArray[np.float64]

SLOTS = 2_048
"""Simulations that are stepped together, at most."""
BLOCK, GPU_BLOCK = 256, SLOTS
"""Rows of one call of the policy. Calls of one size round alike, so a return does not depend on
which rollouts ran beside it. Small calls keep the activations in a processor's cache; an
accelerator, which mostly waits to be asked, takes all rows at once."""

_BALL = slice(15, 17)
"""Where AntSoccer's observation has the position of the ball."""


class Continuation(Protocol):
    """The policy that goes on after the first action: `DiffusionPolicy`, never a critic."""

    def sample_rows(
        self, keys: jax.Array, states: ArrayLike, goals: ArrayLike, steps: int | None = None
    ) -> FloatArray:
        """Draw one action [n, a] for each state and goal from its own key."""


@dataclass(frozen=True, eq=False)
class Starts:
    """Rollouts to make, one per row."""

    rows: IntArray
    """Row of the trajectories whose state is restored, ``[n]``."""
    goals: FloatArray
    """Observation that is the goal, ``[n, observation]``."""
    actions: FloatArray
    """The action to judge, ``[n, action]``: the first one that is taken."""
    query: IntArray
    """Number of the query, which stands for the state and the goal, ``[n]``."""
    repeat: IntArray
    """Number of the repetition, ``[n]``: with the query, which random numbers are seen."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: IntArray) -> Starts:
        """Some of the rollouts."""
        return Starts(*(getattr(self, field.name)[at] for field in fields(self)))

    def distinct(self) -> tuple[IntArray, IntArray]:
        """The rollouts that differ ``[m]``, and which of them each rollout is ``[n]``.

        Two rollouts of the same query, repetition and action are one and the same, whoever
        picked the action.
        """
        bits = np.ascontiguousarray(self.actions, np.float32).view(np.int32)
        columns = np.column_stack([self.query, self.repeat, self.rows, bits])
        _, first, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        kept = np.sort(first)  # in the order given: the caller may know which are long
        return kept, np.searchsorted(kept, first[inverse.ravel()])


@dataclass(frozen=True)
class RolloutRules:
    """How a rollout goes on, and what it returns."""

    horizon: int = 200
    """Steps of a rollout, the judged action included."""
    gamma: float = 0.99
    """Discount of the success."""
    ddim_steps: int = 10
    """Steps of the policy's deterministic sampler."""

    def __post_init__(self) -> None:
        if self.horizon < 1 or not 0 < self.gamma <= 1:
            raise InputError(
                f"A rollout of {self.horizon} steps with the discount {self.gamma:g} means "
                "nothing: expected at least 1 step and a discount above 0, at most 1."
            )


def rollout_returns(
    environment: str,
    trajectories: Trajectories,
    starts: Starts,
    policy: Continuation,
    key: jax.Array,
    rules: RolloutRules,
    *,
    threads: int = 0,
    tick: Callable[[int], None] | None = None,
) -> Returns:
    r"""Discounted success of each rollout.

    .. math:: G = \gamma^t, \quad t = \min\{1 \le t \le H : |x_t - x_g| \le \mathrm{tol}\},

    and 0 where there is no such t. :math:`x_t` is the position of what must reach the goal
    (the agent, or the ball in soccer) after t steps, and tol the environment's own tolerance.
    Success is looked at after each step, so the judged action alone reaches the goal with
    t = 1; where the restored state is, t = 0, does not count, as no action can change it.

    From the exactly restored state the judged action is taken first. The action of step
    t = 2, 3, … is then drawn by the policy at the state reached, with the random numbers of
    ``row_keys(key, query, repeat, t)``: candidates of one query see the same ones. Equal rows are
    rolled out once.

    At most `SLOTS` rollouts run at a time. All of them take a step together, and the policy is
    asked for all of them together; a rollout that ends makes room for the next one.

    The environment is a maze's gymnasium id, and the trajectories have simulator state. 0 threads
    are as many as there are cores. ``tick`` is told after every step how many rollouts have ended.

    Returns
    -------
    ``[n]``, larger is better.
    """
    _check(starts, trajectories)
    if not len(starts):
        return np.zeros(0)
    first, copy = starts.distinct()
    copies = np.bincount(copy)
    run = _Run(environment, trajectories, starts.take(first), policy, key, rules, threads)
    ended = 0
    for finished in run.steps():
        ended += int(copies[finished].sum())
        if tick is not None:
            tick(ended)
    return run.returns[copy]


class _Run:
    """Rollouts on their way through the slots."""

    def __init__(
        self,
        environment: str,
        trajectories: Trajectories,
        starts: Starts,
        policy: Continuation,
        key: jax.Array,
        rules: RolloutRules,
        threads: int,
    ) -> None:
        self._trajectories, self._starts = trajectories, starts
        self._policy, self._key, self._rules = policy, key, rules
        size = min(SLOTS, len(starts))
        self._batch = MazeBatch(environment, size, threads)
        _check_fit(self._batch, trajectories, starts)
        at = _BALL if self._batch.family == "antsoccer" else slice(0, 2)
        self._targets = starts.goals[:, at].astype(np.float64)
        """Where `MazeBatch.goal_seekers` must go, ``[n, 2]``."""
        # One table of powers: a power's last bit may depend on how many are taken at once.
        self._discount = rules.gamma ** np.arange(rules.horizon + 1.0)
        self._rollout = np.full(size, -1)
        """Which rollout each slot runs; −1 where none is left for it."""
        self._taken = np.zeros(size, dtype=np.int64)
        """Steps that each slot's rollout has taken."""
        self._waiting = 0
        """The first rollout that has not started."""
        self._block = GPU_BLOCK if on_gpu() else BLOCK
        self.returns: Returns = np.zeros(len(starts))

    def steps(self) -> Iterator[IntArray]:
        """Take steps until every rollout has ended; yield those that ended in each."""
        while True:
            self._fill()
            live = np.flatnonzero(self._rollout >= 0)
            if not live.size:
                return
            self._batch.step(self._actions(live), live)
            self._taken[live] += 1
            yield self._end(live)

    def _fill(self) -> None:
        """Start waiting rollouts in the free slots."""
        free = np.flatnonzero(self._rollout < 0)[: len(self._starts) - self._waiting]
        if not free.size:
            return
        self._rollout[free] = np.arange(self._waiting, self._waiting + free.size)
        self._taken[free] = 0
        self._waiting += free.size
        state = self._trajectories.simulator_state(self._starts.rows[self._rollout[free]])
        self._batch.restore(state.qpos, state.qvel, free)

    def _actions(self, live: IntArray) -> FloatArray:
        """The judged action in a rollout's first step, the policy's later: ``[slots, action]``."""
        actions = np.zeros((self._batch.size, self._batch.action_size), np.float32)
        new = live[self._taken[live] == 0]
        actions[new] = self._starts.actions[self._rollout[new]]
        later = live[self._taken[live] > 0]
        if later.size:
            actions[later] = self._drawn(later)
        return actions

    def _drawn(self, slots: IntArray) -> FloatArray:
        """The policy's actions, in calls of one size; the last is filled up by repetition."""
        block = self._block
        padded = np.pad(slots, (0, -len(slots) % block), mode="edge")
        at = self._rollout[padded]
        starts, step = self._starts, self._taken[padded] + 1
        observed = self._batch.observations()[padded].astype(np.float32)
        drawn = []
        for i in range(0, len(padded), block):
            rows = at[i : i + block]
            numbers = (starts.query[rows], starts.repeat[rows], step[i : i + block])
            keys = row_keys(self._key, *numbers)
            states, goals = observed[i : i + block], starts.goals[rows]
            drawn.append(self._policy.sample_rows(keys, states, goals, self._rules.ddim_steps))
        return np.concatenate(drawn)[: len(slots)]

    def _end(self, live: IntArray) -> IntArray:
        """Free the slots whose rollouts are over, and return those rollouts."""
        at, taken = self._rollout[live], self._taken[live]
        away = np.linalg.norm(self._batch.goal_seekers()[live] - self._targets[at], axis=1)
        reached = away <= self._batch.goal_tolerance
        self.returns[at[reached]] = self._discount[taken[reached]]
        over = reached | (taken >= self._rules.horizon)
        self._rollout[live[over]] = -1
        ended: IntArray = at[over]
        return ended


def _check(starts: Starts, trajectories: Trajectories) -> None:
    lengths = {len(getattr(starts, field.name)) for field in fields(starts)}
    if len(lengths) != 1:
        raise InputError(f"Rollouts need as many of everything, not {sorted(lengths)} rows.")
    if len(starts) and not 0 <= starts.rows.min() <= starts.rows.max() < len(trajectories):
        raise InputError(
            f"Rollouts start in rows up to {starts.rows.max()}, but {trajectories.source} has "
            f"{len(trajectories)}: the queries are of another data set."
        )
    bad = np.flatnonzero(~(np.abs(starts.actions) <= 1).all(axis=1))
    if bad.size:
        raise InputError(
            f"The action of rollout {bad[0]} is {starts.actions[bad[0]].tolist()}: expected finite "
            "numbers within ±1, clipped as they would be executed."
        )


def _check_fit(batch: MazeBatch, trajectories: Trajectories, starts: Starts) -> None:
    state = trajectories.simulator_state(starts.rows[:1])
    found = (state.qpos.shape[1], state.qvel.shape[1], starts.actions.shape[1])
    wanted = (batch.qpos.shape[1], batch.qvel.shape[1], batch.action_size)
    if found != wanted:
        raise InputError(
            f"{trajectories.source} has positions, velocities and actions of {found} numbers, and "
            f"the simulator has {wanted}: the file is of another task."
        )
