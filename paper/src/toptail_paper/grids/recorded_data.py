"""Cells on recorded data: groups of lanes trained together, and read at every wanted step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax

from toptail.jobs.job import Job
from toptail.lab.critics.base import Critic, Params, TrainedCritic
from toptail.lab.critics.registry import split_label
from toptail.lab.training.config import RunConfig, RunOptions, keep_compiled
from toptail.lab.training.runs import is_finite
from toptail.progress import Tick, no_tick
from toptail_paper.grids.cells import TRAINING, Networks, Reading, SeedCell, cells_job
from toptail_paper.grids.grid import DeclaredGrid, Sizes
from toptail_paper.grids.readings import READERS, GridData, Subject, collapsed
from toptail_paper.study.batches import BatchRun, batches, numbers_of, train_batch, with_numbers


@dataclass(frozen=True)
class GridRun:
    """One training of a grid, which may be read at several steps."""

    config: RunConfig
    """The critic and how it is trained."""
    seed: int
    units: tuple[SeedCell, ...]
    """What is read of it, by ascending steps."""

    @property
    def missing(self) -> bool:
        """Whether something is not read yet."""
        return not all(unit.result.finished for unit in self.units)

    @property
    def lane(self) -> BatchRun:
        """The training as a row of a program."""
        return BatchRun(self.config.training, self.seed)


def recorded_jobs(
    declared: DeclaredGrid, folder: Path, networks: Path, tick: Tick = no_tick
) -> list[Job]:
    """One job per group of trainings that share a program, data set by data set."""
    batches = [
        (name, batch)
        for name in declared.data
        for batch in _batches(grid_runs(declared, name, folder), declared.lanes)
    ]
    found = []
    for number, (name, batch) in enumerate(batches):
        what = f"{name}: batch {number + 1} of {len(batches)}"

        def share(stage: str, done: float, what: str = what, number: int = number) -> None:
            tick(f"{what}, {stage}", (number + done) / len(batches))

        units = [unit for run in batch for unit in run.units]
        work = partial(_train_and_read, declared, name, batch, folder, Networks(networks), share)
        found.append(cells_job(f"{what} of {folder}", folder, units, work))
    return found


def _train_and_read(
    declared: DeclaredGrid, name: str, batch: Sequence[GridRun], folder: Path, networks: Networks,
    tick: Tick,
) -> None:  # fmt: skip
    """Train a batch of runs unless its final networks are stored, and read the missing cells."""
    keep_compiled()
    data = load_data(name, declared.amounts)
    untrained = _read_stored(declared, data, batch, networks)
    if untrained:
        _train(declared, data, untrained, folder / TRAINING, networks, tick)


@lru_cache(maxsize=1)
def load_data(name: str, sizes: Sizes) -> GridData:
    """The data set, which the next batch may use, too."""
    return GridData.load(name, sizes)


def grid_runs(declared: DeclaredGrid, data: str, folder: Path) -> list[GridRun]:
    """Every training of one data set, with what is read of it."""
    options = RunOptions(**{**declared.shared, "steps": declared.steps[-1]})
    cells = [cell for cell in declared.cells() if cell.data == data]
    found = []
    for label in declared.labels():
        config = options.config(split_label(data)[0], label)
        own = [cell for cell in cells if cell.label == label]
        for seed in declared.seeds:
            units = tuple(SeedCell.of(folder, declared, cell, seed) for cell in own)
            found.append(GridRun(config, seed, units))
    return found


def _batches(runs: Sequence[GridRun], most: int) -> list[list[GridRun]]:
    """Runs of one program, at most so many at a time."""
    return [
        [runs[i] for i in places[start : start + most]]
        for places in batches([run.config.training for run in runs])
        for start in range(0, len(places), most)
    ]


def _read_stored(
    declared: DeclaredGrid, data: GridData, group: Sequence[GridRun], networks: Networks
) -> list[GridRun]:
    """Read the cells of trainings whose final network is stored; returns the runs to be trained.

    Only final networks are stored: an earlier step needs a new training.
    """
    untrained = []
    for run in group:
        missing = [unit for unit in run.units if not unit.result.finished]
        last = all(unit.cell.steps == declared.steps[-1] for unit in missing)
        params = networks.load(run.lane, data.task.data.train.sha256) if missing and last else None
        if params is None:
            untrained.append(run)
        else:
            for unit in missing:
                unit.store(*read_run_at(declared, run, params, data))
    return untrained if any(run.missing for run in untrained) else []


def _train(
    declared: DeclaredGrid, data: GridData, group: Sequence[GridRun], folder: Path,
    networks: Networks, tick: Tick,
) -> None:  # fmt: skip
    """Train a batch from its last checkpoint, and read missing cells at each wanted step."""
    lanes = [run.lane for run in group]
    tick("training", 0.0)
    sha256 = data.task.data.train.sha256
    for step, params in train_batch(lanes, data.rows, declared.steps, folder, sha256):
        for run, own in zip(group, params, strict=True):
            if step == declared.steps[-1]:
                networks.keep(run.lane, sha256, own)
            for unit in run.units:
                if unit.cell.steps == step and not unit.result.finished:
                    unit.store(*read_run_at(declared, run, own, data))
        tick(f"{step:,} steps", step / declared.steps[-1])


def read_run_at(
    declared: DeclaredGrid, run: GridRun, params: Params, data: GridData
) -> tuple[Reading, str]:
    """Everything that a grid reads from one seed's parameters, and whether it failed."""
    if not is_finite(params):
        return {}, "failed: parameters are not finite"
    critic = _readable(replace(run.config, bfloat16=False).build())
    subject = Subject(TrainedCritic(critic, jax.device_put(params)), run.config, run.seed, data)
    reading: Reading = {}
    for name in declared.reads:
        reading |= _reader(name)(subject)
    return reading, collapsed(reading)


def _readable(critic: Critic) -> Critic:
    """The critic without the settings in which the runs of a batch differ.

    No deployed scalar depends on them, and so all runs are read by the same compiled functions.
    """
    same: Critic = with_numbers(critic, dict.fromkeys(numbers_of(critic), 0.5))
    return same


def _reader(name: str) -> Any:
    """The reader of that name; those that need the simulator are imported here."""
    if name in READERS:
        return READERS[name]
    from toptail_paper.grids import search

    return {"search": search.read_search, "actors": search.read_actors}[name]
