"""After scoring: tables, curves, claims and the report page, from stored scores alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_type_hints

from toptail.errors import InputError
from toptail.lab.paper import SEMANTICS
from toptail.lab.studies.finish import decide_stored
from toptail.lab.studies.folder import read_json, write_json
from toptail.lab.studies.semantics.config import SEEN, SemanticsConfig
from toptail.lab.studies.semantics.curves import all_curves
from toptail.lab.studies.semantics.jobs import MEASURED
from toptail.lab.studies.semantics.load import read_seen, read_tasks, read_temperature
from toptail.lab.studies.semantics.measure import measure_all
from toptail.lab.studies.semantics.seen import seen_table
from toptail.lab.studies.semantics.tables import all_tables
from toptail.lab.studies.semantics.temperature import temperature_table
from toptail.lab.studies.tables import write_tables
from toptail.progress import Tick


def finish_semantics(out: str | Path, tick: Tick | None = None, workers: int | None = None) -> Path:
    """Make everything that is made of stored scores.

    Parameters
    ----------
    out
        The study's folder, with ``config.json`` and ``scores/``.
    tick
        Told the stage and the share of it that is done.
    workers
        Processes that measure columns; one per core unless given. They are fresh ones, so that a
        script that calls this needs ``if __name__ == "__main__"``, unless it asks for one.

    Returns
    -------
    The path of ``report.html``.
    """
    from toptail.lab.studies.semantics.page import write_semantics_report

    write_results(out, tick, workers)
    decide_stored(out, SEMANTICS, curves=read_json(Path(out) / "curves.json"))
    return write_semantics_report(out)


def write_results(
    out: str | Path, tick: Tick | None = None, workers: int | None = None
) -> list[str]:
    """Store ``tables/*.json`` and ``curves.json``; returns the tables' names.

    Columns that were measured from the same scores, settings and code before are not measured
    again (``measured/``); tables and curves are always made anew.
    """
    folder, config = Path(out), stored_config(out)
    workers, kept = workers or os.cpu_count() or 1, folder / MEASURED
    measured = measure_all(read_tasks(out), config, tick, workers, kept)
    tables = all_tables(measured, config)
    seen = seen_table(measured, read_seen(out), config, tick, workers, kept)
    if seen is not None:
        tables[SEEN] = seen
    sweep = temperature_table(read_temperature(out), config, tick, workers, kept)
    if sweep is not None:
        tables["temperature"] = sweep
    write_tables(folder / "tables", tables)
    write_json(folder / "curves.json", all_curves(measured, config))
    return sorted(tables)


def stored_config(out: str | Path) -> SemanticsConfig:
    """The configuration in ``config.json``."""
    path = Path(out) / "config.json"
    if not path.is_file():
        raise InputError(
            f"{out} holds no semantics study (config.json is missing): run 'toptail study "
            "semantics' with --runs first."
        )
    stored = read_json(path)
    known = get_type_hints(SemanticsConfig)
    try:
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored["config"].items()
            if name in known
        }
        return SemanticsConfig(**settings)
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path} is not the configuration of a semantics study: name another --out, or delete "
            "the file and run the study again."
        ) from None
