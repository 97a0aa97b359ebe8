"""Columns measured one by one: on several processes, and none twice.

What a column's diagnostics are is decided by its stored scores, the settings and the code. Each
result is kept in a file that names a hash of all three, and is read in place of being measured
again for as long as that hash fits. A column that is added costs only itself.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

import toptail
from toptail.audit.sample import Estimate
from toptail.io.files import entries, sha256
from toptail.lab.store.units import Stored, fitting
from toptail.lab.tasks.collect import deaf_to_interrupts, worker_pool
from toptail.lab.training.run_files import digest
from toptail.progress import Tick, no_tick
from toptail_paper.semantics.config import Beside, SemanticsConfig
from toptail_paper.semantics.load import TaskScores

Estimates = dict[str, Estimate]
"""Name of a diagnostic -> its estimate. Those over deciles, distances or K have one axis; what is
over K stands there a second time as ``NAME@top``, at the largest K."""

MEASURED = "measured"
"""Folder of a study that the results are kept in; it can be deleted at any time."""

ROOMS = ("stats", "pools", "audit")
"""Where the library's code lies that makes estimates of stored scores, beside this room."""

PACKAGES = ("toptail", "numpy", "scipy")
"""What that code computes with."""


@dataclass(frozen=True)
class ColumnJob:
    """One column to be measured."""

    task: TaskScores
    """The scores that the column is among."""

    column: str
    """Name of the column."""

    config: SemanticsConfig
    """The settings that the diagnostics follow."""

    measure: Callable[[TaskScores, str, SemanticsConfig], Estimates]
    """From scores, column and settings to estimates; a module's function, for processes."""

    beside: Beside = ""
    """Whose scores: results are kept below `MEASURED` as ``BESIDE/TASK/COLUMN.npz``."""

    @property
    def made_from(self) -> dict[str, str]:
        """Hashes of all that decides the result.

        Every setting counts but those that say which columns there are.
        """
        settings = self.config.described()
        del settings["tasks"], settings["seeds"]
        scores = self.task.made_from[self.column]
        return {"scores": scores, "settings": digest(settings), "code": code_hash()}

    def run(self) -> Estimates:
        """Measure."""
        return self.measure(self.task, self.column, self.config)

    def write(self, kept: Path, result: Estimates) -> None:
        """Keep a result: an array per diagnostic, its first row the point, the others the draws."""
        arrays = {name: np.concatenate([e.point[None], e.draws]) for name, e in result.items()}
        Stored(self.made_from, arrays).write(self._path(kept))

    def read(self, kept: Path) -> Estimates | None:
        """The result of an earlier call; None where there is none that fits."""
        stored = fitting(self._path(kept), self.made_from, stale="remake")
        if stored is None:
            return None
        return {name: Estimate(np.asarray(a[0]), a[1:]) for name, a in stored.arrays.items()}

    def _path(self, kept: Path) -> Path:
        return kept / self.beside / self.task.task / f"{self.column}.npz"


MeasureEach: TypeAlias = Callable[[Sequence[ColumnJob], str], list[Estimates]]
"""`measure_each`, with what a call says about keeping, telling and processes."""


def measure_each(
    jobs: Sequence[ColumnJob],
    stage: str,
    kept: Path | None = None,
    tick: Tick = no_tick,
    workers: int = 1,
) -> list[Estimates]:
    """The estimates of every job, in order.

    Results that ``kept`` holds and that fit are read, all others are stored there as soon as they
    are measured. ``tick`` is told the stage and the finished share of what has to be measured.
    """
    found = [None if kept is None else job.read(kept) for job in jobs]
    missing = [at for at, result in enumerate(found) if result is None]
    measured = _results([jobs[at] for at in missing], workers)
    for done, (at, result) in enumerate(zip(missing, measured, strict=True), start=1):
        found[at] = result
        if kept is not None:
            jobs[at].write(kept, result)
        tick(stage, done / len(missing))
    return [result for result in found if result is not None]


def _results(jobs: Sequence[ColumnJob], workers: int) -> Iterator[Estimates]:
    """Measure every job, in order; several processes where that pays."""
    jobs = [replace(job, task=job.task.only(job.column)) for job in jobs]
    if workers < 2 or len(jobs) < 2:
        yield from map(ColumnJob.run, jobs)
        return
    with worker_pool(min(workers, len(jobs))) as pool:
        with deaf_to_interrupts():
            results = pool.map(ColumnJob.run, jobs)
        yield from results


@cache
def code_hash() -> str:
    """Hash of the code that measures: sources, so that no change needs a new version, and versions.

    It is broader than need be: a result that is measured once too often does no harm.
    """
    package, here = Path(toptail.__file__).parent, Path(__file__).parent
    folders = [*(package / room for room in ROOMS), here]
    sources = [path for folder in folders for path in entries(folder, "**/*.py")]
    return digest(
        {"/".join(path.parts[-3:]): sha256(path) for path in sources}
        | {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()}
    )
