"""Figures of all studies: what a drawing is, how scorers look, and the strokes they share.

Every figure is a ``Figure`` object of its own: no pyplot, no global state. The same files give
the same SVG, byte for byte, under one version of Matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from textwrap import fill
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toptail.lab.critics.registry import MAIN
from toptail.report.figures import INK, NEUTRAL, SETTINGS, new_figure, spread
from toptail.report.page import LIGHT
from toptail.stats.best_of_k import Floats
from toptail_paper.study.compare import reported
from toptail_paper.study.naming import in_order, scorer_name

_MAIN_LOOKS: Final = (("#0b63ad", "o"), ("#d55e00", "s"), ("#00876a", "^"), ("#b8479f", "D"))
_LOOK: Final = dict(zip(MAIN, _MAIN_LOOKS, strict=True)) | {
    "f_cos": ("#6b6b1f", "v"),
    "q_td": ("#2f9bd6", "<"),
    "q_hybrid": ("#7b1e4b", ">"),
}
"""Colour and marker of the paper's critics, and of readouts of one network."""

_OTHERS: Final = tuple(LIGHT[hue] for hue in (2, 5, 4, 1))
_MARKERS: Final = ("P", "X", "v", "p", "*", "h", "<", ">")
"""Colours and markers of other scorers; the pairs repeat after eight."""

_PANEL: Final = 3.1
"""Width of one task's panel in inches."""

WIDTH: Final = 8.4
"""Least width of a figure in inches: pages show figures at one width, and so at one text size."""

_WIDEST, _THINNEST = 3.4, 1.2
"""Line widths of the first and the last of several curves, in points."""


@dataclass(frozen=True)
class FigureSpec:
    """The words about a figure: everything but the drawing itself."""

    name: str
    title: str
    part: str
    """Anchor of the page's part that shows it."""
    labels: tuple[str, ...] = ()
    """Names by which the command line finds it, such as the paper's."""
    caption: str = ""
    """How to read it; a drawing may have a caption of its own."""


@dataclass(frozen=True, kw_only=True)
class Drawing(FigureSpec):
    """A figure with the function that draws it from stored results."""

    draw: Callable[[], Figure]

    @classmethod
    def of(cls, spec: FigureSpec, draw: Callable[[], Figure], caption: str = "") -> Drawing:
        """A figure with its spec's caption, unless given another."""
        return cls(**vars(spec) | {"draw": draw, "caption": caption or spec.caption})


def drawings_of(
    specs: Mapping[str, FigureSpec],
    found: Mapping[str, Callable[[], Figure]],
    captions: Mapping[str, str],
) -> list[Drawing]:
    """The figures that can be drawn, in the order of their specs."""
    return [
        Drawing.of(spec, found[name], captions.get(name, ""))
        for name, spec in specs.items()
        if name in found
    ]


def svg_and_png(drawing: Drawing) -> tuple[bytes, bytes]:
    """Draw a figure as SVG and as PNG, with the settings of `SETTINGS` and no others."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        figure = drawing.draw()
        svg, png = BytesIO(), BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=150)
    return svg.getvalue(), png.getvalue()


@dataclass(frozen=True)
class SeedBand:
    """A curve over seeds."""

    mean: Floats
    """[n] mean over seeds; NaN where it is not computable."""
    std: Floats
    """[n] standard deviation over seeds; 0 for one seed."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> SeedBand:
        """From ``{"mean": [...], "std": [...] or null, ...}``."""
        mean = np.array(stored["mean"], dtype=float)
        std = stored.get("std")
        spread = np.zeros_like(mean) if std is None else np.array(std, dtype=float)
        return cls(mean, np.nan_to_num(spread))


def look(critic: str) -> tuple[str, str]:
    """Colour and marker of a critic, the same in every figure."""
    return _LOOK.get(critic, (NEUTRAL, "o"))


def looks(scorers: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every scorer; the paper's critics look the same in every figure."""
    own = [s for s in scorers if look(s)[0] == NEUTRAL]
    return {s: look(s) for s in scorers} | {
        s: (_OTHERS[i % len(_OTHERS)], _MARKERS[i % len(_MARKERS)]) for i, s in enumerate(own)
    }


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
    panel: Axes, x: Floats | Any, band: SeedBand, style: tuple[str, str], width: float = 1.6
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
    if cell.get("low") is None or cell.get("high") is None:
        return
    along, across = [cell["low"], cell["high"]], [place, place]
    x, y = (along, across) if horizontal else (across, along)
    panel.plot(x, y, color=colour, linewidth=1.4)


def legend(
    figure: Figure, scorers: Sequence[str], extra: Sequence[tuple[str, Literal["--", ":"]]] = ()
) -> None:
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


def short_task(task: str) -> str:
    """``PointMaze`` as P, ``AntSoccer`` as AS: enough to tell a handful of tasks apart."""
    capitals = "".join(letter for letter in task if letter.isupper())
    return capitals if capitals else task.partition("-")[0]


def seed_curves(panel: Axes, k: Sequence[int], values: Floats, critic: str) -> None:
    """Draw the mean over seeds as a line, and one thin line per seed behind it."""
    colour, marker = look(critic)
    panel.plot(k, values.T, color=colour, linewidth=0.6, alpha=0.4)
    panel.plot(k, values.mean(axis=0), color=colour, linewidth=1.8, marker=marker, markersize=3.5)
    panel.grid(axis="y")


def k_axis(panel: Axes, k: Sequence[int], label: bool = True, every: int = 1) -> None:
    """Label the K axis, in powers of two."""
    panel.set_xscale("log", base=2)
    panel.minorticks_off()
    panel.set_xticks(k[::every], [str(each) for each in k[::every]])
    if label:
        panel.set_xlabel("candidates K")


def end_labels(panel: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names (height, text, critic) at the right ends of lines, moved apart."""
    placed = sorted(labels)
    low, high = panel.get_ylim()
    panel.set_ylim(low, high)
    heights = spread([height for height, _, _ in placed], (high - low) * 0.06, low, high)
    for (_, text, critic), height in zip(placed, heights, strict=True):
        panel.annotate(
            text,
            (1.02, height),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=look(critic)[0],
            annotation_clip=False,
        )


def wrapped(text: str, width: int = 20) -> str:
    """Break a label into lines of about ``width`` characters, at spaces."""
    return fill(text, width, break_long_words=False, break_on_hyphens=False)
