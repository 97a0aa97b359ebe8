"""After the stages: audits, tables and curves, from stored files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.progress import Tick, no_tick
from toptail_paper.selection.audits import write_audits
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.judge_tables import deployment_table, judges_table, rollout_cells
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.norms import PICK_NORM, pick_norm_table
from toptail_paper.selection.rollout_design import TRAINING_SEED
from toptail_paper.selection.search_error import search_error_table
from toptail_paper.selection.tables import (
    RESAMPLES,
    MeasuredPicks,
    factored_table,
    fixed_query_table,
    function_class_table,
)
from toptail_paper.study.kept import with_kept, with_kept_tables
from toptail_paper.study.search_error import LABEL
from toptail_paper.study.tables import write_tables


def write_results(
    folder: str | Path, tick: Tick | None = None, resamples: int = RESAMPLES
) -> list[str]:
    """Store the audits, ``tables/*.json`` and ``curves.json`` in ``OUT/TASK``; returns the tables.

    Every interval has so many resamples of whole trajectories.
    """
    data, tick = read_selection(folder), tick or no_tick
    if not data.scores or not data.values:
        missing = "scores" if not data.scores else "values"
        raise InputError(
            f"{data.folder / missing} holds no file: there is nothing to tabulate before some "
            "critic has scored and some judge has valued the candidates."
        )
    measured = MeasuredPicks(data, resamples=resamples, tick=tick)
    tick("auditing", 0.1)
    audits = write_audits(data, resamples)
    deltas = rollout_cells(audits.get("rollouts"), TRAINING_SEED)
    judges = judges_table(data, measured.means, deltas)
    admitted = judges["statuses"].get(REFERENCE, {}).get("admitted", False)
    tables: dict[str, dict[str, Any] | None] = {
        "fixed-query": fixed_query_table(measured, deltas, reliable=admitted),
        "function-class": function_class_table(measured),
        "factored": factored_table(measured),
        "judges": judges,
        "deployment": deployment_table(data),
        LABEL: search_error_table(measured),
        PICK_NORM: pick_norm_table(measured),
    }
    new = {name: content for name, content in tables.items() if content is not None}
    made = with_kept_tables(data.folder, new)
    write_tables(data.folder / "tables", made)
    curves = data.folder / "curves.json"
    write_json(curves, with_kept(curves, measured.curves()))
    return sorted(made)
