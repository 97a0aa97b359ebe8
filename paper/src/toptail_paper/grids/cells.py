"""What is stored of a cell: every seed's numbers with their resamples, in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import LEVEL, seed_mean
from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.lab.store.units import Arrays, Unit
from toptail.lab.training.run_files import machine, versions
from toptail.provenance import commit
from toptail_paper.grids.plan import PlannedCell, SettlePlan
from toptail_paper.study.tables import StoredCell, cell

FORMAT = 1
"""Raised when what is read changes its meaning."""

TRAINING = "training"
"""Where the states of unfinished groups of trainings lie."""

Reading: TypeAlias = dict[str, Estimate]
"""Metric -> its number with resamples, of one seed."""


@dataclass(frozen=True)
class SeedCell:
    """One seed of a cell."""

    unit: Unit
    """Where its numbers lie."""

    cell: PlannedCell
    """What it belongs to."""

    seed: int
    """The seed."""

    @classmethod
    def of(cls, folder: Path, plan: SettlePlan, cell: PlannedCell, seed: int) -> SeedCell:
        """The unit of a cell's seed, which everything that decides it names."""
        made_from = {
            "format": FORMAT,
            "data": cell.data,
            "label": cell.label,
            "steps": cell.steps,
            "seed": seed,
            "shared": dict(plan.shared),
            "sizes": dict(plan.sizes),
            "reads": list(plan.reads),
        }
        return cls(Unit.of(folder, f"{cell.label.partition('[')[0]}-seed{seed}", made_from),
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
        with self.unit.writing() as stage:
            draws: Arrays = {name: np.asarray(e.draws, np.float32) for name, e in reading.items()}
            write_arrays(stage / "draws.npz", draws)
            write_json(stage / "unit.json", content)

    def read(self) -> tuple[Reading, str, str]:
        """Its numbers, why there are none, and the commit that read them."""
        content, draws = self.unit.info(), self.unit.arrays("draws")
        known = {name: np.nan if x is None else x for name, x in content["metrics"].items()}
        reading = {
            name: Estimate(np.asarray(x), draws[name].astype(float)) for name, x in known.items()
        }
        return reading, str(content["failed"]), str(content["commit"])


def cell_metrics(readings: Mapping[int, Reading]) -> dict[str, StoredCell]:
    """Each metric's mean over seeds, with every seed and the interval over what was resampled."""
    found = {}
    for name in dict.fromkeys(name for reading in readings.values() for name in reading):
        by_seed = {seed: r[name] for seed, r in readings.items() if name in r}
        finite = [e for e in by_seed.values() if np.isfinite(e.point)]
        ends = seed_mean(finite).interval(LEVEL) if finite else (np.nan, np.nan)
        interval = float(ends[0]), float(ends[1])
        found[name] = cell({seed: float(e.point) for seed, e in by_seed.items()}, interval)
    return found


def fixed(value: float, resamples: int) -> Estimate:
    """A number that nothing was resampled for."""
    return Estimate(np.asarray(value), np.full(resamples, value))


def _number(x: Any) -> float | None:
    return float(x) if np.isfinite(x) else None
