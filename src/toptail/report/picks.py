"""The tables of an audit of picks: how the chosen candidates of each selector turned out."""

from __future__ import annotations

from toptail.report.cells import count_cell, difference_cell, name_cell, number_cell, p_cell
from toptail.report.table import Column, Table, numbers
from toptail.report.text import Audit, one_line, percent, value_decimals


def picks_tables(audit: Audit) -> list[Table]:
    """Every table of the audit."""
    tables = [differences_table(audit), selectors_table(audit), groups_table(audit)]
    return [table for table in tables if table.rows]


def differences_table(audit: Audit) -> Table:
    """Paired differences between selectors."""
    decimals, thresholds, baseline = value_decimals(audit), audit["thresholds"], audit["baseline"]
    against = "" if baseline is None else f" The baseline is “{one_line(baseline)}”."
    return Table(
        "differences",
        "Paired differences",
        f"Mean difference in value on the same queries, with {percent(thresholds['level'])} "
        f"intervals.{against} Detectable: the smallest true difference that this many queries "
        f"would find with {percent(thresholds['power'])} power. Variance ratio: how many times "
        "more variance the comparison would have without pairing. Holm p is corrected for the "
        "number of comparisons.",
        (
            Column("A", "name"),
            Column("B", "word"),
            *numbers("A − B", "Detectable", "Variance ratio", "Queries", "p", "Holm p"),
        ),
        tuple(
            (
                name_cell(c["a"]),
                name_cell(c["b"]),
                difference_cell(c["difference"], c["low"], c["high"], decimals),
                number_cell(c["detectable"], decimals=decimals),
                number_cell(c["variance_ratio"], decimals=1),
                count_cell(c["queries"]),
                p_cell(c["p"]),
                p_cell(c["p_holm"]),
            )
            for c in audit["comparisons"]
        ),
    )


def groups_table(audit: Audit) -> Table:
    """Paired differences inside each group of queries."""
    decimals = value_decimals(audit)
    return Table(
        "groups",
        "Groups",
        "The same differences inside each group of queries. Holm p is corrected for the number of "
        "comparisons of this table.",
        (
            Column(one_line(audit.get("group_column") or "Group"), "name"),
            Column("A", "word"),
            Column("B", "word"),
            *numbers("A − B", "Queries", "p", "Holm p"),
        ),
        tuple(
            (
                name_cell(group),
                name_cell(c["a"]),
                name_cell(c["b"]),
                difference_cell(c["difference"], c["low"], c["high"], decimals),
                count_cell(c["queries"]),
                p_cell(c["p"]),
                p_cell(c["p_holm"]),
            )
            for group, part in (audit.get("groups") or {}).items()
            for c in part["comparisons"]
        ),
    )


def selectors_table(audit: Audit) -> Table:
    """Mean value of what each selector picked."""
    decimals = value_decimals(audit)
    return Table(
        "selectors",
        "Selectors",
        "Mean value of the picked candidates over queries; replicates of a query are averaged "
        "first.",
        (Column("Selector", "name"), *numbers("Mean value", "Queries", "Replicates")),
        tuple(
            (
                name_cell(name),
                number_cell(s["mean"], s["low"], s["high"], decimals=decimals),
                count_cell(s["queries"]),
                number_cell(s["replicates"], decimals=0),
            )
            for name, s in audit["selectors"].items()
        ),
    )
