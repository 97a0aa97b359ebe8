"""Local support: how far a candidate is from what the data does at nearby states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from toptail.errors import InputError
from toptail.lab.tasks.neighbours import nearest_to_points
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories


def local_rows(data: Trajectories, states: FloatArray, nearest: int) -> IntArray:
    """Rows of the ``nearest`` states of the data for each state: ``[queries, nearest]``.

    Only rows with a transition count: those are what critics and behaviour models learn from.
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
    r"""Distance of each candidate to the nearest action that the data takes nearby.

    .. math:: d(s, a) = \min_{i \in N(s)} \lVert a - a_i \rVert_2

    ``local_actions [queries, nearest, a]`` are the :math:`a_i` at the states nearest to each
    query's. For candidates ``[queries, n, a]`` the result is ``[queries, n]``, 0 for an action that
    the data takes nearby; ``tick`` is told the finished share.
    """
    result = np.empty(candidates.shape[:2], dtype=np.float32)
    for query, (local, mine) in enumerate(zip(local_actions, candidates, strict=True)):
        result[query] = cdist(mine.astype(np.float64), local.astype(np.float64)).min(axis=1)
        if tick is not None and (query + 1) % 100 == 0:
            tick((query + 1) / len(result))
    return result
