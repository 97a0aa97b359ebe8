"""The rollout stage of a study: the simulator judges what its stored scores pick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.proposals.diffusion_runs import load_policy
from toptail.lab.studies.selection.files import REFERENCE
from toptail.lab.studies.selection.pools import CandidatePools
from toptail.lab.studies.selection.rollout_design import POOL, pools_sha256, selector_picks
from toptail.lab.studies.selection.rollout_results import RolloutAudit
from toptail.lab.studies.selection.rollouts import RolloutWorld, judge_by_rollouts, rules_of
from toptail.lab.studies.selection.study import Selection
from toptail.lab.studies.store import Stored, fitting
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import Trajectories
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
    made_from = study.made_from(queries, pools)
    if study.runs is None:
        expected = {
            "queries": queries.sha256,
            "candidates": pools_sha256(pools),
            **rules_of(study.config.rollouts),
        }
        stored = fitting(study.folder.rollouts, expected)
        if stored is not None:
            return RolloutAudit.of(stored)
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
    world = RolloutWorld(
        study.config.task,
        val,
        queries,
        pools.with_logged()[:, POOL],
        load_policy(run, study.config.task),
        str(policy_hash),
    )

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
    out, settings = study.folder.path, study.config.rollouts
    return judge_by_rollouts(
        out, world, picks, settings, most_per_group=most_per_group, tick=study.tick
    )
