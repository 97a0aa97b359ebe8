"""Where search error comes from: a table and a figure of the studies with ideal critics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toptail.report.figures import INK, NEUTRAL, new_figure
from toptail_paper.study.figures import FigureSpec, interval
from toptail_paper.study.naming import IDEALS, in_order
from toptail_paper.study.tables import Metric
from toptail_paper.triples.search_error import SearchError

LABEL: Final = "search-error"
"""What the table and the figure are called."""

POOLED: Final = "pooled/"
"""How metrics begin that are about candidates of all queries in one pool."""

POOLED_CANDIDATES: Final = 4
"""Candidates of each query that are pooled: the first ones, which are as random as any."""

POOLED_RESAMPLES: Final = 200
"""Resamples of the pooled terms, for which every resample is sorted anew."""

TERMS: Final = ("target", "estimation", "extrapolation")
"""What adds up to the total."""

MEANING: Final = (
    "Regret of the best of K by score, split. Target: the regret of the critic's ideal, which its "
    "objective would give if it were learned perfectly. Estimation: what is added when the "
    "candidates on support are put in the critic's order. Extrapolation: what is added when those "
    "off support are put where the critic has them. A negative term undoes another. Pooled: the "
    "same for candidates of all queries in one pool. 95 % intervals over queries."
)

METRICS: Final[Mapping[str, str | Metric | None]] = {
    **{term: term.capitalize() for term in (*TERMS, "total")},
    **{f"{POOLED}{term}": f"Pooled: {term}" for term in (*TERMS, "total")},
    **{
        f"{start}{term}": None
        for start in ("", POOLED)
        for term in SearchError._fields
        if term not in (*TERMS, "total")
    },
}
"""Columns of the table; the split in the other order is stored but not shown."""

NOTES: Final = (
    "target + estimation + extrapolation = total, of means over seeds. estimation_last and "
    "extrapolation_first: the same with the steps taken the other way round.",
    f"pooled: the first {POOLED_CANDIDATES} candidates of every query in one pool.",
)

FIGURE: Final = FigureSpec(
    "search_error",
    "Where search error comes from",
    "regret",
    (LABEL,),
    "Each bar adds up what the objective costs (target), what its estimation adds on the support, "
    "and what extrapolation adds off it; a negative term goes to the left of zero. The dot is the "
    "total, with its 95 % interval over queries. Ideal critics have a target alone.",
)
"""The figure; a study puts it where its page has room."""

_COLOURS: Final = {"target": "#4a6fa5", "estimation": "#e0a030", "extrapolation": "#b8432f"}


def search_error_figure(
    rows: Mapping[str, Mapping[str, Any]], unit: str, name: Callable[[str], str]
) -> Figure:
    """Stacked terms of every critic, at fixed queries and pooled."""
    critics = [c for c in in_order(rows) if c not in IDEALS and "total" in rows[c]][::-1]
    figure = new_figure(9.6, 1.6 + 0.34 * len(critics))
    panels = figure.subplots(1, 2, sharey=True)
    for panel, start, title in zip(panels, ("", POOLED), ("Fixed queries", "Pooled"), strict=True):
        for place, critic in enumerate(critics):
            _stack(panel, rows[critic], start, place)
        panel.axvline(0, color=INK, linewidth=0.8)
        panel.set_title(title)
        panel.set_xlabel(unit)
        panel.grid(axis="x")
    panels[0].set_yticks(range(len(critics)), [name(c) for c in critics])
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=len(words), fontsize=8.5)
    return figure


def _stack(panel: Axes, row: Mapping[str, Any], start: str, place: int) -> None:
    """One critic's bar: positive terms to the right of zero, negative ones to its left."""
    ends = {True: 0.0, False: 0.0}
    for term, colour in _COLOURS.items():
        width = row[f"{start}{term}"]["mean"] or 0.0
        side = width >= 0
        legend = term.capitalize() if place == 0 else None
        panel.barh(place, width, 0.62, left=ends[side], color=colour, label=legend)
        ends[side] += width
    total = row[f"{start}total"]
    interval(panel, total, place, horizontal=True, colour=NEUTRAL)
    panel.plot(total["mean"], place, "o", color=INK, markersize=4)
