"""A measured cell beside the paper's: how far apart, and the most likely reason.

Two cells differ when their means are further apart than the larger of the two standard
deviations over seeds. The reason is looked for in the study's own sweeps: the paper leaves many
settings unsaid, and a swept setting that meets its number is the likeliest explanation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toptail.lab.studies.controlled.figures import tick_text
from toptail.lab.studies.controlled.results import Study
from toptail.report.text import number

METRICS: Final[Mapping[str, str]] = {
    "regret": "Regret",
    "off_support": "Off support",
    "mean_norm": "Mean norm of the pick",
}
"""The paper's columns as a reader sees them."""

UNSAID: Final = (
    "The paper states neither the training length nor the network, batch size, temperature or "
    "mixture of its data"
)


@dataclass(frozen=True)
class Comparison:
    """One cell of ours and the paper's."""

    task: str
    critic: str
    metric: str
    ours: Mapping[str, Any]
    """The stored cell: mean, std, seeds."""
    paper: Mapping[str, Any]
    """The reported cell: mean, perhaps std."""

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return float(self.ours["mean"]) - float(self.paper["mean"])

    @property
    def spread(self) -> float:
        """The larger standard deviation over seeds, ours or the paper's."""
        return max(self.ours.get("std") or 0.0, self.paper.get("std") or 0.0)

    @property
    def differs(self) -> bool:
        """Whether the difference is larger than the spread and than the paper's rounding."""
        rounding = 0.005 if self.metric == "off_support" else 0.0005
        return abs(self.difference) > max(self.spread, rounding)


def comparisons(table: Mapping[str, Any]) -> list[Comparison]:
    """Every cell of a table that the paper reports too."""
    return [
        Comparison(task, critic, metric, row[metric], reported)
        for task, critics in table["rows"].items()
        for critic, row in critics.items()
        for metric, reported in table["paper"].get(task, {}).get(critic, {}).items()
        if metric in row and row[metric]["mean"] is not None
    ]


def reason(cell: Comparison, study: Study) -> str:
    """The most likely reason why a cell differs from the paper's, in a sentence or two."""
    parts = [_self_contradiction(cell, study), _chance(cell), _split_seeds(cell)]
    parts.append(_settings(cell, study))
    found = " ".join(part for part in parts if part)
    return (
        found or f"{UNSAID}; the sweeps of ‘toptail study controlled’ show how far each moves it."
    )


def _self_contradiction(cell: Comparison, study: Study) -> str:
    """The paper gives two numbers for the critics at R = 0.40."""
    other = {
        "controlled": ("r-sweep", "controlled@R=0.40"),
        "controlled@R=0.40": ("toy-support", "controlled"),
    }.get(cell.task)
    if other is None or other[0] not in study.tables:
        return ""
    paper = study.tables[other[0]]["paper"].get(other[1], {})
    twin = paper.get(cell.critic, {}).get(cell.metric, {})
    if not twin or abs(twin["mean"] - cell.paper["mean"]) <= cell.spread:
        return ""
    return (
        f"The paper has two numbers for this cell, {cell.paper['mean']:g} and {twin['mean']:g} "
        "(main table and radius sweep)."
    )


def _chance(cell: Comparison) -> str:
    """A difference that seeds alone can make, by the two standard errors."""
    ours, paper = cell.ours.get("std"), cell.paper.get("std")
    if not ours or not paper:
        return ""
    error = math.hypot(ours, paper) / math.sqrt(len(cell.ours["seeds"]))
    if abs(cell.difference) > 2.3 * error:  # Student's t at 95 % for two groups of five
        return ""
    return (
        f"Seeds alone can do this: the difference is {abs(cell.difference) / error:.1f} standard "
        "errors of two means over so few seeds."
    )


def _split_seeds(cell: Comparison) -> str:
    """Seeds that disagree in the paper and agree here, or the other way round."""
    ours, paper = cell.ours.get("std"), cell.paper.get("std")
    if ours is None or paper is None or max(ours, paper) < 0.1:
        return ""
    if paper > 3 * ours:
        return (
            f"The paper's seeds disagree (± {paper:g}), as when part of the runs fail and part do "
            "not; all of ours end on one side."
        )
    if ours > 3 * paper:
        return f"Our seeds disagree (± {ours:.2f}), as when part of the runs fail and part do not."
    return ""


def _settings(cell: Comparison, study: Study) -> str:
    """The swept setting whose regret comes nearest to the paper's, and this cell there.

    One setting has to serve a critic's whole row, so it is always chosen by the regret.
    """
    if "@" in cell.task:
        return "The same unsaid settings as in the main table."
    table = next((t for t in study.tables.values() if _reports(t, cell)), {})
    target = table.get("paper", {}).get(cell.task, {}).get(cell.critic, {}).get("regret")
    rows = [
        (abs(row[cell.critic]["regret"]["mean"] - target["mean"]), task, row[cell.critic])
        for name, swept in study.tables.items()
        if target and name.startswith("sweep-")
        for task, row in swept["rows"].items()
        if row.get(cell.critic, {}).get("regret", {}).get("mean") is not None
    ]
    if not rows:
        return ""
    _, task, row = min(rows, key=lambda entry: entry[:2])
    regret, value = row["regret"]["mean"], row[cell.metric]["mean"]
    there = f"regret {number(regret, 2)}"
    if cell.metric != "regret":
        there += f" and {METRICS[cell.metric].lower()} {number(value, 2)}"
    if abs(value - cell.paper["mean"]) <= max(cell.spread, 0.02):
        return f"A setting the paper does not state: {_words(task)} gives {there}."
    return (
        f"The swept setting nearest in regret, {_words(task)}, does not explain it ({there}): "
        "something else that the paper leaves unsaid, such as the network or its data, must differ."
    )


def _reports(table: Mapping[str, Any], cell: Comparison) -> bool:
    return cell.critic in table.get("paper", {}).get(cell.task, {})


def _words(task: str) -> str:
    """``controlled@layer_norm=off,steps=3000`` as ``layer norm off, steps 3,000``."""
    words = []
    for part in task.partition("@")[2].split(","):
        name, _, value = part.partition("=")
        shown = tick_text(float(value)) if value.replace(".", "", 1).isdigit() else tick_text(value)
        words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
