"""Colours and line styles of scorers, the same in the page and in the figures.

Six hues of different lightness that stay apart under simulated colour vision
deficiencies; the seventh scorer starts again with dashed lines, the thirteenth with dotted
ones. Ranks printed beside the lines identify a scorer without any colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

LIGHT: Final = ("#1788ec", "#d5359f", "#b08a28", "#0d6b39", "#05188f", "#5b0c01")
DARK: Final = ("#78b7ff", "#df4199", "#996520", "#70fdcb", "#4c64f3", "#f49e6a")
DASHES: Final = ("", "7 3", "2 3")  # as SVG writes them; the empty one is solid

NEUTRAL: Final = "#5b6573"
HARM: Final = "#b3261e"
SAFE: Final = "#1a7a55"


@dataclass(frozen=True)
class Style:
    """How one scorer is drawn."""

    hue: int
    """Index into the palette."""
    dash: str
    """SVG dash pattern; empty for a solid line."""

    @property
    def colour(self) -> str:
        """Colour on a light background."""
        return LIGHT[self.hue]


def style(rank: int) -> Style:
    """Style of the scorer with this rank (0 is the first)."""
    return Style(rank % len(LIGHT), DASHES[rank // len(LIGHT) % len(DASHES)])


INK: Final = "#1b2430"

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


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of its own, with the Agg canvas."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
