"""``toptail-paper show``: the paper's tables and figures beside the stored results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail.commands.flags import OUTPUT
from toptail.commands.terminal import plain, print_table, say, show, simple_grid
from toptail.errors import InputError
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, signed
from toptail_paper.claims.published import (
    Exhibit,
    StoredStudy,
    exhibits,
    find_exhibit,
    measured,
    pairs,
    status_line,
    tasks_of,
)
from toptail_paper.study.compare import DIFFERS, with_spread
from toptail_paper.study.study import studies, study_in
from toptail_paper.study.tables import TableSpec


@dataclass(frozen=True)
class Show:
    """Show a table or figure of the paper beside what was measured, from stored results.

      toptail-paper show tab:main
      toptail-paper show --list

    Nothing is trained and nothing is written: the results ship with this package. 'toptail-paper
    study' measures them again, in a folder of your own, which --out shows.
    """

    which: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL|NUMBER")] = ""
    """The paper's label (tab:main), the number of a table (4, S3), or 'figure 2'."""
    out: Annotated[Path | None, OUTPUT] = None
    """Show the table or figure of this folder, which 'toptail-paper study' wrote; for the selection
    study OUT/TASK. The stored results unless given."""
    list: Annotated[bool, OUTPUT] = False
    """List every table and figure: number, label, caption, tasks, and its state here."""
    json: Annotated[bool, OUTPUT] = False
    """Print JSON, with full precision."""

    def run(self) -> int:
        if self.list == bool(self.which):
            raise InputError(
                "Name one table or figure of the paper, as in 'toptail-paper show tab:main' or "
                "'toptail-paper show 4', or list all of them with --list."
            )
        if self.list:
            self._list()
        elif self.out is not None:
            _show_folder(self.which, self.out)
        else:
            self._show()
        return 0

    def _list(self) -> None:
        rows = [
            {
                "number": exhibit.name,
                "label": exhibit.label,
                "caption": exhibit.caption,
                "tasks": tasks_of(exhibit, found),
                "status": status_line(exhibit, found),
            }
            for exhibit in exhibits()
            for found in (measured(exhibit.label),)
        ]
        if self.json:
            say(json.dumps(rows, indent=1, ensure_ascii=False))
        else:
            _print_list(rows)

    def _show(self) -> None:
        exhibit = find_exhibit(self.which)
        found = measured(exhibit.label)
        if self.json:
            say(json.dumps(_content(exhibit, found), indent=1, ensure_ascii=False))
            return
        table = _table(exhibit, found)
        if table is None:
            say(f"{exhibit.name} ({exhibit.label}): {exhibit.caption}.")
        else:
            print_table(table)
            say(f"{DIFFERS}.")
        for each in found:
            say("\nMade by: " + "\n         ".join(each.commands or ["a call without a record"]))
            say(f"Settings: {each.settings}.")
        makers = [each for each in studies().values() if exhibit.label in each.labels]
        if makers:
            commands = " or ".join(f"toptail-paper study {each.name}" for each in makers)
            say(f"\nMeasure it again: {commands}")
        for entry in (entry for each in found for entry in each.claims):
            on = f" on {entry['depends_on']}" if entry.get("depends_on") else ""
            more = f"\n  {entry['settled']}" if entry.get("settled") else ""
            say(f"\n{entry['status']}{on}: {entry['sentence']}\n  {entry['comment']}{more}")


def _show_folder(label: str, folder: Path) -> None:
    """Print the tables of a label from a study's folder, and where its figures are."""
    study = study_in(folder)
    if label not in study.labels:
        raise InputError(
            f"{folder} holds the study '{study.name}', which does not make '{label}'; it makes "
            f"{', '.join(study.labels)}."
        )
    tables, figures = study.tables(folder, (label,)), study.figures(folder, label)
    if not tables and not figures:
        raise InputError(
            f"{folder} has no scores for {label}: make them with 'toptail-paper study "
            f"{study.name} --runs RUNS --train'."
        )
    for table in tables:
        print_table(table)
    for figure in figures:
        say(f"Figure: {figure}.svg and .png")


def _print_list(rows: Sequence[Mapping[str, Any]]) -> None:
    grid = simple_grid()
    for heading in ("number", "label", "caption", "tasks", "status"):
        grid.add_column(heading, overflow="fold")
    for row in rows:
        texts = {**row, "tasks": ", ".join(row["tasks"])}
        grid.add_row(*(plain(text) for text in texts.values()))
    show(grid, 200)


def _table(exhibit: Exhibit, found: list[StoredStudy]) -> Table | None:
    """Paper, here and difference of every cell that the paper reports; None where it has none."""
    lines = []
    for pair in pairs(exhibit.label, found):
        spec, both = _spec(found, pair.metric), pair.compared
        decimals, row, heading = 3, pair.scorer, pair.metric
        if spec is not None:
            decimals, row = spec.decimals, spec.row_name(pair.scorer)
            column = spec.metric(pair.metric)[1]
            heading = pair.metric if column is None else column.heading
        here = difference = Cell(MISSING_SHORT)
        if both is not None:
            ends = bracket(both.ours.get("low"), both.ours.get("high"), decimals)
            here = Cell(with_spread(both.ours, decimals), ends)
            mark = ("▲ " if both.difference > 0 else "▼ ") if both.differs(decimals) else ""
            difference = Cell(f"{mark}{signed(both.difference, decimals)}")
        texts = (pair.task, row, heading, with_spread(pair.paper, decimals))
        lines.append((*map(Cell, texts), here, difference))
    if not lines:
        return None
    heads = (Column("Task", "name"), Column("Critic", "name"), Column("Metric", "name"))
    columns = (*heads, Column("Paper"), Column("Here"), Column("Difference"))
    return Table(exhibit.label, f"{exhibit.name}: {exhibit.caption}", "", columns, tuple(lines))


def _spec(found: list[StoredStudy], metric: str) -> TableSpec | None:
    """The specification of the stored table that knows a metric, if a table is stored."""
    for each in found:
        for spec in studies()[each.study].content:
            if isinstance(spec, TableSpec) and not spec.of and spec.name in each.tables:
                rows = each.tables[spec.name]["rows"].values()
                if any(metric in cells for row in rows for cells in row.values()):
                    return spec
    return None


def _content(exhibit: Exhibit, found: list[StoredStudy]) -> Mapping[str, Any]:
    """The table for ``--json``, every number as it is stored."""
    return {
        **{name: getattr(exhibit, name) for name in ("kind", "number", "label", "caption")},
        "cells": [
            {
                "task": pair.task,
                "scorer": pair.scorer,
                "metric": pair.metric,
                "paper": pair.paper,
                "here": pair.here,
                "difference": None if pair.compared is None else pair.compared.difference,
            }
            for pair in pairs(exhibit.label, found)
        ],
        "runs": [
            {
                "study": each.study,
                "folder": each.folder.name,
                "commands": each.commands,
                "commit": each.record.get("commit"),
                "settings": each.settings,
                "tables": each.tables,
            }
            for each in found
        ],
        "claims": [entry for each in found for entry in each.claims],
    }
