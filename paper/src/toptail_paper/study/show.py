"""Stored tables as tables of a page: each measured cell with its interval and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT
from toptail_paper.study.compare import beside, comparisons, where_compared
from toptail_paper.study.naming import is_control
from toptail_paper.study.tables import Metric, TableSpec, Text


def shown_tables(spec: TableSpec, results: Any) -> list[Table]:
    """A stored table as one or two tables: the paper's and the user's critics, then controls."""
    if spec.show is not None:
        return list(spec.show(results))
    stored = results.tables[spec.stored]
    there = [s for task in stored["rows"].values() for s in task]
    controls = frozenset(s for s in there if spec.apart and is_control(s))
    if not controls or controls.issuperset(there):
        return [show(spec, stored, results)]
    return [
        show(spec, _without(stored, controls), results),
        show(spec, _without(stored, frozenset(there) - controls), results),
    ]


def _without(stored: Mapping[str, Any], scorers: frozenset[str]) -> dict[str, Any]:
    rows = {
        task: {s: cells for s, cells in row.items() if s not in scorers}
        for task, row in stored["rows"].items()
    }
    return {**stored, "rows": {task: row for task, row in rows.items() if row}}


def show(spec: TableSpec, stored: Mapping[str, Any], results: Any = None) -> Table:
    """One stored table, with the paper's cell below ours if the paper has it.

    A table with one metric has a column per task; one with several has a column per metric and a
    row per task and scorer, unless its spec sets `tasks`. A triangle marks a cell that differs
    from the paper's.
    """
    rows: Mapping[str, Any] = stored["rows"]
    if spec.tasks == "first":
        rows = dict(list(rows.items())[:1])
    metrics = spec.columns(rows)
    grid = _Grid(spec, stored, rows, metrics)
    caption = text_of(spec.meaning, results)
    if spec.tasks == "columns" or len(metrics) == 1:
        columns, lines = grid.tasks_across()
    else:
        columns, lines = grid.tasks_down()
        if len(rows) == 1 and spec.tasks == "rows":
            caption = f"{next(iter(rows))}. {caption}"
    title = text_of(spec.title, results)
    name = spec.anchor if spec.of else stored["label"]
    return Table(name, title, caption, tuple(columns), tuple(lines), stacked=True)


def text_of(text: Text, results: Any) -> str:
    """Resolve a text that may be a function of the results, and its words about the paper."""
    words = text if isinstance(text, str) else text(results)
    return where_compared(words, compared=results is None or results.has_paper)


class _Grid:
    """Columns and lines of one shown table."""

    def __init__(
        self,
        spec: TableSpec,
        stored: Mapping[str, Any],
        rows: Mapping[str, Any],
        metrics: Mapping[str, Metric],
    ) -> None:
        self.spec, self.stored, self.rows, self.metrics = spec, stored, rows, metrics
        self.pairs = {(c.task, c.critic, c.metric): c for c in comparisons(stored)}
        there = (s for row in rows.values() for s, cells in row.items() if metrics.keys() & cells)
        self.scorers = spec.order(there)

    def tasks_across(self) -> tuple[list[Column], list[tuple[Cell, ...]]]:
        """One row per scorer; a column per task and metric."""
        shown = [(t, m) for t in self.rows for m in self.metrics]
        columns = [Column("Critic", "name"), *(Column(self._heading(t, m)) for t, m in shown)]
        lines = [(self._head(s), *(self._cell(t, s, m) for t, m in shown)) for s in self.scorers]
        return columns, lines

    def tasks_down(self) -> tuple[list[Column], list[tuple[Cell, ...]]]:
        """One row per task and scorer; a column per metric."""
        columns = [Column("Critic", "name"), *(Column(m.heading) for m in self.metrics.values())]
        pairs = [(t, s) for t in self.rows for s in self.scorers if s in self.rows[t]]
        lines = [(self._head(s), *(self._cell(t, s, m) for m in self.metrics)) for t, s in pairs]
        if len(self.rows) > 1:
            columns.insert(0, Column("Task", "name"))
            lines = [(Cell(t), *line) for (t, _), line in zip(pairs, lines, strict=True)]
        return columns, lines

    def _heading(self, task: str, metric: str) -> str:
        """``R = 0.25: regret`` for a setting of the task; the task if there is one metric."""
        heading, setting = self.metrics[metric].heading, task.partition("@")[2].replace("=", " = ")
        if self.spec.tasks != "columns" and len(self.metrics) == 1:
            return heading if self.spec.tasks == "first" else task
        return f"{setting}: {heading.lower()}" if setting else heading

    def _head(self, scorer: str) -> Cell:
        circular = scorer in self.stored.get("circular", ())
        return Cell(self.spec.row_name(scorer), "circular" if circular else "")

    def _cell(self, task: str, scorer: str, metric: str) -> Cell:
        ours = self.rows[task].get(scorer, {}).get(metric)
        pair, column = self.pairs.get((task, scorer, metric)), self.metrics[metric]
        if column.show is not None:
            return Cell(MISSING_SHORT) if ours is None else column.show(ours, pair)
        decimals = self.spec.decimals if column.decimals is None else column.decimals
        return beside(ours, pair, decimals, percent=column.percent, intervals=self.spec.intervals)


def shown_notes(spec: TableSpec, stored: Mapping[str, Any]) -> list[str]:
    """The notes of a table, with the headings of columns in place of metrics' names."""
    if spec.notes is None:
        return []
    words = {m: e if isinstance(e, str) else e.heading for m, e in spec.metrics.items() if e}
    words |= spec.words or {}
    lines = []
    for note in spec.notes(stored):
        head, colon, rest = note.partition(":")
        lines.append(f"{words[head]}:{rest}" if colon and head in words else note)
    return lines


def stored_notes(stored: Mapping[str, Any]) -> list[str]:
    return list(stored.get("notes", ()))
