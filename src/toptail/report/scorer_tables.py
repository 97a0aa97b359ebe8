"""Tables about single scorers: the checks behind a verdict, and every number over K."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toptail.audit.verdict import NEAREST
from toptail.report.cells import (
    captured_cells,
    curve_cells,
    difference_cell,
    drawn_cells,
    name_cell,
    number_cell,
    status_cell,
)
from toptail.report.table import Cell, Column, Table, numbers
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    bracket,
    one_line,
    percent,
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
