"""All deployment checks of a task, resumable critic by critic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.io.files import sha256
from toptail.lab.check.environments import TaskWorld
from toptail.lab.critics.registry import MAIN
from toptail.lab.proposals.actor import TrainedActor, train_actor
from toptail.lab.proposals.diffusion import DiffusionPolicy, load_policy
from toptail.lab.tasks.files import Dataset, load
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.checkpoints import save_params
from toptail.lab.training.offline import OfflineData, device_data
from toptail.lab.training.run_files import read_run, run_folder
from toptail.lab.training.runs import require_data
from toptail.progress import Tick, no_tick
from toptail_paper.selection.deployment.config import DeploymentConfig
from toptail_paper.selection.deployment.episodes import (
    Act,
    Episodes,
    evaluation_episodes,
    follow_in_parts,
    recorded_episodes,
    success,
)
from toptail_paper.selection.deployment.results import (
    DeployedCritic,
    ResultFile,
    load_deployed,
)
from toptail_paper.selection.deployment.search import search_episodes
from toptail_paper.selection.deployment.spread import score_spread


def run_deployment(
    task: str,
    runs: str | Path,
    out: str | Path,
    critics: Sequence[str] = MAIN,
    seeds: Sequence[int] = (42,),
    tick: Tick = no_tick,
    config: DeploymentConfig | None = None,
    dataset: Dataset | None = None,
    world: TaskWorld | None = None,
    queries: FrozenQueries | None = None,
) -> None:
    """Make ``OUT/TASK/deployment/``: ``spread.json``, ``actors.json`` and ``closed_loop.json``.

    Each file has a header of settings, then one entry per critic and seed, which is stored when
    it is finished: the same call goes on where it was stopped.

    Parameters
    ----------
    task
        Name of the data set, of a maze unless there is a ``world``.
    runs, out
        Where ``TASK/CRITIC/seed-N`` and ``TASK/diffusion/seed-N`` were trained, and the study's
        folder.
    critics, seeds
        Critics, or their readouts as ``two_head_joint.f_cos``; the actor of a critic has its
        critic's seed.
    tick
        Told what is being done (``actor raw@42``) and the share of it that is done.
    config, dataset
        All settings, and the task's data where the caller has it already.
    world, queries
        An environment with goals in place of the maze, and the frozen queries of the validation
        split, from whose states its episodes start.
    """
    data = load(task) if dataset is None else dataset
    settings = config or DeploymentConfig.for_task(task)
    work = _Work(task, Path(runs), Path(out), settings, tick, data, world, queries)
    loaded = [load_deployed(work.runs, work.task, name, seed) for name in critics for seed in seeds]
    for critic in loaded:  # the actors must be trained on the data that their critics were
        run, train = critic.run, data.train
        require_data(run.folder, run.record["data"]["train"], train.source, train.sha256)
    for check in (work.spread, work.actor, work.search):
        for critic in loaded:
            check(critic)


class _Work:
    """What the checks of one task share, each made when it is first needed."""

    def __init__(
        self,
        task: str,
        runs: Path,
        out: Path,
        config: DeploymentConfig,
        tick: Tick,
        data: Dataset,
        world: TaskWorld | None,
        queries: FrozenQueries | None,
    ) -> None:
        self.task = task if world is not None else parse_name(task).name
        self.runs, self.config, self._tick, self.dataset = runs, config, tick, data
        self.world, self.queries = world, queries
        self.folder = out / self.task / "deployment"

    @cached_property
    def episodes(self) -> Episodes:
        if self.world is None or self.world.make is None or self.queries is None:
            return evaluation_episodes(parse_name(self.task).environment, self.config.episodes)
        given = self.dataset.val, self.queries, self.config.episodes
        return recorded_episodes(self.world.make, *given)

    @cached_property
    def rows(self) -> OfflineData:
        return device_data(self.dataset.train)

    @cached_property
    def policy_folder(self) -> Path:
        return run_folder(self.runs / self.task / "diffusion", self.config.policy_seed)

    @cached_property
    def policy(self) -> DiffusionPolicy:
        return load_policy(self.policy_folder, self.task)

    def spread(self, critic: DeployedCritic) -> None:
        """Spread of the score over the action cube."""
        results = self._results("spread", {"spread": asdict(self.config.spread)})
        if not results.has(critic):
            tick = self._part("spread", critic)
            tick(0.0)
            drawn = None if self.queries is None else self.queries.config
            found = score_spread(self.config.spread, critic.trained, self.dataset.val, drawn)
            results.add(critic, {"spread": found})
            tick(1.0)

    def actor(self, critic: DeployedCritic) -> None:
        """Train the critic's actor and count its successes."""
        config, own = self.config, self.config.actor_of(critic.name)
        settings = {"actor": asdict(config.actor), "episodes": asdict(config.episodes)}
        if config.alphas:
            settings["alphas"] = dict(config.alphas)
        results = self._results("actors", settings)
        if results.has(critic):
            return
        part = self._part("actor", critic)

        def tick(_: str, share: float) -> None:
            part(share)

        trained = train_actor(own, critic.trained, self.rows, critic.seed, tick)
        path = self.folder / "actors" / critic.name / f"seed-{critic.seed}.safetensors"
        save_params(path, trained.params)
        walk = self._part("episodes of the actor", critic)
        goals = self.episodes.goals
        (reached,) = follow_in_parts(
            self.episodes, lambda at: acting(trained, goals[at]), tick=walk
        )
        counted = success(self.episodes.goal, reached, self.episodes.limit)
        entry = {"actor_sha256": sha256(path), "training": trained.info, **counted}
        weight = {"alpha": own.alpha} if config.alphas else {}
        results.add(critic, {"limit": self.episodes.limit, **weight, **entry})

    def search(self, critic: DeployedCritic) -> None:
        """Best-of-K at every step, for the critics that are to be searched with."""
        if critic.name not in self.config.searched:
            return
        config = self.config
        settings = {
            "search": asdict(config.search),
            "episodes": asdict(config.episodes),
            "policy": read_run(self.policy_folder).record.get("params_sha256"),
        }
        results = self._results("closed_loop", settings)
        if not results.has(critic):
            tick = self._part("best-of-K", critic)
            found = search_episodes(
                config.search, critic.trained, self.policy, self.episodes, tick=tick
            )
            results.add(critic, {"limit": self.episodes.limit, "k": found})

    def _results(self, name: str, settings: dict[str, Any]) -> ResultFile:
        header = {
            "format": f"toptail-deployment-{name}-1",
            "task": self.task,
            "data_sha256": self.dataset.train.sha256,
            **({} if self.world is None else self.world.origin),
            **settings,
        }
        return ResultFile(self.folder / f"{name}.json", header)

    def _part(self, what: str, critic: DeployedCritic) -> Callable[[float], None]:
        """Told the share of one check of one critic that is done."""
        return partial(self._tick, f"{what} {critic.column}")


def acting(trained: TrainedActor, goals: NDArray[np.float32]) -> Act:
    """The actor as a policy for episodes with these goals; parameters and goals stay on device."""
    params, aims = jax.device_put((trained.params, goals))
    act = jax.jit(trained.actor.act)
    return lambda states: np.asarray(act(params, states, aims))
