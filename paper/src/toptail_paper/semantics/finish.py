"""After scoring: tables and curves, from stored scores alone."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from toptail.io.json_files import write_json
from toptail.progress import Tick, no_tick
from toptail_paper.semantics.config import SEEN, SWEEP
from toptail_paper.semantics.curves import all_curves
from toptail_paper.semantics.jobs import MEASURED, measure_each
from toptail_paper.semantics.load import read_tasks
from toptail_paper.semantics.measure import measure_all
from toptail_paper.semantics.memory import memory_table
from toptail_paper.semantics.results import stored_config
from toptail_paper.semantics.tables import all_tables
from toptail_paper.semantics.temperature import temperature_table
from toptail_paper.study.kept import with_kept, with_kept_tables
from toptail_paper.study.tables import write_tables


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
    made = all_tables(measured, config) | {n: table for n, table in beside.items() if table}
    tables = with_kept_tables(folder, made)
    write_tables(folder / "tables", tables)
    curves = folder / "curves.json"
    write_json(curves, with_kept(curves, all_curves(measured, config)))
    return sorted(tables)
