"""After the stages: audits, tables, curves, claims and the report page, from stored files alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.studies.claims.fixed_query import FIXED_QUERY
from toptail.studies.common import read_json, write_json
from toptail.studies.finish import write_ledger
from toptail.studies.selection.audits import write_audits
from toptail.studies.selection.judge_tables import (
    deployment_table,
    judges_table,
    rollout_cells,
)
from toptail.studies.selection.load import REFERENCE, TaskSelection, read_selection
from toptail.studies.selection.rollout_design import TRAINING_SEED
from toptail.studies.selection.tables import (
    RESAMPLES,
    Measured,
    Tick,
    fixed_query_table,
    function_class_table,
)


def finish_selection(
    folder: str | Path, tick: Tick | None = None, resamples: int = RESAMPLES
) -> Path:
    """Make everything that is made of a task's stored stages.

    Parameters
    ----------
    folder
        ``OUT/TASK``.
    tick
        Told the stage and the share of it that is done.
    resamples
        Of whole trajectories, for every interval.

    Returns
    -------
    The path of ``report.html``.
    """
    from toptail.report.selection_page import write_selection_report

    data = read_selection(folder)
    if not data.scores or not data.values:
        missing = "scores" if not data.scores else "values"
        raise InputError(
            f"{data.folder / missing} holds no file: there is nothing to tabulate before some "
            "critic has scored and some judge has valued the candidates."
        )
    write_results(data, tick, resamples)
    if tick is not None:
        tick("writing the report", 0.5)
    write_selection_claims(data.folder)
    return write_selection_report(data.folder)


def write_results(
    data: TaskSelection, tick: Tick | None = None, resamples: int = RESAMPLES
) -> list[str]:
    """Store the audits, ``tables/*.json`` and ``curves.json``; returns the tables' names."""
    measured = Measured(data, resamples=resamples, tick=tick)
    if tick is not None:
        tick("auditing", 0.1)
    audits = write_audits(data, resamples)
    deltas = rollout_cells(audits.get("rollouts"), TRAINING_SEED)
    judges = judges_table(data, measured.means, deltas)
    admitted = judges["statuses"].get(REFERENCE, {}).get("admitted", False)
    tables: dict[str, dict[str, Any] | None] = {
        "fixed-query": fixed_query_table(measured, deltas, reliable=admitted),
        "function-class": function_class_table(measured),
        "judges": judges,
        "deployment": deployment_table(data),
    }
    made = {name: content for name, content in tables.items() if content is not None}
    for stale in (data.folder / "tables").glob("*.json"):
        if stale.stem not in made:
            stale.unlink()
    for name, content in made.items():
        write_json(data.folder / "tables" / f"{name}.json", content)
    write_json(data.folder / "curves.json", measured.curves())
    return sorted(made)


def write_selection_claims(folder: Path) -> list[dict[str, Any]]:
    """Decide every claim that the stored tables decide."""
    tables: dict[str, Mapping[str, Any]] = {
        path.stem: read_json(path) for path in sorted((folder / "tables").glob("*.json"))
    }
    record = folder / "record.json"
    return write_ledger(folder, FIXED_QUERY, tables, read_json(record) if record.is_file() else {})
