"""An answered plan for a reader: ``results.md``, and the figures that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from toptail.lab.critics.registry import split_label
from toptail.report.documents import as_markdown, bullets, document, pipe_table
from toptail.report.figures import NEUTRAL, new_figure
from toptail.report.table import Column, Table, name_cell, number_cell, numbers
from toptail.report.text import decimals_for
from toptail_paper.grids.rules import fits, sentence
from toptail_paper.study.figures import Drawing, FigureSpec, interval, look, mean_of, panels
from toptail_paper.study.page import write_bytes, write_figures

PAGE: Final = "results.md"
"""The file that a reader opens."""

MOST: Final = 120
"""A grid with more cells has a table but no figure."""

MAPPED: Final = re.compile(r"map_goal(\d+)_(-?\d+)_(-?\d+)")
"""A square of the map of Q - Q*: goal, column, row."""

_NUMBERS: Final = FigureSpec("numbers", "The numbers that the answer is about", "answer")
_MAP: Final = FigureSpec("map", "Q less Q*", "answer")
_DISTANCES: Final = FigureSpec("distances", "Distance of every setting to the targets", "answer")

Cells = Mapping[str, Mapping[str, Any]]


def write_settled(folder: Path, plan: Mapping[str, Any], results: Mapping[str, Any]) -> Path:
    cells: Cells = results["cells"]
    in_answer = answer_metrics(plan["answer"], cells)
    drawings = list(_drawings(plan["answer"], cells, in_answer))
    settings = (results["answer"] or {}).get("settings")
    if settings:
        limit = plan["answer"]["limit"]
        drawings.insert(0, Drawing.of(_DISTANCES, lambda: _distances_figure(settings, limit)))
    write_figures(folder / "figures", drawings)
    parts = [
        f"# {as_markdown(plan['question'])}",
        f"**{as_markdown(sentence(results['answer']))}**",
    ]
    parts += [f"![{drawing.title}](figures/{drawing.name}.svg)" for drawing in drawings]
    for data, own in cells.items():
        parts += [f"## {as_markdown(data)}", pipe_table(_table(own, in_answer, intervals=True))]
        others = [m for m in _metrics(own) if m not in in_answer and not MAPPED.fullmatch(m)]
        if others:
            parts += ["The other numbers:", pipe_table(_table(own, others, intervals=False))]
        marks = [(name, *mark) for name, entry in own.items() for mark in entry["marked"].items()]
        marked = bullets(
            f"{as_markdown(name)}: seed {seed} {as_markdown(why)}" for name, seed, why in marks
        )
        parts += ["Marked:", marked] if marked else []
    missing = bullets(map(as_markdown, results.get("missing", ())))
    parts += ["Missing:", missing] if missing else []
    parts.append(
        f"Means over seeds {', '.join(map(str, plan['seeds']))}; in brackets 95 % over what was "
        "resampled, with the seeds as they are."
    )
    write_bytes(folder / PAGE, document(parts).encode())
    return folder / PAGE


def answer_metrics(answer: Mapping[str, Any], cells: Cells) -> list[str]:
    """The metrics that an answer speaks of and that some cell has."""
    named = [condition["metric"] for condition in answer["conditions"]]
    named += [answer["metric"], answer["predicted"]]
    named += [metric for metrics in answer["targets"].values() for metric in metrics]
    there = {metric for own in cells.values() for metric in _metrics(own)}
    return [name for name in dict.fromkeys(named) if name in there]


def _metrics(cells: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for entry in cells.values() for name in entry["metrics"]))


def _table(cells: Mapping[str, Any], metrics: Sequence[str], *, intervals: bool) -> Table:
    means = {m: [mean_of(entry["metrics"].get(m)) or 0.0 for entry in cells.values()]
             for m in metrics}  # fmt: skip
    places = {m: max(3, decimals_for(max(map(abs, xs)))) for m, xs in means.items()}
    rows = []
    for name, entry in cells.items():
        row = [name_cell(name)]
        for metric in metrics:
            cell = entry["metrics"].get(metric) or {}
            ends = (cell.get("low"), cell.get("high")) if intervals else (None, None)
            row.append(number_cell(cell.get("mean"), *ends, decimals=places[metric]))
        rows.append(tuple(row))
    return Table("cells", "", "", (Column("critic", "name"), *numbers(*metrics)), tuple(rows))


def _drawings(
    answer: Mapping[str, Any], cells: Cells, in_answer: Sequence[str]
) -> Iterator[Drawing]:
    rows = [(data, name, entry) for data, own in cells.items() for name, entry in own.items()]
    if in_answer and len(rows) <= MOST:
        yield Drawing.of(_NUMBERS, lambda: _numbers_figure(answer, rows, in_answer))
    maps = {
        f"{name}, {data}" if len(cells) > 1 else name: _squares(entry["metrics"])
        for data, name, entry in rows
        if any(MAPPED.fullmatch(metric) for metric in entry["metrics"])
    }
    if maps:
        yield Drawing.of(_MAP, lambda: _map_figure(maps))


def _numbers_figure(
    answer: Mapping[str, Any],
    rows: Sequence[tuple[str, str, Mapping[str, Any]]],
    in_answer: Sequence[str],
) -> Figure:
    """Every cell a line, every metric a panel; what would count as met is shaded."""
    figure, (line,) = panels(len(in_answer), 1, 1.2 + 0.17 * len(rows))
    several = len({data for data, _, _ in rows}) > 1
    for metric, panel in zip(in_answer, line, strict=True):
        for place, (_, name, entry) in enumerate(rows):
            cell = entry["metrics"].get(metric)
            critic = split_label(name)[0]
            if mean_of(cell) is not None:
                colour, marker = look(critic)
                interval(panel, cell, place, horizontal=True, colour=colour)
                panel.plot(cell["mean"], place, marker, color=colour, markersize=4)
            target = answer["targets"].get(critic, {}).get(metric)
            if target is not None:
                panel.plot(target, place, "|", color=NEUTRAL, markersize=9)
        ends = panel.get_xlim()
        for place, (_, _, entry) in enumerate(rows):
            for condition in answer["conditions"]:
                if condition["metric"] == metric and fits(
                    {**answer["where"], **condition.get("where", {})}, entry["settings"]
                ):
                    low, high = condition.get("low", ends[0]), condition.get("high", ends[1])
                    around = (place - 0.5, place + 0.5)
                    panel.fill_betweenx(around, low, high, color=NEUTRAL, alpha=0.15, linewidth=0)
        panel.set_xlim(*ends)
        panel.set_title(metric)
        panel.grid(axis="x")
    names = [f"{data}: {name}" if several else name for data, name, _ in rows]
    line[0].set_yticks(range(len(rows)), names, fontsize=6.5)
    line[0].set_ylim(len(rows) - 0.5, -0.5)
    return figure


def _distances_figure(settings: Sequence[Mapping[str, Any]], limit: float | None) -> Figure:
    """A line per data set, a dot per setting; the nearest is filled, the limit is a bar."""
    lines = list(dict.fromkeys(each["data"] for each in settings))
    figure, ((panel,),) = panels(1, 1, 0.9 + 0.2 * len(lines))
    for place, data in enumerate(lines):
        own = [each["distance"] for each in settings if each["data"] == data]
        panel.plot(own, [place] * len(own), "o", color=NEUTRAL, markersize=4, fillstyle="none")
        panel.plot(min(own), place, "o", color=NEUTRAL, markersize=5)
    if limit is not None:
        panel.axvline(limit, color=NEUTRAL, linewidth=0.8)
    panel.set_yticks(range(len(lines)), [data.removesuffix("-v0.npz") for data in lines])
    panel.set_ylim(len(lines) - 0.5, -0.5)
    panel.set_xlim(left=0.0)
    panel.set_xlabel("root mean square distance to the paper's cells")
    panel.grid(axis="x")
    return figure


def _squares(metrics: Mapping[str, Any]) -> dict[int, dict[tuple[int, int], float]]:
    """Goal -> square -> mean of Q - Q*."""
    found: dict[int, dict[tuple[int, int], float]] = {}
    for name, cell in metrics.items():
        if (place := MAPPED.fullmatch(name)) and cell["mean"] is not None:
            goal, x, y = map(int, place.groups())
            found.setdefault(goal, {})[x, y] = cell["mean"]
    return found


def _map_figure(maps: Mapping[str, Mapping[int, Mapping[tuple[int, int], float]]]) -> Figure:
    """A row of panels per critic, a panel per goal; blue is below Q*, red above."""
    goals = sorted({goal for of_goal in maps.values() for goal in of_goal})
    figure = new_figure(1.2 + 1.9 * len(goals), 0.4 + 2.0 * len(maps))
    grid = figure.subplots(len(maps), len(goals), squeeze=False)
    every = [x for of in maps.values() for squares in of.values() for x in squares.values()]
    most = max(map(abs, every)) or 1.0
    image = None
    for (name, of_goal), line in zip(maps.items(), grid, strict=True):
        for goal, panel in zip(goals, line, strict=True):
            squares = of_goal.get(goal, {})
            left, low = (min(place[i] for place in squares) for i in (0, 1))
            shape = [max(place[i] for place in squares) + 1 for i in (0, 1)]
            field = np.full((shape[1] - low, shape[0] - left), np.nan)
            for (x, y), error in squares.items():
                field[y - low, x - left] = error
            image = panel.imshow(field, origin="lower", cmap="RdBu_r", vmin=-most, vmax=most)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"goal {goal}", fontsize=8)
        line[0].set_ylabel(name, fontsize=7)
    if image is not None:
        figure.colorbar(image, ax=grid, label="Q less Q*", shrink=0.8)
    return figure
