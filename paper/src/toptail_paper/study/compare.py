"""Comparison of a measured cell with the paper's: the difference, and how both are written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scipy.special import stdtrit

from toptail.report.table import Cell as ShownCell
from toptail.report.text import MISSING_SHORT, bracket, number

MARKS: Final = {"circular": "†", "unreliable": "‡"}
"""What stands behind the number of a cell that carries a mark."""


PAPER_SEEDS: Final = 3
"""Seeds behind a reported standard deviation, unless the reported cell says otherwise."""

DIFFERS: Final = (
    "▲ and ▼: above or below the paper's number, where the 95 % intervals of both do not overlap. "
    "Ours is the interval shown, or that of the mean over seeds (t) where it reaches further; the "
    "paper's is that of its mean over seeds, or its rounded number alone where it gives no spread"
)
"""What the triangles say."""


def where_compared(text: str, *, compared: bool) -> str:
    """Choose the words for a page with the paper's numbers beside ours, or for one without.

    In ``⟦with|without⟧`` the first words speak of the paper; the others may be left out.
    """
    return re.sub(r"⟦([^|⟧]*)\|?([^⟧]*)⟧", r"\1" if compared else r"\2", text)


@dataclass(frozen=True)
class Comparison:
    """One cell of ours and the paper's."""

    task: str
    """Row of tasks it stands in."""
    critic: str
    """Scorer, judge or selector."""
    metric: str
    ours: Mapping[str, Any]
    """The stored cell: mean, std, seeds."""
    paper: Mapping[str, Any]
    """The reported cell: mean, perhaps std."""

    @property
    def difference(self) -> float:
        return float(self.ours["mean"]) - float(self.paper["mean"])

    @property
    def spread(self) -> float:
        """The larger standard deviation over seeds, ours or the paper's."""
        return max(self.ours.get("std") or 0.0, self.paper.get("std") or 0.0)

    def differs(self, decimals: int = 3) -> bool:
        """Whether the 95 % intervals of both do not overlap: see `DIFFERS`."""
        mean, reported = float(self.ours["mean"]), float(self.paper["mean"])
        half = _half(self.ours.get("std"), len(self.ours.get("seeds") or ()))
        ends = [x for x in (self.ours.get("low"), self.ours.get("high")) if x is not None]
        low, high = min([mean - half, *ends]), max([mean + half, *ends])
        spread = self.paper.get("std", self.paper.get("std_at_most"))
        reach = _half(spread, self.paper.get("seeds", PAPER_SEEDS)) + 0.5 * 10.0**-decimals
        return bool(low > reported + reach or high < reported - reach)


def _half(std: float | None, seeds: int) -> float:
    """Half the width of Student's 95 % interval of a mean over seeds; 0 where none is known."""
    return float(stdtrit(seeds - 1, 0.975)) * std / math.sqrt(seeds) if std and seeds > 1 else 0.0


def comparisons(table: Mapping[str, Any]) -> list[Comparison]:
    return [
        Comparison(task, critic, metric, row[metric], reported)
        for task, critics in table["rows"].items()
        for critic, row in critics.items()
        for metric, reported in table["paper"].get(task, {}).get(critic, {}).items()
        if metric in row and row[metric]["mean"] is not None
    ]


def reported(table: Mapping[str, Any], task: str, scorer: str, metric: str) -> float | None:
    cell = table.get("paper", {}).get(task, {}).get(scorer, {}).get(metric, {})
    mean: float | None = cell.get("mean")
    return mean


def beside(
    ours: Mapping[str, Any] | None,
    pair: Comparison | None,
    decimals: int,
    *,
    percent: bool = False,
    intervals: bool = True,
) -> ShownCell:
    """A measured cell with its marks; below it, its interval and the paper's number."""
    if ours is None or ours.get("mean") is None:
        return ShownCell(MISSING_SHORT)
    text = with_spread(ours, decimals, percent=percent)
    text += "".join(sign for word, sign in MARKS.items() if ours.get(word))
    lines = [bracket(ours.get("low"), ours.get("high"), decimals)] if intervals else []
    if pair is not None:
        if pair.differs(decimals):
            text = f"{'▲' if pair.difference > 0 else '▼'} {text}"
        lines.append(f"paper {with_spread(pair.paper, decimals, percent=percent)}")
    return ShownCell(text, "\n".join(line for line in lines if line), key=ours["mean"])


def with_spread(cell: Mapping[str, Any], decimals: int, *, percent: bool = False) -> str:
    """``0.309 ± 0.005``, or ``31 ± 1 %``: mean and standard deviation over seeds."""
    mean, std = cell["mean"], cell.get("std")
    if mean is None:
        return MISSING_SHORT
    scale, digits, unit = (100, decimals - 2, " %") if percent else (1, decimals, "")
    spread = "" if std is None else f" ± {number(scale * std, digits)}"
    return f"{number(scale * mean, digits)}{spread}{unit}"
