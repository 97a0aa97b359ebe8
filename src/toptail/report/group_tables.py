"""Groups of queries: what each scorer does in each, and whether the groups differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toptail.report.cells import (
    difference_cell,
    gain_at_end,
    gain_cells,
    k_cell,
    name_cell,
    number_cell,
    p_cell,
    status_cell,
    summary_cell,
)
from toptail.report.table import Column, Table, numbers
from toptail.report.text import (
    Audit,
    join,
    last,
    one_line,
    p_value,
    percent,
    plural,
    ranked,
    value_decimals,
    with_interval,
)

_NAMED = 4
"""So many scorers are named that are worse than random in a group."""


def groups_table(audit: Audit, names: Sequence[str] | None = None) -> Table:
    """These scorers (by default all) inside each group of queries, scorer by scorer."""
    decimals = value_decimals(audit)
    places = [
        (name, group, record)
        for name in ranked(audit)
        for group, record in (audit.get("groups") or {}).items()
        if name in record["scorers"]
    ]
    ends = [gain_at_end(record["scorers"][name]) for name, _, record in places]
    gains = gain_cells(ends, audit["thresholds"]["rho"])  # one axis for all scorers
    rows = []
    for (name, group, record), gain in zip(places, gains, strict=True):
        if names is not None and name not in names:
            continue
        scorer = record["scorers"][name]
        size = f"({plural(record['queries'], 'query', 'queries')}, K = {last(record['k'])})"
        value = (last(scorer[part]) for part in ("value", "low", "high"))
        rows.append(
            (
                name_cell(name),
                replace(name_cell(group), detail=size),
                status_cell(scorer["verdict"]["status"]),
                gain,
                k_cell(scorer["verdict"]["k_safe_max"]),
                number_cell(*value, decimals=decimals),
                number_cell(record["random"], decimals=decimals),
                number_cell(last(record["oracle"]), decimals=decimals),
                summary_cell(scorer["tau_b"]),
            )
        )
    return Table(
        "groups",
        "Groups",
        "The same audit inside each group of queries, at the group's largest K and in its own "
        "headroom. Groups are smaller, so their verdicts are more often inconclusive.",
        (
            Column("Scorer", "name"),
            Column(one_line(audit.get("group_column") or "Group"), "name"),
            Column("Verdict", "word"),
            *numbers("Gain", "Safe up to K", "Value", "Random", "Oracle", "τ_b"),
        ),
        tuple(rows),
        stacked=True,
    )


def group_tests_table(audit: Audit) -> Table:
    """Differences of the gain between every two groups, the clearest first."""
    tests = sorted(
        audit.get("group_tests") or (), key=lambda t: (t["p_holm"] is None, t["p_holm"] or 0.0)
    )
    return Table(
        "group-tests",
        "Between groups",
        "Difference between two groups in the gain at the largest K, in headroom, with "
        f"{percent(audit['thresholds']['level'])} intervals. Holm p is corrected for the number "
        "of pairs.",
        (
            Column("Scorer", "name"),
            Column("A", "word"),
            Column("B", "word"),
            *numbers("A − B", "p", "Holm p"),
        ),
        tuple(
            (
                name_cell(test["scorer"]),
                *map(name_cell, test["groups"]),
                difference_cell(test["difference"], test["low"], test["high"], 2),
                p_cell(test["p"]),
                p_cell(test["p_holm"]),
            )
            for test in tests
        ),
    )


def heterogeneity(audit: Audit, name: str) -> str:
    """Whether a scorer's gain differs between the groups at all; empty where not tested."""
    p = (audit.get("group_heterogeneity") or {}).get(name)
    return "" if p is None else f"all groups alike: p {_equals(p_value(p))}"


def worse_in_groups(audit: Audit) -> list[str]:
    """Say which scorers are worse than a random candidate in a group, and not unsafe overall.

    By the whole interval of the gain at the group's largest K, or of the order (τ_b). Of many the
    first are named; the groups' table has all.
    """
    found = []
    for name in ranked(audit) if audit["kind"] == "pools" else ():
        if audit["scorers"][name]["verdict"]["status"] == "unsafe":
            continue
        parts = [
            f"{one_line(group)} ({words})"
            for group, record in (audit.get("groups") or {}).items()
            if name in record["scorers"] and (words := _worse(record["scorers"][name]))
        ]
        if parts:
            overall = audit["scorers"][name]["verdict"]["status"]
            found.append(
                f"{one_line(name)} is {overall} over all queries and worse than a random candidate "
                f"in {join(parts)}."
            )
    more = len(found) - _NAMED
    if more > 1:
        found[_NAMED:] = [f"So are {more} more scorers: see the table of groups."]
    return found


def _worse(scorer: Mapping[str, Any]) -> str:
    """What is below zero with its whole interval; empty where nothing is."""
    gain, order = gain_at_end(scorer), scorer["tau_b"]
    ends = (order.get("mean"), order.get("low"), order.get("high"))
    words = [
        f"{what} {with_interval(*numbers)}"
        for what, numbers in (("gain, in headroom,", gain), ("τ_b", ends))
        if numbers[2] is not None and numbers[2] < 0
    ]
    return ", ".join(words)


def _equals(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"
