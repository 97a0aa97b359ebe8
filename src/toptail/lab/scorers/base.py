"""Scorers, the columns of a score table, and calls that score many rows.

This module needs NumPy alone: trained runs are in `toptail.lab.scorers.runs`, functions and
checkpoints of users in `toptail.lab.scorers.user`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.lab.tasks.trajectories import IntArray

Rows: TypeAlias = NDArray[np.float32]

Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better.

A score may have two further methods, which are found by their names. ``towards(goals)`` embeds
goals once and returns a function that scores pairs towards them, or None (see `RunScore.towards`).
``ascend(states, actions, goals, steps, rate)`` climbs the score by its gradient (see
`toptail.lab.scorers.ascent`).
"""

Towards: TypeAlias = Callable[[Rows, Rows, IntArray], Rows]
"""(states [n, s], actions [n, a], numbers of goals [n]) -> scores [n]."""

MOST_ROWS = 65_536
"""Rows of one call of a critic where there are many candidates."""
SOME_ROWS = 2_048
"""Rows of one call of a trained run that embeds goals once: few sizes are compiled."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """One column of scores: its function, and where that comes from."""

    column: str
    """``NAME@SEED``, or ``NAME`` where there is no training seed."""

    score: Score
    """The score that is maximized in use."""

    origin: Mapping[str, Any]
    """Where it comes from, ready for JSON; equal origins give equal scores, unless `opaque`."""

    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""

    readouts: Mapping[str, Score] = field(default_factory=dict)
    """Further scores of the same network."""

    opaque: bool = False
    """Whether the origin does not decide the scores, as a user's function may read other files."""


def score_shared(
    score: Score, states: Rows, actions: Rows, goals: Rows, asked: IntArray, block: int
) -> Iterator[tuple[slice, Rows]]:
    """Score pairs (s, a) towards goals, many of which share a pair or a goal.

    A score with ``towards`` embeds each goal once and each pair once per block; any other one gets
    every row. ``asked`` [n, 2] has the number of a pair and that of a goal. Yields which of the n
    rows, at most ``block`` of them, and their scores.
    """
    towards = _embedded(score, goals)
    for start in range(0, len(asked), block):
        at = slice(start, min(start + block, len(asked)))
        pair, goal = asked[at].T
        if towards is None:
            yield at, score(states[pair], actions[pair], goals[goal])
        else:
            own, place = np.unique(pair, return_inverse=True)
            yield at, towards(states[own], actions[own], np.stack([place, goal], axis=1))


def _embedded(score: Score, goals: Rows) -> Towards | None:
    embed = getattr(score, "towards", None)
    return None if embed is None else embed(goals)


def score_each(towards: Towards, states: Rows, candidates: Rows, goal: IntArray) -> Rows:
    """Scores ``[n, k]`` of k candidates ``[n, k, a]`` for each state and number of a goal.

    One call has at most `MOST_ROWS` rows, so that memory does not grow with the pools.
    """
    (count, k, width), scores = candidates.shape, []
    block = max(1, MOST_ROWS // k)
    for at in (slice(first, first + block) for first in range(0, count, block)):
        rows, number = np.repeat(states[at], k, axis=0), np.repeat(goal[at], k)
        scores.append(towards(rows, candidates[at].reshape(-1, width), number).reshape(-1, k))
    return np.concatenate(scores)


def score_towards(score: Score, goals: Rows) -> Towards:
    """A function that scores rows towards these goals, for many calls.

    A score with ``towards`` embeds each goal once for all calls, and gets at most `SOME_ROWS` rows
    at a time.

    Returns
    -------
    (states [n, s], actions [n, a], numbers of goals [n]) -> scores [n].
    """
    if not hasattr(score, "towards"):
        return lambda states, actions, goal: score(states, actions, goals[goal])
    towards = _embedded(score, goals)

    def some(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        if towards is None:
            return score(states, actions, goals[goal])
        return towards(states, actions, np.stack([np.arange(len(goal)), goal], axis=1))

    def scores(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        parts = [slice(i, i + SOME_ROWS) for i in range(0, len(goal), SOME_ROWS)]
        return np.concatenate([some(states[at], actions[at], goal[at]) for at in parts])

    return scores
