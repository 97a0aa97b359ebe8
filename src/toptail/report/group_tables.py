"""Groups of queries: what each scorer does in each, and whether the groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toptail.report.cells import (
    captured_at_end,
    difference_cell,
    drawn_cells,
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
    last,
    one_line,
    p_value,
    percent,
    plural,
    ranked,
    value_decimals,
)


def groups_table(audit: Audit, names: Sequence[str] | None = None) -> Table:
    """These scorers (by default all) inside each group of queries, scorer by scorer."""
    decimals = value_decimals(audit)
    places = [
        (name, group, record)
        for name in ranked(audit)
        for group, record in (audit.get("groups") or {}).items()
        if name in record["scorers"]
    ]
    ends = [captured_at_end(record["scorers"][name]) for name, _, record in places]
    shares = drawn_cells(ends, audit["thresholds"]["rho"])  # one axis for all scorers
    rows = []
    for (name, group, record), share in zip(places, shares, strict=True):
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
                share,
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
            *numbers("Captured share", "Safe up to K", "Value", "Random", "Oracle", "τ_b"),
        ),
        tuple(rows),
        stacked=True,
    )


def group_tests_table(audit: Audit) -> Table:
    """Differences of the captured share between every two groups, the clearest first."""
    tests = sorted(
        audit.get("group_tests") or (), key=lambda t: (t["p_holm"] is None, t["p_holm"] or 0.0)
    )
    return Table(
        "group-tests",
        "Between groups",
        "Difference between two groups in the captured share at the largest K, with "
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
    """Whether a scorer's captured share differs between groups at all; empty if not tested."""
    p = (audit.get("group_heterogeneity") or {}).get(name)
    return "" if p is None else f"all groups alike: p {_equals(p_value(p))}"


def _equals(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"
