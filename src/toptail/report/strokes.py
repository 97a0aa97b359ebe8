"""How every figure of the house looks: its settings, its ink, and an empty figure."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toptail.report.palette import NEUTRAL

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
