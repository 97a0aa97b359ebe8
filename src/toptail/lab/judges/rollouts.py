"""The judge by rollouts: a candidate's step in a simulation, a policy that continues, its return.

It serves any environment and any continuation policy. `candidate_returns` judges every candidate of
some queries; `rollout_returns` judges any list of (query, candidate, repetition), which a study
with a design of its own makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.lab.environments.rollout import BatchMaker, RolloutRules, RolloutStarts, roll_out
from toptail.lab.tasks.episodes import DirectionExpert, Expert, Situation, unit
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

if TYPE_CHECKING:
    import jax

Returns = NDArray[np.float64]

ContinuationPolicy: TypeAlias = Callable[[IntArray, FloatArray, Any], FloatArray]
"""The policy that acts after the judged action: (keys [m, 3] of query, repetition and steps taken,
observations [m, o], goals [m, o] or None) -> actions [m, a]."""

SLOTS = 2_048
"""Simulations that are stepped together, at most."""
BLOCK, GPU_BLOCK = 256, SLOTS
"""Rows of one call of a continuation policy on a CPU and on a GPU. Calls of one size round alike,
so that a return does not depend on the rollouts beside it. Small calls keep the activations in a
CPU's cache; a GPU takes all rows at once."""


class KeyedPolicy(Protocol):
    """A policy that draws from keys, such as `DiffusionPolicy`."""

    def sample_rows(
        self, keys: jax.Array, states: ArrayLike, goals: ArrayLike, steps: int | None = None
    ) -> FloatArray:
        """Draw one action [n, a] for each state and goal from its own key."""


@dataclass(frozen=True, eq=False)
class CandidateStarts:
    """Rollouts to make, one per row."""

    rows: IntArray
    """Row of the trajectories whose state is restored, ``[n]``."""
    goals: FloatArray | None
    """Observation that is the goal, ``[n, observation]``; None in a task without goals."""
    actions: FloatArray
    """The action to judge, ``[n, action]``: the first one that is taken."""
    query: IntArray
    """Number of the query, that is, of the state and the goal, ``[n]``."""
    repeat: IntArray
    """Number of the repetition, ``[n]``; query and repetition decide the random numbers."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: IntArray) -> CandidateStarts:
        """The rollouts with these numbers."""
        return replace(self, **{name: array[at] for name, array in self.arrays().items()})

    def arrays(self) -> dict[str, Any]:
        """The arrays with one row for each rollout, by name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in every.items() if array is not None}

    def distinct(self) -> tuple[IntArray, IntArray]:
        """Numbers of the rollouts that differ ``[m]``, and which of these each rollout is ``[n]``.

        Two rollouts of the same query, repetition and action are the same.
        """
        bits = np.ascontiguousarray(self.actions, np.float32).view(np.int32)
        columns = np.column_stack([self.query, self.repeat, self.rows, bits])
        _, first, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        firsts = np.sort(first)  # in the order of the rows: the caller may put long ones first
        return firsts, np.searchsorted(firsts, first[inverse.ravel()])


class ModelContinuation:
    """A behaviour model as continuation: step t draws from ``row_keys(key, query, repeat, t)``.

    The judged action is step 1. Candidates of one query see the same random numbers.
    """

    def __init__(self, policy: KeyedPolicy, key: jax.Array, ddim_steps: int) -> None:
        from toptail.lab.training.config import on_gpu  # only here: most rollouts need no JAX

        self._policy, self._key, self._steps = policy, key, ddim_steps
        self._block = GPU_BLOCK if on_gpu() else BLOCK

    def __call__(self, keys: IntArray, observed: FloatArray, goals: FloatArray) -> FloatArray:
        """Draw actions in calls of one size; the last is filled up by repetition."""
        from toptail.lab.proposals.denoiser import row_keys

        drawn = []
        for rows in _blocks(len(keys), self._block):
            query, repeat, taken = keys[rows].T
            own = row_keys(self._key, query, repeat, taken + 1)
            drawn.append(self._policy.sample_rows(own, observed[rows], goals[rows], self._steps))
        return np.concatenate(drawn)[: len(keys)]


class ExpertContinuation:
    """The policy that collects a maze's data as continuation, without its action noise.

    It heads for the centre of the next cell of a shortest path to the goal, as in data collection,
    but in the goal's own cell for the goal itself, which may be off the centre. The first
    two numbers of observations are positions, and those of goals at ``goal_at`` are where the agent
    is to go, or the ball in soccer. ``expert`` moves the agent in the direction and must have no
    memory of an episode; without it the direction is the action, as in PointMaze.
    """

    def __init__(self, maze: Maze, expert: Expert | None = None, goal_at: slice = slice(2)) -> None:
        self._maze, self._expert = maze, expert or DirectionExpert()
        self._goal_at = goal_at

    def __call__(self, keys: IntArray, observed: FloatArray, goals: FloatArray) -> FloatArray:
        """Act in calls of one size; nothing is drawn, so the keys do not matter."""
        acted = [self._act(observed[rows], goals[rows]) for rows in _blocks(len(keys), BLOCK)]
        return np.concatenate(acted)[: len(keys)]

    def _act(self, observed: FloatArray, goals: FloatArray) -> FloatArray:
        maze, seen = self._maze, observed.astype(np.float64)
        positions, ends = seen[:, :2], goals[:, self._goal_at].astype(np.float64)
        last = maze.cell(ends)
        following = maze.next_cell[maze.cell(positions), last]
        targets = np.where((following == last)[:, None], ends, maze.centre(following))
        situation = Situation(seen, positions, ends, unit(targets - positions), maze)
        return np.asarray(np.clip(self._expert.actions(situation), -1.0, 1.0), dtype=np.float32)


def _blocks(n: int, size: int) -> Iterator[IntArray]:
    """The numbers 0 … n − 1 in blocks of one size; the last is filled up by repetition."""
    yield from np.pad(np.arange(n), (0, -n % size), mode="edge").reshape(-1, size)


def rollout_returns(
    make: BatchMaker,
    trajectories: Trajectories,
    starts: CandidateStarts,
    continuation: ContinuationPolicy,
    rules: RolloutRules,
    tick: Callable[[float], None] | None = None,
) -> Returns:
    r"""Discounted success of each rollout; in a task without goals its discounted return.

    .. math:: G = \gamma^t, \quad t = \min\{1 \le t \le H : \text{goal reached after t steps}\},

    and 0 where there is no such t. Success is looked at after each step, so the judged action alone
    reaches the goal with t = 1; the restored state, t = 0, does not count, as no action can change
    it.

    From the restored row the judged action is taken first, then ``continuation`` acts. Equal
    rollouts are made once, at most `SLOTS` at a time. ``tick`` gets the share that has ended.

    Returns
    -------
    ``[n]``, larger is better.
    """
    _check(starts, trajectories)
    if not len(starts):
        return np.zeros(0)
    first, copy = starts.distinct()
    own = starts.take(first)

    def policy(numbers: IntArray, taken: IntArray, observed: FloatArray) -> FloatArray:
        actions = own.actions[numbers]
        later = np.flatnonzero(taken > 0)
        if later.size:
            on = numbers[later]
            keys = np.stack([own.query[on], own.repeat[on], taken[later]], axis=1)
            goals = None if own.goals is None else own.goals[on]
            actions[later] = continuation(keys, observed[later], goals)
        return actions

    each = RolloutStarts(trajectories, own.rows, own.goals)
    slots = min(SLOTS, len(own))
    return roll_out(make, each, policy, rules, tick, slots).discounted[copy]


def candidate_returns(
    make: BatchMaker,
    starts: RolloutStarts,
    candidates: FloatArray,
    continuation: ContinuationPolicy,
    rules: RolloutRules,
    repeats: int,
    tick: Callable[[float], None] | None = None,
) -> Returns:
    """`rollout_returns` of every candidate ``[queries, n, a]``, one start for each query.

    The candidates of a query see the same random numbers in the same repetition.

    Returns
    -------
    ``[repeats, queries, n]``; larger is better.
    """
    queries, n, width = candidates.shape
    number = np.arange(repeats * queries * n)
    repeat, query = number // (queries * n), number // n % queries
    goals = None if starts.goals is None else starts.goals[query].astype(np.float32)
    actions = np.tile(candidates.reshape(queries * n, width), (repeats, 1))
    each = CandidateStarts(starts.rows[query], goals, actions, query, repeat)
    returns = rollout_returns(make, starts.trajectories, each, continuation, rules, tick)
    return returns.reshape(repeats, queries, n)


def _check(starts: CandidateStarts, trajectories: Trajectories) -> None:
    lengths = {len(array) for array in starts.arrays().values()}
    if len(lengths) != 1:
        raise InputError(f"The arrays of rollouts have different lengths: {sorted(lengths)} rows.")
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
