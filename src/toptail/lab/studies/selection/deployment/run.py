"""All deployment checks of a task, resumable critic by critic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.lab.proposals.actor import TrainedActor, train_actor
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.proposals.diffusion_runs import load_policy
from toptail.lab.studies.selection.deployment.config import DeploymentConfig
from toptail.lab.studies.selection.deployment.episodes import (
    Act,
    Episodes,
    evaluation_episodes,
    follow,
    success,
)
from toptail.lab.studies.selection.deployment.results import Results, Source, load_source
from toptail.lab.studies.selection.deployment.search import search_episodes
from toptail.lab.studies.selection.deployment.spread import score_spread
from toptail.lab.tasks.files import Dataset, load
from toptail.lab.tasks.names import parse_name
from toptail.lab.training.checkpoint import save_params
from toptail.lab.training.offline import OfflineData, device_data
from toptail.lab.training.run_files import run_folder
from toptail.lab.training.runs import read_run, require_data
from toptail.pools.files import sha256

CRITICS = ("raw", "cosine", "tdq", "hybrid")
"""The paper's four deployed score families."""

Tick: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done (``actor raw@42``), how much of it is done, and how much there is."""


def run_deployment(
    task: str,
    runs: str | Path,
    out: str | Path,
    critics: Sequence[str] = CRITICS,
    seeds: Sequence[int] = (42,),
    tick: Tick | None = None,
    config: DeploymentConfig | None = None,
    dataset: Dataset | None = None,
) -> None:
    """Make ``OUT/TASK/deployment/``: ``spread.json``, ``actors.json`` and ``closed_loop.json``.

    Each file has a header of settings, then one entry per critic and seed, which is stored when
    it is finished: the same call goes on where it was stopped.

    Parameters
    ----------
    task
        Name of the data set, of a maze.
    runs
        Where ``TASK/CRITIC/seed-N`` and ``TASK/diffusion/seed-N`` were trained.
    out
        The study's folder.
    critics
        Critics, or their readouts as ``two_head_joint.f_cos``.
    seeds
        Training seeds; the actor of a critic has its critic's seed.
    tick
        Told how far the work is.
    config
        All settings.
    dataset
        The task's data, where the caller has it already.
    """
    work = _Work(task, Path(runs), Path(out), config or DeploymentConfig(), tick, dataset)
    sources = [load_source(work.runs, work.task, name, seed) for name in critics for seed in seeds]
    for source in sources:
        work.check_data(source)
    for check in (work.spread, work.actor, work.search):
        for source in sources:
            check(source)


class _Work:
    """What the checks of one task share, each made when it is first needed."""

    def __init__(
        self,
        task: str,
        runs: Path,
        out: Path,
        config: DeploymentConfig,
        tick: Tick | None,
        dataset: Dataset | None,
    ) -> None:
        self.name = parse_name(task)
        self.task = self.name.name
        self.runs, self.config, self._tick = runs, config, tick
        self.folder = out / self.task / "deployment"
        self.dataset = dataset if dataset is not None else load(task)

    @cached_property
    def episodes(self) -> Episodes:
        return evaluation_episodes(self.name.environment, self.config.episodes)

    @cached_property
    def rows(self) -> OfflineData:
        return device_data(self.dataset.train)

    @cached_property
    def policy_folder(self) -> Path:
        return run_folder(self.runs / self.task / "diffusion", self.config.policy_seed)

    @cached_property
    def policy(self) -> DiffusionPolicy:
        return load_policy(self.policy_folder, self.task)

    def check_data(self, source: Source) -> None:
        """Refuse critics that were trained on other data than the actors will be."""
        run, train = source.run, self.dataset.train
        require_data(run.folder, run.record["data"]["train"], train.source, train.sha256)

    def spread(self, source: Source) -> None:
        """Spread of the score over the action cube."""
        results = self._results("spread", {"spread": asdict(self.config.spread)})
        if not results.has(source):
            self._tell("spread", source)(0, 1)
            found = score_spread(self.config.spread, source.critic, self.dataset.val)
            results.add(source, {"spread": found})
            self._tell("spread", source)(1, 1)

    def actor(self, source: Source) -> None:
        """Train the critic's actor and count its successes."""
        config = self.config
        settings = {"actor": asdict(config.actor), "episodes": asdict(config.episodes)}
        results = self._results("actors", settings)
        if results.has(source):
            return
        tell, steps = self._tell("actor", source), config.actor.steps

        def progress(_: str, share: float) -> None:
            tell(round(share * steps), steps)

        trained = train_actor(config.actor, source.critic, self.rows, source.seed, progress)
        path = self.folder / "actors" / source.name / f"seed-{source.seed}.safetensors"
        save_params(path, trained.params)
        walk = self._tell("episodes of the actor", source)
        reached = follow(self.episodes, acting(trained, self.episodes.goals), done=walk)
        counted = success(self.episodes.goal, reached, self.episodes.limit)
        entry = {"actor_sha256": sha256(path), "training": trained.info, **counted}
        results.add(source, {"limit": self.episodes.limit, **entry})

    def search(self, source: Source) -> None:
        """Best-of-K at every step, for the critics that are to be searched with."""
        if source.name not in self.config.searched:
            return
        config = self.config
        settings = {
            "search": asdict(config.search),
            "episodes": asdict(config.episodes),
            "policy": read_run(self.policy_folder).record.get("params_sha256"),
        }
        results = self._results("closed_loop", settings)
        if not results.has(source):
            tell = self._tell("best-of-K", source)
            found = search_episodes(
                config.search, source.critic, self.policy, self.episodes, done=tell
            )
            results.add(source, {"limit": self.episodes.limit, "k": found})

    def _results(self, name: str, settings: dict[str, Any]) -> Results:
        header = {
            "format": f"toptail-deployment-{name}-1",
            "task": self.task,
            "data_sha256": self.dataset.train.sha256,
            **settings,
        }
        return Results(self.folder / f"{name}.json", header)

    def _tell(self, what: str, source: Source) -> Callable[[int, int], None]:
        def tell(done: int, total: int) -> None:
            if self._tick is not None:
                self._tick(f"{what} {source.name}@{source.seed}", done, total)

        return tell


def acting(trained: TrainedActor, goals: NDArray[np.float32]) -> Act:
    """The actor as a policy for episodes with these goals; parameters and goals stay on device."""
    params, aims = jax.device_put((trained.params, goals))
    act = jax.jit(trained.actor.act)
    return lambda states: np.asarray(act(params, states, aims))
