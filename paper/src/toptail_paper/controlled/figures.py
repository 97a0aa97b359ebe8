"""Figures of the controlled study, drawn with Matplotlib from its stored files alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from toptail.report.palette import NEUTRAL
from toptail.report.strokes import new_figure
from toptail_paper.controlled.results import (
    ControlledResults,
    SearchCurves,
    SweptTable,
    critic_name,
)
from toptail_paper.controlled.specs import FIGURES, SELECTED_BY
from toptail_paper.controlled.surfaces import landscape_figure, mechanism_figure, value_panel
from toptail_paper.study.figures import (
    Drawing,
    end_labels,
    interval,
    k_axis,
    look,
    seed_curves,
    wrapped,
)
from toptail_paper.study.naming import setting_text
from toptail_paper.study.search_error import FIGURE, LABEL, search_error_figure


def drawings(study: ControlledResults) -> list[Drawing]:
    """Every figure that the stored files suffice for, in the order of the page."""
    found: dict[str, Callable[[], Figure]] = {}
    curves, surfaces = study.curves, study.landscape
    if surfaces is not None:
        found["landscape"] = partial(landscape_figure, surfaces)
        if curves is not None:
            auc = _auc(study, str(surfaces.seed))
            found["mechanism"] = partial(mechanism_figure, surfaces, curves, auc)
    if curves is not None:
        found["curse"] = partial(curse_figure, curves)
        found["norm"] = partial(norm_figure, curves)
    if rows := study.rows("support-decomposition"):
        found["decomposition"] = partial(decomposition_figure, rows["controlled"])
    if rows := study.rows(LABEL):
        found[FIGURE.name] = partial(search_error_figure, rows["controlled"], "regret", critic_name)
    base = None if curves is None else float(curves.of("raw", "off_support")[0, 0])
    captions = {}
    for sweep in study.sweeps():
        found[sweep.name] = partial(sweep_figure, sweep, base)
        captions[sweep.name] = _sweep_caption(sweep)
    return [
        Drawing.of(spec, found[name], captions.get(name, ""))
        for name, spec in FIGURES.items()
        if name in found
    ]


def _auc(study: ControlledResults, seed: str, critic: str = "raw") -> float | None:
    """Stored retrieval AUC of one seed's critic."""
    row = study.rows("toy-support").get("controlled", {}).get(critic, {})
    auc: float | None = row.get("retrieval_auc", {}).get("seeds", {}).get(seed)
    return auc


def _sweep_caption(sweep: SweptTable) -> str:
    text = "Lines go through means over seeds; dots are seeds."
    if any(p.paper is not None for c in sweep.critics for p in sweep.points(c, "regret")):
        text += " Hollow markers on dotted lines are the paper's."
    if sweep.default is not None:
        text += f" The study's default is marked: {setting_text(sweep.default)}."
    return f"{text} The dashed line is a random candidate."


def curse_figure(curves: SearchCurves) -> Figure:
    """Best-of-K: what the critics think of their pick (left), and what it is worth (right)."""
    figure = new_figure(9.6, 4.3)
    grid = figure.add_gridspec(2, 20)
    for index, critic in enumerate(curves.critics):
        row, column = divmod(index, 2)
        panel = figure.add_subplot(grid[row, 5 * column : 5 * column + 5])
        seed_curves(panel, curves.k, curves.of(critic, "selected_score"), critic)
        panel.set_title(critic_name(critic), color=look(critic)[0])
        panel.yaxis.set_major_locator(MaxNLocator(4))
        k_axis(panel, curves.k, label=row == 1, every=4)
        if column == 0:
            panel.set_ylabel("selected score")
    value_panel(figure.add_subplot(grid[:, 10:]), curves)
    return figure


def norm_figure(curves: SearchCurves) -> Figure:
    """True value of the pick (left) and length of its embedding against a random one's (right)."""
    figure = new_figure(9.6, 3.9)
    left, right = figure.subplots(1, 2)
    value_panel(left, curves)
    labels = []
    for critic in curves.critics:
        norms = curves.of(critic, "phi_norm")
        relative = norms / norms[:, :1]
        seed_curves(right, curves.k, relative, critic)
        labels.append((float(relative[:, -1].mean()), critic_name(critic), critic))
    right.axhline(1.0, color=NEUTRAL, linewidth=1, linestyle="--")
    right.set_ylabel("‖φ(s, pick)‖ relative to K = 1")
    right.set_title("Embedding norm of the pick")
    k_axis(right, curves.k)
    end_labels(right, labels)
    return figure


def decomposition_figure(rows: Mapping[str, Any]) -> Figure:
    """Share of regret that each counterfactual removes, with intervals."""
    names = [n for n in SELECTED_BY if any(f"share/{n}" in row for row in rows.values())]
    figure = new_figure(9.2, 3.9)
    panel = figure.subplots()
    width = 0.8 / len(rows)
    for index, (critic, row) in enumerate(rows.items()):
        colour, _ = look(critic)
        for place, name in enumerate(names):
            share = row[f"share/{name}"]
            x = place + (index - (len(rows) - 1) / 2) * width
            legend = critic_name(critic) if place == 0 else None
            pooled = np.nan if share["pooled"] is None else share["pooled"]
            panel.bar(x, pooled, width * 0.88, color=colour, alpha=0.55, label=legend)
            interval(panel, share, x, horizontal=False)
            seeds = [v for v in share["seeds"].values() if v is not None]
            panel.plot([x + 0.3 * width] * len(seeds), seeds, ".", color=colour, markersize=4)
    panel.axhline(0, color=NEUTRAL, linewidth=1)
    panel.axhline(0.5, color=NEUTRAL, linewidth=0.8, linestyle=":")
    panel.set_xticks(range(len(names)), [wrapped(SELECTED_BY[n]) for n in names])
    panel.tick_params(axis="x", length=0)
    panel.set_ylabel("share of regret removed")
    # Where a critic hardly fails its shares run far below zero and would flatten all others.
    panel.set_ylim(max(panel.get_ylim()[0], -1.5), 1.08)
    panel.grid(axis="y")
    figure.legend(loc="outside upper left", ncols=len(rows))
    return figure


_METRICS: Final = (("regret", "Regret"), ("off_support", "Picks off support"))


def sweep_figure(sweep: SweptTable, base_rate: float | None) -> Figure:
    """Regret and off-support rate against one setting, one line per critic."""
    figure = new_figure(9.6, 4.0)
    axes = figure.subplots(1, 2)
    for panel, (metric, title) in zip(axes, _METRICS, strict=True):
        _sweep_panel(panel, sweep, metric)
        panel.set_title(title)
        panel.set_xlabel(sweep.title)
    if base_rate is not None:
        axes[1].axhline(base_rate, color=NEUTRAL, linestyle="--", linewidth=1)
    axes[1].yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[1].set_ylim(-0.04, 1.04)
    axes[0].set_ylim(bottom=0)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8.5)
    return figure


def _sweep_panel(panel: Axes, sweep: SweptTable, metric: str) -> None:
    """Lines through the means, every seed as a dot, and the paper's numbers where it has any."""
    places = _places(list(sweep.tasks))
    words = any(isinstance(x, str) for x in sweep.tasks)
    step = 0.05 if words else 0.012 * (max(places.values()) - min(places.values()))
    for index, critic in enumerate(sweep.critics):
        colour, marker = look(critic)
        points = sweep.points(critic, metric)
        shift = step * (index - (len(sweep.critics) - 1) / 2)  # seeds stay apart
        x = np.array([places[p.x] + shift for p in points])
        for at, point in zip(x, points, strict=True):
            dots = [at] * len(point.seeds)
            panel.plot(dots, point.seeds, ".", color=colour, markersize=3, alpha=0.6)
        means = np.array([np.mean(p.seeds) for p in points])
        line: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5}
        # Only numbers lie on a line; words such as "learned" stand beside it.
        on_line = np.array([isinstance(p.x, float) for p in points], dtype=bool)
        panel.plot(x[~on_line], means[~on_line], **line, linestyle="none")
        panel.plot(x[on_line], means[on_line], **line, linewidth=1.5, label=critic_name(critic))
        reported = [(at, p.paper) for at, p in zip(x, points, strict=True) if p.paper is not None]
        if reported:
            at_paper, theirs = zip(*reported, strict=True)
            line |= {"linestyle": ":", "markerfacecolor": "white", "linewidth": 1}
            panel.plot(at_paper, theirs, **line)
    if sweep.default is not None:
        panel.axvline(places[sweep.default], color="#e4e7eb", linewidth=9, zorder=0)
    panel.set_xticks(list(places.values()), [wrapped(setting_text(x), 14) for x in places])
    panel.margins(x=0.12)
    panel.grid(axis="y")


def _places(settings: list[float | str]) -> dict[float | str, float]:
    """Where each setting lies on the axis: to scale if all are numbers, else side by side."""
    numbers = [x for x in settings if isinstance(x, float)]
    if len(numbers) < len(settings):
        return {x: float(i) for i, x in enumerate(settings)}
    if min(numbers) > 0 and max(numbers) / min(numbers) > 6:
        return {x: math.log2(x) for x in numbers}
    return {x: x for x in numbers}
