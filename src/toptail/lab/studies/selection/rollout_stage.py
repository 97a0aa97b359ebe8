"""The rollout stage of a study: the simulator judges what its stored scores pick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.proposals.diffusion_runs import load_policy
from toptail.lab.studies.selection.files import REFERENCE
from toptail.lab.studies.selection.load import read_selection
from toptail.lab.studies.selection.pools import CandidatePools
from toptail.lab.studies.selection.rollout_design import (
    PLAN,
    POOL,
    pools_sha256,
    selector_picks,
    stream,
)
from toptail.lab.studies.selection.rollout_plan import PlannedRollouts, cheap_judge, planned
from toptail.lab.studies.selection.rollout_results import RolloutAudit
from toptail.lab.studies.selection.rollout_store import RolloutStore
from toptail.lab.studies.selection.rollouts import (
    RolloutWorld,
    enter,
    judge_by_rollouts,
    roll_out_piece,
    rules_of,
)
from toptail.lab.studies.selection.study import Selection
from toptail.lab.studies.store import Stored, fitting
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.training.run_files import read_run, run_folder


def make_rollouts(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    most_per_group: int | None = None,
) -> RolloutAudit:
    """The rollout stage of a study: `judge_by_rollouts` with the picks of its stored scores.

    The continuation is the diffusion run that proposes candidates,
    ``RUNS/TASK/diffusion/seed-N``. Where no runs are named, stored rollouts are read.
    """
    if study.runs is None:
        expected = {
            "queries": queries.sha256,
            "candidates": pools_sha256(pools),
            **rules_of(study.config.rollouts),
        }
        stored = fitting(study.folder.rollouts, expected)
        if stored is not None:
            return RolloutAudit.of(stored)
    world = _world(study, queries, pools, val)
    picks, settings = _picks(study, queries, pools), study.config.rollouts
    return judge_by_rollouts(
        study.folder.path, world, picks, settings, most_per_group=most_per_group, tick=study.tick
    )


def make_rollout_piece(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    piece: int,
    pieces: int,
) -> None:
    """One of so many pieces of what the stage begins with; the stage puts them together."""
    world, picks = _world(study, queries, pools, val), _picks(study, queries, pools)
    roll_out_piece(study.folder.path, world, picks, study.config.rollouts, piece, pieces)


def _picks(study: Selection, queries: FrozenQueries, pools: CandidatePools) -> dict[str, IntArray]:
    """What the stored scores and the reference ensemble pick."""
    made_from = study.made_from(queries, pools)

    def read(path: Path, name: str) -> NDArray[Any]:
        return Stored.read(path, made_from).array(path, name)

    scores = {column: read(path, "scores") for column, path in study.folder.columns().items()}
    reference = study.folder.judges().get(REFERENCE)
    picks = selector_picks(scores, None if reference is None else read(reference, "values"))
    if not picks:
        raise InputError(
            f"{study.folder.path} has neither scores nor values of a reference ensemble: score the "
            "candidates first, then roll out what is picked."
        )
    return picks


def make_planned_rollouts(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, val: Trajectories, labels: int
) -> PlannedRollouts:
    """Roll out at most ``labels`` candidates that a plan chooses for all scorers together.

    ``planned_rollouts.npz`` is written; what other rollouts of the study know is not repeated.
    """
    path, settings = study.folder.planned, study.config.rollouts
    data = read_selection(study.folder.path)
    asked = {"labels": labels, "cheap": cheap_judge(data.values)}
    expected = {"queries": queries.sha256, **rules_of(settings), **asked}
    if (stored := fitting(path, expected)) is not None:
        return PlannedRollouts.of(stored, path)
    world = _world(study, queries, pools, val)
    found = planned(data, labels, stream(queries, PLAN))
    made_from = world.made_from(settings)
    shape = (*world.candidates.shape[:2], settings.repeats)
    store = RolloutStore(study.folder.path / "planned_rollouts.parts", made_from, shape)
    if (earlier := fitting(study.folder.rollouts, made_from)) is not None:
        enter(RolloutAudit.of(earlier), store)
    far_first = np.argsort(-queries.distance[found.query], kind="stable")
    store.fill(
        found.query[far_first],
        found.candidate[far_first],
        lambda q, c, ended: world.judge(q, c, settings, ended),
        study.tick,
    )
    returns = store.get(found.query, found.candidate)
    result = replace(found, returns=returns.astype(np.float64))
    result.stored({**made_from, **asked}).write(path)
    store.clear()
    return result


def _world(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, val: Trajectories
) -> RolloutWorld:
    """What rollouts start from and go on with."""
    run = run_folder(
        study.needed_runs("Rolling out") / study.config.task / "diffusion",
        study.config.pools.policy_seed,
    )
    policy_hash = read_run(run).record.get("params_sha256")
    if pools.header["proposal"].get("params_sha256", policy_hash) != policy_hash:
        raise InputError(
            f"{run} is not the behaviour model that proposed the candidates of "
            f"{study.folder.pools} (the hashes of their parameters differ): name the runs that the "
            "pools were drawn with."
        )
    return RolloutWorld(
        study.config.task,
        val,
        queries,
        pools.with_logged()[:, POOL],
        load_policy(run, study.config.task),
        str(policy_hash),
    )
