"""Trajectories trained on and held out: whether a score knows how near a goal is.

A critic that has memorized its training trajectories tells their goals from all others, and no
retrieval metric shows that it does not order them. So the same metrics are computed on triples of
the validation split and of the training split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toptail.pools.columns import group_seeds
from toptail_paper.semantics.config import SEEN, SemanticsConfig
from toptail_paper.semantics.load import TaskScores
from toptail_paper.semantics.measure import (
    ColumnJob,
    Estimates,
    MeasuredTask,
    MeasureEach,
    by_seed,
    measure_each,
)
from toptail_paper.semantics.specs import TABLES
from toptail_paper.study.tables import Rows, StoredCell, estimate_cell
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.retrieval import (
    hard_negative_win_rate,
    nearer_goal_win_rate,
    retrieval_auc,
)
from toptail_paper.triples.value_order import ordering

METRICS = {
    "auc": retrieval_auc,
    "hard_negative_auc": hard_negative_win_rate,
    "nearer_goal": nearer_goal_win_rate,
    "order": ordering,
}
"""What is measured on both kinds of trajectories, by the names in `measure`."""

CALLED = {"order": "tau"}
"""Metrics that the table calls by another name."""

HELD_OUT = "held_out"
"""The other kind: trajectories that no critic was trained on."""


def memory_table(
    measured: Sequence[MeasuredTask],
    trained_on: Sequence[TaskScores],
    config: SemanticsConfig,
    each: MeasureEach = measure_each,
) -> dict[str, Any] | None:
    """``tables/seen.json``: METRIC_held_out and METRIC_seen; None where nothing was scored.

    Only columns that were scored on both are compared, so that both cells have the same seeds and
    are of the same critics.
    """
    held_out = {task.task.task: task for task in measured}
    pairs = [(held_out[task.task], task) for task in trained_on if task.task in held_out]
    both = [(own, task, _both(own.task, task)) for own, task in pairs]
    jobs = [
        ColumnJob(task, column, config, measure_trained_on, SEEN)
        for _, task, columns in both
        for column in columns
    ]
    if not jobs:
        return None
    results = iter(each(jobs, "seen trajectories"))
    rows: Rows = {}
    falls: dict[str, dict[str, StoredCell]] = {}
    for own, _, columns in both:
        kinds = {HELD_OUT: own.columns, SEEN: {column: next(results) for column in columns}}
        scorers = group_seeds(columns)
        if scorers:
            rows[own.task.key] = {name: _cells(seeds, kinds) for name, seeds in scorers.items()}
            falls[own.task.key] = {name: _fall(seeds, kinds) for name, seeds in scorers.items()}
    return TABLES[SEEN].table(
        f"The same questions about trajectories of both splits, {config.triples} triples of each",
        rows,
        [
            "tau: order of recorded distances, on play data, too, where they are no value.",
            "falls: nearer_goal on held-out trajectories less that on seen ones, with its "
            "interval; the resamples of the two splits are independent.",
        ],
        falls=falls,
    )


def _both(own: TaskScores, each: TaskScores) -> list[str]:
    """Columns of one critic on both: one that was scored again on one split only is left out."""
    return [
        column
        for column in each.triples.scores
        if column in own.triples.scores
        and _critic(own.origins.get(column, {})) == _critic(each.origins.get(column, {}))
    ]


def _critic(origin: Mapping[str, Any]) -> dict[str, Any]:
    """The origin of a column without the hash of its scores."""
    return {name: entry for name, entry in origin.items() if name != "scores_sha256"}


def measure_trained_on(task: TaskScores, column: str, config: SemanticsConfig) -> Estimates:
    """All metrics on triples of the training split, with resamples of their own."""
    t = task.triples
    rng = np.random.default_rng([config.draw_seed, 3])
    bootstrap = TrajectoryBootstrap(t.trajectory, rng, config.resamples)
    return {metric: estimate(t, column, bootstrap) for metric, estimate in METRICS.items()}


def _cells(
    seeds: Mapping[int | None, str], kinds: Mapping[str, Mapping[str, Estimates]]
) -> dict[str, StoredCell]:
    return {
        f"{CALLED.get(metric, metric)}_{kind}": estimate_cell(by_seed(seeds, measured, metric))
        for metric in METRICS
        for kind, measured in kinds.items()
        if by_seed(seeds, measured, metric)
    }


def _fall(
    seeds: Mapping[int | None, str], kinds: Mapping[str, Mapping[str, Estimates]]
) -> StoredCell:
    """How often the nearer goal scores higher: on held-out trajectories less on seen ones."""
    held_out, known = (by_seed(seeds, kinds[kind], "nearer_goal") for kind in (HELD_OUT, SEEN))
    return estimate_cell({seed: each - known[seed] for seed, each in held_out.items()})
