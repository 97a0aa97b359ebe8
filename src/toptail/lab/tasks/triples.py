"""Triples (state, action, goal) of the data, and goals of other trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.trajectories import IntArray, Trajectories

GAMMA = 0.99
MAX_OFFSET = 60


class TooFewTrajectoriesError(InputError):
    """The data set has too few trajectories to draw goals of others."""


@dataclass(frozen=True, eq=False)
class Triples:
    """State and action of one row, and as goal the observation of a later row.

    Rows are numbers of rows of the trajectories that the triples were drawn from. Intervals
    cluster by ``trajectory``, since triples of one trajectory are not independent.
    """

    rows: IntArray
    """Row t of the state and the action, ``[n]``."""
    goal_rows: IntArray
    """Row t + d of the goal, ``[n]``."""
    trajectory: IntArray
    """The trajectory that both rows are on, ``[n]``."""
    gamma: float

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def distance(self) -> IntArray:
        """Steps d from the state to the goal, ``[n]``."""
        return self.goal_rows - self.rows

    @property
    def value(self) -> NDArray[np.float64]:
        """Return-to-go γ^d of the goal along the recorded trajectory, ``[n]``."""
        return np.power(self.gamma, self.distance, dtype=np.float64)

    def take(self, keep: IntArray | NDArray[np.bool_]) -> Triples:
        return Triples(
            self.rows[keep], self.goal_rows[keep], self.trajectory[keep], gamma=self.gamma
        )


def sample_triples(
    trajectories: Trajectories,
    count: int,
    rng: np.random.Generator,
    max_offset: int = MAX_OFFSET,
    gamma: float = GAMMA,
) -> Triples:
    """Draw triples from the data.

    A transition (s = o_t, a = a_t) is drawn uniformly, with replacement, from all rows that are
    not the last of their trajectory; the goal is g = o_{t+d} with d uniform in
    {1, …, min(max_offset, ℓ)}, where ℓ is the number of steps that remain.
    """
    if count < 1 or max_offset < 1:
        raise InputError(
            f"Cannot draw {count} triples with offsets up to {max_offset}: expected at least 1."
        )
    rows = rng.choice(trajectories.transitions, size=count)
    longest = np.minimum(max_offset, trajectories.remaining(rows))
    offsets = rng.integers(1, longest, endpoint=True)
    return Triples(rows, rows + offsets, trajectories.trajectory[rows], gamma)


def negatives(triples: Triples, count: int, rng: np.random.Generator) -> IntArray:
    """Draw goals of triples on other trajectories, for each triple.

    Returns
    -------
    IntArray
        Rows of the negative goals, ``[n, count]``; in each line ``count`` different triples,
        each set of them equally likely.
    """
    # In the order of trajectories, a triple's own trajectory is one block to step over.
    order = np.argsort(triples.trajectory, kind="stable")
    ordered = triples.trajectory[order]
    first = np.searchsorted(ordered, triples.trajectory, side="left")
    own = np.searchsorted(ordered, triples.trajectory, side="right") - first
    others = len(triples) - own
    if others.min() < count:
        at = int(np.argmin(others))
        raise TooFewTrajectoriesError(
            f"Trajectory {triples.trajectory[at]} leaves {others[at]} triples on other "
            f"trajectories, and {count} negatives are wanted: draw triples from more trajectories."
        )
    drawn = np.stack([rng.choice(n, size=count, replace=False) for n in others])
    drawn += np.where(drawn >= first[:, None], own[:, None], 0)
    goals: IntArray = triples.goal_rows[order[drawn]]
    return goals
