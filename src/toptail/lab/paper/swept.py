"""What the statements about the controlled study share: its one task, its sweeps, two limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toptail.lab.paper.criteria import Condition, Decision, Finding, percent
from toptail.lab.paper.numbers import ALONE, Number, Numbers, Tables, each, seeded

TASK = "controlled"
HERE = (TASK,)
NEAR_ZERO = 0.10
"""A regret the paper would call near zero: it does so for 0.065 to 0.087."""
INSIDE = 0.05
"""Largest off-support share of a critic that "selects inside the support": the paper has 3 %."""


def seed_share(tables: Tables, table: str, task: str, row: str, metric: str) -> Number:
    """Look up a share with its interval over seeds, cut at 0 and 1."""
    cell = seeded(tables, table, task, row, metric)
    if cell.interval is None:
        return cell
    return replace(cell, interval=(max(0.0, cell.interval[0]), min(1.0, cell.interval[1])))


def main(metric: str, critics: Sequence[str]) -> Numbers:
    """A metric of the main table."""
    lookup = seed_share if metric == "off_support" else seeded
    return each("toy-support", metric, critics, ALONE, lookup=lookup)


def base_rate(tables: Tables, _tasks: Sequence[str] = HERE) -> str:
    """Say how often a random candidate is off support, where the curves tell."""
    try:
        rate = tables["curves"]["critics"]["raw"]["off_support"]["mean"][0]
    except KeyError:
        return ""
    return f" A random candidate of these pools is off support in {percent(rate)}."


def with_sweeps(
    decision: Decision, critics: Sequence[str], metric: str, condition: Condition
) -> Decision:
    """Turn "seen" into "depends" where other settings of the same study say otherwise."""

    def decide(tables: Tables) -> Finding:
        finding = decision(tables)
        count, failing = _failures(tables, critics, metric, condition)
        if not count:
            return finding
        held = f"{count - len(failing)} of {count} cells of the sweeps"
        comment = f"{finding.comment} The same criterion is met in {held}"
        comment += f"; not for {', '.join(failing)}." if failing else "."
        status = "depends" if failing and finding.status == "seen" else finding.status
        return replace(finding, status=status, comment=comment)

    return decide


def _failures(
    tables: Tables, critics: Sequence[str], metric: str, condition: Condition
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
                if not condition(mean):
                    failing.append(f"{critic} at {task.partition('@')[2]} ({mean:.2f})")
    return count, failing
