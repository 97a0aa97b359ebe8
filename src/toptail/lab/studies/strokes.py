"""How the controlled study's figures look: one colour and marker per critic, one set of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matplotlib.axes import Axes

from toptail.lab.studies.controlled.results import Floats
from toptail.report.figures import spread
from toptail.report.palette import NEUTRAL
from toptail.report.strokes import INK, SETTINGS, new_figure

__all__ = [
    "INK",
    "PICK",
    "SETTINGS",
    "SUPPORT",
    "end_labels",
    "k_axis",
    "look",
    "new_figure",
    "seed_curves",
    "wrapped",
]

SUPPORT: Final = "#c77700"
"""Colour of the support disk and of candidates on it."""
PICK: Final = "#c2188f"
"""Colour of the selected action."""

_LOOK: Final[Mapping[str, tuple[str, str]]] = {
    "tdq": ("#0b63ad", "o"),
    "raw": ("#d55e00", "s"),
    "cosine": ("#00876a", "^"),
    "hybrid": ("#b8479f", "D"),
    "f_cos": ("#6b6b1f", "v"),
    "q_td": ("#2f9bd6", "<"),
    "q_hybrid": ("#7b1e4b", ">"),
}


def look(critic: str) -> tuple[str, str]:
    """Colour and marker of a critic, the same in every figure."""
    return _LOOK.get(critic, (NEUTRAL, "o"))


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
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
