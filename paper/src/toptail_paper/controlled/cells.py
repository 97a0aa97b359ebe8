"""Cells of the study: one critic in one setting, trained on all its seeds together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.lab.critics.base import Batch, Critic, Params
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.loop import TrainConfig
from toptail.lab.training.runs import versions
from toptail.progress import Tick, no_tick
from toptail_paper.controlled.config import TWO_HEAD, WITHIN, StudyConfig
from toptail_paper.controlled.evaluate import (
    Pools,
    Scores,
    norm_readout,
    read_scores,
    retrieval_auc,
    selection_curves,
)
from toptail_paper.controlled.world import ControlledWorld, sample_data
from toptail_paper.study.batches import Snapshot, train_seeds
from toptail_paper.study.store import ResultFolder, RunFolder

FORMAT = 1
"""Raised when the content of a stored unit changes its meaning."""


@dataclass(frozen=True)
class CriticCell:
    """One critic in one setting."""

    critic: Critic
    """The family with its settings."""
    world: ControlledWorld
    """Where its data comes from."""
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    """Training lengths to evaluate at, ascending, all from one run."""
    keep_scores: bool = False
    """Whether the scores of all candidates are stored."""

    @property
    def readouts(self) -> dict[str, str]:
        """Rows of a table and the scalars they select with: the two-head network has three."""
        if self.critic.name == TWO_HEAD:
            return {name: name for name in WITHIN}
        return {self.critic.name: self.critic.deployed}


@dataclass(frozen=True)
class Trained:
    """A stored unit: one critic, one setting, one seed, one training length."""

    result: ResultFolder
    """Where it lies."""
    cell: CriticCell
    seed: int

    @property
    def finished(self) -> bool:
        """Whether all that its cell asks for is stored."""
        scores = self.result.folder / "scores.npz"
        return self.result.finished and (scores.is_file() or not self.cell.keep_scores)

    def scores(self) -> dict[str, Scores]:
        """Every stored readout on the pools."""
        return {k: v.astype(np.float32) for k, v in self.result.arrays("scores").items()}

    def params(self) -> Params:
        """The trained parameters."""
        return load_params(self.result.folder / "params.safetensors")


def unit_of(
    run: RunFolder, config: StudyConfig, cell: CriticCell, seed: int, steps: int
) -> Trained:
    """Name the unit by everything that decides its content."""
    spec = _spec(config, cell, seed, steps)
    name = f"{cell.critic.name}-R{cell.world.radius:.2f}-seed{seed}"
    return Trained(ResultFolder.of(run.path, name, spec), cell, seed)


def _spec(config: StudyConfig, cell: CriticCell, seed: int, steps: int) -> dict[str, Any]:
    evaluation = ("queries", "pool", "pool_seed", "heldout", "batch_size", "learning_rate")
    return {
        "format": FORMAT,
        "world": asdict(cell.world),
        "critic": {"name": cell.critic.name, **cell.critic.settings()},
        "seed": seed,
        "steps": steps,
        "data_size": config.data_size,
        **{name: getattr(config, name) for name in evaluation},
        "versions": versions(),
    }


def training_data(config: StudyConfig, world: ControlledWorld, seed: int) -> Batch:
    """The data set of a seed; the reward is for the positive, so value goals are the goals."""
    data = sample_data(world, config.data_size, np.random.default_rng([seed, 1]))
    columns = (data.states, data.actions, data.goals, data.rewards)
    return Batch(*(x.astype(np.float32) for x in columns))  # type: ignore[arg-type]


def compute_cell(
    run: RunFolder, config: StudyConfig, cell: CriticCell, pools: Pools, tick: Tick = no_tick
) -> int:
    """Train and store whatever units of a cell are missing, and return how many were."""
    units = {(s, n): unit_of(run, config, cell, s, n) for s in cell.seeds for n in cell.steps}
    missing = {key: unit for key, unit in units.items() if not unit.finished}
    seeds = list(dict.fromkeys(seed for seed, _ in missing))
    if not seeds:
        tick("training", 1.0)
        return 0
    training = TrainConfig(cell.critic, cell.steps[-1], config.batch_size, config.learning_rate)
    data = {seed: training_data(config, cell.world, seed) for seed in seeds}
    for snapshot in train_seeds(training, data, cell.steps, tick):
        for seed in seeds:
            if (seed, snapshot.step) in missing:
                _store(config, missing[seed, snapshot.step], snapshot, pools)
    return len(missing)


def _store(config: StudyConfig, trained: Trained, snapshot: Snapshot, pools: Pools) -> None:
    cell, seed = trained.cell, trained.seed
    params = snapshot.params[seed]
    scores = read_scores(cell.critic, params, pools)
    length = scores[norm_readout(cell.critic)]
    curves = {
        readout: {
            metric: values.mean(axis=0).tolist()
            for metric, values in selection_curves(scores[readout], length, pools, config.k).items()
        }
        for readout in cell.readouts.values()
    }
    info = {
        **_spec(config, cell, seed, snapshot.step),
        "k": list(config.k),
        "training": snapshot.info[seed],
        "retrieval_auc": {
            readout: retrieval_auc(cell.critic, params, readout, pools)
            for readout in cell.readouts.values()
        },
        "curves": curves,
    }
    with trained.result.writing() as stage:
        save_params(stage / "params.safetensors", params)
        if cell.keep_scores:
            write_arrays(stage / "scores.npz", dict(scores))
        write_json(stage / "unit.json", info)
