"""Hard negatives and second goals of triples that were drawn from the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import MAX_OFFSET, TooFewTrajectoriesError, Triples

_CHUNK = 512


def hard_negatives(triples: Triples, trajectories: Trajectories) -> IntArray:
    """For each triple the goal of the triple with the nearest state on another trajectory.

    Nearest means Euclidean distance between observations, among the sampled triples on other
    trajectories; ties go to the triple that was drawn first.

    Returns
    -------
    IntArray
        Rows of the hard negative goals, ``[n]``.
    """
    if len(np.unique(triples.trajectory)) < 2:
        raise TooFewTrajectoriesError(
            "Hard negatives need triples on at least two trajectories, and all of these "
            "are on one: draw from a larger data set."
        )
    observations = trajectories.observations[triples.rows]
    states = observations.reshape(len(triples), -1).astype(np.float64)
    nearest = np.empty(len(triples), dtype=np.int64)
    for start in range(0, len(triples), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        distance = cdist(states[chunk], states, "sqeuclidean")
        distance[triples.trajectory[chunk, None] == triples.trajectory[None, :]] = np.inf
        nearest[chunk] = np.argmin(distance, axis=1)
    goals: IntArray = triples.goal_rows[nearest]
    return goals


@dataclass(frozen=True, eq=False)
class Pairs:
    """Triples, each with a second future state of the same trajectory."""

    triples: Triples
    """The triples that have a second goal."""
    other_goal_rows: IntArray
    """Row t + d' of the second goal, ``[n]``, with d' ≠ d."""


def same_trajectory_pairs(
    triples: Triples,
    trajectories: Trajectories,
    rng: np.random.Generator,
    max_offset: int = MAX_OFFSET,
) -> Pairs:
    """Draw a second goal for each triple, as the first one but at another distance.

    d' is uniform in {1, …, min(max_offset, ℓ)} without d; triples one step before the end of
    their trajectory have no such goal and are left out.
    """
    longest = np.minimum(max_offset, trajectories.remaining(triples.rows))
    paired = triples.take(longest >= 2)
    offsets = rng.integers(1, longest[longest >= 2] - 1, endpoint=True)
    offsets += offsets >= paired.distance
    return Pairs(paired, paired.rows + offsets)
