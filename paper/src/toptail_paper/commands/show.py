"""``toptail-paper show``: the paper's tables and figures beside the stored results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from toptail.commands.options import Flag
from toptail.commands.terminal import print_table, say
from toptail.errors import InputError


@dataclass(frozen=True)
class Show:
    """Show a table or figure of the paper beside what was measured here, from stored results.

    Nothing is trained and nothing is written: the results ship with this package. 'toptail
    reproduce LABEL' measures one again, in a folder of your own.
    """

    which: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL|NUMBER")] = ""
    """The paper's label (tab:main), the number of a table (4, S3), or 'figure 2'."""

    list: Flag = False
    """List every table and figure: number, label, caption, tasks, and how it stands here."""

    json: Flag = False
    """Print JSON, with full precision."""

    def run(self) -> int:
        """Print the list, or one table or figure."""
        if self.list == bool(self.which):
            raise InputError(
                "Name one table or figure of the paper, as in 'toptail-paper show tab:main' or "
                "'toptail "
                "paper 4', or ask for all of them with --list."
            )
        if self.list:
            self._list()
        else:
            self._show()
        return 0

    def _list(self) -> None:
        from toptail_paper.claims.published import exhibits, measured, standing, tasks_of

        rows = []
        for exhibit in exhibits():
            found = measured(exhibit.label)
            rows.append(
                {
                    "number": exhibit.name,
                    "label": exhibit.label,
                    "caption": exhibit.caption,
                    "tasks": tasks_of(exhibit, found),
                    "status": standing(exhibit, found),
                }
            )
        if self.json:
            say(json.dumps(rows, indent=1, ensure_ascii=False))
        else:
            _print_list(rows)

    def _show(self) -> None:
        from toptail_paper.claims.published import find_exhibit, measured
        from toptail_paper.study.compare import DIFFERS

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
        say(f"\nMeasure it again: toptail-paper reproduce {exhibit.label} --out FOLDER")
        for entry in (entry for each in found for entry in each.claims):
            on = f" on {entry['depends_on']}" if entry.get("depends_on") else ""
            more = f"\n  {entry['settled']}" if entry.get("settled") else ""
            say(f"\n{entry['status']}{on}: {entry['sentence']}\n  {entry['comment']}{more}")


def _print_list(rows: Any) -> None:
    from toptail.commands.terminal import plain, show, simple_grid

    grid = simple_grid()
    for heading in ("number", "label", "caption", "tasks", "status"):
        grid.add_column(heading, overflow="fold")
    for row in rows:
        texts = {**row, "tasks": ", ".join(row["tasks"])}
        grid.add_row(*(plain(text) for text in texts.values()))
    show(grid, 200)


def _table(exhibit: Any, found: Any) -> Any:
    """Paper, here and difference of every cell that the paper reports; None where it has none."""
    from toptail.report.table import Cell, Column, Table
    from toptail.report.text import MISSING_SHORT, bracket, signed
    from toptail_paper.claims.published import pairs
    from toptail_paper.study.compare import with_spread

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


def _spec(found: Any, metric: str) -> Any:
    """The specification of the stored table that knows a metric, if a table is stored."""
    from toptail_paper.study.study import studies
    from toptail_paper.study.tables import TableSpec

    for each in found:
        for spec in studies()[each.study].content:
            if isinstance(spec, TableSpec) and not spec.of and spec.name in each.tables:
                rows = each.tables[spec.name]["rows"].values()
                if any(metric in cells for row in rows for cells in row.values()):
                    return spec
    return None


def _content(exhibit: Any, found: Any) -> Mapping[str, Any]:
    """The same as JSON has it, every number as it is stored."""
    from toptail_paper.claims.published import pairs

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
