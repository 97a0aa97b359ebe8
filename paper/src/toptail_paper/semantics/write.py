"""``curves.json``: what the figures of the semantics study are drawn from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toptail.io.json_files import jsonable, write_json
from toptail.progress import Tick, no_tick
from toptail_paper.semantics.config import SEEN, SWEEP, SemanticsConfig
from toptail_paper.semantics.load import read_tasks
from toptail_paper.semantics.measure import (
    MEASURED,
    Diagnostic,
    MeasuredTask,
    distance_edges,
    measure_all,
    measure_each,
)
from toptail_paper.semantics.memory import memory_table
from toptail_paper.semantics.results import stored_config
from toptail_paper.semantics.tables import all_tables
from toptail_paper.semantics.temperature import temperature_table
from toptail_paper.study.tables import curve_cell, write_tables

N_NEAR = 200
"""Neighbourhood size of the support figure, the paper's middle one, where it was measured."""


def all_curves(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    """Every curve of every scorer of every navigation task; what was not measured is left out."""
    n_near = N_NEAR if N_NEAR in config.n_near else sorted(config.n_near)[len(config.n_near) // 2]
    tasks = {
        task.task.key: {
            scorer: _scorer_curves(task, scorer, n_near) | {"profile_edges": distance_edges(config)}
            for scorer in task.task.triples.scorers
        }
        for task in measured
        if task.task.navigation
    }
    content: dict[str, Any] = jsonable(
        {
            "label": ["fig:calibration", "fig:good-rankers", "fig:ogbench-curse"],
            "k": list(config.k),
            "n_near": n_near,
            "tasks": tasks,
        }
    )
    return content


def _scorer_curves(task: MeasuredTask, scorer: str, n_near: int) -> dict[str, Any]:
    names = {
        "deciles": "deciles",
        "profile": "profile",
        "value": "value",
        "excess_off_support": str(Diagnostic("excess_off", n_near, "row")),
    }
    found = {name: task.seeds(scorer, source) for name, source in names.items()}
    entry: dict[str, Any] = {name: curve_cell(seeds) for name, seeds in found.items() if seeds}
    # Every scorer searches the same pools, so that any of its seeds knows oracle and random.
    for name in ("oracle", "random"):
        entry[name] = next(iter(task.seeds(scorer, name).values())).point
    entry["random"] = entry["random"][0]
    return entry


def write_results(
    out: str | Path, tick: Tick | None = None, workers: int | None = None
) -> list[str]:
    """Store ``tables/*.json`` and ``curves.json``; returns the tables' names.

    Columns that were measured from the same scores, settings and code before are not measured
    again (``measured/``); tables and curves are always made anew.

    Parameters
    ----------
    out
        The study's folder, with ``config.json`` and ``scores/``.
    tick
        Told the stage and the share of it that is done.
    workers
        Processes that measure columns; one per core unless given. They are fresh ones, so that a
        script that calls this needs ``if __name__ == "__main__"``, unless it asks for one.
    """
    folder, config = Path(out), stored_config(out)
    workers = workers or os.cpu_count() or 1
    each = partial(measure_each, kept=folder / MEASURED, tick=tick or no_tick, workers=workers)
    measured = measure_all(read_tasks(out), config, each)
    beside = {
        SEEN: memory_table(measured, read_tasks(out, SEEN), config, each),
        SWEEP: temperature_table(read_tasks(out, SWEEP), config, each),
    }
    tables = all_tables(measured, config) | {n: table for n, table in beside.items() if table}
    write_tables(folder / "tables", tables)
    write_json(folder / "curves.json", all_curves(measured, config))
    return sorted(tables)
