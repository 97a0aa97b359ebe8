"""All deployment checks of a task, resumable critic by critic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import sha256
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.critics.registry import MAIN
from toptail.lab.proposals.diffusion import DiffusionPolicy, load_policy
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.checkpoints import save_params
from toptail.lab.training.data import OfflineData, device_data
from toptail.lab.training.runs import Run, load_run, read_run, require_data, run_folder
from toptail.progress import Tick, no_tick
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.deployment.actor import TrainedActor, train_actor
from toptail_paper.selection.deployment.config import DeploymentConfig, SpreadConfig
from toptail_paper.selection.deployment.episodes import (
    Act,
    Episodes,
    evaluation_episodes,
    follow,
    success,
)
from toptail_paper.selection.deployment.search import EXACT, search_episodes
from toptail_paper.study.naming import split_readout
from toptail_paper.study.store import plain, require_fit


@dataclass(frozen=True, eq=False)
class DeployedCritic:
    """A trained critic and the run that it comes from."""

    name: str
    """``raw``, or ``two_head_joint.f_cos`` for one of its readouts."""
    seed: int
    run: Run
    trained: TrainedCritic
    """The critic in float32, with its readout."""

    @property
    def column(self) -> str:
        return f"{self.name}@{self.seed}"

    @property
    def origin(self) -> dict[str, Any]:
        """What a result says about where its critic came from."""
        record = self.run.record
        return {name: record[name] for name in ("config_hash", "params_sha256")}


def load_deployed(runs: Path, task: str, name: str, seed: int) -> DeployedCritic:
    """Load ``RUNS/TASK/CRITIC/seed-N``; its scores are computed in float32: see `load_run`."""
    critic, readout = split_readout(name)
    folder = run_folder(runs / task / critic, seed)
    trained = load_run(folder, task, in_float32=True)
    run, family = read_run(folder), trained.critic
    if readout and readout not in family.readouts():
        raise InputError(
            f"The critic '{critic}' has no readout '{readout}'; it has "
            f"{', '.join(family.readouts())}."
        )
    return DeployedCritic(name, seed, run, replace(trained, readout=readout or None))


class ResultFile:
    """One JSON file: a header of settings, then ``critics`` -> name -> seed -> entry.

    A stored entry is not made again. A file with other settings, or an entry of other runs, is
    refused rather than overwritten.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self._content: dict[str, Any] = {**plain(header), "critics": {}}
        if path.is_file():
            self._content = read_json(path)
            require_fit(path, self._content, header)

    def has(self, critic: DeployedCritic) -> bool:
        """Whether the entry of this critic and seed exists; one of another run is refused."""
        entry = self._content["critics"].get(critic.name, {}).get(str(critic.seed))
        if entry is None:
            return False
        require_fit(self.path, {critic.column: entry["run"]}, {critic.column: critic.origin})
        return True

    def add(self, critic: DeployedCritic, entry: Mapping[str, Any]) -> None:
        """Store an entry; the file is whole at every moment."""
        if self.path.is_file():  # another process may have added its critics meanwhile
            self._content = read_json(self.path)
        seeds = self._content["critics"].setdefault(critic.name, {})
        seeds[str(critic.seed)] = {"run": critic.origin, **entry}
        write_json(self.path, self._content)


BLOCK = 50
"""States that are scored in one call."""


class Spread(NamedTuple):
    """Spread of a score at each state, in units of the score's size there."""

    range: Floats
    """[m] (max_a f - min_a f) / |mean_a f|"""
    deviation: Floats
    """[m] std_a f / |mean_a f|"""


def spread_of(scores: NDArray[Any]) -> Spread:
    """Spread of scores [m, n] over the n actions of each state."""
    size = np.abs(scores.mean(axis=1))
    return Spread(np.ptp(scores, axis=1) / size, scores.std(axis=1) / size)


def score_spread(
    config: SpreadConfig, critic: TrainedCritic, val: Trajectories
) -> dict[str, dict[str, Any]]:
    """Median and quartiles of both spreads over states, for all of them and by distance group.

    A spread can be large because the score passes through 0 there; the median over states does
    not depend on how large.
    """
    queries = freeze_queries(val, QueryConfig(per_group=config.per_group, seed=config.seed))
    rng = np.random.default_rng([config.seed, 1])
    actions = rng.uniform(-1, 1, (config.actions, queries.actions.shape[1])).astype(np.float32)
    spread = spread_of(_scores(critic, queries, actions))
    masks = {"all": np.ones(len(queries), dtype=bool)}
    masks |= {name: queries.group == name for name in queries.config.groups()}
    return {
        name: {"states": int(mask.sum())}
        | {kind: _quartiles(values[mask]) for kind, values in spread._asdict().items()}
        for name, mask in masks.items()
    }


def _scores(critic: TrainedCritic, queries: FrozenQueries, actions: NDArray[np.float32]) -> Floats:
    """Score every action at every query: [queries, actions]."""
    blocks = []
    with jax.default_matmul_precision(EXACT):
        for start in range(0, len(queries), BLOCK):
            own = slice(start, start + BLOCK)
            states, goals = (
                x[own, None].astype(np.float32) for x in (queries.states, queries.goals)
            )
            blocks.append(critic.score(states, actions[None], goals))
    return np.concatenate(blocks).astype(np.float64)


def _quartiles(values: Floats) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"median": float(median), "lower_quartile": float(low), "upper_quartile": float(high)}


@dataclass(frozen=True, eq=False)
class Deployment:
    """The deployment checks of one task: ``spread.json``, ``actors.json``, ``closed_loop.json``.

    Each file has a header of settings, then one entry per critic and seed, which is stored when
    it is finished: the same call goes on where it was stopped.
    """

    task: str
    runs: Path
    """Where ``TASK/CRITIC/seed-N`` and ``TASK/diffusion/seed-N`` were trained."""
    folder: Path
    dataset: Dataset
    config: DeploymentConfig
    tick: Tick = no_tick
    """Called with what is being done (``actor raw@42``) and its share."""

    def run(self, critics: Sequence[str] = MAIN, seeds: Sequence[int] = (42,)) -> None:
        """Make the checks of critics, or of their readouts as ``two_head_joint.f_cos``.

        The actor of a critic has its critic's seed.
        """
        pairs = [(name, seed) for name in critics for seed in seeds]
        loaded = [load_deployed(self.runs, self.task, name, seed) for name, seed in pairs]
        for critic in loaded:  # the actors must be trained on the data of their critics
            run, train = critic.run, self.dataset.train
            require_data(run.folder, run.record["data"]["train"], train.source, train.sha256)
        for check in (self.spread, self.actor, self.search):
            for critic in loaded:
                check(critic)

    @cached_property
    def episodes(self) -> Episodes:
        return evaluation_episodes(parse_name(self.task).environment, self.config.episodes)

    @cached_property
    def _rows(self) -> OfflineData:
        return device_data(self.dataset.train)

    @cached_property
    def _policy_folder(self) -> Path:
        return run_folder(self.runs / self.task / "diffusion", self.config.policy_seed)

    @cached_property
    def _policy(self) -> DiffusionPolicy:
        return load_policy(self._policy_folder, self.task)

    def spread(self, critic: DeployedCritic) -> None:
        results = self._results("spread", {"spread": asdict(self.config.spread)})
        if not results.has(critic):
            tick = self._part("spread", critic)
            tick(0.0)
            found = score_spread(self.config.spread, critic.trained, self.dataset.val)
            results.add(critic, {"spread": found})
            tick(1.0)

    def actor(self, critic: DeployedCritic) -> None:
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

        trained = train_actor(own, critic.trained, self._rows, critic.seed, tick)
        path = self.folder / "actors" / critic.name / f"seed-{critic.seed}.safetensors"
        save_params(path, trained.params)
        walk = self._part("episodes of the actor", critic)
        reached = follow(self.episodes, acting(trained, self.episodes.goals), walk)
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
            "policy": read_run(self._policy_folder).record.get("params_sha256"),
        }
        results = self._results("closed_loop", settings)
        if not results.has(critic):
            tick = self._part("best-of-K", critic)
            found = search_episodes(
                config.search, critic.trained, self._policy, self.episodes, tick=tick
            )
            results.add(critic, {"limit": self.episodes.limit, "k": found})

    def _results(self, name: str, settings: dict[str, Any]) -> ResultFile:
        header = {
            "format": f"toptail-deployment-{name}-1",
            "task": self.task,
            "data_sha256": self.dataset.train.sha256,
            **settings,
        }
        return ResultFile(self.folder / f"{name}.json", header)

    def _part(self, what: str, critic: DeployedCritic) -> Callable[[float], None]:
        return partial(self.tick, f"{what} {critic.column}")


def acting(trained: TrainedActor, goals: NDArray[np.float32]) -> Act:
    """The actor as a policy for episodes with these goals; parameters and goals stay on device."""
    params, aims = jax.device_put((trained.params, goals))
    act = jax.jit(trained.actor.act)
    return lambda states: np.asarray(act(params, states, aims))
