"""The semantics study's tables as Markdown: every measured cell beside the paper's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from toptail.lab.studies.semantics.results import read_semantics
from toptail.lab.studies.semantics.show import LAYOUTS, notes, show_apart
from toptail.report.markdown import escape, pipe_table
from toptail.report.table import Cell, Table

_LEGEND = (
    "Measured mean ± standard deviation over seeds, the 95 % interval of that mean (whole "
    "trajectories resampled), and the paper's number. ▲ and ▼: above or below the paper's by "
    "more than the larger of the two standard deviations (ours alone where the paper gives none) "
    "and the rounding."
)


def render(out: str | Path) -> str:
    """One section per stored table, with the paper's cell beside each measured one.

    Parameters
    ----------
    out
        Folder of a run of ``toptail study semantics``.
    """
    study = read_semantics(out)
    parts = [_LEGEND]
    for name in LAYOUTS:
        if study.rows(name):
            first, *others = show_apart(name, study.tables[name])
            parts.append(f"## {escape(first.title)} (`{first.name}`)")
            parts += [escape(first.caption), pipe_table(_one_line(first))]
            for other in others:
                parts += ["Controls:", pipe_table(_one_line(other))]
            parts.append("\n".join(f"- {escape(n)}" for n in notes(name, study.tables[name])))
    return "\n\n".join(part for part in parts if part) + "\n"


def _one_line(table: Table) -> Table:
    """Interval and paper's number behind each other, set apart by a comma."""
    return replace(table, rows=tuple(tuple(_joined(c) for c in row) for row in table.rows))


def _joined(cell: Cell) -> Cell:
    return replace(cell, detail=", ".join(cell.detail.splitlines()))
