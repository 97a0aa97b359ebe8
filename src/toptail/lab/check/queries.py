"""The queries of a check: states with goals in distance groups, or states alone."""

from __future__ import annotations

import numpy as np

from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries, group_bounds
from toptail.lab.tasks.trajectories import Trajectories

EVERY = "all"
"""The group of queries without goals."""
GROUPS = 3
"""Distance groups; without goals there are as many queries in one."""


def check_queries(val: Trajectories, count: int, seed: int, *, goals: bool) -> FrozenQueries:
    """Draw ``count`` queries of each distance group; as many in all where there are no goals."""
    if not goals:
        return _states(val, GROUPS * count, seed)
    return freeze_queries(val, QueryConfig(per_group=count, seed=seed, **group_bounds(val)))


def _states(val: Trajectories, count: int, seed: int) -> FrozenQueries:
    """Rows with a transition, drawn uniformly, with goals of no numbers."""
    able = val.transitions
    rng = np.random.default_rng(seed)
    rows = rng.choice(able, size=count, replace=len(able) < count)
    return FrozenQueries(
        states=val.observations[rows],
        actions=val.actions[rows],
        goals=np.zeros((count, 0), np.float32),
        rows=rows,
        goal_rows=rows,
        trajectory=val.trajectory[rows],
        group=np.full(count, EVERY),
        config=QueryConfig(per_group=count, seed=seed),
        data_sha256=val.sha256,
    )
