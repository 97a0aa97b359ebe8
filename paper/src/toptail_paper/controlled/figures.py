"""Figures of the controlled study, drawn with Matplotlib from its stored files alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator, PercentFormatter

from toptail.report.figures import INK, NEUTRAL, new_figure
from toptail.stats.best_of_k import Floats
from toptail_paper.controlled.results import (
    ControlledResults,
    Landscape,
    SearchCurves,
    SweptTable,
    critic_name,
)
from toptail_paper.controlled.specs import FIGURES, SELECTED_BY
from toptail_paper.study.figures import (
    Drawing,
    drawings_of,
    end_labels,
    interval,
    k_axis,
    look,
    seed_curves,
    wrapped,
)
from toptail_paper.study.naming import setting_text
from toptail_paper.study.search_error import FIGURE, LABEL, search_error_figure

SUPPORT: Final = "#c77700"
"""Colour of the support disk and of candidates on it."""
PICK: Final = "#c2188f"
"""Colour of the selected action."""


def landscape_figure(landscape: Landscape) -> Figure:
    """Score surface, contours with candidates and pick, and gradient norm, one column a critic."""
    critics = landscape.critics
    figure = new_figure(2.5 * len(critics) + 0.4, 7.1)
    axes = figure.subplots(3, len(critics), sharex=True, sharey=True, squeeze=False)
    axis = landscape.array("axis")
    for column, critic in enumerate(critics):
        surface = landscape.array(f"score_{critic}")
        top, middle, bottom = axes[:, column]
        top.set_title(critic_name(critic), color=look(critic)[0])
        _image(figure, top, axis, surface, "viridis")
        middle.contour(axis, axis, surface, levels=14, cmap="viridis", linewidths=0.8)
        _candidates(middle, landscape, critic)
        _image(figure, bottom, axis, landscape.array(f"gradient_{critic}"), "magma")
        for panel in (top, middle, bottom):
            disk = Circle((0, 0), landscape.radius, fill=False, edgecolor=SUPPORT, linewidth=1.6)
            panel.add_patch(disk)
            panel.set_aspect("equal")
            panel.set_xticks([-1, 0, 1])
            panel.set_yticks([-1, 0, 1])
    for row, text in enumerate(
        ("score f(0, a, g)", "contours, candidates, pick", r"gradient norm $\|\nabla_a f\|$")
    ):
        axes[row, 0].set_ylabel(text)
    handles, names = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8.5)
    return figure


def mechanism_figure(
    landscape: Landscape, curves: SearchCurves, auc: float | None, contrastive: str = "raw"
) -> Figure:
    """The unified failure mechanism, from training to search, in the study's own data.

    Above: training separates compatible pairs; among them the score need not follow the
    distance; search over more candidates then moves the value of the pick. Below: every
    candidate of one pool, score against value. Search moves to the right. `auc` is how often the
    contrastive critic scores the own goal of a held-out pair above a random one.
    """
    figure = new_figure(9.8, 6.8)
    grid = figure.add_gridspec(2, 1, height_ratios=(1, 1.2))
    above, below = (figure.add_subfigure(grid[row]) for row in range(2))
    first, second, third = above.subplots(1, 3)
    _separation(first, landscape, contrastive, auc)
    _grading(second, landscape, contrastive)
    value_panel(third, curves, "3  Search finds the errors", random=False)
    third.set_ylabel("true value of the pick")
    panels = below.subplots(1, len(landscape.critics), sharey=True)
    for panel, critic in zip(panels, landscape.critics, strict=True):
        _pool(panel, landscape, critic)
    panels[0].set_ylabel("true value Q*")
    handles, names = panels[0].get_legend_handles_labels()
    below.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8.5)
    return figure


def _separation(panel: Axes, landscape: Landscape, critic: str, auc: float | None) -> None:
    """Scores of held-out pairs with their own goal and with a random one."""
    positive, negative = (landscape.array(f"{kind}_{critic}") for kind in ("positive", "negative"))
    low, high = np.quantile(np.r_[positive, negative], [0.005, 1.0])
    edges = np.linspace(low, high, 40).tolist()
    panel.hist(negative, edges, color="#b9c0c9", label="random goal")
    panel.hist(positive, edges, color=look(critic)[0], alpha=0.6, label="own goal")
    panel.set_title("1  Training separates pairs")
    panel.set_xlabel(f"score of {critic_name(critic).lower()}")
    panel.set_ylabel("held-out pairs")
    title = None if auc is None else f"AUC {auc:.2f}"
    panel.legend(fontsize=8, loc="upper left", title=title, title_fontsize=8, alignment="left")


def _grading(panel: Axes, landscape: Landscape, critic: str) -> None:
    """Scores of compatible pairs against the distance of their goal."""
    distance, score = landscape.array("distance"), landscape.array(f"positive_{critic}")
    panel.scatter(distance, score, s=3, color=look(critic)[0], alpha=0.35, linewidths=0)
    low, high = np.quantile(score, [0.005, 1.0])
    panel.set_ylim(low, high + 0.05 * (high - low))
    panel.set_title("2  It need not grade them")
    panel.set_xlabel("distance of the pair's own goal")
    panel.set_ylabel(f"score of {critic_name(critic).lower()}")


def value_panel(
    panel: Axes, curves: SearchCurves, title: str = "True value of the pick", *, random: bool = True
) -> None:
    """True value of the pick over K, with the oracle and perhaps a random candidate."""
    labels = []
    for critic in curves.critics:
        values = curves.of(critic, "value")
        seed_curves(panel, curves.k, values, critic)
        labels.append((float(values[:, -1].mean()), critic_name(critic), critic))
    panel.plot(curves.k, curves.oracle, color=NEUTRAL, linestyle=":", linewidth=1.6)
    labels.append((float(curves.oracle[-1]), "Oracle", ""))
    if random:
        panel.axhline(curves.random, color=NEUTRAL, linestyle="--", linewidth=1)
        labels.append((curves.random, "Random", ""))
    panel.set_ylabel("true value Q*")
    panel.set_title(title)
    k_axis(panel, curves.k, every=1 if random else 2)
    end_labels(panel, labels)


def _pool(panel: Axes, landscape: Landscape, critic: str) -> None:
    """Every candidate of the pool, score against value."""
    score, value = landscape.array(f"candidate_score_{critic}"), landscape.array("candidate_value")
    for off, colour, name in ((True, "#9aa3ae", "off support"), (False, SUPPORT, "on support")):
        keep = landscape.off_support == off
        panel.scatter(score[keep], value[keep], s=8, color=colour, linewidths=0, label=name)
    best, pick = int(value.argmax()), landscape.pick(critic)
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.3}
    panel.scatter(score[best], value[best], s=85, label="best candidate", zorder=3, **ring)
    star: dict[str, Any] = {"color": PICK, "edgecolors": "white", "linewidths": 0.6}
    panel.scatter(score[pick], value[pick], s=130, marker="*", label="selected", zorder=4, **star)
    where = "off" if landscape.off_support[pick] else "on"
    regret = f"pick {where} support, regret {landscape.regret(critic):.2f}"
    panel.set_title(critic_name(critic), color=look(critic)[0], pad=17)
    panel.annotate(regret, (0, 1.02), xycoords="axes fraction", fontsize=8, color=NEUTRAL)
    panel.set_xlabel("score  →  search")
    panel.xaxis.set_major_locator(MaxNLocator(4))
    panel.margins(x=0.08)


def _image(figure: Figure, panel: Axes, axis: Floats, values: Floats, colours: str) -> None:
    ends = (axis[0], axis[-1], axis[0], axis[-1])
    image = panel.imshow(values, origin="lower", extent=ends, cmap=colours)
    bar = figure.colorbar(image, ax=panel, shrink=0.8, pad=0.02, aspect=16)
    bar.outline.set_linewidth(0)
    bar.ax.tick_params(labelsize=7, length=2)
    bar.locator = MaxNLocator(4)
    bar.update_ticks()


def _candidates(panel: Axes, landscape: Landscape, critic: str) -> None:
    candidates, goal = landscape.array("candidates"), landscape.array("goal")
    pick = candidates[landscape.pick(critic)]
    dots: dict[str, Any] = {"s": 4, "color": NEUTRAL, "alpha": 0.6, "linewidths": 0}
    panel.scatter(candidates[:, 0], candidates[:, 1], label="candidates", **dots)
    cross: dict[str, Any] = {"s": 60, "color": INK, "linewidths": 1.5, "zorder": 3}
    panel.scatter(goal[0], goal[1], marker="+", label="best action a = g", **cross)
    star: dict[str, Any] = {"s": 150, "color": PICK, "edgecolors": "white", "linewidths": 0.7}
    panel.scatter(
        pick[0], pick[1], marker="*", label="selected action", zorder=4, clip_on=False, **star
    )
    panel.plot([], [], color=SUPPORT, linewidth=1.6, label="support disk")


def drawings(study: ControlledResults) -> list[Drawing]:
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
    return drawings_of(FIGURES, found, captions)


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
