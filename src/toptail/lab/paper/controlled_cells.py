"""What the decisions about the controlled study share: criteria, look-ups, wording."""

from __future__ import annotations

import math
from collections.abc import Callable

from toptail.lab.paper.ledger import Finding, Measured, Tables, measured

CONTRASTIVE = ("raw", "cosine", "hybrid")
CRITICS = ("tdq", *CONTRASTIVE)
TASK = "controlled"
RADII = ("0.25", "0.40", "0.55")

NEAR_ZERO = 0.10
"""A regret the paper would call near zero: it does so for 0.065 to 0.087."""
INSIDE = 0.05
"""Largest off-support share of a critic that "selects inside the support": the paper has 3 %."""
RICE_SHIFT = 0.05 * math.sqrt(math.pi / 2)
"""The paper's bound on the shift of regret under noise of standard deviation 0.05."""


def main(tables: Tables, critic: str, metric: str) -> Measured:
    """Look up a cell of the main table."""
    return measured(tables, "toy-support", TASK, critic, metric)


def percent(x: float) -> str:
    """A share as the comments write it."""
    return f"{100 * x:.0f} %"


def seeds_with(cell: Measured, holds: Callable[[float], bool]) -> str:
    """Say in how many seeds a condition holds."""
    values = list(cell.seeds.values())
    return f"{sum(map(holds, values))} of {len(values)} seeds"


def clearly_below(cell: Measured, limit: float) -> bool:
    """Whether the mean and its interval over seeds lie below a limit."""
    ends = cell.interval() or (cell.mean, cell.mean)
    return ends[1] < limit


def lowest(cells: dict[str, Measured]) -> tuple[str, Measured]:
    """The case with the lowest mean: the one that decides a statement about all of them."""
    name = min(cells, key=lambda key: cells[key].mean)
    return name, cells[name]


def sweep_failures(
    tables: Tables, critics: tuple[str, ...], metric: str, holds: Callable[[float], bool]
) -> tuple[int, list[str]]:
    """Count the swept settings and name those in which a critic's mean does not hold.

    Only critics that were trained anew in a setting have a cell there.
    """
    count, failing = 0, []
    for name in sorted(key for key in tables if key.startswith("sweep-")):
        for task, row in tables[name]["rows"].items():
            if task in tables[name].get("default", ()):
                continue
            for critic in critics:
                mean = row.get(critic, {}).get(metric, {}).get("mean")
                if mean is None:
                    continue
                count += 1
                if not holds(mean):
                    failing.append(f"{critic} at {task.partition('@')[2]} ({mean:.2f})")
    return count, failing


def with_sweeps(
    finding: Finding,
    tables: Tables,
    critics: tuple[str, ...],
    metric: str,
    holds: Callable[[float], bool],
) -> Finding:
    """Turn "seen" into "depends" where other settings of the same study say otherwise."""
    count, failing = sweep_failures(tables, critics, metric, holds)
    if not count:
        return finding
    held = f"{count - len(failing)} of {count} cells of the sweeps"
    comment = f"{finding.comment} The same criterion is met in {held}"
    comment += f"; not for {', '.join(failing)}." if failing else "."
    status = "depends" if failing and finding.status == "seen" else finding.status
    return Finding(status, finding.number, finding.interval, comment)


def base_rate(tables: Tables) -> str:
    """Say how often a random candidate is off support, where the curves tell."""
    try:
        rate = tables["curves"]["critics"]["raw"]["off_support"]["mean"][0]
    except KeyError:
        return ""
    return f" A random candidate of these pools is off support in {percent(rate)}."


def most(share: float) -> bool:
    """Whether a share is more than half."""
    return share > 0.5
