"""Columns measured one by one: on several processes, and none twice.

What a column's diagnostics are is decided by its stored scores, the settings and the code. Each
result is kept in a file that names a hash of all three, and is read in place of being measured
again for as long as that hash fits. A column that is added costs only itself.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import toptail
from toptail.audit.sample import Estimate
from toptail.lab.studies.semantics.config import SemanticsConfig
from toptail.lab.studies.store import Stored, fitting
from toptail.lab.training.records import digest
from toptail.pools.files import sha256
from toptail.progress import Tick

Estimates = dict[str, Estimate]
"""Name of a diagnostic -> its estimate. Those over deciles, distances or K have one axis; what is
over K stands there a second time as ``NAME@top``, at the largest K."""

MEASURED = "measured"
"""Folder of a study that the results are kept in; it can be deleted at any time."""

ROOMS = ("stats", "pools", "audit", "lab/studies/semantics")
"""Where the code lies that makes estimates of stored scores."""

PACKAGES = ("toptail", "numpy", "scipy")
"""What that code computes with."""


@dataclass(frozen=True)
class ColumnJob:
    """One column to be measured."""

    folder: str
    """Where the result is kept below `MEASURED`, as ``FOLDER/COLUMN.npz``."""

    column: str
    """Name of the column."""

    scores_sha256: str
    """Hash of every stored file that the diagnostics are made from."""

    config: SemanticsConfig
    """The settings that the diagnostics follow."""

    measure: Callable[[Any, str, SemanticsConfig], Estimates]
    """From scores, column and settings to estimates; a module's function, for processes."""

    scores: Any
    """The scores that the column is among."""

    alone: Callable[[Any, str], Any]
    """From scores and column to the scores with that column alone: what a process is handed."""

    @property
    def made_from(self) -> dict[str, str]:
        """Hashes of all that decides the result.

        Every setting counts but those that say which columns there are.
        """
        settings = self.config.described()
        del settings["tasks"], settings["seeds"]
        return {"scores": self.scores_sha256, "settings": digest(settings), "code": code_hash()}


def measure_each(
    jobs: Sequence[ColumnJob],
    stage: str,
    kept: Path | None = None,
    tick: Tick | None = None,
    workers: int = 1,
) -> list[Estimates]:
    """The estimates of every job, in order.

    Parameters
    ----------
    jobs
        What is to be measured.
    stage
        What ``tick`` is told beside the finished share of what has to be measured.
    kept
        Folder of results; those that fit are read, all others are stored as soon as they are
        there. None measures everything.
    tick
        Told how far the measuring is.
    workers
        Processes that measure.
    """
    found = [None if kept is None else _read(job, kept) for job in jobs]
    missing = [at for at, result in enumerate(found) if result is None]
    measured = _results([jobs[at] for at in missing], workers)
    for done, (at, result) in enumerate(zip(missing, measured, strict=True), start=1):
        found[at] = result
        if kept is not None:
            _write(jobs[at], kept, result)
        if tick is not None:
            tick(stage, done / len(missing))
    return [result for result in found if result is not None]


def _results(jobs: Sequence[ColumnJob], workers: int) -> Iterator[Estimates]:
    """Measure every job, in order; several processes where that pays."""
    jobs = [replace(job, scores=job.alone(job.scores, job.column)) for job in jobs]
    if workers < 2 or len(jobs) < 2:
        yield from map(_run, jobs)
        return
    # Fresh processes: a forked one would inherit the threads of a JAX that has been used.
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(_run, jobs)


def _run(job: ColumnJob) -> Estimates:
    return job.measure(job.scores, job.column, job.config)


def _path(job: ColumnJob, kept: Path) -> Path:
    return kept / job.folder / f"{job.column}.npz"


def _write(job: ColumnJob, kept: Path, result: Estimates) -> None:
    """Keep a result: one array per diagnostic, its first row the point, the others the draws."""
    arrays = {name: np.concatenate([e.point[None], e.draws]) for name, e in result.items()}
    Stored(job.made_from, arrays).write(_path(job, kept))


def _read(job: ColumnJob, kept: Path) -> Estimates | None:
    """The result of an earlier call; None where there is none that fits."""
    stored = fitting(_path(job, kept), job.made_from, stale="remake")
    if stored is None:
        return None
    return {name: Estimate(np.asarray(a[0]), a[1:]) for name, a in stored.arrays.items()}


@cache
def code_hash() -> str:
    """Hash of the code that measures: sources, so that no change needs a new version, and versions.

    It is broader than need be: a result that is measured once too often does no harm.
    """
    package = Path(toptail.__file__).parent
    sources = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    return digest(
        {path.relative_to(package).as_posix(): sha256(path) for path in sources}
        | {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()}
    )
