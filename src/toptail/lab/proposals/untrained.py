"""Candidates without training, and the distance of candidates to the data's actions.

Draws are keyed: the candidates of a row depend on its own key alone, not on the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from toptail.errors import InputError, option
from toptail.lab.tasks.neighbours import TREE_DIMENSIONS, nearest_to_points
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories


def local_rows(data: Trajectories, states: FloatArray, nearest: int) -> IntArray:
    """Rows of the ``nearest`` states of the data for each state: ``[queries, nearest]``.

    Only rows with a transition are searched, since critics and behaviour models learn from these.
    Distances are Euclidean over the whole observation.
    """
    rows = data.transitions
    if nearest > len(rows):
        raise InputError(
            f"{data.source} has {len(rows)} transitions, fewer than the {nearest} nearest states "
            "that local support asks for: use fewer."
        )
    return rows[nearest_to_points(data.observations[rows], states, nearest)]


def support_distance(
    local_actions: NDArray[np.floating],
    candidates: NDArray[np.floating],
    tick: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    r"""Distance of each candidate to the nearest action of the data at near states.

    .. math:: d(s, a) = \min_{i \in N(s)} \lVert a - a_i \rVert_2

    ``local_actions [queries, nearest, a]`` are the :math:`a_i` at the states nearest to each
    query's. For candidates ``[queries, n, a]`` the result is ``[queries, n]``, 0 for an action that
    the data takes there; ``tick`` is called with the finished share.
    """
    result = np.empty(candidates.shape[:2], dtype=np.float32)
    for query, (local, mine) in enumerate(zip(local_actions, candidates, strict=True)):
        result[query] = cdist(mine.astype(np.float64), local.astype(np.float64)).min(axis=1)
        if tick is not None and (query + 1) % 100 == 0:
            tick((query + 1) / len(result))
    return result


MOST_ROWS = 30_000
"""Rows that are searched where observations are wide; of more rows, a random subset. A tree visits
almost all rows in thirty dimensions, at every step of an episode."""
_MANY = 1_000
"""Near rows, summed over states, from which threads are faster."""
CONTINUED = 10
"""Near states whose mean action `NearBehaviour` takes."""


class CandidateSource(Protocol):
    """A source of candidates at any state."""

    def draw(
        self, keys: IntArray, states: FloatArray, goals: FloatArray, count: int, /
    ) -> FloatArray:
        """Draw ``count`` actions for each state ``[n, s]``: ``[n, count, a]``, within ±1.

        ``keys [n, ...]`` are whole numbers: equal keys give equal random numbers.
        """


class UniformActions:
    """Actions from the whole box [-1, 1]^a."""

    def __init__(self, width: int, seed: int = 0) -> None:
        self._width, self._seed = width, seed

    def draw(
        self, keys: IntArray, _states: FloatArray, _goals: FloatArray, count: int
    ) -> FloatArray:
        shape = (count, self._width)
        drawn = [rng.uniform(-1.0, 1.0, shape) for rng in generators(self._seed, keys)]
        return np.stack(drawn).astype(np.float32)


class NearData:
    """The states of the data near any state, in Euclidean distance over the observation.

    Where observations have more than `TREE_DIMENSIONS` columns, at most `MOST_ROWS` are searched.
    """

    def __init__(self, data: Trajectories, seed: int = 0) -> None:
        self.data, rows = data, data.transitions
        wide = data.observations.shape[1] > TREE_DIMENSIONS
        if wide and len(rows) > MOST_ROWS:
            rng = np.random.default_rng(seed)
            rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
        self.rows = rows
        """Rows that are searched."""

    def rows_near(self, states: FloatArray, count: int) -> IntArray:
        """The ``count`` rows nearest to each state: ``[n, count]``."""
        if count > len(self.rows):
            raise InputError(
                f"{self.data.source} has {len(self.rows)} transitions, fewer than the {count} near "
                "states that are asked for: ask for fewer, or bring more data."
            )
        workers = -1 if len(states) * count >= _MANY else 1
        _, at = self._tree.query(states, k=np.arange(1, count + 1), workers=workers)
        return self.rows[at]

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.data.observations[self.rows])


class NearActions:
    """Actions that the data takes at the ``near`` states nearest to one, in random order."""

    def __init__(self, data: NearData, near: int, seed: int = 0) -> None:
        self._data, self._near, self._seed = data, near, seed

    def draw(
        self, keys: IntArray, states: FloatArray, _goals: FloatArray, count: int
    ) -> FloatArray:
        if count > self._near:
            raise InputError(
                f"{count} candidates cannot be drawn from the actions of {self._near} near states: "
                f"look at more ({option('near')}), ask for fewer candidates ("
                f"{option('pool_size')}, {option('follow_k')}), or take "
                f"{option('pools', 'uniform')}."
            )
        near = self._data.rows_near(states, self._near)
        order = [rng.permutation(self._near)[:count] for rng in generators(self._seed, keys)]
        rows = np.take_along_axis(near, np.stack(order), axis=1)
        return np.asarray(self._data.data.actions[rows], np.float32)


class NearBehaviour:
    """A deterministic policy that imitates the data.

    Without goals it takes the mean action of the `CONTINUED` nearest states. With goals it takes,
    of twice as many states, the action of the one whose trajectory soonest reaches one of the
    ``near`` states nearest to the goal; the mean action if none does.
    """

    def __init__(self, data: NearData, goals: FloatArray | None = None, near: int = 200) -> None:
        self._data = data
        self._passed = None if goals is None else np.sort(data.rows_near(goals, near), axis=1)

    def act(self, states: FloatArray, goal: IntArray) -> FloatArray:
        """One action ``[n, a]`` for each state; ``goal [n]`` are indices of goals."""
        actions = self._data.data.actions
        near = self._data.rows_near(states, CONTINUED if self._passed is None else 2 * CONTINUED)
        mean = actions[near[:, :CONTINUED]].mean(axis=1)
        if self._passed is None:
            return np.asarray(mean, np.float32)
        steps = self._steps_to_goal(near, self._passed[goal])
        soonest = actions[near[np.arange(len(near)), steps.argmin(axis=1)]]
        reaches = np.isfinite(steps).any(axis=1, keepdims=True)
        return np.asarray(np.where(reaches, soonest, mean), np.float32)

    def _steps_to_goal(self, near: IntArray, passed: IntArray) -> NDArray[np.float64]:
        """Steps from each near row to the goal along its trajectory; infinite if it misses it."""
        data, steps = self._data.data, np.full(near.shape, np.inf)
        ends = near + data.remaining(near.ravel()).reshape(near.shape)
        for i, rows in enumerate(passed):
            at = np.searchsorted(rows, near[i])
            then = rows[np.minimum(at, len(rows) - 1)]
            reached = (at < len(rows)) & (then <= ends[i])
            steps[i, reached] = (then - near[i])[reached]
        return steps


def generators(seed: int, keys: IntArray) -> Iterator[np.random.Generator]:
    """One generator for each key, a row of whole numbers ``[n, ...]``."""
    for key in keys.reshape(len(keys), -1).tolist():
        yield np.random.default_rng([seed, *key])
