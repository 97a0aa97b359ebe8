"""The figures of the zoo: retrieval on one axis, captured share on the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from toptail_paper.study.naming import task_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBJECTIVES: Final = {
    "bellman": ("Bellman targets", "#1b6ca8"),
    "contrastive": ("contrast with other goals", "#c8553d"),
    "returns": ("recorded returns", "#6a994e"),
    "both": ("contrast and Bellman targets", "#8e6bbf"),
}
"""What a critic is trained by, in words, and the colour of its point."""


def figure(content: Mapping[str, Any]) -> Figure:
    """Retrieval on one axis, captured share on the other: good rankers, good objectives."""
    from toptail.report.figures import new_figure

    drawn = new_figure(8.0, 4.6)
    axes = drawn.add_subplot()
    _draw(axes, content["critics"])
    axes.set_xlabel("Retrieval AUC: is the true goal ranked above others? (good ranker →)")
    axes.set_ylabel("Captured share at best of 64 (good objective ↑)")
    _key(drawn, [content])
    return drawn


def small_figure(tasks: Mapping[str, Mapping[str, Any]]) -> Figure:
    """The same of the small zoo, a panel for each task; ``tasks`` are its summaries."""
    from toptail.report.figures import new_figure

    drawn = new_figure(11.0, 4.2 * -(-len(tasks) // 2))
    for number, (name, content) in enumerate(tasks.items()):
        axes = drawn.add_subplot(-(-len(tasks) // 2), 2, number + 1)
        _draw(axes, content["critics"])
        judge = "exact value" if content["judge"] == "exact" else "an ensemble of TD-Qs"
        axes.set_title(f"{task_title(name)}, judged by {judge}", fontsize=10)
        axes.set_xlabel("Retrieval AUC")
        axes.set_ylabel("Captured share at best of 64")
    _key(drawn, tasks.values())
    return drawn


def _draw(axes: Axes, critics: Mapping[str, Mapping[str, Any]]) -> None:
    """A point for each critic that was trained; its name stands on the right, joined by a line."""
    from toptail.report.figures import spread

    points = [
        (row["captured"]["nearest"], row["auc"], row["title"], OBJECTIVES[row["trained_by"]][1])
        for row in critics.values()
        if row["auc"] is not None
    ]
    points.sort(key=lambda point: point[0]["mean"])
    axes.set_ylim(0, 1.05)
    levels = spread([near["mean"] for near, *_ in points], 0.06, 0.03, 1.02)
    at_right = axes.get_yaxis_transform()
    for (near, auc, title, colour), level in zip(points, levels, strict=True):
        bars = [[near["mean"] - near["low"]], [near["high"] - near["mean"]]]
        axes.errorbar([auc], [near["mean"]], yerr=bars, fmt="o", color=colour, capsize=3)
        line: dict[str, Any] = {"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.6}
        axes.annotate(
            title,
            (auc, near["mean"]),
            (1.03, level),
            textcoords=at_right,
            fontsize=9,
            va="center",
            color=colour,
            arrowprops={**line, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)},
        )
    if "straight" in critics:
        line_at = critics["straight"]["captured"]["nearest"]["mean"]
        axes.axhline(line_at, color="0.5", linestyle=":", linewidth=1)
        beside: dict[str, Any] = {"transform": at_right, "fontsize": 8, "color": "0.4"}
        axes.text(0.01, line_at, "straight line to the goal", va="bottom", **beside)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.spines[["top", "right"]].set_visible(False)


def _key(drawn: Figure, contents: Iterable[Mapping[str, Any]]) -> None:
    """What the colours say, below the panels."""
    from matplotlib.lines import Line2D

    rows = [row for content in contents for row in content["critics"].values()]
    objectives = {row["trained_by"] for row in rows if row["auc"] is not None}
    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=f"trained by {words}")
        for name, (words, colour) in OBJECTIVES.items()
        if name in objectives
    ]
    drawn.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
