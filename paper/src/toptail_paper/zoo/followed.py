"""Critics that are followed at every step: success of each episode, and critics compared by start.

The episodes of all critics begin in the same recorded states, so that they are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds, split_seed
from toptail.stats.resample import bootstrap_p, holm
from toptail_paper.zoo.answers import RAW
from toptail_paper.zoo.shares import Floats, cell, over_clusters

FOLLOWED: Final = "followed"
"""Name of the check that follows all critics in many episodes, and end of its table's name."""
EPISODE: Final = ("start", "cluster", "group", "random")
"""What a row has beside critics: the success of a random candidate at every step, too."""


def followed_table(check: Path, stored: Path | None = None) -> pa.Table:
    """One row per start: its trajectory and group, and the success of every critic and seed.

    ``check`` is the folder of a check among actions of the whole box. The critics of ``stored``, an
    earlier table of the same starts, stay as they are, and others join them.
    """
    columns: dict[str, Any] = {}
    for scorer in read_json(check / "check.json")["scorers"]:
        path = check / "uniform" / "closed_loop" / scorer / "picks.parquet"
        picks = JudgedPicks.read(path)
        sizes = [int(name.removeprefix("K = ")) for name in picks.selector.to_pylist()]
        if len(sizes) != 2 or picks.cluster is None or picks.group is None:
            raise InputError(f"{path} has not two selectors by start: follow with K = 1 and 64.")
        one, largest = (picks.selector_at == at for at in np.argsort(sizes))
        seeds = np.array(picks.replicate.to_pylist())
        by_start = np.argsort(picks.query.to_numpy())
        own = {
            "start": picks.query.take(by_start),
            "cluster": picks.cluster.take(by_start),
            "group": picks.group.take(by_start),
            "random": _successes(picks, one & (seeds == seeds[0])),
        }
        if columns and any(not columns[name].equals(own[name]) for name in EPISODE):
            raise InputError(f"{path} has other starts than the critics before it.")
        columns |= own
        for seed in sorted(set(seeds)):
            name = scorer if seed == "None" else f"{scorer}@{seed}"
            columns[name] = _successes(picks, largest & (seeds == seed))
    if not columns:
        raise InputError(f"{check} has no episodes: follow critics among the candidates uniform.")
    table = pa.table(columns)
    if stored is not None:
        table = _joining(table, stored)
    return table


def _successes(picks: JudgedPicks, rows: NDArray[np.bool_]) -> pa.Array:
    """Success of the episodes in these rows, by start."""
    start = picks.query.to_numpy()[picks.query_at[rows]]
    return pa.array(picks.value[rows][np.argsort(start)].astype(np.uint8))


def _joining(table: pa.Table, stored: Path) -> pa.Table:
    """The stored table, with the critics that it does not have."""
    earlier = pq.read_table(stored)
    if not earlier.select(EPISODE).equals(table.select(EPISODE)):
        raise InputError(
            f"{stored} has other starts: give the leaderboard of a run on the same data with the "
            "same settings, or leave it out."
        )
    kept = {split_seed(name)[0] for name in earlier.column_names}
    for name in table.column_names:
        if split_seed(name)[0] not in kept:
            earlier = earlier.append_column(name, table[name])
    return earlier


def followed_answers(path: Path) -> dict[str, Any]:
    """Critic -> its success, what that is more than at random and than raw's, and the answer.

    Seeds are averaged, and trajectories resampled. *Better* or *worse* than raw is a difference
    whose interval leaves out 0, with p corrected for all critics by Holm's rule.
    """
    table = pq.read_table(path)
    columns = group_seeds([n for n in table.column_names if n not in EPISODE])
    success = {
        name: np.mean([_floats(table[column]) for column in seeds.values()], axis=0)
        for name, seeds in columns.items()
    }
    names, random = list(success), _floats(table["random"])
    cluster = np.asarray(table["cluster"].to_pylist())
    point, draws = over_clusters(cluster, [random, *success.values()])
    at = {name: i for i, name in enumerate(names, start=1)}

    def less(name: str, other: int) -> tuple[float, Floats]:
        one = at[name]
        return float(point[one] - point[other]), draws[:, one] - draws[:, other]

    others = [name for name in names if name != RAW] if RAW in at else []
    p = holm([bootstrap_p(less(name, at[RAW])[1][:, None])[0] for name in others])
    corrected = dict(zip(others, p, strict=True))
    critics: dict[str, Any] = {}
    for name in names:
        critics[name] = {
            "seeds": len(columns[name]),
            "success": cell(float(point[at[name]]), draws[:, at[name]]),
            "more_than_random": cell(*less(name, 0)),
        }
        if name in corrected:
            more = cell(*less(name, at[RAW]))
            critics[name] |= {"more_than_raw": more, "answer": _answer(more, corrected[name])}
    return {
        "starts": table.num_rows,
        "random": cell(float(point[0]), draws[:, 0]),
        "critics": critics,
    }


def _answer(more: Mapping[str, float], p: float) -> str:
    if p >= 0.05 or more["low"] <= 0 <= more["high"]:
        return "not decided"
    return "better" if more["mean"] > 0 else "worse"


def _floats(column: pa.ChunkedArray) -> Floats:
    found: Floats = column.to_numpy().astype(np.float64)
    return found
