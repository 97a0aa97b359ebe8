"""Figures of the selection study, drawn with Matplotlib from its stored tables and curves alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from toptail.report.figures import NEUTRAL, new_figure
from toptail_paper.selection.results import (
    SelectionResults,
    closed_loop,
    closed_loop_ks,
    judge_name,
    selector_name,
)
from toptail_paper.selection.specs import FIGURES
from toptail_paper.study.compare import reported
from toptail_paper.study.figures import (
    Drawing,
    SeedBand,
    drawings_of,
    interval,
    k_axis,
    legend,
    line,
    looks,
    mean_of,
)
from toptail_paper.study.naming import drawn, in_order
from toptail_paper.study.search_error import FIGURE, LABEL, search_error_figure


def drawings(study: SelectionResults) -> list[Drawing]:
    scorers = next(iter(study.curves["judges"].values()))["critics"]
    left_out = len(drawn(scorers)) < len(scorers)
    words = " The two-head critics are in the tables." if left_out else ""
    found = {"curves": partial(curve_figure, study)}
    if any("rollout_delta" in row for row in study.of_task("fixed-query").values()):
        found["rollouts"] = partial(rollout_figure, study)
    if rows := study.of_task(LABEL):
        unit = "normalized regret"
        found[FIGURE.name] = partial(search_error_figure, rows, unit, selector_name)
    if any(closed_loop_ks(row) for row in study.of_task("deployment").values()):
        found["closed_loop"] = partial(closed_loop_figure, study)
    return drawings_of(FIGURES, found, {"curves": FIGURES["curves"].caption + words})


def curve_figure(study: SelectionResults) -> Figure:
    """One panel per judge: gain of the best of K, in units of what the pool offers."""
    judges: Mapping[str, Any] = study.curves["judges"]
    figure = new_figure(max(5.4, 0.6 + 4.3 * len(judges)), 4.6)
    panels = figure.subplots(1, len(judges), sharey=True, squeeze=False)[0]
    k = study.curves["k"]
    scorers = drawn(next(iter(judges.values()))["critics"])
    style = looks(scorers)
    for panel, (judge, content) in zip(panels, judges.items(), strict=True):
        random, top = content["random"], content["oracle"][-1]
        scale = top - random if top > random else 1.0
        for scorer in reversed(scorers):  # the paper's critics lie on top
            band = SeedBand.of(content["critics"][scorer]["value"])
            line(panel, k, SeedBand((band.mean - random) / scale, band.std / scale), style[scorer])
        oracle = (np.array(content["oracle"]) - random) / scale
        panel.plot(k, oracle, color=NEUTRAL, linestyle="--", linewidth=1.2)
        panel.axhline(0.0, color=NEUTRAL, linewidth=1, linestyle=":")
        panel.set_title(judge_name(judge))
        k_axis(panel, k)
    panels[0].set_ylabel("gain over a random candidate")
    legend(figure, scorers, (("Best of K", "--"), ("Random", ":")))
    return figure


def rollout_figure(study: SelectionResults) -> Figure:
    """Every selector's gain over a random candidate, with its interval."""
    stored, rows = study.tables["fixed-query"], study.of_task("fixed-query")
    names = [n for n in in_order(rows) if mean_of(rows[n].get("rollout_delta")) is not None]
    figure = new_figure(8.2, 1.1 + 0.36 * len(names))
    panel = figure.subplots()
    style = looks(names)
    e_min = study.declared.get("e_min")
    if e_min is not None:
        panel.axvspan(-e_min, e_min, color="#eef0f3", zorder=0)
    for place, name in enumerate(names):
        colour, marker = style[name]
        cell = rows[name]["rollout_delta"]
        interval(panel, cell, place, horizontal=True, colour=colour)
        panel.plot(cell["mean"], place, marker, color=colour, markersize=6)
        theirs = reported(stored, study.task, name, "rollout_delta")
        if theirs is not None:
            panel.plot(theirs, place + 0.25, marker, mfc="white", mec=colour, markersize=5)
    panel.axvline(0.0, color=NEUTRAL, linewidth=1)
    panel.set_yticks(range(len(names)), [selector_name(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("Δ discounted success against a random candidate")
    panel.grid(axis="x")
    return figure


def closed_loop_figure(study: SelectionResults) -> Figure:
    """Success against K, one line per critic."""
    rows = study.of_task("deployment")
    scorers = [name for name in in_order(rows) if closed_loop_ks(rows[name])]
    figure = new_figure(9.2, 3.9)
    panel = figure.subplots()
    style = looks(scorers)
    for scorer in scorers:
        _success(panel, study, scorer, style[scorer])
    k_axis(panel, sorted({k for scorer in scorers for k in closed_loop_ks(rows[scorer])}))
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    panel.set_ylim(-0.03, None)
    panel.set_ylabel("episodes that reach the goal")
    panel.grid(axis="y")
    legend(figure, scorers)
    return figure


def _success(panel: Axes, study: SelectionResults, scorer: str, style: tuple[str, str]) -> None:
    row, (colour, marker) = study.of_task("deployment")[scorer], style
    ks = closed_loop_ks(row)
    cells = [row[closed_loop(k)] for k in ks]
    panel.plot(ks, [c["mean"] for c in cells], color=colour, marker=marker, linewidth=1.6)
    for k, cell in zip(ks, cells, strict=True):
        interval(panel, cell, k, horizontal=False, colour=colour)
        paper = reported(study.tables["deployment"], study.task, scorer, closed_loop(k))
        if paper is not None:
            panel.plot(k, paper, marker, mfc="white", mec=colour, markersize=6)
