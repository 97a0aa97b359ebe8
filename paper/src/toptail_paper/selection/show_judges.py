"""The judges' table of the selection page: admission numbers beside the declared thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.critics.registry import MAIN
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, join, number
from toptail_paper.selection.results import SelectionResults, judge_name, selector_name
from toptail_paper.study.naming import is_circular

_ORDER: Final = ("resolvability", "spearman")
"""A judge's own consistency comes first; how it relates to others and to the data, after it."""

_DECIDING: Final = ("resolvability", "spearman", "largest_half_width")
"""The metrics that have a declared threshold."""

_PAIRED: Final = ("tdq", "raw")
"""Whose gain from common random numbers the page names: one value and one compatibility, as the
paper does; everybody's is in the stored table."""


def judge_tables(study: SelectionResults) -> list[Table]:
    """The judges' admission numbers beside the declared thresholds; those first."""
    lines = []
    for judge, row in study.of_task("judges").items():
        shown = {m: text for m in row if (text := _judge_words(m, study)) is not None}
        order = sorted(shown, key=lambda metric: _place(metric, row[metric]))
        for place, metric in enumerate(order):
            cell, head = row[metric], judge_name(judge) if place == 0 else ""
            lines.append((Cell(head), Cell(shown[metric]), *_judge_cells(metric, cell)))
    columns = (
        Column("Judge", "name"),
        Column("What", "prose"),
        Column("Number"),
        Column("Declared"),
        Column("", "word"),
    )
    stored = study.tables["judges"]
    through, missing = (
        join(judge_name(judge).lower() for judge in stored[what])
        for what in ("included_through", "missing")
    )
    if through:
        caption = f"The task enters through: {through}."
    else:
        caption = "No judge has passed yet." if missing else "No judge passed: excluded."
    if missing:
        caption += f" Not measured: {missing}."
    title = "May the judges judge?"
    return [Table("judges", title, caption, columns, tuple(lines), stacked=True)]


def excluded_words(study: SelectionResults) -> str:
    """Say by which numbers the task is excluded; nothing where a judge passed or is missing."""
    stored = study.tables.get("judges")
    if stored is None or stored["included_through"] or stored["missing"]:
        return ""
    parts = []
    for row in study.of_task("judges").values():
        for metric in sorted((m for m in row if "threshold" in row[m]), key=_DECIDING.index):
            measured, limit, status = _judge_cells(metric, row[metric])
            parts.append(
                f"{_judge_words(metric, study)} {measured.text} ({limit.text}: {status.text})"
            )
    actors = [
        f" An actor trained on {selector_name(name)} reaches "
        f"{number(100 * cell['mean'], 0)} % of the environment's own goals "
        f"[{number(100 * cell['low'], 0)}, {number(100 * cell['high'], 0)}]."
        for name in MAIN
        if is_circular(name)
        and (cell := study.of_task("deployment").get(name, {}).get("actor_success")) is not None
    ]
    return f"Excluded, because no judge passed: {'; '.join(parts)}.{''.join(actors)}"


def _judge_cells(metric: str, cell: Mapping[str, Any]) -> tuple[Cell, Cell, Cell]:
    """Number, declared threshold and status."""
    decimals = {"resolvability": 3, "queries": 0, "variance_ratio": 1, "largest_half_width": 4}
    digits = decimals.get(metric.partition("/")[0], 2)
    value = number(cell["mean"], digits, MISSING_SHORT)
    measured = Cell(value, bracket(cell.get("low"), cell.get("high"), digits))
    if "threshold" not in cell:
        return measured, Cell(""), Cell("")
    word = "below" if metric == "largest_half_width" else "at least"
    status = {"pass": "passes", "fail": "fails"}.get(cell["status"], cell["status"])
    limit = Cell(f"{word} {cell['threshold']:g}")
    return measured, limit, Cell(status, status=cell["status"])


def _place(metric: str, cell: Mapping[str, Any]) -> tuple[bool, bool]:
    """Sort key: what decides about admission, then the rest of the judge's own consistency."""
    return "threshold" not in cell, metric.partition("/")[0] not in _ORDER


def _judge_words(metric: str, study: SelectionResults) -> str | None:
    """What a metric of a judge says; None for those that the page leaves to the stored table."""
    name, _, rest = metric.partition("/")
    group = study.declared.get("prespecified_group", "")
    words = {
        "resolvability": f"pools resolved, {rest or f'{group}: the prespecified group'}",
        "spearman": f"members' agreement within pools (Spearman){f', {rest}' if rest else ''}",
        "support_value_correlation": "value and nearness to the data's actions (Spearman)",
        "largest_half_width": f"widest half-width of a selector's gain{_widest(study)}",
        "queries": "queries rolled out",
        "alike": "share of these queries in which every rollout returned the same",
        "random_return": "mean return of the random candidates",
        "variance_ratio": f"variance of {selector_name(rest)}'s gain without common random "
        "numbers over that with them",
        "spearman_within": f"{_return_words(rest)}, within queries (Spearman)",
        "spearman_across": f"{_return_words(rest)}, across queries (Spearman)",
    }
    if metric == f"resolvability/{group}":
        return None  # the prespecified group is there already
    if name in study.judges and rest in ("tau_b", "spearman"):
        measure = {"tau_b": "τ_b", "spearman": "Spearman"}[rest]
        return f"agreement with {judge_name(name).lower()} within pools ({measure})"
    if name == "variance_ratio" and rest not in _PAIRED:
        return None
    return words.get(name)


def _widest(study: SelectionResults) -> str:
    """Whose interval is the widest, where the rollouts say so."""
    rollouts = study.tables["judges"].get("statuses", {}).get("rollouts", {})
    selector = rollouts.get("checks", {}).get("selector")
    return f": {selector_name(selector)}" if selector else ""


def _return_words(judge: str) -> str:
    if judge == "split_half":
        return "realized return with itself (even and odd repeats)"
    return f"{judge_name(judge).lower()} and realized return"
