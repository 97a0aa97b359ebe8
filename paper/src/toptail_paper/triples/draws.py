"""Hard negatives and second goals of triples that were drawn from the data."""

from __future__ import annotations

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


def second_goals(
    triples: Triples,
    trajectories: Trajectories,
    rng: np.random.Generator,
    max_offset: int = MAX_OFFSET,
) -> IntArray:
    """Draw a second goal for each triple, as the first one but at another distance, ``[n]``.

    d' is uniform in {1, …, min(max_offset, ℓ)} without d; triples one step before the end of
    their trajectory have no such goal: -1.
    """
    longest = np.minimum(max_offset, trajectories.remaining(triples.rows))
    two = longest >= 2
    offsets = rng.integers(1, longest[two] - 1, endpoint=True)
    offsets += offsets >= triples.distance[two]
    found = np.full(len(triples), -1, dtype=np.int64)
    found[two] = triples.rows[two] + offsets
    return found
