"""Figures of the semantics study, drawn with Matplotlib from its stored tables and curves alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from toptail.report.figures import NEUTRAL, new_figure
from toptail_paper.semantics.results import SemanticsResults
from toptail_paper.semantics.specs import FIGURES, LEARNED, TemperatureSetting
from toptail_paper.study.compare import reported
from toptail_paper.study.figures import (
    WIDTH,
    Drawing,
    SeedBand,
    drawings_of,
    grouped,
    interval,
    k_axis,
    legend,
    line,
    looks,
    mean_of,
    panels,
    short_task,
    widths,
    wrapped,
)
from toptail_paper.study.naming import TRAINED, drawn, in_order, scorer_name, setting_text

_ROWS: Final = (("auc", "retrieval AUC"), ("nearer_goal", "nearer goal higher"))
_KINDS: Final = (("held_out", "held out"), ("seen", "seen"))


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
    for task, line_of_panels in zip(rows, grid, strict=True):
        for (metric, title), panel in zip(shown, line_of_panels, strict=True):
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


Curves = Mapping[str, Mapping[str, Any]]
"""task → scorer → stored curve."""


def drawings(study: SemanticsResults) -> list[Drawing]:
    found: dict[str, Callable[[], Figure]] = {}
    if deciles := study.curve("deciles"):
        found["calibration"] = partial(calibration_figure, deciles)
    if ordered_rankers(study):
        found["good_rankers"] = partial(rankers_figure, study)
    if study.curve("value") or study.curve("excess_off_support"):
        found["ogbench_curse"] = partial(curse_figure, study)
    for table, (name, figure) in _OF_TABLES.items():
        if study.rows(table):
            found[name] = partial(figure, study.tables[table])
    captions = {"temperature_sweep": temperature_caption(study.tables.get("temperature", {}))}
    return drawings_of(FIGURES, found, captions)


# ------------------------------------------------------------------------ one figure each


def calibration_figure(deciles: Curves) -> Figure:
    """Mean return-to-go in each tenth of the scores, one panel per task."""
    scorers = drawn(s for task in deciles.values() for s in task)
    figure, grid = panels(len(deciles), 1, 2.9)
    for (task, curves), panel in zip(deciles.items(), grid[0], strict=True):
        _lines(panel, curves, scorers, range(1, 11))
        panel.set_title(task)
        panel.set_xlabel("tenth of the scores")
        panel.set_xticks(range(1, 11, 3))
    grid[0][0].set_ylabel(r"mean $\gamma^d$")
    legend(figure, scorers)
    return figure


def _lines(
    panel: Axes, curves: Mapping[str, Any], scorers: Sequence[str], places: Sequence[int]
) -> None:
    """The curves of one task, each over the first of the places."""
    style, width = looks(scorers), widths(scorers)
    for scorer in (s for s in scorers if s in curves):
        band = SeedBand.of(curves[scorer])
        line(panel, np.array(places[: band.mean.size]), band, style[scorer], width[scorer])


def rankers_figure(study: SemanticsResults) -> Figure:
    """Retrieval against ordering, and the score against the distance of the goal."""
    profiles = study.curve("profile")
    pairs = ordered_rankers(study)
    scorers = drawn([s for _, s in pairs] + [s for task in profiles.values() for s in task])
    figure = new_figure(9.6, 4.2)
    left, right = figure.subplots(1, 2) if profiles else (figure.subplots(), None)
    _scatter(left, study, [(t, s) for t, s in pairs if s in scorers], scorers)
    if right is not None:
        _profile_panel(right, profiles, study.curve("profile_edges"), scorers)
    legend(figure, scorers)
    return figure


def ordered_rankers(study: SemanticsResults) -> list[tuple[str, str]]:
    """Tasks and scorers with both a retrieval AUC and an ordering."""
    main, retrieval = study.rows("main"), study.rows("retrieval")
    return [
        (task, scorer)
        for task, rows in main.items()
        for scorer in rows
        if mean_of(rows[scorer].get("tau")) is not None
        and mean_of(retrieval.get(task, {}).get(scorer, {}).get("auc")) is not None
    ]


def _scatter(
    panel: Axes, study: SemanticsResults, pairs: Sequence[tuple[str, str]], scorers: Sequence[str]
) -> None:
    style, size = looks(scorers), {s: 3 + 1.8 * width for s, width in widths(scorers).items()}
    several = len({task for task, _ in pairs}) > 1
    for task, scorer in sorted(pairs, key=lambda pair: scorers.index(pair[1])):
        colour, marker = style[scorer]
        tau = study.rows("main")[task][scorer]["tau"]
        auc = study.rows("retrieval")[task][scorer]["auc"]
        panel.errorbar(
            tau["mean"],
            auc["mean"],
            xerr=tau.get("std") or 0.0,
            yerr=auc.get("std") or 0.0,
            color=colour,
            marker=marker,
            markersize=size[scorer],
        )
        x = reported(study.tables["main"], task, scorer, "tau")
        y = reported(study.tables["retrieval"], task, scorer, "auc")
        if x is not None and y is not None:
            # The line says whose point is whose where measured points coincide.
            ends = [x, tau["mean"]], [y, auc["mean"]]
            panel.plot(*ends, color=colour, linewidth=0.8, alpha=0.6, zorder=1)
            panel.plot(x, y, marker, mfc="white", mec=colour, ms=6, zorder=2)
        if several:
            panel.annotate(
                short_task(task),
                (tau["mean"], auc["mean"]),
                xytext=(5, -9),
                textcoords="offset points",
                fontsize=7,
            )
    panel.margins(0.12)
    panel.axvline(0, color=NEUTRAL, linewidth=0.8, linestyle=":")
    # Chance is drawn where a point comes near it; else it would only push the points together.
    panel.set_ylim(panel.get_ylim())
    panel.axhline(0.5, color=NEUTRAL, linewidth=0.8, linestyle=":")
    panel.grid()
    panel.set_xlabel(r"Kendall $\tau$ with $\gamma^d$")
    panel.set_ylabel("retrieval AUC")
    panel.set_title("(a) Retrieval and ordering")


def _profile_panel(
    panel: Axes, profiles: Curves, edges: Mapping[str, Mapping[str, Any]], scorers: Sequence[str]
) -> None:
    """Mean over tasks of the scaled score of a true goal, against its distance."""
    style = looks(scorers)
    for scorer in scorers:
        bands = {t: SeedBand.of(profiles[t][scorer]) for t in profiles if scorer in profiles[t]}
        # A score that is not above random goals even at the nearest ones has no profile.
        bands = {task: band for task, band in bands.items() if np.isfinite(band.mean).any()}
        if not bands:
            continue
        mean = np.mean([band.mean for band in bands.values()], axis=0)
        std = np.mean([band.std for band in bands.values()], axis=0)
        starts = np.array(edges[next(iter(bands))][scorer], dtype=float)
        middles = (starts[:-1] + starts[1:] - 1) / 2
        line(panel, middles, SeedBand(mean, std), style[scorer], widths(scorers)[scorer])
    panel.axhline(0, color=NEUTRAL, linewidth=1, linestyle=":")
    panel.set_xlabel("distance of the goal, steps")
    panel.set_ylabel("score: 1 nearest, 0 a random goal")
    panel.set_title("(b) Score of a true goal")


def retrieval_figure(table: Mapping[str, Any]) -> Figure:
    rows: Mapping[str, Any] = table["rows"]
    scorers = drawn(s for task in rows.values() for s in task)
    figure = new_figure(max(WIDTH, min(11.0, 2.0 + 1.25 * len(rows))), 3.4)
    panel = figure.subplots()
    grouped(panel, table, list(rows), scorers, "auc", looks(scorers))
    panel.axhline(0.5, color=NEUTRAL, linewidth=1, linestyle=":")
    panel.set_xticks(range(len(rows)), [wrapped(task.replace("-", " "), 14) for task in rows])
    panel.set_ylabel("retrieval AUC")
    legend(figure, scorers)
    return figure


def readout_figure(table: Mapping[str, Any]) -> Figure:
    """Ordering of each training and readout, one panel per task."""
    rows: Mapping[str, Any] = table["rows"]
    readouts = in_order(r for task in rows.values() for r in task)
    figure, grid = panels(len(rows), 1, 0.9 + 0.33 * len(readouts))
    for task, panel in zip(rows, grid[0], strict=True):
        for place, readout in enumerate(reversed(readouts)):
            cell = rows[task].get(readout, {}).get("tau")
            if mean_of(cell) is None:
                continue
            colour = looks([readout.partition(TRAINED)[0]]).popitem()[1][0]
            panel.barh(place, cell["mean"], 0.6, color=colour, alpha=0.5)
            seeds = [x for x in cell["seeds"].values() if x is not None]
            panel.plot(seeds, [place] * len(seeds), ".", color=colour, markersize=5)
            interval(panel, cell, place, horizontal=True)
            theirs = reported(table, task, readout, "tau")
            if theirs is not None:
                panel.plot(theirs, place, "D", mfc="white", mec=colour, ms=5)
        panel.axvline(0, color=NEUTRAL, linewidth=1)
        panel.grid(axis="x")
        panel.xaxis.set_major_locator(MaxNLocator(4))
        panel.set_title(task)
        panel.set_xlabel(r"Kendall $\tau$ with $\gamma^d$")
        panel.set_yticks(range(len(readouts)), [scorer_name(r) for r in reversed(readouts)])
        panel.tick_params(axis="y", length=0)
        panel.label_outer()
    return figure


def curse_figure(study: SemanticsResults) -> Figure:
    """Value of the best of K pooled triples, and the preference for off-support actions."""
    values, excess = study.curve("value"), study.curve("excess_off_support")
    tasks = list(dict.fromkeys([*values, *excess]))
    kinds = [kind for kind in (values, excess) if kind]
    scorers = drawn(s for kind in kinds for task in kind.values() for s in task)
    figure, grid = panels(len(tasks), len(kinds), 2.5 * len(kinds))
    for row, kind in zip(grid, kinds, strict=True):
        for task, panel in zip(tasks, row, strict=True):
            _lines(panel, kind.get(task, {}), scorers, study.k)
            if kind is values:
                _ends(panel, study, task)
            else:
                panel.axhline(0, color=NEUTRAL, linewidth=1, linestyle=":")
            k_axis(panel, study.k, label=row is grid[-1])
        row[0].set_ylabel(
            r"$\gamma^d$ of the pick" if kind is values else "excess off-support rate"
        )
    for task, panel in zip(tasks, grid[0], strict=True):
        panel.set_title(task)
    legend(figure, scorers, [("best of K", "--"), ("random", ":")] if values else [])
    return figure


def _ends(panel: Axes, study: SemanticsResults, task: str) -> None:
    """The best of K and a random triple, which are the same for every critic."""
    oracle = next(iter(study.curve("oracle").get(task, {}).values()), None)
    random = next(iter(study.curve("random").get(task, {}).values()), None)
    if oracle is not None:
        panel.plot(study.k[: len(oracle)], oracle, color=NEUTRAL, linestyle="--", linewidth=1.4)
    if random is not None:
        panel.axhline(random, color=NEUTRAL, linestyle=":", linewidth=1.2)


_OF_TABLES: Final[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Figure]]]] = {
    "retrieval": ("retrieval", retrieval_figure),
    "seen": ("seen", memory_figure),
    "readout": ("readout", readout_figure),
    "temperature": ("temperature_sweep", temperature_figure),
}
"""Table -> the figure that is drawn from it alone."""
