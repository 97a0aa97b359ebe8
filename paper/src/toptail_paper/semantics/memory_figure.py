"""Trajectories trained on and held out: the figure, and the sentences of the page's summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from matplotlib.figure import Figure

from toptail.report.palette import NEUTRAL
from toptail.report.text import join, number
from toptail_paper.study.figures import interval, legend, looks, mean_of, panels, widths
from toptail_paper.study.naming import drawn, in_order, scorer_name

_ROWS: Final = (("auc", "retrieval AUC"), ("nearer_goal", "nearer goal higher"))
_KINDS: Final = (("held_out", "held out"), ("seen", "seen"))

BY_HEART: Final = 0.05
"""Share of cases by which the order must be worse on seen trajectories, with certainty."""


def memory_figure(table: Mapping[str, Any]) -> Figure:
    """Retrieval and order on both kinds of trajectories, one column of panels per task."""
    rows: Mapping[str, Any] = table["rows"]
    scorers = drawn(s for task in rows.values() for s in task)
    figure, grid = panels(len(rows), len(_ROWS), 4.4)
    for (metric, label), line_of_panels in zip(_ROWS, grid, strict=True):
        for task, panel in zip(rows, line_of_panels, strict=True):
            for index, scorer in enumerate(s for s in scorers if s in rows[task]):
                colour, marker = looks(scorers)[scorer]
                cells = [rows[task][scorer].get(f"{metric}_{kind}") for kind, _ in _KINDS]
                # Side by side, so that intervals of equal critics do not cover each other.
                places = [x + 0.05 * (index - (len(scorers) - 1) / 2) for x in range(len(_KINDS))]
                both = zip(places, cells, strict=True)
                there = [(x, cell) for x, cell in both if mean_of(cell) is not None]
                for x, cell in there:
                    interval(panel, cell, x, horizontal=False, colour=colour)
                panel.plot(
                    [x for x, _ in there],
                    [cell["mean"] for _, cell in there],
                    color=colour,
                    marker=marker,
                    markersize=4.5,
                    linewidth=widths(scorers)[scorer] / 2,
                )
            panel.axhline(0.5, color=NEUTRAL, linewidth=1, linestyle=":")
            panel.set_xticks(range(len(_KINDS)), [text for _, text in _KINDS])
            panel.set_xlim(-0.4, len(_KINDS) - 0.6)
            panel.grid(axis="y")
            panel.set_title(task if metric == _ROWS[0][0] else "")
        line_of_panels[0].set_ylabel(label)
    legend(figure, scorers)
    return figure


def memory_lines(table: Mapping[str, Any]) -> list[str]:
    """Name the critics that know clearly less of the order where they were trained."""
    lines = []
    for task, falls in table.get("falls", {}).items():
        found = in_order(s for s, fall in falls.items() if (fall.get("low") or 0.0) > BY_HEART)
        rows = table["rows"][task]
        cells = [
            f"{scorer_name(s)} {number(rows[s]['nearer_goal_held_out']['mean'], 3)} and "
            f"{number(rows[s]['nearer_goal_seen']['mean'], 3)}"
            for s in found
        ]
        if cells:
            lines.append(
                f"Learned by heart on {task}: how often the nearer of two goals scores higher, on "
                f"held-out trajectories and on those trained on: {join(cells)}."
            )
    return lines
