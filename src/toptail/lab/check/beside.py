"""Critics of a check beside each other, and beside those that this project measured."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, option
from toptail.io.json_files import read_object
from toptail.lab.check.inputs import ASCENT, NEAREST, UNIFORM, CheckConfig
from toptail.lab.check.verdicts import CLOSED_LOOP, ONE_STEP, Check
from toptail.lab.tasks.names import parse_name
from toptail.pools.columns import group_seeds
from toptail.report.table import (
    Cell,
    Column,
    Table,
    interval_cell,
    number_cell,
    numbers,
    status_cell,
    words,
)
from toptail.report.text import MISSING_SHORT, join, one_line, plural, short, with_interval

CURE: Final = ("before", "after", "tdq")
"""Names of scorers of which the terminal also says how much of the gap was closed."""
ZOO: Final = Path(__file__).with_name("zoo.json")
"""Critics that this project measured on one task, with which others may be compared."""
COMPARED: Final = (NEAREST, UNIFORM)
"""The sources of candidates among which they were measured."""


def captured_shares(content: Check) -> dict[str, dict[str, float]]:
    """`CheckResult.captured` of a check's content."""
    return {
        name: {
            part["pools"]: part[ONE_STEP]["captured"]
            for part in entry["parts"]
            if "captured" in (part[ONE_STEP] or ())
        }
        for name, entry in content["scorers"].items()
    }


def closed_gap(
    shares: Mapping[str, Mapping[str, float]], before: str, after: str, reference: str
) -> dict[str, float]:
    """`CheckResult.gap_closed` of captured shares by scorer and source."""
    closed = {}
    for source, first in shares[before].items():
        gap = shares[reference][source] - first
        closed[source] = (shares[after][source] - first) / gap if gap > 0 else math.nan
    return closed


def cure_lines(content: Check) -> list[str]:
    """Where scorers are called as a cure's are, the share of the gap that it closed."""
    if not content["scorers"].keys() >= set(CURE):
        return []
    before, after, reference = CURE
    shares = closed_gap(captured_shares(content), *CURE)
    parts = [
        f"{100 * share:.0f} % ({source} candidates)"
        for source, share in shares.items()
        if not math.isnan(share)
    ]
    if not parts:
        return ["", f"'{reference}' captures no more than '{before}': there is no gap to close."]
    gap = f"of the gap from '{before}' to '{reference}'"
    return ["", f"'{after}' closes {' and '.join(parts)} {gap} in captured share."]


def comparable_zoo(
    task: str, judge: str, sources: Collection[str], size: int, gamma: float
) -> dict[str, Any]:
    """The content of `ZOO`; an :class:`InputError` unless such a check can be compared with it."""
    zoo = read_object(ZOO, "install toptail again")
    start = "The critics to compare with were"
    if task != zoo["task"]:
        raise InputError(
            f"{start} measured on {zoo['task']}, and this check is of {task}: compare a critic of "
            "that task, or leave the comparison out."
        )
    if (judge, gamma) != (zoo["judge"], CheckConfig.gamma):
        needed = f"{option('judge', zoo['judge'])} and {option('gamma', CheckConfig.gamma)}"
        raise InputError(
            f"{start} judged by the judge '{zoo['judge']}' with a discount of "
            f"{CheckConfig.gamma:g}, and this check is by '{judge}' with {gamma:g}: give {needed}, "
            "or leave the comparison out."
        )
    if size != zoo["k"] or not set(sources) & set(COMPARED):
        needed = f"{option('pools', COMPARED)} and {option('pool_size', zoo['k'])}"
        raise InputError(
            f"{start} asked to choose among {zoo['k']} candidates, {join(COMPARED, 'or')}, and "
            f"this check has {size} ({join(sources)}): give {needed}, or leave the comparison out."
        )
    return zoo


def own_row(content: Check, name: str, k: int) -> dict[str, Any]:
    """A critic of the check, as `ZOO` has the others.

    Episodes count only in the task's own environment and with the usual horizon, as theirs do.
    """
    parts = {part["pools"]: part for part in content["scorers"][name]["parts"]}
    steps = {source: part[ONE_STEP] for source, part in parts.items() if source in COMPARED}
    ends = {"mean": "captured", "low": "captured_low", "high": "captured_high", "status": "status"}
    usual = content["settings"]["horizon"] == CheckConfig.horizon
    usual &= content["environment"] == parse_name(content["task"]).environment
    loops = {s: parts[s][CLOSED_LOOP]["worth"] for s in steps if usual and parts[s][CLOSED_LOOP]}
    return {
        "name": name,
        "yours": True,
        "title": name,
        "trained_by": None,
        "seeds": len(group_seeds(content["record"]["scorers"])[name]),
        "captured": {
            source: {end: step[key] for end, key in ends.items()} for source, step in steps.items()
        },
        "ascent": parts[ASCENT][ONE_STEP]["status"] if ASCENT in parts else None,
        "followed": {s: worth[f"K = {k}"] for s, worth in loops.items() if f"K = {k}" in worth},
        "auc": None,
        "train_seconds": None,
    }


def _compared(content: Check) -> list[str]:
    return [source for source in content["candidates"] if source in COMPARED]


def beside_lines(content: Check) -> list[str]:
    """The critics of the check, marked, among the others; nothing unless that was asked for."""
    if "beside" not in content:
        return []
    size, lines = content["settings"]["pool_size"], []
    width = max(len(short(row["title"], 40)) for row in content["beside"])
    for row in content["beside"]:
        line = f"{'>' if row['yours'] else ' '} {short(row['title'], 40):<{width}}"
        for source in _compared(content):
            cell = _captured_cell(row["captured"].get(source))
            line += f"  {source} {cell.detail:<20} {cell.text:<12}"
        lines.append(line.rstrip())
    return ["", f"Beside other critics, share of the headroom that best of {size} gets:", *lines]


def _captured_cell(entry: Mapping[str, Any] | None) -> Cell:
    """The status with the captured share, by which the page sorts."""
    if entry is None:
        return Cell(MISSING_SHORT)
    share = with_interval(entry["mean"], entry["low"], entry["high"])
    return Cell(entry["status"], share, key=entry["mean"], status=entry["status"])


def _about_critic(row: Mapping[str, Any]) -> str:
    """Whose critic it is, how it was trained, and how often."""
    known = "yours" if row["yours"] else row["trained_by"]
    return f"{known + ', ' if known else ''}{plural(row['seeds'], 'seed')}"


def beside_table(content: Check) -> Iterable[Table]:
    if "beside" not in content:
        return
    sources, zoo = _compared(content), read_object(ZOO)
    rows = tuple(
        (
            Cell(one_line(row["title"]), _about_critic(row)),
            *(_captured_cell(row["captured"].get(source)) for source in sources),
            status_cell(row["ascent"]) if row["ascent"] else Cell(MISSING_SHORT),
            *(interval_cell(row["followed"].get(source)) for source in sources),
            number_cell(row["auc"]),
            number_cell(row["train_seconds"], decimals=0),
        )
        for row in content["beside"]
    )
    columns = (
        Column("Critic", "name"),
        *words(*(f"{source}, one step" for source in sources), "Ascent"),
        *numbers(*(f"{source}, followed" for source in sources)),
        *numbers("Retrieval AUC", "Training seconds"),
    )
    caption = (
        f"Share of the headroom that best of {zoo['k']} gets in one step, and share of episodes "
        f"that succeed with best of {zoo['k']} at every step. The critics without “yours” were "
        f"trained and checked by this project: {zoo['task']}, {zoo['queries']} queries, judge: "
        f"{zoo['judge']}, code: {zoo['commit']}. Where intervals overlap, the order means little."
    )
    yield Table("beside", "Beside other critics", caption, columns, rows, stacked=True)
