"""Tables about single scorers: checks, steps, every number over K, and groups of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toptail.audit.verdict import NEAREST
from toptail.report.table import (
    Cell,
    Column,
    Table,
    captured_at_end,
    captured_cells,
    curve_cells,
    difference_cell,
    drawn_cells,
    k_cell,
    name_cell,
    number_cell,
    numbers,
    p_cell,
    status_cell,
    summary_cell,
    words,
)
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    bracket,
    last,
    one_line,
    p_value,
    percent,
    plural,
    ranked,
    value_decimals,
)

SCORER: Final = Column("Scorer", "name")
MOST_STEPS: Final = NEAREST
"""How many steps a card shows."""


def paired_cells(test: Mapping[str, Any], decimals: int) -> tuple[Cell, Cell, Cell]:
    """A paired difference with its interval, its p-value, and that by Holm's correction."""
    difference = difference_cell(test["difference"], test["low"], test["high"], decimals)
    return difference, p_cell(test["p"]), p_cell(test["p_holm"])


def checks_table(audit: Audit, names: Sequence[str]) -> Table:
    """The checks of these scorers, each with value, interval, threshold, status, advice."""
    rows = tuple(
        (
            name_cell(name),
            Cell(one_line(check["name"]), f"({one_line(check['question'])})"),
            Cell(" → ".join(map(str, check["k"] or ())) or MISSING_SHORT),
            number_cell(check["value"], check["low"], check["high"], decimals=3),
            number_cell(check["threshold"], decimals=3),
            status_cell(check["status"]),
            Cell(one_line(check["advice"])),
        )
        for name in names
        for check in audit["scorers"][name]["verdict"]["checks"]
    )
    prose = Column("Check", "prose"), Column("Advice", "prose")
    return Table(
        "checks",
        "Checks",
        "The numbers that decided each verdict. Steps between two K are in units of the headroom "
        "at the largest K.",
        (
            SCORER,
            prose[0],
            *words("K"),
            *numbers("Value", "Threshold"),
            *words("Status"),
            prose[1],
        ),
        rows,
    )


def steps_table(audit: Audit, name: str) -> Table:
    """The steps between two K that come nearest to harm; no rows if none are stored."""
    steps, grid = audit["scorers"][name]["verdict"]["steps"] or [], audit["family"]
    looked_at = max(len(steps), len(grid) * (len(grid) - 1) // 2)  # not all of them are stored
    worst = sorted(steps, key=lambda s: (s["low"] is None, s["low"] or 0.0))[:MOST_STEPS]
    ends = [(step["value"], step["low"], step["high"]) for step in worst]
    cells = drawn_cells(ends, audit["thresholds"]["rho"], difference_cell)
    which = f"The {MOST_STEPS} of {looked_at} steps" if looked_at > MOST_STEPS else "The steps"
    ks = (Cell(" → ".join(map(str, step["k"]))) for step in worst)
    return Table(
        "steps",
        "Steps nearest to harm",
        f"{which} from one K to a larger one with the lowest lower ends, in headroom. The upper "
        "ends hold for all steps at once. The marks are zero and −ρ.",
        (Column("K", "name"), Column("Change")),
        tuple(zip(ks, cells, strict=True)),
    )


def numbers_table(audit: Audit, name: str) -> Table:
    """Everything measured for one scorer, one row for each K."""
    decimals, scorer = value_decimals(audit), audit["scorers"][name]
    band = zip(scorer["band_low"], scorer["band_high"], strict=True)
    columns: dict[str, Iterable[Cell]] = {
        f"Gain / headroom at K = {audit['k'][-1]}": curve_cells(
            scorer["gain"], ("value", "low", "high"), 2
        ),
        "Value": curve_cells(scorer, ("value", "low", "high"), decimals),
        "Simultaneous band": (
            Cell(bracket(low, high, decimals) or MISSING_SHORT) for low, high in band
        ),
        "Regret": curve_cells(scorer, ("regret",), decimals),
        "Normalized regret": curve_cells(scorer, ("nregret",), 2),
        "Captured share": (Cell(MISSING_SHORT), *captured_cells(scorer)),
        "Selected score": curve_cells(scorer, ("selected_score",), 3),
    }
    if off := scorer.get("off_support"):
        columns["Off-support rate"] = curve_cells(off, ("rate",), 3)
        columns["Off-support excess"] = curve_cells(off, ("excess", "excess_low", "excess_high"), 3)
    columns["Divergence, at most (nats)"] = curve_cells(audit, ("kl_bound",), 2)
    ks = (Cell(str(k), key=k) for k in audit["k"])
    return Table(
        "numbers",
        f"Every number of {one_line(name)}",
        f"Intervals are pointwise at {percent(audit['thresholds']['level'])}; the band holds for "
        "all K at once. Divergence: ln K − (K − 1)/K, an upper bound of the divergence of the "
        "pick from the proposal.",
        (Column("K", "name"), *numbers(*columns)),
        tuple(zip(ks, *columns.values(), strict=True)),
        stacked=True,
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
    group_column = Column(one_line(audit.get("group_column") or "Group"), "name")
    labels = ("Captured share", "Safe up to K", "Value", "Random", "Oracle", "τ_b")
    return Table(
        "groups",
        "Groups",
        "The same audit inside each group of queries, at the group's largest K and in its own "
        "headroom. Groups are smaller, so their verdicts are more often inconclusive.",
        (SCORER, group_column, *words("Verdict"), *numbers(*labels)),
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
        (SCORER, *words("A", "B"), *numbers("A − B", "p", "Holm p")),
        tuple(
            (name_cell(t["scorer"]), *map(name_cell, t["groups"]), *paired_cells(t, 2))
            for t in tests
        ),
    )


def heterogeneity(audit: Audit, name: str) -> str:
    """The test that a scorer's captured share is the same in all groups; empty if not made."""
    p = (audit.get("group_heterogeneity") or {}).get(name)
    if p is None:
        return ""
    return f"all groups alike: p {'' if p_value(p).startswith('<') else '= '}{p_value(p)}"
