"""Why a measured cell may differ from the paper's: the most likely reason.

It is looked for in the study's own sweeps: the paper leaves many settings unsaid, and a swept
setting that meets its number is the likeliest explanation.
"""

from __future__ import annotations

import math
from typing import Final

from toptail.report.text import number
from toptail_paper.controlled.results import ControlledResults
from toptail_paper.study.compare import Comparison
from toptail_paper.study.naming import setting_in, setting_text

UNSAID: Final = (
    "The paper states neither the training length nor the network, batch size, temperature or "
    "mixture of its data"
)


def reason(cell: Comparison, heading: str, study: ControlledResults) -> str:
    """The most likely reason why a cell differs from the paper's, in a sentence or two.

    ``heading`` is what the cell's column is called.
    """
    parts = [_self_contradiction(cell, study), _chance(cell), _split_seeds(cell)]
    parts.append(_settings(cell, heading, study))
    found = " ".join(part for part in parts if part)
    return (
        found
        or f"{UNSAID}; the sweeps of ‘toptail-paper study controlled’ show how far each moves it."
    )


def _self_contradiction(cell: Comparison, study: ControlledResults) -> str:
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


def _settings(cell: Comparison, heading: str, study: ControlledResults) -> str:
    """The swept setting whose regret comes nearest to the paper's, and this cell there.

    One setting has to serve a critic's whole row, so it is always chosen by the regret.
    """
    if "@" in cell.task:
        return "The same unsaid settings as in the main table."
    papers = (table.get("paper", {}).get(cell.task, {}) for table in study.tables.values())
    target = next((row[cell.critic].get("regret") for row in papers if cell.critic in row), None)
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
        there += f" and {heading.lower()} {number(value, 2)}"
    if abs(value - cell.paper["mean"]) <= max(cell.spread, 0.02):
        return f"A setting the paper does not state: {_words(task)} gives {there}."
    return (
        f"The swept setting nearest in regret, {_words(task)}, does not explain it ({there}): "
        "something else that the paper leaves unsaid, such as the network or its data, must differ."
    )


def _words(task: str) -> str:
    """``controlled@layer_norm=off,steps=3000`` as ``layer norm off, steps 3,000``."""
    words = []
    for part in task.partition("@")[2].split(","):
        name, _, value = part.partition("=")
        words.append(f"{name.replace('_', ' ')} {setting_text(setting_in(value))}")
    return ", ".join(words)
