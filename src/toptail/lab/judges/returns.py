"""A judge for any environment: take the candidate's step, go on, and see what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from toptail.lab.environments.protocol import Floats
from toptail.lab.environments.walks import Maker, WalkRules, WalkStarts, walk
from toptail.lab.tasks.trajectories import FloatArray, IntArray

GoesOn: TypeAlias = Callable[[IntArray, FloatArray, IntArray], FloatArray]
"""(keys [m, 3] of query, repetition and step, observations [m, o], queries [m]) -> actions."""


def candidate_returns(
    make: Maker,
    starts: WalkStarts,
    candidates: FloatArray,
    goes_on: GoesOn,
    rules: WalkRules,
    repeats: int,
    tick: Callable[[float], None] | None = None,
) -> Floats:
    """Discounted return of every candidate, or discounted success in a task with goals.

    From the restored row of query q the candidate is taken first, then ``goes_on`` acts. The
    candidates of a query see the same random numbers in the same repetition.

    Parameters
    ----------
    make, starts, rules
        The simulations; one start for each query; horizon (the candidate's step included) and
        discount.
    candidates
        ``[queries, n, a]``.
    goes_on
        The policy that acts after the candidate.
    repeats
        Repetitions of every candidate.

    Returns
    -------
    ``[repeats, queries, n]``; larger is better.
    """
    queries, n, width = candidates.shape
    number = np.arange(repeats * queries * n)
    repeat, query = number // (queries * n), number // n % queries
    first = candidates.reshape(queries * n, width)

    def policy(walks: IntArray, taken: IntArray, seen: FloatArray) -> FloatArray:
        actions = first[walks % len(first)].copy()
        later = np.flatnonzero(taken > 0)
        if later.size:
            on = walks[later]
            keys = np.stack([query[on], repeat[on], taken[later]], axis=1)
            actions[later] = goes_on(keys, seen[later], query[on])
        return actions

    goals = None if starts.goals is None else starts.goals[query]
    each = WalkStarts(starts.trajectories, starts.rows[query], goals)
    return walk(make, each, policy, rules, tick).discounted.reshape(repeats, queries, n)
