"""The strokes that the semantics study's figures share: panels, bands, intervals, one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toptail.lab.studies.semantics.results import Band, Floats, in_order, looks, scorer_name
from toptail.lab.studies.strokes import INK, new_figure
from toptail.report.palette import NEUTRAL

_PANEL: Final = 3.1
"""Width of one task's panel in inches."""

WIDTH: Final = 8.4
"""Least width of a figure in inches: pages show figures at one width, and so at one text size."""

_WIDEST, _THINNEST = 3.4, 1.2
"""Line widths of the first and the last of several curves, in points."""


def panels(columns: int, rows: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of panels that share their y axis within a row."""
    figure = new_figure(max(WIDTH, 1.0 + _PANEL * columns), height + 0.5)
    grid = figure.subplots(rows, columns, sharey="row", squeeze=False)
    return figure, [list(row) for row in grid]


def widths(scorers: Sequence[str]) -> dict[str, float]:
    """Line width of every scorer: thinner and thinner, so that equal curves show each other."""
    steps = np.linspace(_WIDEST, _THINNEST, len(scorers))
    return dict(zip(scorers, steps.tolist(), strict=True))


def line(
    panel: Axes, x: Floats | Any, band: Band, style: tuple[str, str], width: float = 1.6
) -> None:
    """A mean over seeds with its band of ± one standard deviation."""
    colour, marker = style
    panel.fill_between(
        x, band.mean - band.std, band.mean + band.std, color=colour, alpha=0.16, linewidth=0
    )
    panel.plot(x, band.mean, color=colour, marker=marker, markersize=3 + width, linewidth=width)
    panel.grid(axis="y")


def grouped(
    panel: Axes,
    table: Mapping[str, Any],
    tasks: Sequence[str],
    scorers: Sequence[str],
    metric: str,
    style: Mapping[str, tuple[str, str]],
) -> None:
    """One group of points with intervals per task, the paper's as hollow markers beside ours."""
    width = 0.8 / len(scorers)
    for place, task in enumerate(tasks):
        cells = {s: table["rows"][task].get(s, {}).get(metric) for s in scorers}
        there = {s: c for s, c in cells.items() if c is not None and mean_of(c) is not None}
        for index, (scorer, cell) in enumerate(there.items()):
            colour, marker = style[scorer]
            x = place + (index - (len(there) - 1) / 2) * width
            interval(panel, cell, x, horizontal=False, colour=colour)
            panel.plot(x, cell["mean"], marker, color=colour, markersize=5)
            theirs = reported(table, task, scorer, metric)
            if theirs is not None:
                panel.plot(x + 0.35 * width, theirs, marker, mfc="white", mec=colour, ms=4.5)
    panel.set_xlim(-0.6, len(tasks) - 0.4)
    panel.tick_params(axis="x", length=0)
    panel.grid(axis="y")


def interval(
    panel: Axes, cell: Mapping[str, Any], place: float, *, horizontal: bool, colour: str = INK
) -> None:
    """The cell's interval as a line, where it has one."""
    if cell.get("low") is None or cell.get("high") is None:
        return
    along, across = [cell["low"], cell["high"]], [place, place]
    x, y = (along, across) if horizontal else (across, along)
    panel.plot(x, y, color=colour, linewidth=1.4)


def legend(
    figure: Figure, scorers: Sequence[str], extra: Sequence[tuple[str, Literal["--", ":"]]] = ()
) -> None:
    """One legend for all panels, below them."""
    style = looks(scorers)
    handles = [
        Line2D([], [], color=style[s][0], marker=style[s][1], markersize=5, label=scorer_name(s))
        for s in in_order(scorers)
    ]
    handles += [Line2D([], [], color=NEUTRAL, linestyle=ls, label=text) for text, ls in extra]
    # Every column is as wide as the longest name: about 0.07 inches a letter, and the handle.
    longest = max(len(str(handle.get_label())) for handle in handles)
    ncols = max(1, min(len(handles), int(figure.get_figwidth() / (0.55 + 0.07 * longest))))
    figure.legend(handles=handles, loc="outside lower center", ncols=ncols, fontsize=8.5)


def mean_of(cell: Mapping[str, Any] | None) -> float | None:
    """Mean of a cell; None where there is no cell or no number in it."""
    return None if cell is None else cell.get("mean")


def reported(table: Mapping[str, Any], task: str, scorer: str, metric: str) -> float | None:
    """What the paper has for a cell, if anything."""
    reported = table.get("paper", {}).get(task, {}).get(scorer, {}).get(metric)
    return mean_of(reported)


def short_task(task: str) -> str:
    """``PointMaze`` as P, ``AntSoccer`` as AS: enough to tell a handful of tasks apart."""
    capitals = "".join(letter for letter in task if letter.isupper())
    return capitals if capitals else task.partition("-")[0]
