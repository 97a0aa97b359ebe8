"""The temperature study's figure: what the temperature of the cosine logits decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toptail.report.palette import NEUTRAL
from toptail.report.strokes import new_figure
from toptail.report.text import join, number
from toptail_paper.semantics.specs import LEARNED, TemperatureSetting, setting_name
from toptail_paper.study.naming import in_order, is_control, scorer_name, setting_text
from toptail_paper.study.results import StudyResults

_LOSSES: Final[Mapping[str, tuple[str, str]]] = {
    "binary_nce": ("#00876a", "^"),
    "symmetric_info_nce": ("#b08a28", "s"),
}
"""Colour and marker of each contrastive loss."""

_METRICS: Final = (
    ("tau", r"Kendall $\tau$ with $\gamma^d$"),
    ("auc", "retrieval AUC"),
    ("gap", r"decile gap in $\gamma^d$"),
)

TrainedAt = Mapping[str, Mapping[str, Sequence[float | str]]]
"""Task -> scorer -> the temperatures of its seeds, each once; numbers or `LEARNED`."""


def temperature_caption(table: Mapping[str, Any]) -> str:
    """How to read the figure."""
    text = (
        "Each point is a cosine critic trained at one temperature, mean ± one standard deviation "
        "over seeds that are not reported elsewhere; the points at the right have learned theirs."
    )
    chosen = table.get("chosen")
    if chosen is not None:
        text += (
            f" Marked: the temperature with the highest retrieval AUC under binary NCE, {chosen:g}."
        )
    return text


def temperature_lines(study: StudyResults) -> list[str]:
    """Say at which temperature the cosine rows were trained, and how much that choice decides."""
    sweep = study.tables.get("temperature", {})
    trained_at = study.tables.get("retrieval", {}).get("trained_at", {})
    lines = trained_lines(trained_at) + not_chosen_lines(trained_at, sweep.get("chosen"))
    for task, ranges in sweep.get("tau_ranges", {}).items():
        sound, good = ranges.get("sound"), ranges.get("as_good")
        if sound is not None and good is not None:
            lines.append(
                f"What the temperature decides on {task}: over the {sound['settings']} settings "
                f"of the sweep that do not collapse, the cosine critic's τ goes {_from_to(sound)}; "
                f"over the {good['settings']} whose retrieval AUC is within "
                f"{sweep['as_good_within']:g} of the best, {_from_to(good)}."
            )
    return lines


def trained_lines(trained_at: TrainedAt) -> list[str]:
    """One sentence per temperature: which critics were trained at it, and on which tasks."""
    return [
        f"Trained at temperature {join(used)}: {'; '.join(names)}."
        for used, names in _by_temperature(trained_at).items()
    ]


def not_chosen_lines(trained_at: TrainedAt, chosen: float | None) -> list[str]:
    """Name the critics that were trained at another temperature than the sweep chooses."""
    if chosen is None:
        return []
    found = _by_temperature(trained_at).items()
    others = [name for used, names in found if used != (f"{chosen:g}",) for name in names]
    if not others:
        return []
    return [
        f"Not trained at the temperature that the sweep chooses, {chosen:g} (the highest retrieval "
        f"AUC under binary NCE): {'; '.join(others)}."
    ]


def _by_temperature(trained_at: TrainedAt) -> dict[tuple[str, ...], list[str]]:
    """Temperatures -> ``"Cosine on PointMaze and Puzzle"``, ...

    Controls are left out where there are other critics: they follow the cosine critic.
    """
    there = in_order(scorer for scorers in trained_at.values() for scorer in scorers)
    found: dict[tuple[str, ...], list[str]] = {}
    for scorer in [s for s in there if not is_control(s)] or there:
        tasks: dict[tuple[str, ...], list[str]] = {}
        for task, scorers in trained_at.items():
            if scorer in scorers:
                used = tuple(t if isinstance(t, str) else f"{t:g}" for t in scorers[scorer])
                tasks.setdefault(used, []).append(task)
        for used, names in tasks.items():
            found.setdefault(used, []).append(f"{scorer_name(scorer)} on {join(names)}")
    return found


def _from_to(part: Mapping[str, Any]) -> str:
    low, high = (
        f"{number(part[end], 3)} ({setting_name(part[f'{end}_at'])})"
        for end in ("lowest", "highest")
    )
    return f"from {low} to {high}"


def temperature_figure(table: Mapping[str, Any]) -> Figure:
    """Ordering, retrieval and calibration against the temperature, one row per task."""
    rows: Mapping[str, Any] = table["rows"]
    shown = [
        (metric, title)
        for metric, title in _METRICS
        if any(_known(cells, metric) for task in rows.values() for cells in task.values())
    ]
    figure = new_figure(1.0 + 3.1 * len(shown), 0.6 + 2.6 * len(rows))
    grid = figure.subplots(len(rows), len(shown), squeeze=False, sharex=True)
    for task, panels in zip(rows, grid, strict=True):
        for (metric, title), panel in zip(shown, panels, strict=True):
            _panel(panel, rows[task], metric, table.get("chosen"))
            panel.set_title(title if len(rows) == 1 else f"{task}: {title}")
    for panel in grid[-1]:
        panel.set_xlabel("temperature")
    losses = list(
        dict.fromkeys(TemperatureSetting.of(row).loss for task in rows.values() for row in task)
    )
    handles = [
        Line2D([], [], color=_look(loss)[0], marker=_look(loss)[1], label=setting_text(loss))
        for loss in losses
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8.5)
    return figure


def _panel(
    panel: Axes, rows: Mapping[str, Mapping[str, Any]], metric: str, chosen: float | None
) -> None:
    settings = {
        TemperatureSetting.of(row): cells[metric]
        for row, cells in rows.items()
        if _known(cells, metric)
    }
    numbers = sorted({s.temperature for s in settings if s.temperature is not None})
    # "Learned" has no place on the axis: it stands one step to the right of the last number.
    beside = len(numbers)
    ticks = [f"{t:g}" for t in numbers]
    if any(s.temperature is None for s in settings):
        ticks.append(LEARNED)
    for index, loss in enumerate(dict.fromkeys(s.loss for s in settings)):
        colour, marker = _look(loss)
        shift = 0.08 * index - 0.04  # two losses that collapse to one number stay apart
        at = {
            beside if s.temperature is None else numbers.index(s.temperature): cell
            for s, cell in settings.items()
            if s.loss == loss
        }
        on_line = sorted(x for x in at if x < beside)
        places = [x + shift for x in on_line]
        panel.plot(places, [at[x]["mean"] for x in on_line], color=colour, linewidth=1.4)
        for x, cell in at.items():
            std = cell.get("std") or 0.0
            panel.errorbar(x + shift, cell["mean"], yerr=std, color=colour, marker=marker, ms=5)
    if chosen in numbers:
        panel.axvspan(
            numbers.index(chosen) - 0.3, numbers.index(chosen) + 0.3, color="#e4e7eb", zorder=0
        )
    panel.axhline(0.5 if metric == "auc" else 0.0, color=NEUTRAL, linewidth=1, linestyle=":")
    panel.set_xticks(np.arange(len(ticks)), ticks, rotation=45)
    panel.grid(axis="y")


def _known(cells: Mapping[str, Any], metric: str) -> bool:
    return cells.get(metric, {}).get("mean") is not None


def _look(loss: str) -> tuple[str, str]:
    return _LOSSES.get(loss, (NEUTRAL, "o"))
