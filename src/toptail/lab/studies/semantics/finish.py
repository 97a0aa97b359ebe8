"""After scoring: tables and curves, from stored scores alone."""

from __future__ import annotations

import os
from pathlib import Path

from toptail.lab.studies.folder import write_json
from toptail.lab.studies.semantics.config import SEEN
from toptail.lab.studies.semantics.curves import all_curves
from toptail.lab.studies.semantics.jobs import MEASURED
from toptail.lab.studies.semantics.load import read_seen, read_tasks, read_temperature
from toptail.lab.studies.semantics.measure import measure_all
from toptail.lab.studies.semantics.memory import memory_table
from toptail.lab.studies.semantics.results import stored_config
from toptail.lab.studies.semantics.tables import all_tables
from toptail.lab.studies.semantics.temperature import temperature_table
from toptail.lab.studies.tables import write_tables
from toptail.progress import Tick


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
    workers, kept = workers or os.cpu_count() or 1, folder / MEASURED
    measured = measure_all(read_tasks(out), config, tick, workers, kept)
    tables = all_tables(measured, config)
    memory = memory_table(measured, read_seen(out), config, tick, workers, kept)
    if memory is not None:
        tables[SEEN] = memory
    sweep = temperature_table(read_temperature(out), config, tick, workers, kept)
    if sweep is not None:
        tables["temperature"] = sweep
    write_tables(folder / "tables", tables)
    write_json(folder / "curves.json", all_curves(measured, config))
    return sorted(tables)
