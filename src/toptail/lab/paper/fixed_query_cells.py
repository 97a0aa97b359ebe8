"""What the decisions about fixed-query selection share: look-ups, criteria, wording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toptail.lab.paper.ledger import (
    Finding,
    Interval,
    NotMeasuredError,
    Tables,
    from_parts,
    measured,
)
from toptail.lab.paper.semantics_cells import CORE, scope

CONTRASTIVE = ("raw", "cosine", "hybrid")
POINT, ANT, HUMANOID = INCLUDED = CORE
"""The tasks that the paper includes in selection."""
TAU, REGRET = "tau_b_64", "nregret_64"
JUDGES = {"reference": "", "geodesic": "geodesic/"}
"""Judges that value every candidate, and how their metrics begin."""

NAMES = {
    "tdq": "TD-Q",
    "raw": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "td_bilinear": "TD bilinear",
    "nce_mlp": "contrastive MLP",
    "two_head_joint": "q_td",
    "two_head_joint.f_cos": "f_cos",
}


@dataclass(frozen=True)
class Number:
    """A stored cell's mean with its interval over queries."""

    mean: float
    """Mean over seeds."""
    interval: Interval | None
    """95 % interval over queries (trajectories resampled), where the cell has one."""

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self._ends[0]

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self._ends[1]

    @property
    def _ends(self) -> Interval:
        if self.interval is None:  # a mean alone decides nothing that is said of an interval
            raise NotMeasuredError("an interval")
        return self.interval


def stored(tables: Tables, name: str, task: str, row: str, metric: str) -> Mapping[str, Any]:
    """A stored cell."""
    try:
        cell: Mapping[str, Any] = tables[name]["rows"][task][row][metric]
    except KeyError as missing:
        raise NotMeasuredError(f"{name}: {task}/{row}/{metric}") from missing
    if cell["mean"] is None:
        raise NotMeasuredError(f"{name}: {task}/{row}/{metric} has no number")
    return cell


def number(tables: Tables, name: str, task: str, row: str, metric: str) -> Number:
    """A stored cell as a number with its interval."""
    cell = stored(tables, name, task, row, metric)
    low, high = cell.get("low"), cell.get("high")
    return Number(float(cell["mean"]), None if low is None or high is None else (low, high))


def over_seeds(
    tables: Tables, name: str, task: str, more: str, less: str, metric: str
) -> Interval | None:
    """Student-t interval over training seeds of the paired difference of two rows."""
    rows = (measured(tables, name, task, row, metric) for row in (more, less))
    return next(rows).minus(next(rows)).interval()


def main(tables: Tables, task: str, critic: str, metric: str) -> Number:
    """A number of the main table."""
    return number(tables, "fixed-query", task, critic, metric)


def tasks(tables: Tables, name: str = "fixed-query") -> list[str]:
    """The tasks that a table has."""
    try:
        return list(tables[name]["rows"])
    except KeyError as missing:
        raise NotMeasuredError(name) from missing


def one_task(tables: Tables, name: str = "fixed-query") -> str:
    """The first task of a table; a folder holds one."""
    found = tasks(tables, name)
    if not found:
        raise NotMeasuredError(name)
    return found[0]


def judges(tables: Tables, task: str, critic: str = "tdq") -> dict[str, str]:
    """The judges under which a critic was measured, and the prefix of their metrics."""
    row = tables.get("fixed-query", {}).get("rows", {}).get(task, {}).get(critic, {})
    found = {judge: prefix for judge, prefix in JUDGES.items() if prefix + TAU in row}
    if not found:
        raise NotMeasuredError(f"fixed-query: {task}/{critic}/{TAU}")
    return found


def each(
    tables: Tables,
    task: str,
    critics: tuple[str, ...],
    metric: str,
    holds: Callable[[Number], bool],
    criterion: str,
    number_of: str,
) -> Finding:
    """Decide a statement about several critics under every judge that saw them.

    The number is that of ``number_of`` under the reference, or under the first judge there is.
    """
    parts: dict[str, bool] = {}
    texts = []
    for judge, prefix in judges(tables, task, critics[0]).items():
        numbers = {c: main(tables, task, c, prefix + metric) for c in critics}
        parts |= {f"{NAMES.get(c, c)} ({judge})": holds(x) for c, x in numbers.items()}
        shown = ", ".join(f"{NAMES.get(c, c)} {x.mean:.2f}" for c, x in numbers.items())
        texts.append(f"{judge}: {shown}")
    first = next(iter(judges(tables, task, critics[0]).values()))
    chosen = main(tables, task, number_of, first + metric)
    shown = "; by ".join(texts)
    comment = f"Criterion: {criterion} On {task}, by {shown}.{caveat(tables, task)}{alone(task)}"
    return from_parts(parts, chosen.mean, chosen.interval, comment)


def caveat(tables: Tables, task: str) -> str:
    """Say so where the reference ensemble did not pass its declared criteria."""
    rows = tables.get("fixed-query", {}).get("rows", {}).get(task, {})
    if any(row.get(TAU, {}).get("unreliable") for row in rows.values()):
        return " The reference ensemble did not pass its criteria here: its numbers decide little."
    return ""


def alone(task: str) -> str:
    """Say that one task decided a statement about all that the paper includes."""
    return scope([task], INCLUDED)


def percent(x: float) -> str:
    """A share as the comments write it."""
    return f"{100 * x:.0f} %"
