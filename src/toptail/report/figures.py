"""Figures for papers and documents, drawn with Matplotlib from a stored audit or choice.

No pyplot and no global state. The same audit gives the same SVG, byte for byte, under one version
of Matplotlib. This is the only module of ``report`` that loads Matplotlib.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from toptail.audit.settings import exact_percent
from toptail.errors import InputError
from toptail.report.choice import shown_curves
from toptail.report.documents import FIGURES
from toptail.report.page import line_style
from toptail.report.text import Audit, one_line, percent, ranked, short

INK: Final = "#1b2430"
NEUTRAL: Final = "#5b6573"
HARM: Final = "#b3261e"
SAFE: Final = "#1a7a55"

SETTINGS: Final[dict[Any, Any]] = {
    "svg.hashsalt": "toptail",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": NEUTRAL,
    "xtick.color": NEUTRAL,
    "ytick.color": NEUTRAL,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "legend.frameon": False,
}
"""Matplotlib settings of every figure."""

_SETTINGS: Final = SETTINGS | {"axes.grid": True, "axes.grid.axis": "y", "axes.xmargin": 0.02}
MOST_BANDS: Final = 12
"""With more scorers no bands are drawn: they would cover each other."""

_LINE: Final = 0.16
"""Inches between the names at the ends of lines."""


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure with the Agg canvas, in inches; pyplot is not involved."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def gain_figure(audit: Audit) -> Figure:
    """Gain over a random pick by K, as a share of the headroom, with the verdict's thresholds."""
    with mpl.rc_context(_SETTINGS):
        k, names = np.log2(audit["k"]), ranked(audit)
        figure, axes = _figure(7.0, _height(4.2, len(names)))
        labels = [(0.0, "random pick", NEUTRAL), *_margins(axes, audit["thresholds"])]
        for rank, name in enumerate(names):
            scorer = audit["scorers"][name]
            gain = scorer["gain"]
            _scorer(axes, k, rank, gain, ("value", "low", "high"), len(names))
            _safe_end(axes, audit["k"], gain["value"], scorer["verdict"])
            _harm(axes, audit["k"], gain["value"], scorer["verdict"])
            labels.append((gain["value"][-1], f"{rank + 1} {short(name, 24)}", _colour(rank)))
        _k_axis(axes, audit["k"])
        axes.set_ylabel(f"gain / headroom at K = {audit['k'][-1]}")
        _harm_region(axes, audit["thresholds"]["rho"])
        _end_labels(axes, float(k[-1]), labels)
        with_bands = f", with {percent(audit['thresholds']['level'])} intervals"
        title = "Share of the headroom captured, on the same queries"
        _title(axes, f"{title}{with_bands if len(names) <= MOST_BANDS else ''}")
        return figure


def best_of_k_figure(audit: Audit) -> Figure:
    """Curves of value over K with simultaneous bands, between oracle and random."""
    with mpl.rc_context(_SETTINGS):
        k, names = np.log2(audit["k"]), ranked(audit)
        figure, axes = _figure(7.0, _height(4.2, len(names)))
        axes.plot(k, _floats(audit["oracle"]), color=NEUTRAL, linestyle=":", linewidth=1.2)
        labels: list[tuple[float | None, str, str]] = [(audit["oracle"][-1], "oracle", NEUTRAL)]
        if audit["random"] is not None:
            axes.axhline(audit["random"], color=NEUTRAL, linestyle="--", linewidth=1)
            labels.append((audit["random"], "random", NEUTRAL))
        for rank, name in enumerate(names):
            scorer = audit["scorers"][name]
            _scorer(axes, k, rank, scorer, ("value", "band_low", "band_high"), len(names))
            _harm(axes, audit["k"], scorer["value"], scorer["verdict"])
            labels.append((scorer["value"][-1], f"{rank + 1} {short(name, 24)}", _colour(rank)))
        _k_axis(axes, audit["k"])
        axes.set_ylabel(f"expected value: {short(audit['value'], 40)}", parse_math=False)
        _end_labels(axes, float(k[-1]), labels)
        level = percent(audit["thresholds"]["level"])
        _title(
            axes, f"Best-of-K by score; simultaneous {level} bands hold the spread between queries"
        )
        return figure


def decile_figure(audit: Audit) -> Figure:
    """Mean value by score decile: pooled over candidates, and within queries."""
    with mpl.rc_context(_SETTINGS):
        names = ranked(audit)
        figure, axes = _figure(9.0, _height(3.8, len(names)), columns=2)
        deciles = np.arange(1, 11)
        panels = (
            ("pooled over all candidates", ("deciles", "deciles_low", "deciles_high")),
            ("within each query", ("deciles_within",)),
        )
        for panel, (title, parts) in zip(axes, panels, strict=True):
            labels = []
            for rank, name in enumerate(names):
                scorer = audit["scorers"][name]
                _scorer(panel, deciles, rank, scorer, parts, len(names))
                text = f"{rank + 1} {short(name, 24)}" if panel is axes[-1] else str(rank + 1)
                labels.append((scorer[parts[0]][-1], text, _colour(rank)))
            panel.set_xticks(deciles)
            panel.set_xlabel("score decile (10 is the top)")
            _end_labels(panel, 10, labels)
            _title(panel, f"Score deciles {title}")
        axes[0].set_ylabel(f"mean value: {short(audit['value'], 40)}", parse_math=False)
        return figure


def difference_figure(audit: Audit) -> Figure:
    """Forest plot of the paired differences between selectors."""
    with mpl.rc_context(_SETTINGS):
        rows = audit["comparisons"]
        figure, axes = _figure(7.0, 1.2 + 0.3 * max(1, len(rows)))
        axes.axvline(0, color=NEUTRAL, linewidth=1)
        for row, c in enumerate(rows):
            if c["low"] is not None and c["high"] is not None:
                axes.plot([c["low"], c["high"]], [row, row], color=_colour(0), linewidth=2)
            if c["difference"] is not None:
                axes.plot([c["difference"]], [row], "o", color=_colour(0), markersize=5)
        labels = [f"{short(c['a'], 24)} − {short(c['b'], 24)}" for c in rows]
        axes.set_yticks(range(len(rows)), labels, parse_math=False)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.set_xlabel("difference in value (above 0: the first is better)")
        _title(axes, f"Paired differences with {percent(audit['thresholds']['level'])} intervals")
        return figure


def frontier_figure(choice: Mapping[str, Any]) -> Figure:
    """Values of the best selectors against K, and against KL to the proposal."""
    with mpl.rc_context(_SETTINGS):
        figure = new_figure(9.5, 4.0)
        over_k, over_kl = figure.subplots(1, 2, sharey=True)
        for rank, each in enumerate(shown_curves(choice)):
            how = line_style(rank).matplotlib
            over_k.plot(np.log2(each["k"]), each["value"], **how)
            over_kl.plot(each["kl"], each["value"], label=short(each["family"], 30), **how)
        for panel in (over_k, over_kl):
            for name, dash in (("random", "--"), ("oracle", ":")):
                value = choice["baselines"][name]["value"]
                if value is not None:
                    panel.axhline(value, color=NEUTRAL, linestyle=dash)
        _deployed(choice, over_k)
        _k_axis(over_k, choice["ks"])
        over_k.set_title("Value against K, best parameters at each K", fontsize=9)
        over_kl.set_xlabel("KL to a random pick, nats")
        over_kl.set_title("Value against KL to the proposal", fontsize=9)
        over_k.set_ylabel("value on all queries")
        figure.legend(loc="outside right upper", fontsize=7.5)
        return figure


_DRAW: Final[Mapping[str, Callable[[Audit], Figure]]] = {
    "gain": gain_figure,
    "best_of_k": best_of_k_figure,
    "deciles": decile_figure,
    "differences": difference_figure,
    "frontier": frontier_figure,
}


def draw(content: Mapping[str, Any], name: str | None = None) -> Figure:
    """One figure of an audit or a choice, by default the first of its kind."""
    names = FIGURES[content["kind"]]
    if name is not None and name not in names:
        raise InputError(f"There is no figure {name!r} here; there are {', '.join(names)}.")
    return _DRAW[name or next(iter(names))](content)


def save_figures(content: Mapping[str, Any], folder: Path) -> None:
    """Write every figure of an audit or a choice as SVG and PNG into a folder."""
    folder.mkdir(exist_ok=True)
    for name in FIGURES[content["kind"]]:
        figure = draw(content, name)
        for ending in ("svg", "png"):
            (folder / f"{name}.{ending}").write_bytes(image(figure, ending))


def image(figure: Figure, ending: str) -> bytes:
    file = BytesIO()
    how: dict[str, Any] = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 160}
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # A name may be in a script that the font lacks: the figure then has boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format=ending, bbox_inches="tight", **how)
    return file.getvalue()


def _deployed(choice: Mapping[str, Any], axes: Axes) -> None:
    value, low, high = (choice[part] for part in ("value", "low", "high"))
    if None in (value, low, high):
        return
    label = f"to deploy, {percent(choice['settings']['level'])}"
    error = [[value - low], [high - value]]
    axes.errorbar([np.log2(choice["k"])], [value], error, fmt="D", color="black", label=label)


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    figure = new_figure(width, height)
    return figure, figure.subplots(1, columns, sharey=True)


def _height(usual: float, scorers: int) -> float:
    """Inches that leave a line for every name at the right."""
    return max(usual, _LINE * (scorers + 7))


def _title(axes: Axes, text: str) -> None:
    axes.set_title(one_line(text), loc="left", fontsize=9, fontweight="bold", parse_math=False)


def _colour(rank: int) -> str:
    return line_style(rank).colour


def _floats(values: Sequence[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    # Matplotlib leaves a gap where a value is not a number.
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def _scorer(
    axes: Axes, x: Any, rank: int, scorer: Mapping[str, Any], parts: Sequence[str], scorers: int
) -> None:
    """Draw one scorer's line, and its band where ``parts`` names one."""
    look = line_style(rank)
    if len(parts) == 3 and scorers <= MOST_BANDS:
        low, high = _floats(scorer[parts[1]]), _floats(scorer[parts[2]])
        alpha = 0.15 if scorers <= 6 else 0.05  # many bands lie over each other
        axes.fill_between(x, low, high, color=look.colour, alpha=alpha, linewidth=0)
    axes.plot(x, _floats(scorer[parts[0]]), **look.matplotlib)


def _k_axis(axes: Axes, ks: Sequence[int]) -> None:
    axes.set_xticks(np.log2(ks), [str(each) for each in ks])
    axes.set_xlabel("candidates K (log scale)")


def _margins(axes: Axes, thresholds: Mapping[str, Any]) -> list[tuple[float | None, str, str]]:
    """Draw lines at zero, -delta and -rho; returns the labels of the two losses."""
    axes.axhline(0, color=NEUTRAL, linewidth=1)
    labels: list[tuple[float | None, str, str]] = []
    for part, sign, dashes in (("delta", "δ", ":"), ("rho", "ρ", "-")):
        loss = thresholds[part]
        axes.axhline(-loss, color=HARM, linestyle=dashes, linewidth=1)
        labels.append((-loss, f"−{sign} = −{exact_percent(loss)}", HARM))
    return labels


def _harm_region(axes: Axes, rho: float) -> None:
    low, high = axes.get_ylim()
    axes.axhspan(low, -rho, color=HARM, alpha=0.06, linewidth=0)
    axes.set_ylim(low, high)


def _safe_end(
    axes: Axes, ks: Sequence[int], curve: Sequence[float | None], verdict: Mapping[str, Any]
) -> None:
    """Ring the largest K up to which the scorer is safe."""
    if (at := _on_line(ks, curve, verdict["k_safe_max"])) is not None:
        ring = axes.plot(*([x] for x in at), "o", markersize=9, color=SAFE)[0]
        ring.set_markerfacecolor("none")


def _harm(
    axes: Axes, ks: Sequence[int], curve: Sequence[float | None], verdict: Mapping[str, Any]
) -> None:
    """Mark the first K of an established fall."""
    k_harm = verdict["k_harm"]
    if (at := _on_line(ks, curve, k_harm)) is None:
        return
    axes.annotate(
        f"hurts from K = {k_harm}",
        at,
        xytext=(0, -16),
        textcoords="offset points",
        ha="center",
        color=HARM,
        fontsize=8,
        path_effects=[withStroke(linewidth=2, foreground="white")],
        arrowprops={"arrowstyle": "-|>", "color": HARM},
    )


def _on_line(
    ks: Sequence[int], curve: Sequence[float | None], k: int | None
) -> tuple[float, float] | None:
    """Position of a K on the drawn line, or None; verdicts look at more K than are shown."""
    if k is None:
        return None
    height = float(np.interp(np.log2(k), np.log2(ks), _floats(curve)))
    return None if np.isnan(height) else (float(np.log2(k)), height)


def _end_labels(axes: Axes, x_end: float, labels: Sequence[tuple[float | None, str, str]]) -> None:
    """Write names at the right ends of the lines, moved apart where they would overlap."""
    placed = sorted((entry for entry in labels if entry[0] is not None), key=lambda e: e[0] or 0.0)
    if not placed:
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)  # the labels must not move the axis
    # Title and ticks leave the axes about 0.85 of the figure's height.
    gap = (high - low) * _LINE / (0.85 * axes.figure.bbox.height / axes.figure.dpi)
    heights = spread([entry[0] or 0.0 for entry in placed], gap, low, high)
    for (value, text, colour), height in zip(placed, heights, strict=True):
        axes.annotate(
            text,
            (x_end, value or 0.0),
            xytext=(1.02, height),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 3,
            },
            parse_math=False,
        )


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move sorted heights apart to at least ``gap``, staying inside [low, high] if they fit."""
    up, down = list(heights), list(heights)
    for i in range(1, len(up)):
        up[i] = max(up[i], up[i - 1] + gap)
    for i in range(len(down) - 2, -1, -1):
        down[i] = min(down[i], down[i + 1] - gap)
    # Both keep the gap, so their mean does, and it lies around where the lines end.
    moved = [(a + b) / 2 for a, b in zip(up, down, strict=True)]
    for i, height in enumerate(moved):
        moved[i] = max(height, low + i * gap)
    for i, height in enumerate(reversed(moved), start=1):
        moved[-i] = min(height, high - (i - 1) * gap)
    return moved
