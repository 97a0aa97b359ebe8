"""Cells on recorded data: groups of lanes trained together, and read at every wanted step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from toptail.lab.critics.base import Critic, Params, TrainedCritic
from toptail.lab.critics.registry import split_label
from toptail.lab.training.batches import BatchRun, batches, numbers_of, train_batch, with_numbers
from toptail.lab.training.config import RunConfig, RunOptions, keep_compiled
from toptail.lab.training.runs import is_finite
from toptail.progress import Tick
from toptail_paper.grids.cells import TRAINING, Reading, SeedCell
from toptail_paper.grids.datasets import PlannedData
from toptail_paper.grids.networks import Networks
from toptail_paper.grids.plan import WHOLE, PlanPart, SettlePlan
from toptail_paper.grids.reads import READERS, Subject, collapsed


@dataclass(frozen=True)
class PlannedRun:
    """One training of a plan, which may be read at several steps."""

    config: RunConfig
    """The critic and how it is trained."""

    seed: int
    """Its seed."""

    units: tuple[SeedCell, ...]
    """What is read of it, by ascending steps."""

    @property
    def missing(self) -> bool:
        """Whether something is not read yet."""
        return not all(unit.unit.finished for unit in self.units)

    @property
    def lane(self) -> BatchRun:
        """The training as a row of a program."""
        return BatchRun(self.config.training, self.seed)


def run_recorded_cells(
    plan: SettlePlan, folder: Path, networks: Networks, tick: Tick, part: PlanPart = WHOLE
) -> None:
    """Train and read what is missing, data set by data set and group by group.

    Of the groups of all data sets together, a part does every n-th one.
    """
    keep_compiled()
    passed = 0
    for number, name in enumerate(plan.data):
        every = _groups(planned_runs(plan, name, folder), plan.lanes)
        mine = [group for i, group in enumerate(every, passed) if part.has(i)]
        passed += len(every)
        together = [group for group in mine if any(run.missing for run in group)]
        if not together:
            continue  # nor does its file have to be here
        data = PlannedData.load(name, plan.amounts)
        for i, group in enumerate(together):
            what = f"{name}: group {i + 1} of {len(together)}"

            def share(stage: str, done: float, what: str = what, i: int = i, at: int = number,
                      count: int = len(together)) -> None:  # fmt: skip
                tick(f"{what}, {stage}", (at + (i + done) / count) / len(plan.data))

            fresh = _read_kept(plan, data, group, networks)
            if fresh:
                _train(plan, data, fresh, folder / TRAINING, networks, share)


def planned_runs(plan: SettlePlan, data: str, folder: Path) -> list[PlannedRun]:
    """Every training of one data set, with what is read of it."""
    options = RunOptions(**{**plan.shared, "steps": plan.steps[-1]})
    cells = [cell for cell in plan.cells() if cell.data == data]
    found = []
    for label in plan.labels():
        config = options.config(split_label(data)[0], label)
        own = [cell for cell in cells if cell.label == label]
        for seed in plan.seeds:
            units = tuple(SeedCell.of(folder, plan, cell, seed) for cell in own)
            found.append(PlannedRun(config, seed, units))
    return found


def _groups(runs: Sequence[PlannedRun], most: int) -> list[list[PlannedRun]]:
    """Runs of one program, at most so many at a time."""
    return [
        [runs[i] for i in places[start : start + most]]
        for places in batches([run.config.training for run in runs])
        for start in range(0, len(places), most)
    ]


def _read_kept(
    plan: SettlePlan, data: PlannedData, group: Sequence[PlannedRun], networks: Networks
) -> list[PlannedRun]:
    """Read what a training that was kept has to say; returns the runs that must be trained.

    Only what a training ended with is kept: who wants an earlier step trains again.
    """
    fresh = []
    for run in group:
        missing = [unit for unit in run.units if not unit.unit.finished]
        last = all(unit.cell.steps == plan.steps[-1] for unit in missing)
        kept = networks.load(run.lane, data.task.data.train.sha256) if missing and last else None
        if kept is None:
            fresh.append(run)
        else:
            for unit in missing:
                unit.store(*read_run_at(plan, run, kept, data))
    return fresh if any(run.missing for run in fresh) else []


def _train(
    plan: SettlePlan, data: PlannedData, group: Sequence[PlannedRun], folder: Path,
    networks: Networks, tick: Tick,
) -> None:  # fmt: skip
    """Train a group from where it stands, and read what is missing at each wanted step."""
    lanes = [run.lane for run in group]
    tick("training", 0.0)
    sha256 = data.task.data.train.sha256
    for step, params in train_batch(lanes, data.rows, plan.steps, folder, sha256):
        for run, own in zip(group, params, strict=True):
            if step == plan.steps[-1]:
                networks.keep(run.lane, sha256, own)
            for unit in run.units:
                if unit.cell.steps == step and not unit.unit.finished:
                    unit.store(*read_run_at(plan, run, own, data))
        tick(f"{step:,} steps", step / plan.steps[-1])


def read_run_at(
    plan: SettlePlan, run: PlannedRun, params: Params, data: PlannedData
) -> tuple[Reading, str]:
    """Everything that a plan reads from one seed's parameters, and whether it failed."""
    if not is_finite(params):
        return {}, "failed: parameters are not finite"
    critic = _readable(replace(run.config, bfloat16=False).build())
    subject = Subject(TrainedCritic(critic, jax.device_put(params)), run.config, run.seed, data)
    reading: Reading = {}
    for name in plan.reads:
        reading |= _reader(name)(subject)
    return reading, collapsed(reading)


def _readable(critic: Critic) -> Critic:
    """The critic without the numbers that tell lanes apart, which no deployed scalar reads.

    Then all lanes of a group are read by the same compiled functions.
    """
    same: Critic = with_numbers(critic, dict.fromkeys(numbers_of(critic), 0.5))
    return same


def _reader(name: str) -> Any:
    """What reads that; the simulator is imported by who needs it."""
    if name == "search":
        from toptail_paper.grids.search import read_search

        return read_search
    if name == "actors":
        from toptail_paper.grids.actors import read_actors

        return read_actors
    return READERS[name]
