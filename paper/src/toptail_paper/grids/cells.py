"""What is stored of a cell: every seed's numbers with their resamples, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.jobs.job import Job, Resources
from toptail.lab.critics.base import Params
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.config import on_gpu
from toptail.lab.training.runs import digest, machine, versions
from toptail.provenance import commit
from toptail.stats.resample import Estimate
from toptail_paper.grids.grid import DeclaredGrid, GridCell
from toptail_paper.study.batches import BatchRun
from toptail_paper.study.store import Arrays, ResultFolder
from toptail_paper.study.tables import StoredCell, estimate_cell


@dataclass(frozen=True)
class Networks:
    """A folder of parameters, each file named by everything that decides them."""

    folder: Path
    """Where the files lie; plans may share it."""

    def load(self, lane: BatchRun, data_hash: str) -> Params | None:
        """What a training ended with, or None where it was not kept."""
        path = self._path(lane, data_hash)
        return load_params(path) if path.is_file() else None

    def keep(self, lane: BatchRun, data_hash: str, params: Params) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        save_params(self._path(lane, data_hash), params)

    def _path(self, lane: BatchRun, data_hash: str) -> Path:
        name = digest({"lane": repr(lane), "data": data_hash})
        return self.folder / f"{lane.config.learner.name}-seed{lane.seed}-{name}.safetensors"


FORMAT = 1
"""Raised when what is read changes its meaning."""

TRAINING = "training"
"""Where the states of unfinished groups of trainings lie."""

Reading: TypeAlias = dict[str, Estimate]
"""Metric -> its number with resamples, of one seed."""


@dataclass(frozen=True)
class SeedCell:
    """One seed of a cell."""

    result: ResultFolder
    """Where its numbers lie."""
    cell: GridCell
    seed: int

    @classmethod
    def of(cls, folder: Path, declared: DeclaredGrid, cell: GridCell, seed: int) -> SeedCell:
        """The unit of a cell's seed, which everything that decides it names."""
        made_from = {
            "format": FORMAT,
            "data": cell.data,
            "label": cell.label,
            "steps": cell.steps,
            "seed": seed,
            "shared": dict(declared.shared),
            "sizes": dict(declared.sizes),
            "reads": list(declared.reads),
        }
        return cls(ResultFolder.of(folder, f"{cell.label.partition('[')[0]}-seed{seed}", made_from),
                   cell, seed)  # fmt: skip

    def store(self, reading: Reading, failed: str = "") -> None:
        """Write its numbers, or why there are none."""
        content: dict[str, Any] = {
            "data": self.cell.data,
            "cell": self.cell.name,
            "seed": self.seed,
            "failed": failed,
            "metrics": {name: _number(estimate.point) for name, estimate in reading.items()},
            "commit": commit(),
            "machine": machine(),
            "versions": versions(),
        }
        with self.result.writing() as stage:
            draws: Arrays = {name: np.asarray(e.draws, np.float32) for name, e in reading.items()}
            write_arrays(stage / "draws.npz", draws)
            write_json(stage / "unit.json", content)

    def read(self) -> tuple[Reading, str, str]:
        """Its numbers, why there are none, and the commit that read them."""
        content, draws = self.result.info(), self.result.arrays("draws")
        known = {name: np.nan if x is None else x for name, x in content["metrics"].items()}
        reading = {
            name: Estimate(np.asarray(x), draws[name].astype(float)) for name, x in known.items()
        }
        return reading, str(content["failed"]), str(content["commit"])


def cells_job(
    name: str, folder: Path, units: Sequence[SeedCell], work: Callable[[], object]
) -> Job:
    return Job(
        name=name,
        content={"units": [each.result.folder.name for each in units]},
        home=folder,
        outputs=[each.result.folder for each in units],
        work=work,
        done=lambda: all(each.result.finished for each in units),
        resources=Resources(1.0, 1.0 if on_gpu() else 0.0),
    )


def cell_metrics(readings: Mapping[int, Reading]) -> dict[str, StoredCell]:
    """Each metric's mean over seeds, with every seed and the interval over what was resampled."""
    names = dict.fromkeys(name for reading in readings.values() for name in reading)
    return {
        name: estimate_cell({seed: r[name] for seed, r in readings.items() if name in r})
        for name in names
    }


def fixed(value: float, resamples: int) -> Estimate:
    """A number that nothing was resampled for."""
    return Estimate(np.asarray(value), np.full(resamples, value))


def _number(x: Any) -> float | None:
    return float(x) if np.isfinite(x) else None
