"""Colours, line styles and Matplotlib settings, the same on pages and in figures.

Six hues of different lightness that stay apart under simulated colour vision deficiencies; the
seventh scorer starts again with dashed lines, the thirteenth with dotted ones. The rank printed
beside each line identifies a scorer without any colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIGHT: Final = ("#1788ec", "#d5359f", "#b08a28", "#0d6b39", "#05188f", "#5b0c01")
DARK: Final = ("#78b7ff", "#df4199", "#996520", "#70fdcb", "#4c64f3", "#f49e6a")
DASHES: Final = ("", "7 3", "2 3")  # in SVG's notation; the empty one is solid

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

FIGURES: Final[Mapping[str, Mapping[str, str]]] = {
    "pools": {
        "gain": "Share of the headroom captured",
        "best_of_k": "Best-of-K curves",
        "deciles": "Mean value by score decile",
    },
    "picks": {"differences": "Paired differences"},
}
"""Name of each figure's file and its title, by kind of audit, in the order of the page."""


@dataclass(frozen=True)
class LineStyle:
    """Colour and dashes of one scorer's line."""

    hue: int
    """Index into the palette."""
    dash: str
    """SVG dash pattern; empty for a solid line."""

    @property
    def colour(self) -> str:
        """Colour on a light background."""
        return LIGHT[self.hue]

    @property
    def matplotlib(self) -> dict[str, Any]:
        """The arguments of Matplotlib's ``plot``."""
        dashes = (0, tuple(map(float, self.dash.split()))) if self.dash else "solid"
        return {"color": self.colour, "linestyle": dashes, "marker": "o", "markersize": 3}


def line_style(rank: int) -> LineStyle:
    """Line style of the scorer with this rank (0 is the first)."""
    return LineStyle(rank % len(LIGHT), DASHES[rank // len(LIGHT) % len(DASHES)])


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure with the Agg canvas, in inches; pyplot is not involved."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
