"""The scores of the zoo on PointMaze, from the folders that ``toptail check`` left.

Best-of-K reads the order of a query's scores and nothing else, so what is stored is each score's
rank within its query, one byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.io.files import entries
from toptail.lab.judges.exact import exact_values
from toptail.lab.tasks.queries import FrozenQueries, load_queries

SOURCES: Final = ("nearest", "uniform")
"""The candidates: the data's actions at near states, and the whole action box."""
GAMMA: Final = 0.99
BETA: Final = 1.0
"""Standard deviations that a lower bound lies below the mean of an ensemble."""
MEMBERS: Final = {"tdq": "q_min", "raw": "f_raw_min"}
"""Critics whose networks are joined over all seeds, and the minimum over the two of a run."""

Scores = Mapping[str, NDArray[np.float32]]


def score_table(checks: Path, source: str, task: str) -> pa.Table:
    """One row per candidate: query, group, cluster, exact value, and every score's rank.

    ``checks`` has a folder for each critic; all must have the same queries and candidates.
    """
    found: dict[str, NDArray[np.float32]] = {}
    actions: NDArray[np.float32] | None = None
    queries: FrozenQueries | None = None
    for folder in entries(checks):
        pools: Mapping[str, Any] = read_arrays(folder / source / "pools.npz")
        own = load_queries(folder / "queries.npz")
        if actions is None or queries is None:
            actions, queries = pools["actions"], own
        if own.sha256 != queries.sha256 or not np.array_equal(actions, pools["actions"]):
            raise InputError(f"{folder} has other queries or candidates than the others.")
        found |= {
            name.removeprefix("scores/"): scores
            for name, scores in pools.items()
            if name.startswith("scores/") and "_lcb@" not in name  # of two, it is the minimum
        }
    if actions is None or queries is None:
        raise InputError(f"{checks} has no check of a critic.")
    toward = (queries.goals - queries.states)[:, None]
    rng = np.random.default_rng(0)
    found |= dict(joined(found))
    found["straight"] = (actions * toward).sum(axis=-1)
    found["random"] = rng.random(actions.shape[:2], dtype=np.float32)
    values = exact_values(task, queries.states, actions, queries.goals, GAMMA)
    count, size = values.shape
    columns: dict[str, Any] = {
        "query": np.repeat(np.arange(count), size),
        "cluster": np.repeat(queries.trajectory, size),
        "group": np.repeat(queries.group, size),
        "value": values.reshape(-1),
    }
    columns |= {name: ranks(scores).reshape(-1) for name, scores in sorted(found.items())}
    return pa.table(columns)


def ranks(scores: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Rank of each score among those of its query, ``[queries, n]``; equal scores share one."""
    order = np.sort(scores, axis=1)
    below = [np.searchsorted(own, row) for own, row in zip(order, scores, strict=True)]
    return np.stack(below).astype(np.uint8)


def joined(scores: Scores) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Ensembles of all networks of all seeds: their mean, minimum, and mean less a deviation.

    A run stores the mean and the minimum of its two networks, which say both.
    """
    for critic, least in MEMBERS.items():
        seeds = [name for name in scores if name.startswith(f"{critic}@")]
        lower = [scores.get(name.replace("@", f".{least}@")) for name in seeds]
        if not seeds or any(low is None for low in lower):
            continue
        networks = [
            x for name, low in zip(seeds, lower, strict=True) for x in _both(scores[name], low)
        ]
        yield f"{critic}_all_mean", np.mean(networks, axis=0)
        yield f"{critic}_all_min", np.min(networks, axis=0)
        yield f"{critic}_all_lcb", np.mean(networks, axis=0) - BETA * np.std(networks, axis=0)


def _both(mean: NDArray[np.float32], low: Any) -> Sequence[NDArray[np.float32]]:
    return low, 2 * mean - low
