"""Seen and held-out trajectories: whether a score knows how near a goal is, or only whose it is.

A critic that has learned its training trajectories by heart tells their goals from all others
without fault, and no retrieval metric shows that it has nothing to say about their order. So the
same questions are asked about triples of the validation split and of the training split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.audit.triples.ordering import ordering
from toptail.audit.triples.retrieval import (
    hard_negative_win_rate,
    nearer_goal_win_rate,
    retrieval_auc,
)
from toptail.pools.triples import ScoredTriples
from toptail.studies.common import Tick
from toptail.studies.semantics.config import SEEN, SemanticsConfig
from toptail.studies.semantics.jobs import Estimates, Job, measure_each
from toptail.studies.semantics.load import BesideScores, TaskScores
from toptail.studies.semantics.measure import alone_triples, by_seed, resampling
from toptail.studies.semantics.tables import estimate_cell
from toptail.studies.tables import Cell, Rows, table

METRICS = ("auc", "hard_negative_auc", "nearer_goal", "tau")
"""What is asked about both kinds of trajectories."""

HELD_OUT = "held_out"
"""The other kind: trajectories that no critic was trained on."""


def seen_table(
    tasks: Sequence[TaskScores],
    seen: Sequence[BesideScores],
    config: SemanticsConfig,
    tick: Tick | None = None,
    workers: int = 1,
    kept: Path | None = None,
) -> dict[str, Any] | None:
    """``tables/seen.json``: METRIC_held_out beside METRIC_seen; None where nothing was scored.

    Only columns that were scored on both are compared, so that both cells have the same seeds and
    are of the same critics.
    What ``kept`` holds of an earlier call, and still fits, is not measured again.
    """
    held_out = {task.task: task for task in tasks}
    pairs = [(held_out[each.task], each) for each in seen if each.task in held_out]
    jobs = [job for own, each in pairs for job in _jobs(own, each, config)]
    if not jobs:
        return None
    results = iter(measure_each(jobs, "seen trajectories", kept, tick, workers))
    rows: Rows = {}
    falls: dict[str, dict[str, Cell]] = {}
    for own, each in pairs:
        columns = _both(own, each)
        measured = {column: next(results) | next(results) for column in columns}
        scorers = _scorers(each.triples, columns)
        if scorers:
            rows[own.key] = {name: _cells(seeds, measured) for name, seeds in scorers.items()}
            falls[own.key] = {name: _fall(seeds, measured) for name, seeds in scorers.items()}
    return table(
        SEEN,
        f"The same questions about trajectories of both splits, {config.triples} triples of each",
        rows,
        {},
        [
            "tau: order of recorded distances, on play data, too, where they are no value.",
            "falls: nearer_goal on held-out trajectories less that on seen ones, with its "
            "interval; the resamples of the two splits are independent.",
        ],
        falls=falls,
    )


def _both(own: TaskScores, each: BesideScores) -> list[str]:
    """Columns of one critic on both: one that was scored again on one split only is left out."""
    return [
        column
        for column in each.triples.scores
        if column in own.triples.scores
        and _critic(own.origins.get(column, {})) == _critic(each.origins.get(column, {}))
    ]


def _critic(origin: Mapping[str, Any]) -> dict[str, Any]:
    """Where a column comes from, whatever it was asked about."""
    return {name: entry for name, entry in origin.items() if name != "scores_sha256"}


def _jobs(own: TaskScores, each: BesideScores, config: SemanticsConfig) -> list[Job]:
    """Two for every column: first on held-out trajectories, then on seen ones."""
    found = []
    for column in _both(own, each):
        there = (own.sources[column], config, measure_held_out, own.triples, alone_triples)
        here = (each.sources[column], config, measure_seen, each.triples, alone_triples)
        found.append(Job(f"{SEEN}/{own.task}/{HELD_OUT}", column, *there))
        found.append(Job(f"{SEEN}/{own.task}/{SEEN}", column, *here))
    return found


def measure_held_out(t: ScoredTriples, column: str, config: SemanticsConfig) -> Estimates:
    """All metrics on the study's own triples, with the resamples that all its tables share."""
    return _measure(t, column, resampling(t, config), HELD_OUT)


def measure_seen(t: ScoredTriples, column: str, config: SemanticsConfig) -> Estimates:
    """All metrics on triples of the training split, with resamples of their own."""
    rng = np.random.default_rng([config.draw_seed, 3])
    return _measure(t, column, TrajectoryBootstrap(t.trajectory, rng, config.resamples), SEEN)


def _measure(t: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap, kind: str) -> Estimates:
    found = {
        "auc": retrieval_auc(t, column, bootstrap),
        "hard_negative_auc": hard_negative_win_rate(t, column, bootstrap),
        "nearer_goal": nearer_goal_win_rate(t, column, bootstrap),
        "tau": ordering(t, column, bootstrap),
    }
    return {f"{metric}_{kind}": estimate for metric, estimate in found.items()}


def _scorers(t: ScoredTriples, columns: Sequence[str]) -> dict[str, dict[str | None, str]]:
    """Scorer -> seed -> column, of these columns."""
    kept = {
        name: {seed: column for seed, column in seeds.items() if column in columns}
        for name, seeds in t.scorers.items()
    }
    return {name: seeds for name, seeds in kept.items() if seeds}


def _cells(seeds: Mapping[str | None, str], measured: Mapping[str, Estimates]) -> dict[str, Cell]:
    names = [f"{metric}_{kind}" for metric in METRICS for kind in (HELD_OUT, SEEN)]
    return {name: estimate_cell(by_seed(seeds, measured, name)) for name in names}


def _fall(seeds: Mapping[str | None, str], measured: Mapping[str, Estimates]) -> Cell:
    """How much less often the nearer goal scores higher once the trajectory was trained on."""
    held_out, seen = (by_seed(seeds, measured, f"nearer_goal_{kind}") for kind in (HELD_OUT, SEEN))
    return estimate_cell({seed: each - seen[seed] for seed, each in held_out.items()})
