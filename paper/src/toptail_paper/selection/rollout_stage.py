"""The rollout stage of a study: the simulator judges what its stored scores pick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.check.environments import TaskEnvironment, maze_environment
from toptail.lab.judges.rollouts import ContinuationPolicy, ModelContinuation
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.proposals.untrained import NearData
from toptail.lab.store.units import Stored, fitting
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.training.run_files import RECORD, read_run, run_folder
from toptail_paper.selection.files import REFERENCE, SIMULATED
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_design import (
    NOISE,
    PLAN,
    POOL,
    pools_sha256,
    selector_picks,
    stream,
)
from toptail_paper.selection.rollout_plan import PlannedRollouts, cheap_judge, planned
from toptail_paper.selection.rollout_results import RolloutAudit
from toptail_paper.selection.rollout_store import RolloutStore
from toptail_paper.selection.rollouts import (
    RolloutWorld,
    enter,
    judge_by_rollouts,
    roll_out,
    roll_out_piece,
    rules_of,
)
from toptail_paper.selection.stages import add_values
from toptail_paper.selection.study import Selection


@dataclass(frozen=True, eq=False)
class Place:
    """An environment that was named, in place of the maze of an OGBench task."""

    world: TaskEnvironment
    """The environment, which has goals."""
    train: Trajectories
    """What the data does, if neither the environment nor a trained model has a policy."""


def make_rollouts(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    most_per_group: int | None = None,
    place: Place | None = None,
) -> RolloutAudit:
    """The rollout stage of a study: `judge_by_rollouts` with the picks of its stored scores.

    The continuation is the diffusion run that proposes candidates,
    ``RUNS/TASK/diffusion/seed-N``. In a ``place`` of its own it is the environment's policy where
    it has one, and what the data does where nothing was trained. Where neither runs nor a place are
    named, stored rollouts are read.
    """
    if study.runs is None and place is None:
        expected = {
            "queries": queries.sha256,
            "candidates": pools_sha256(pools),
            **rules_of(study.config.rollouts),
        }
        stored = fitting(study.folder.rollouts, expected)
        if stored is not None:
            return RolloutAudit.of(stored)
    world = _world(study, queries, pools, val, place)
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
    place: Place | None = None,
) -> None:
    """One of so many pieces of what the stage begins with; the stage puts them together."""
    world, picks = _world(study, queries, pools, val, place), _picks(study, queries, pools)
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
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    labels: int,
    place: Place | None = None,
) -> PlannedRollouts:
    """Roll out at most ``labels`` candidates that a plan chooses for all scorers together.

    ``planned_rollouts.npz`` is written; what other rollouts of the study know is not repeated.
    """
    path, settings = study.folder.planned, study.config.rollouts
    data = read_selection(study.folder.path)
    asked = {"labels": labels, "cheap": cheap_judge(data.values)}
    expected = {"queries": queries.sha256, **rules_of(settings), **asked}
    expected |= {} if place is None else dict(place.world.origin)
    if (stored := fitting(path, expected)) is not None:
        return PlannedRollouts.of(stored, path)
    world = _world(study, queries, pools, val, place)
    found = planned(data, labels, stream(queries, PLAN))
    made_from = world.made_from(settings)
    shape = (*world.candidates.shape[:2], settings.repeats)
    store = RolloutStore(study.folder.path / "planned_rollouts.parts", made_from, shape)
    if (earlier := fitting(study.folder.rollouts, made_from)) is not None:
        enter(RolloutAudit.of(earlier), store)
    roll_out(world, store, settings, found.query, found.candidate, study.tick)
    returns = store.get(found.query, found.candidate)
    result = replace(found, returns=returns.astype(np.float64))
    result.stored({**made_from, **asked}).write(path)
    store.clear()
    return result


def value_every_candidate(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, val: Trajectories, place: Place
) -> None:
    """Let the environment be a judge of every candidate, where there is no other: `SIMULATED`.

    A candidate is rolled out once, or twice where a behaviour model goes on, which draws.
    """
    count, size = pools.scored_shape[1:]
    settings = replace(study.config.rollouts, repeats=1 if _untrained(study, place) else 2)
    whole = pools.with_logged().reshape(len(queries), count * size, -1)
    world = replace(_world(study, queries, pools, val, place), candidates=whole)
    origin, shape = world.made_from(settings), (len(queries), count * size, settings.repeats)
    if fitting(study.folder.values(SIMULATED), {"origin": origin}) is not None:
        return
    store = RolloutStore(study.folder.path / "simulated.parts", origin, shape)
    query, candidate = np.indices(shape[:2])
    roll_out(world, store, settings, query, candidate, study.tick)
    values = store.get(query, candidate).reshape(len(queries), count, size, -1)
    add_values(study, queries, pools, SIMULATED, np.moveaxis(values, -1, 0), origin)
    store.clear()


def _untrained(study: Selection, place: Place) -> bool:
    """Whether somebody goes on who was not trained: the environment's own policy, or the data."""
    return place.world.act is not None or not _has_model(study)


def _world(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    place: Place | None,
) -> RolloutWorld:
    """What rollouts start from and go on with."""
    if place is not None and _untrained(study, place):
        nearest = study.config.support.nearest
        goes_on = place.world.continuation(NearData(place.train), queries.goals, nearest)
        who = {"policy": place.world.continuation_text, "data": place.train.sha256}
    else:
        goes_on, who = _model(study, queries, pools)
    world = maze_environment(study.config.task) if place is None else place.world
    assert world.make is not None
    return RolloutWorld(
        study.config.task,
        val,
        queries,
        pools.with_logged()[:, POOL],
        world.make,
        goes_on,
        {**who, **world.origin},
    )


def _model(
    study: Selection, queries: FrozenQueries, pools: CandidatePools
) -> tuple[ContinuationPolicy, dict[str, Any]]:
    """The behaviour model goes on, which must be the one that proposed the candidates."""
    run = _model_run(study)
    policy_hash = read_run(run).record.get("params_sha256")
    if pools.header["proposal"].get("params_sha256", policy_hash) != policy_hash:
        raise InputError(
            f"{run} is not the behaviour model that proposed the candidates of "
            f"{study.folder.pools} (the hashes of their parameters differ): name the runs that the "
            "pools were drawn with."
        )
    seed, policy = stream(queries, NOISE), load_policy(run, study.config.task)
    return ModelContinuation(policy, jax.random.key(seed), study.config.rollouts.ddim_steps), {
        "policy": str(policy_hash),
        "noise": "row_keys(key(seed), query, repeat, step), step = 2, 3, …",
        "seed": seed,
    }


def _model_run(study: Selection) -> Path:
    home = study.needed_runs("Rolling out") / study.config.task / "diffusion"
    return run_folder(home, study.config.pools.policy_seed)


def _has_model(study: Selection) -> bool:
    return study.runs is not None and (_model_run(study) / RECORD).is_file()
