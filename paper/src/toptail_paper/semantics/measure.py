"""Every diagnostic of one column of scores, with its resamples: what tables and curves select from.

A diagnostic that the stored scores do not allow (no behaviour model, no value oracle, play data)
has no entry. All columns of a task share their resamples, so that means over seeds and differences
have intervals of their own.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

import toptail
from toptail.io.files import entries, sha256
from toptail.jobs.workers import worker_map
from toptail.lab.training.runs import digest
from toptail.progress import Tick, no_tick
from toptail.provenance import installed
from toptail.stats.resample import Estimate
from toptail_paper.semantics.config import ORACLE, Beside, SemanticsConfig
from toptail_paper.semantics.load import TaskScores, readout_of
from toptail_paper.study.store import Stored, fitting
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.retrieval import (
    distance_profile,
    hard_negative_win_rate,
    nearer_goal_win_rate,
    recall,
    retrieval_auc,
    same_trajectory_win_rate,
)
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.search import (
    cross_query,
    pooled_selection,
    saturation,
    support_preference,
    within_quartiles,
)
from toptail_paper.triples.value_order import (
    agreement,
    bellman_consistency,
    calibration,
    calibration_gap,
    centered_ordering,
    ordering,
    readout_ordering,
    value_agreement,
)

Estimates = dict[str, Estimate]
"""Name of a diagnostic -> its estimate. Those over deciles, distances or K have one axis; what is
over K stands there a second time, at the largest K (`at_top`)."""


@dataclass(frozen=True)
class Diagnostic:
    """One of several diagnostics of a kind; its text is its name among `Estimates`."""

    kind: str
    """``readout``, ``diffusion`` or ``excess_off``."""
    of: str | int
    """The readout, the behaviour model's seed, or how many nearest states count."""
    without: str = ""
    """What is left out of the nearest states."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.of}" + (f"/{self.without}" if self.without else "")


def at_top(name: str | Diagnostic) -> str:
    """The name of a diagnostic over K at the largest K."""
    return f"{name}@top"


MEASURED = "measured"
"""Folder of a study that the results are kept in; it can be deleted at any time."""

ROOMS = ("stats", "pools", "audit")
"""Packages of the library whose code makes estimates of stored scores."""

PACKAGES = ("toptail", "numpy", "scipy")
"""What that code computes with."""


@dataclass(frozen=True)
class ColumnJob:
    """One column to be measured."""

    task: TaskScores
    column: str
    config: SemanticsConfig
    measure: Callable[[TaskScores, str, SemanticsConfig], Estimates]
    """From scores, column and settings to estimates; a module's function, for processes."""
    beside: Beside = ""
    """Which scores; results are stored below `MEASURED` as ``BESIDE/TASK/COLUMN.npz``."""

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
        return self.measure(self.task, self.column, self.config)

    def write(self, kept: Path, result: Estimates) -> None:
        """Keep a result: an array per diagnostic, its first row the point, the others the draws."""
        arrays = {name: np.concatenate([e.point[None], e.draws]) for name, e in result.items()}
        Stored(self.made_from, arrays).write(self._path(kept))

    def read(self, kept: Path) -> Estimates | None:
        """The stored result of an earlier call; None where none fits."""
        stored = fitting(self._path(kept), self.made_from, stale="remake")
        if stored is None:
            return None
        return {name: Estimate(np.asarray(a[0]), a[1:]) for name, a in stored.arrays.items()}

    def _path(self, kept: Path) -> Path:
        return kept / self.beside / self.task.task / f"{self.column}.npz"


MeasureEach: TypeAlias = Callable[[Sequence[ColumnJob], str], list[Estimates]]
"""`measure_each` of one call, which has fixed the folder, the progress and the processes."""


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
    to_do = [replace(jobs[at], task=jobs[at].task.only(jobs[at].column)) for at in missing]
    measured = worker_map(ColumnJob.run, to_do, workers)
    for done, (at, result) in enumerate(zip(missing, measured, strict=True), start=1):
        found[at] = result
        if kept is not None:
            jobs[at].write(kept, result)
        tick(stage, done / len(missing))
    return [result for result in found if result is not None]


@cache
def code_hash() -> str:
    """Hash of the code that measures: sources, so that no change needs a new version, and versions.

    It is broader than need be: a result that is measured once too often does no harm.
    """
    package, here = Path(toptail.__file__).parent, Path(__file__).parent
    folders = [*(package / room for room in ROOMS), here, here.parent / "triples"]
    sources = [path for folder in folders for path in entries(folder, "**/*.py")]
    return digest(
        {"/".join(path.parts[-3:]): sha256(path) for path in sources}
        | {name: installed(name) for name in PACKAGES}
        | {"python": platform.python_version()}
    )


READOUT = "readout"

CURSE = ("regret", "normalized", "value", "oracle", "random")
"""Diagnostics of best-of-K over pooled triples, over K."""


@dataclass(frozen=True)
class MeasuredTask:
    """All columns of one task."""

    task: TaskScores
    columns: Mapping[str, Estimates]
    """Column -> its diagnostics."""
    agreement: Mapping[tuple[str, str], Estimate]
    """(judge, "") -> Spearman's rho of γ^d and its values; (judge, other) -> of both their values.
    """

    def seeds(self, scorer: str, metric: str) -> Estimates:
        """Seed -> estimate of one diagnostic of a scorer; empty where it has none."""
        return by_seed(self.task.triples.scorers.get(scorer, {}), self.columns, metric)


def by_seed(
    columns: Mapping[int | None, str], measured: Mapping[str, Estimates], metric: str
) -> Estimates:
    """Seed -> estimate, for the columns that have the diagnostic; a lone column is "none"."""
    return {
        "none" if seed is None else str(seed): measured[column][metric]
        for seed, column in columns.items()
        if metric in measured[column]
    }


def measure_all(
    tasks: Sequence[TaskScores], config: SemanticsConfig, each: MeasureEach = measure_each
) -> list[MeasuredTask]:
    pairs = [(task, column) for task in tasks for column in task.triples.scores]
    jobs = [ColumnJob(task, column, config, measure) for task, column in pairs]
    results = iter(each(jobs, "diagnostics"))
    return [
        MeasuredTask(
            task,
            {column: next(results) for column in task.triples.scores},
            _agreement(task, config),
        )
        for task in tasks
    ]


def measure(task: TaskScores, column: str, config: SemanticsConfig) -> Estimates:
    triples, bootstrap = task.triples, resampling(task.triples, config)
    found = _retrieval(triples, column, bootstrap)
    found["order"] = ordering(triples, column, bootstrap)
    if not task.navigation:
        return found
    found["tau"] = found["order"]  # only where recorded distances are a value
    found |= _graded(triples, column, config, bootstrap)
    over_k, scalars = _search(task, column, config, bootstrap)
    over_k |= _support(task, column, config)
    top = config.k.index(max(config.k))
    tops = {at_top(name): estimate[top] for name, estimate in over_k.items()}
    return found | scalars | over_k | tops


def resampling(triples: ScoredTriples, config: SemanticsConfig) -> TrajectoryBootstrap:
    """The resamples of a task's trajectories: the same for every column and every call."""
    rng = np.random.default_rng([config.draw_seed, 1])
    return TrajectoryBootstrap(triples.trajectory, rng, config.resamples)


def _retrieval(t: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap) -> Estimates:
    found = {
        "auc": retrieval_auc(t, column, bootstrap),
        "hard_negative_auc": hard_negative_win_rate(t, column, bootstrap),
        "same_trajectory": same_trajectory_win_rate(t, column, bootstrap),
        "nearer_goal": nearer_goal_win_rate(t, column, bootstrap),
    }
    negatives = t.negatives[column].shape[1]
    return found | {
        f"recall_{k}": recall(t, column, k, bootstrap) for k in (1, 5) if k <= negatives
    }


def distance_edges(config: SemanticsConfig) -> tuple[int, ...]:
    """Where twelve bins of distance start, and where the last one ends."""
    width = max(1, config.max_offset // 12)
    return (*range(1, config.max_offset + 1, width), config.max_offset + 1)


def _graded(
    t: ScoredTriples, column: str, config: SemanticsConfig, bootstrap: TrajectoryBootstrap
) -> Estimates:
    """How the score follows γ^d: deciles, decay, Bellman recursion, other readouts."""
    deciles = calibration(t, column, bootstrap)
    bellman = bellman_consistency(t, column, bootstrap)
    found = {
        "deciles": deciles,
        "gap": calibration_gap(deciles),
        "profile": distance_profile(t, column, bootstrap, distance_edges(config)),
        "rmse": bellman.rmse,
        "std": bellman.std,
    }
    if column in t.query_means:
        found["centered_tau"] = centered_ordering(t, column, t.query_means[column], bootstrap)
    for name in t.readouts:
        if readout_of(name)[0] == column:
            read = Diagnostic(READOUT, readout_of(name)[1])
            found[str(read)] = readout_ordering(t, name, bootstrap)
    return found


def _search(
    task: TaskScores, column: str, config: SemanticsConfig, bootstrap: TrajectoryBootstrap
) -> tuple[Estimates, Estimates]:
    """Best-of-K over pooled triples: by γ^d over K, and what is read at the largest K alone."""
    t, top = task.triples, (max(config.k),)
    pick = cross_query(t, column, config.k, bootstrap)
    end = saturation(t, column, top, bootstrap)
    over_k = {name: getattr(pick, name) for name in CURSE}
    found = {
        "regret_quartiles": within_quartiles(t, column, top, bootstrap).regret[0],
        "median_selected": end.median[0],
    }
    if is_bounded(t, column):
        found["share_above_0.9"] = end.share[0]
    if column in task.query_std:
        spread = np.asarray(task.query_std[column], dtype=np.float64)
        found["query_std"] = bootstrap.mean(spread)
    for judge in t.values:
        judged = cross_query(t, column, top, bootstrap, judge)
        found[f"nregret_{judge}"] = judged.normalized[0]
        found[f"tau_{judge}"] = ordering(t, column, bootstrap, judge)
    for seed, pools in task.diffusion.items():
        if column in pools.scores:
            judged = pooled_selection(pools.scores[column], pools.values, top, bootstrap)
            found[str(Diagnostic("diffusion", seed))] = judged.normalized[0]
    return over_k, found


def _support(task: TaskScores, column: str, config: SemanticsConfig) -> Estimates:
    """Excess off-support rate over K, by neighbourhood size and by what is left out."""
    found = {}
    for (n_near, without), pools in task.support.items():
        if column in pools.scores:
            rng = np.random.default_rng([config.draw_seed, 2])
            bootstrap = TrajectoryBootstrap(pools.trajectory, rng, config.resamples)
            preference = support_preference(
                pools.scores[column], pools.on_support, config.k, bootstrap
            )
            found[str(Diagnostic("excess_off", n_near, without))] = preference.excess
    return found


def _agreement(task: TaskScores, config: SemanticsConfig) -> dict[tuple[str, str], Estimate]:
    """Rank correlation of every judge's values with γ^d, and of the oracle's with other judges'."""
    t = task.triples
    if not task.navigation or not t.values:
        return {}
    bootstrap = resampling(t, config)
    found = {(judge, ""): agreement(t, judge, bootstrap) for judge in t.values}
    for judge in set(t.values) - {ORACLE} if ORACLE in t.values else ():
        found[judge, ORACLE] = value_agreement(t, judge, ORACLE, bootstrap)
    return found


def is_bounded(triples: ScoredTriples, column: str) -> bool:
    """Whether every score lies in [-1, 1] as a cosine does, up to rounding of float32."""
    families = (triples.scores, triples.negatives)
    return all(float(np.abs(family[column]).max()) <= 1.0 + 1e-5 for family in families)
