"""A task's folder as tables, audits and pages read it: stored stages, checked to fit each other.

Needs neither a network nor a simulator: everything downstream of the stages can be made again
from their files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import read_json
from toptail.lab.judges.point import EXACT, EXACT_CONTINUOUS
from toptail.lab.judges.reference import ensemble_value
from toptail.lab.tasks.queries import load_queries
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.files import REFERENCE, SelectionFolder, check_shape, read_declared
from toptail_paper.selection.measure import PoolValues
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import RolloutAudit, pools_sha256, selector_picks
from toptail_paper.study.naming import task_title
from toptail_paper.study.store import Stored, require_fit

GROUPS = ("near", "medium", "far")
"""Distance groups, in the order of tables."""
NO_SEED = 0
"""The seed under which a scorer without training seeds stands in a table."""


@dataclass(frozen=True, eq=False)
class TaskSelection:
    """Everything that the stages of one task left behind."""

    folder: Path
    task: str
    declared: Mapping[str, Any]
    """``declared.json``: the criteria that were fixed before anything was scored."""
    trajectory: NDArray[np.int64]
    """Trajectory of each query, ``[Q]``; intervals resample these."""
    group: NDArray[np.str_]
    """Distance group of each query, ``[Q]``."""
    on_support: NDArray[np.bool_]
    """Whether a candidate is near the actions of the data, ``[Q, P, N]``."""
    support_distance: Floats
    """Distance of a candidate to the nearest of those actions, ``[Q, P, N]``."""
    threshold: float
    """Largest distance that counts as on support."""
    scores: Mapping[str, NDArray[np.float32]]
    """Column (``raw@42``) to ``[Q, P, N + 1]``; the last entry is the logged action."""
    values: Mapping[str, NDArray[np.float32]]
    """Judge to ``[members, Q, P, N + 1]``."""
    picks: JudgedPicks | None
    """What the simulator says of each selector's pick, if rollouts were made."""
    rollouts: RolloutAudit | None
    """Returns of picks and random candidates, if the rollouts were made here."""
    deployment: Mapping[str, Any]
    norms: Mapping[str, NDArray[np.float32]]
    """Column to the norms of phi, as `scores`; critics with embeddings alone, where stored."""
    rollouts_expert: RolloutAudit | None = None
    """Returns of rollouts that a policy which reaches goals continues, if they were made."""

    @property
    def key(self) -> str:
        """The task's name in tables: the paper's, where the data set is one of its."""
        return task_title(self.task)

    @property
    def size(self) -> int:
        """Candidates in a pool, N."""
        return int(self.on_support.shape[2])

    @property
    def k(self) -> tuple[int, ...]:
        """Candidate counts of the curves, as declared, and the whole pool."""
        return tuple(sorted({1, *self.declared["k"], self.size}))

    @property
    def groups(self) -> dict[str, NDArray[np.bool_]]:
        """Group to which queries are in it, ``[Q]``; known groups first."""
        found = set(self.group.tolist())
        names = [g for g in GROUPS if g in found] + sorted(found - set(GROUPS))
        return {name: self.group == name for name in names}

    @property
    def slices(self) -> dict[str, NDArray[np.bool_]]:
        """The queries that a metric is over, ``[Q]``: all of them under "", and each group."""
        return {"": np.ones(len(self.group), dtype=bool), **self.groups}

    @property
    def critics(self) -> dict[str, dict[int, str]]:
        """Scorer to its columns by training seed."""
        return {
            name: {NO_SEED if seed is None else seed: column for seed, column in seeds.items()}
            for name, seeds in group_seeds(self.scores).items()
        }

    @property
    def judges(self) -> list[str]:
        """The judges that value every candidate, the reference and the exact value first."""
        first = (REFERENCE, EXACT, EXACT_CONTINUOUS)
        return sorted(self.values, key=lambda name: (*(name != judge for judge in first), name))

    def candidate_scores(self, column: str) -> Floats:
        """Scores of the pools' candidates without the logged action, ``[Q, P, N]``."""
        return self.scores[column][..., : self.size].astype(np.float64)

    def members(self, judge: str) -> Floats:
        """A judge's members on the pools' candidates, ``[members, Q, P, N]``."""
        return self.values[judge][..., : self.size].astype(np.float64)

    def judged(self, judge: str) -> PoolValues:
        """A judge's values on the pools' candidates: the mean over its members."""
        return PoolValues(ensemble_value(self.members(judge)), self.k)


def read_selection(folder: str | Path) -> TaskSelection:
    """Read a task's folder, if no stage that all need is missing and its files fit each other."""
    files = SelectionFolder(Path(folder))
    for path in (files.queries, files.pools):
        if not path.is_file():
            raise InputError(
                f"{path} does not exist; run 'toptail-paper study selection' for this task, or "
                "put your "
                "own file there in the documented layout."
            )
    declared = read_declared(files)
    queries = load_queries(files.queries)
    pools = CandidatePools.read(files.pools)
    require_fit(files.pools, pools.header, {"queries": queries.sha256})
    on_queries = {"queries": queries.sha256}
    made_from = {"declared": declared["hash"], **on_queries, "pools": pools.sha256}
    shape = (len(queries), *pools.scored_shape[1:])
    scores = _columns(files.columns(), "scores", shape, made_from)
    group_seeds(scores)  # refuses a scorer that stands both alone and with seeds
    values = _columns(files.judges(), "values", (-1, *shape), made_from)
    rolled_out = on_queries | {"candidates": pools_sha256(pools)}
    rollouts = _rollouts(files.rollouts, rolled_out, scores, values)
    by_expert = rolled_out | {"continuation": "expert"}
    return TaskSelection(
        folder=files.path,
        task=declared["task"],
        declared=declared,
        trajectory=np.asarray(queries.trajectory, dtype=np.int64),
        group=queries.group,
        on_support=pools.on_support,
        support_distance=pools.support_distance.astype(np.float64),
        threshold=float(pools.header["threshold"]),
        scores=scores,
        values=values,
        picks=_picks(files.path / "picks.parquet", rollouts),
        rollouts=rollouts,
        deployment={
            path.stem: read_json(path) for path in entries(files.path, "deployment/*.json")
        },
        norms=_columns(files.normed(), "norms", shape, made_from),
        rollouts_expert=_rollouts(files.rollouts_expert, by_expert, scores, values),
    )


def _rollouts(
    path: Path,
    made_from: Mapping[str, str],
    scores: Mapping[str, NDArray[Any]],
    values: Mapping[str, NDArray[Any]],
) -> RolloutAudit | None:
    """The stored rollouts; those of other candidates, or of other picks, are refused."""
    if not path.is_file():
        return None
    audit = RolloutAudit.of(Stored.read(path, made_from))
    picks = selector_picks(scores, values.get(REFERENCE))
    for picked, name in zip(audit.candidate.T, audit.selectors, strict=True):
        if name in picks and not np.array_equal(picks[name][audit.query], picked):
            raise InputError(
                f"{path} holds rollouts of other picks of '{name}' than the scores beside it make: "
                "put back the scores that were rolled out, or make the rollouts again."
            )
    return audit


def _picks(path: Path, rollouts: RolloutAudit | None) -> JudgedPicks | None:
    """The judged picks of the study's rollouts, or else those of a user's file."""
    if rollouts is not None:
        return rollouts.picks()
    return JudgedPicks.read(path) if path.is_file() else None


def _columns(
    files: Mapping[str, Path], name: str, shape: tuple[int, ...], made_from: Mapping[str, str]
) -> dict[str, NDArray[np.float32]]:
    found: dict[str, Any] = {}
    for column, path in files.items():
        found[column] = Stored.read(path, made_from).array(path, name)
        check_shape(path, name, found[column], shape)
    return found
