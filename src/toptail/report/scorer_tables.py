"""Tables about single scorers: the checks behind a verdict, and every number over K."""

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

MOST_STEPS: Final = NEAREST
"""How many steps a card shows."""


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
    return Table(
        "checks",
        "Checks",
        "The numbers that decided each verdict. Steps between two K are in units of the headroom "
        "at the largest K.",
        (
            Column("Scorer", "name"),
            Column("Check", "prose"),
            Column("K", "word"),
            *numbers("Value", "Threshold"),
            Column("Status", "word"),
            Column("Advice", "prose"),
        ),
        rows,
    )


def steps_table(audit: Audit, name: str) -> Table:
    """The steps between two K that come nearest to harm; none where an audit has no steps."""
    steps, family = audit["scorers"][name]["verdict"].get("steps") or [], audit.get("family") or []
    asked = max(len(steps), len(family) * (len(family) - 1) // 2)  # not all of them are stored
    worst = sorted(steps, key=lambda s: (s["low"] is None, s["low"] or 0.0))[:MOST_STEPS]
    rho = audit["thresholds"]["rho"]
    ends = [(step["value"], step["low"], step["high"]) for step in worst]
    cells = drawn_cells(ends, rho, difference_cell)
    which = f"The {MOST_STEPS} of {asked} steps" if asked > MOST_STEPS else "The steps"
    return Table(
        "steps",
        "Steps nearest to harm",
        f"{which} from one K to a larger one with the lowest lower ends, in headroom. The upper "
        "ends hold for all steps at once. The marks are zero and −ρ.",
        (Column("K", "name"), Column("Change")),
        tuple(
            (Cell(" → ".join(map(str, step["k"]))), cell)
            for step, cell in zip(worst, cells, strict=True)
        ),
    )


def numbers_table(audit: Audit, name: str) -> Table:
    """Everything measured for one scorer, one row for each K."""
    decimals, scorer = value_decimals(audit), audit["scorers"][name]
    band = zip(scorer["band_low"], scorer["band_high"], strict=True)
    columns = _share_column(scorer, audit["k"][-1]) | {
        "Value": curve_cells(scorer, ("value", "low", "high"), decimals),
        "Simultaneous band": (
            Cell(bracket(low, high, decimals) or MISSING_SHORT) for low, high in band
        ),
        "Regret": curve_cells(scorer, ("regret",), decimals),
        "Normalized regret": curve_cells(scorer, ("nregret",), 2),
        "Captured share": (Cell(MISSING_SHORT), *captured_cells(scorer)),
        "Selected score": (number_cell(x, decimals=3) for x in scorer["selected_score"]),
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


def _share_column(scorer: Mapping[str, Any], k_max: int) -> dict[str, Iterable[Cell]]:
    """The gain at each K over the headroom at the largest, where an audit has it."""
    if "gain" not in scorer:
        return {}
    cells = curve_cells(scorer["gain"], ("value", "low", "high"), 2)
    return {f"Gain / headroom at K = {k_max}": cells}


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
