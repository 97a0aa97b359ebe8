"""Planned rollouts: the simulator judges few candidates, chosen so that every verdict profits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail import HowJudged, plan
from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.errors import InputError
from toptail.judging.values import judged_pools
from toptail.lab.judges.point import EXACT
from toptail.lab.tasks.trajectories import IntArray
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.rollout_data import POOL, audited_columns
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.store import Stored

if TYPE_CHECKING:
    from toptail_paper.selection.load import TaskSelection

CHEAP: Final = (EXACT, EUCLIDEAN, REFERENCE)
"""Judges of every candidate that may be the cheap judge; the first that exists is taken."""
_VALUE, _CHEAP = "rollouts", "cheap"
_DESIGN: Final = ("p_judged", "p_whole", "own")
_ARRAYS: Final = ("query", "candidate", *_DESIGN, "returns")


@dataclass(frozen=True, eq=False)
class PlannedRollouts:
    """Which candidates of the audited pool a plan chose, and their returns, M of them."""

    query: IntArray
    """Number of each one's query, ``[M]``."""
    candidate: IntArray
    """Its place in the pool, ``[M]``."""
    p_judged: Floats
    """The chance with which it was chosen, ``[M]``."""
    p_whole: Floats
    """That of its query to be chosen as a whole, ``[M]``."""
    own: Floats
    """1 where its own draw chose it, ``[M]``."""
    returns: Floats
    """Discounted success of every repetition, ``[M, repeats]``; empty until it is rolled out."""

    @classmethod
    def of(cls, stored: Stored, path: Path) -> PlannedRollouts:
        """What a file holds."""
        return cls(**{name: stored.array(path, name) for name in _ARRAYS})

    def stored(self, header: Mapping[str, Any]) -> Stored:
        """The file's content."""
        return Stored(header, {name: getattr(self, name) for name in _ARRAYS})


def first_pools(data: TaskSelection) -> ScoredPools:
    """The audited pool of every query, with the first seed of each scorer and a cheap judge."""
    columns = audited_columns(data.scores)
    if not columns:
        raise InputError(
            f"{data.folder} has no scores: score the candidates first, then plan the rollouts."
        )
    shape = len(data.group), data.size
    return ScoredPools.from_arrays(
        {name: data.scores[first][:, POOL, :-1] for name, (first, *_) in columns.items()},
        {_VALUE: np.full(shape, np.nan)} | _cheap_values(data),
        query=np.arange(shape[0]),
        cluster=data.trajectory,
        group=data.group,
        missing_values=True,
        source=f"{data.task}, planned rollouts",
    )


def _cheap_values(data: TaskSelection) -> dict[str, NDArray[Any]]:
    judge = cheap_judge(data.values)
    if judge is None:
        return {}
    return {_CHEAP: np.asarray(data.values[judge], np.float64).mean(axis=0)[:, POOL, :-1]}


def cheap_judge(values: Mapping[str, Any]) -> str | None:
    """The cheap judge of planned rollouts; None where no judge values every candidate."""
    return next((judge for judge in CHEAP if judge in values), None)


def planned(data: TaskSelection, labels: int, seed: int) -> PlannedRollouts:
    """At most so many candidates of the audited pools, by :func:`toptail.plan`."""
    pools = first_pools(data)
    judged = HowJudged(cheap=_CHEAP if _CHEAP in pools.values else None)
    table = plan(pools, labels=labels, judged=judged, seed=seed).table
    return PlannedRollouts(
        query=table["query"].to_numpy().astype(np.int64),
        candidate=table["candidate"].to_numpy().astype(np.int64),
        **{name: table[name].to_numpy().astype(np.float64) for name in _DESIGN},
        returns=np.empty((table.num_rows, 0)),
    )


def planned_pools(data: TaskSelection, found: PlannedRollouts) -> ScoredPools:
    """The audited pools with the mean return of what was rolled out, and the design of that."""
    pools = first_pools(data)
    at = found.query * data.size + found.candidate

    def laid(numbers: Floats) -> Floats:
        column = np.full(pools.rows, np.nan)
        column[at] = numbers
        return column

    return replace(
        pools,
        values=dict(pools.values) | {_VALUE: laid(found.returns.mean(axis=1))},
        design={name: laid(getattr(found, name)) for name in _DESIGN},
    )


def audit_planned(
    data: TaskSelection, found: PlannedRollouts, resamples: int = 10_000
) -> dict[str, Any]:
    """Whether each scorer is safe to maximize by the simulator, from the planned rollouts."""
    pools = planned_pools(data, found)
    cheap = _CHEAP if _CHEAP in pools.values else None
    return pools_content(
        judged_pools(pools, _VALUE, cheap=cheap),
        Settings(k=data.k, resamples=resamples),
        command=f"toptail-paper study selection --task {data.task} --planned-rollouts",
    )
