"""The rollout stage of the study: the simulator judges what its stored scores pick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.check.closed_loop import TaskEnvironment, maze_environment
from toptail.lab.judges.rollouts import ContinuationPolicy, ModelContinuation
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.proposals.untrained import NearData
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.training.runs import RECORD, read_run, run_folder
from toptail.progress import no_tick
from toptail_paper.selection.files import REFERENCE, SIMULATED
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.planned_rollouts import PlannedRollouts, cheap_judge, planned
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import (
    NOISE,
    PLAN,
    POOL,
    RolloutAudit,
    audited_queries,
    pools_sha256,
    selector_picks,
    stream,
)
from toptail_paper.selection.rollouts import (
    PARTS,
    Design,
    RolloutSetup,
    judge_by_rollouts,
    rules_of,
)
from toptail_paper.selection.stages import Selection, add_values
from toptail_paper.study.store import Stored, fitting


@dataclass(frozen=True, eq=False)
class UserEnvironment:
    """An environment that ``--env`` names, in place of the maze of an OGBench task."""

    world: TaskEnvironment
    """The environment, which has goals."""
    train: Trajectories
    """Gives the continuation policy where neither the environment nor a run has one."""


@dataclass(frozen=True, eq=False)
class RolloutStage:
    """The rollouts of one study, of what its stored scores pick.

    The continuation policy is the diffusion run that proposes candidates,
    ``RUNS/TASK/diffusion/seed-N``. In a user's environment it is the environment's own policy where
    it has one, and where nothing was trained the actions of near data states.
    """

    study: Selection
    """Folder, settings, runs and progress."""
    queries: FrozenQueries
    pools: CandidatePools
    """The cached candidates."""
    val: Trajectories
    """The validation split, with simulator state."""
    env: UserEnvironment | None = None
    """The user's environment; the task's maze where None."""

    def audit(self, most_per_group: int | None = None) -> RolloutAudit:
        """`judge_by_rollouts`; stored rollouts are read where neither runs nor env are given."""
        study, settings = self.study, self.study.config.rollouts
        if study.runs is None and self.env is None:
            expected = {
                "queries": self.queries.sha256,
                "candidates": pools_sha256(self.pools),
                **rules_of(settings),
            }
            if (stored := fitting(study.folder.rollouts, expected)) is not None:
                return RolloutAudit.of(stored)
        how = self.setup, self._picks(), settings
        return judge_by_rollouts(
            study.folder.path, *how, most_per_group=most_per_group, tick=study.tick
        )

    def part(self, number: int, count: int) -> None:
        """One of ``count`` parts of the queries that `audit` begins with, which will read it.

        A return does not depend on what is rolled out beside it.
        """
        settings = self.study.config.rollouts
        design = Design(self.setup, self._picks(), settings)
        audited = audited_queries(self.queries, settings.per_group)[number::count]
        folder = self.study.folder.path / PARTS / f"job-{number:04d}"
        candidate, store = design.candidates(audited), self.setup.store(folder, settings)
        self.setup.roll_out(store, settings, audited[:, None], candidate, no_tick)

    def planned(self, labels: int) -> PlannedRollouts:
        """Roll out at most ``labels`` candidates that a plan chooses for all scorers together.

        Writes ``planned_rollouts.npz``; returns that other rollouts of the study know are read.
        """
        study, settings = self.study, self.study.config.rollouts
        path, data = study.folder.planned, read_selection(study.folder.path)
        plan = {"labels": labels, "cheap": cheap_judge(data.values)}
        expected = {"queries": self.queries.sha256, **rules_of(settings), **plan}
        expected |= {} if self.env is None else dict(self.env.world.origin)
        if (stored := fitting(path, expected)) is not None:
            return PlannedRollouts.of(stored, path)
        made_from = self.setup.made_from(settings)
        chosen = planned(data, labels, stream(self.queries, PLAN))
        store = self.setup.store(study.folder.path / "planned_rollouts.parts", settings)
        if (earlier := fitting(study.folder.rollouts, made_from)) is not None:
            store.add_audit(RolloutAudit.of(earlier))
        self.setup.roll_out(store, settings, chosen.query, chosen.candidate, study.tick)
        returns = store.get(chosen.query, chosen.candidate)
        result = replace(chosen, returns=returns.astype(np.float64))
        result.stored({**made_from, **plan}).write(path)
        store.clear()
        return result

    def value_every_candidate(self) -> None:
        """Let the user's environment be a judge of every candidate: `SIMULATED`.

        A candidate is rolled out once, or twice where a behaviour model goes on, which draws.
        """
        study, pools = self.study, self.pools
        count, size = pools.scored_shape[1:]
        settings = replace(study.config.rollouts, repeats=2 if self._model_goes_on else 1)
        every = pools.with_logged().reshape(len(self.queries), count * size, -1)
        setup = replace(self.setup, candidates=every)
        origin = setup.made_from(settings)
        if fitting(study.folder.values(SIMULATED), {"origin": origin}) is not None:
            return
        store = setup.store(study.folder.path / "simulated.parts", settings)
        query, candidate = np.indices((len(self.queries), count * size))
        setup.roll_out(store, settings, query, candidate, study.tick)
        values = store.get(query, candidate).reshape(len(self.queries), count, size, -1)
        add_values(study, self.queries, pools, SIMULATED, np.moveaxis(values, -1, 0), origin)
        store.clear()

    @cached_property
    def setup(self) -> RolloutSetup:
        """States, candidates, environment and continuation policy."""
        study, env = self.study, self.env
        if env is None or self._model_goes_on:
            goes_on, who = self._model()
        else:
            nearest = study.config.support.nearest
            goes_on = env.world.continuation(NearData(env.train), self.queries.goals, nearest)
            who = {"policy": env.world.continuation_text, "data": env.train.sha256}
        world = maze_environment(study.config.task) if env is None else env.world
        assert world.make is not None
        return RolloutSetup(
            study.config.task,
            self.val,
            self.queries,
            self.pools.with_logged()[:, POOL],
            world.make,
            goes_on,
            {**who, **world.origin},
        )

    def _picks(self) -> dict[str, IntArray]:
        """What the stored scores and the reference ensemble pick."""
        folder, made_from = self.study.folder, self.study.made_from(self.queries, self.pools)

        def read(path: Path, name: str) -> NDArray[Any]:
            return Stored.read(path, made_from).array(path, name)

        scores = {column: read(path, "scores") for column, path in folder.columns().items()}
        reference = folder.judges().get(REFERENCE)
        picks = selector_picks(scores, None if reference is None else read(reference, "values"))
        if not picks:
            raise InputError(
                f"{folder.path} has neither scores nor values of a reference ensemble: score the "
                "candidates first, then roll out what is picked."
            )
        return picks

    @property
    def _model_goes_on(self) -> bool:
        """Whether the behaviour model is the continuation policy."""
        if self.env is None:
            return True
        trained = self.study.runs is not None and (self._model_run / RECORD).is_file()
        return trained and self.env.world.act is None

    @property
    def _model_run(self) -> Path:
        home = self.study.needed_runs("Rolling out") / self.study.config.task / "diffusion"
        return run_folder(home, self.study.config.pools.policy_seed)

    def _model(self) -> tuple[ContinuationPolicy, dict[str, Any]]:
        """The behaviour model, which must be the one that proposed the candidates."""
        run, config = self._model_run, self.study.config
        policy_hash = read_run(run).record.get("params_sha256")
        if self.pools.header["proposal"].get("params_sha256", policy_hash) != policy_hash:
            raise InputError(
                f"{run} is not the behaviour model that proposed the candidates of "
                f"{self.study.folder.pools} (the hashes of their parameters differ): name the runs "
                "that the pools were drawn with."
            )
        seed, policy = stream(self.queries, NOISE), load_policy(run, config.task)
        return ModelContinuation(policy, jax.random.key(seed), config.rollouts.ddim_steps), {
            "policy": str(policy_hash),
            "noise": "row_keys(key(seed), query, repeat, step), step = 2, 3, …",
            "seed": seed,
        }
