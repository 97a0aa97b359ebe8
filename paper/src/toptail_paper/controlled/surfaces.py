"""Pictures of one query: the score landscape, and the failure mechanism in the study's own data."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from toptail.report.palette import NEUTRAL
from toptail.report.strokes import INK, new_figure
from toptail.stats.best_of_k import Floats
from toptail_paper.controlled.results import Landscape, SearchCurves, critic_name
from toptail_paper.study.figures import end_labels, k_axis, look, seed_curves

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
    panel: Axes,
    curves: SearchCurves,
    title: str = "True value of the pick",
    *,
    random: bool = True,
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
