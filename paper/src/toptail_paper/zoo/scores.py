"""The scores of the zoo, from the folders that ``toptail check`` left.

Best-of-K reads the order of a query's scores and nothing else, so what is stored is each score's
rank within its query, one byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.io.json_files import read_json
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.queries import load_queries
from toptail.pools.columns import group_seeds, split_seed

SOURCES: Final = ("nearest", "uniform")
"""The candidates: the data's actions at near states, and the whole action box."""
COLUMNS: Final = ("query", "cluster", "group", "value")
"""What a row has beside scores."""
BEFORE: Final = "value_before"
"""The first judge's values in the table of another one."""
BETA: Final = 1.0
"""Standard deviations that a lower bound lies below the mean of an ensemble."""
MEMBERS: Final = {"tdq": "q_min", "raw": "f_raw_min"}
"""Critics whose networks are joined over all seeds, and the minimum over the two of a run."""

Scores = Mapping[str, NDArray[np.float32]]


def table_name(task: str, source: str) -> str:
    """File of a task's scores, such as ``pointmaze_nearest.parquet``."""
    return f"{parse_name(task).family}_{source}.parquet"


def replicates(names: Sequence[str]) -> list[str]:
    """The columns of a judge's members, or of its repetitions."""
    return [name for name in names if re.fullmatch(r"value_\d+", name)]


def score_table(checks: Sequence[Path], source: str, stored: Path | None = None) -> pa.Table:
    """One row per candidate: query, group, cluster, value, and every score's rank.

    ``checks`` are the folders of the critics' checks, with the same queries, candidates and judge.
    Of a judge with several members the value is their mean, and the members' values are kept. Where
    an action is a displacement, the straight line to the goal is a score, too. The rows of
    ``stored``, an earlier table of the same candidates, stay as they are, and others join them.
    """
    found: dict[str, NDArray[np.float32]] = {}
    first: pa.Table | None = None
    for folder in checks:
        table = _judged(pq.read_table(folder / source / "table.parquet"))
        pools: Mapping[str, Any] = read_arrays(folder / source / "pools.npz")
        if first is None:
            first, actions = table, pools["actions"]
            queries = load_queries(folder / "queries.npz")
        if not table.equals(first) or not np.array_equal(actions, pools["actions"]):
            raise InputError(f"{folder} has other queries, candidates or values than the others.")
        found |= {
            name.removeprefix("scores/"): scores
            for name, scores in pools.items()
            if name.startswith("scores/") and "_lcb@" not in name  # of two, it is the minimum
        }
    if first is None:
        raise InputError("There is no check of a critic yet.")
    rng = np.random.default_rng(0)
    found |= dict(joined(found))
    if actions.shape[-1] == queries.states.shape[-1]:
        found["straight"] = (actions * (queries.goals - queries.states)[:, None]).sum(axis=-1)
    found["random"] = rng.random(actions.shape[:2], dtype=np.float32)
    columns = {name: pa.array(ranks(scores).reshape(-1)) for name, scores in found.items()}
    if stored is not None:
        columns = _joining(first, columns, stored)
    for name, ranked in sorted(columns.items()):
        first = first.append_column(name, ranked)
    return first


def judged_again(check: Path, first: Path, source: str) -> pa.Table:
    """Another judge's values of candidates that the check ``first`` has judged.

    One row per candidate; ``value_before`` is the first judge's value, by which a table of scores
    can tell that it has the same candidates.
    """
    again, before = (
        _judged(pq.read_table(each / source / "table.parquet")) for each in (check, first)
    )
    own, others = (read_arrays(each / source / "pools.npz")["actions"] for each in (check, first))
    alike = again.select(COLUMNS[:-1]).equals(before.select(COLUMNS[:-1]))
    if not alike or not np.array_equal(own, others):
        raise InputError(f"{check} has other candidates than {first}: give both the same sizes.")
    return again.append_column(BEFORE, before["value"])


def _joining(first: pa.Table, columns: Mapping[str, pa.Array], stored: Path) -> dict[str, Any]:
    """The ranks of a stored table, with those of scorers that it does not have."""
    earlier = pq.read_table(stored)
    if not _judged(earlier).select(COLUMNS).equals(first.select(COLUMNS)):
        raise InputError(
            f"{stored} has other queries, candidates or values: give the leaderboard of a run on "
            "the same data with the same settings, or leave it out."
        )
    known = (*COLUMNS, *replicates(earlier.column_names))
    kept = earlier.drop_columns(list(known))
    rows = group_seeds(kept.column_names)
    further = {n: ranked for n, ranked in columns.items() if split_seed(n)[0] not in rows}
    return {name: kept[name] for name in kept.column_names} | further


def _judged(table: pa.Table) -> pa.Table:
    """The columns of a check's table that all scorers share; values have 32 bits."""
    members = replicates(table.column_names)
    if "value" not in table.column_names:
        mean = np.mean([table[name].to_numpy() for name in members], axis=0)
        table = table.append_column("value", pa.array(mean))
    table = table.select([*COLUMNS, *members])
    for name in ("value", *members):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.float32()))
    return table


def followed_and_climbed(checks: Sequence[Path]) -> dict[str, Any]:
    """What the checks say beyond one step: success of each scorer when followed, and ascent.

    ``doubts`` are the candidates of which the judge decides nothing, and why.
    """
    found: dict[str, Any] = {}
    for folder in checks:
        check = read_json(folder / "check.json")
        commit = check["record"]["commit"]
        if check["scorers"]:
            doubts = {
                source: each["why"]
                for each in check["not_done"]
                for source in SOURCES
                if each["what"] == f"one step ({source})"
            }
            found |= {"commit": commit, "settings": check["settings"], "doubts": doubts}
        for name, scorer in check["scorers"].items():
            own: dict[str, Any] = {"commit": commit, "ascent": None, "followed": {}}
            for part in scorer["parts"]:
                loop, climbed = part.get("closed_loop"), part.get("one_step")
                if part["pools"] == "ascent" and climbed is not None:
                    own |= {"ascent": climbed["status"], "ascent_value": climbed.get("worth")}
                elif loop is not None:
                    worth = loop["worth"]
                    own["followed"][part["pools"]] = {
                        **worth[f"K = {loop['k_max']}"],
                        "status": loop["status"],
                        "random": worth["K = 1"]["mean"],
                    }
            found[name] = own
    return found


def in_larger_pools(checks: Iterable[Path]) -> dict[str, Any]:
    """Each scorer's verdict in larger pools of the whole box, and the share of the headroom."""
    kept = ("status", "k_max", "queries", "captured", "captured_low", "captured_high")
    found = {}
    for folder in checks:
        check = read_json(folder / "check.json")
        for name, scorer in check["scorers"].items():
            of_one_step = scorer["parts"][0]["one_step"]
            own = {key: of_one_step[key] for key in kept}
            found[name] = {"commit": check["record"]["commit"], **own}
    return found


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
