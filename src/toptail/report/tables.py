"""The tables of an audit of pools, in the order in which a reader meets them."""

from __future__ import annotations

from collections.abc import Iterable

from toptail.report.cells import (
    captured_cells,
    count_cell,
    curve_cells,
    difference_cell,
    k_cell,
    name_cell,
    number_cell,
    p_cell,
    status_cell,
    summary_cell,
)
from toptail.report.group_tables import group_tests_table, groups_table
from toptail.report.scorer_tables import checks_table
from toptail.report.table import Cell, Column, Table, numbers
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    last,
    one_line,
    percent,
    ranked,
    value_decimals,
)
from toptail.report.verdict_tables import NAME, baseline_table, populations_table, verdict_table


def _over(ks: Iterable[int]) -> tuple[Column, ...]:
    """A column of numbers for each K."""
    return numbers(*(f"K = {k}" for k in ks))


def pools_tables(audit: Audit) -> list[Table]:
    """Every table of the audit, except those that only repeat one scorer's numbers."""
    tables = [
        baseline_table(audit),
        verdict_table(audit),
        populations_table(audit),
        value_table(audit),
        captured_table(audit),
        ordering_table(audit),
        off_support_table(audit),
        seeds_table(audit),
        groups_table(audit),
        group_tests_table(audit),
        comparisons_table(audit),
        checks_table(audit, ranked(audit)),
    ]
    return [table for table in tables if table.rows]


def value_table(audit: Audit) -> Table:
    """V(K) of every scorer between the oracle and a random candidate."""
    decimals = value_decimals(audit)
    oracle = curve_cells(audit, ("oracle", "oracle_low", "oracle_high"), decimals)
    curves = {
        name: curve_cells(audit["scorers"][name], ("value", "low", "high"), decimals)
        for name in ranked(audit)
    }
    random = number_cell(audit["random"], decimals=decimals)
    return Table(
        "values",
        "Value at each K",
        f"Expected value of the candidate with the top score of K, with pointwise "
        f"{percent(audit['thresholds']['level'])} intervals.",
        (NAME, *_over(audit["k"])),
        (
            (Cell("oracle (best possible)"), *oracle),
            *((name_cell(name), *cells) for name, cells in curves.items()),
            (Cell("a random candidate"), *(random for _ in audit["k"])),
        ),
        stacked=True,
        over_k=True,
    )


def captured_table(audit: Audit) -> Table:
    """Captured share of the headroom at each K."""
    return Table(
        "captured",
        "Captured share",
        "Of what the best possible choice among K would gain over a random candidate, the share "
        "that the scorer gets: 1 is the oracle, 0 a random candidate, below 0 worse than random. "
        f"With pointwise {percent(audit['thresholds']['level'])} intervals.",
        (NAME, *_over(audit["k"][1:])),
        tuple((name_cell(name), *captured_cells(audit["scorers"][name])) for name in ranked(audit)),
        stacked=True,
        over_k=True,
    )


def ordering_table(audit: Audit) -> Table:
    """How well the score orders candidates: tau_b, decile gaps, AUC."""
    decimals = value_decimals(audit)
    labels = ["τ_b within query", "Undefined", "Decile gap, pooled", "Decile gap, within"]
    if audit["binary"]:
        labels += ["AUC, pooled", "AUC, within"]
    rows = []
    for name in ranked(audit):
        scorer = audit["scorers"][name]
        row = [
            name_cell(name),
            summary_cell(scorer["tau_b"]),
            count_cell((scorer["tau_b"] or {}).get("undefined")),
            summary_cell(scorer["decile_gap"], decimals),
            summary_cell(scorer["decile_gap_within"], decimals),
        ]
        if audit["binary"]:
            row.append(number_cell(*(scorer.get(part) for part in ("auc", "auc_low", "auc_high"))))
            row.append(summary_cell(scorer.get("auc_within")))
        rows.append(tuple(row))
    return Table(
        "ordering",
        "Ordering",
        "τ_b: rank agreement of score and value inside a query (1 same order, −1 reversed), "
        "undefined where a pool has no variation. Decile gap: mean value of the top score decile "
        "minus that of the bottom decile, deciles formed over all candidates (pooled) or inside "
        "each query (within).",
        (NAME, *numbers(*labels)),
        tuple(rows),
        stacked=True,
    )


def off_support_table(audit: Audit) -> Table:
    """Excess of off-support picks over the base rate at each K."""
    rows = []
    for name in ranked(audit):
        if off := audit["scorers"][name].get("off_support"):
            excess = curve_cells(off, ("excess", "excess_low", "excess_high"), 3)
            rows.append((name_cell(name), number_cell(off["base_rate"], decimals=3), *excess))
    return Table(
        "off-support",
        "Off-support excess",
        "Rate at which the top score of K lies off the data's support, minus the rate among all "
        "candidates (base rate). Above 0, search is drawn off the support.",
        (NAME, Column("Base rate"), *_over(audit["k"])),
        tuple(rows),
        stacked=True,
        over_k=True,
    )


def seeds_table(audit: Audit) -> Table:
    """Verdict and final value of each training seed."""
    decimals = value_decimals(audit)
    rows = tuple(
        (
            name_cell(name),
            Cell(one_line(seed), key=one_line(seed)),
            status_cell(record["verdict"]["status"]),
            k_cell(record["verdict"]["k_best"], MISSING_SHORT),
            k_cell(record["verdict"]["k_safe_max"]),
            k_cell(record["verdict"]["k_harm"]),
            number_cell(last(record["value"]), decimals=decimals),
        )
        for name in ranked(audit)
        for seed, record in (audit["scorers"][name].get("seeds") or {}).items()
    )
    return Table(
        "seeds",
        "Training seeds",
        "Each seed's own curve and verdict. The scorer's curve above is the mean over its seeds; "
        "intervals run over queries only.",
        (
            NAME,
            Column("Seed", "word"),
            Column("Verdict", "word"),
            *numbers("Best K", "Safe up to K", "Hurts from K", f"Value at K = {audit['k'][-1]}"),
        ),
        rows,
    )


def comparisons_table(audit: Audit) -> Table:
    """Paired differences between every two scorers, at the largest K."""
    decimals = value_decimals(audit)
    pairs = sorted(audit["comparisons"], key=lambda c: (c["p_holm"] is None, c["p_holm"] or 0.0))
    return Table(
        "comparisons",
        "Paired comparisons",
        f"Difference in value between two scorers at K = {audit['k'][-1]} on the same queries. "
        "Holm p is corrected for the number of pairs.",
        (Column("A", "name"), Column("B", "word"), *numbers("A − B", "p", "Holm p")),
        tuple(
            (
                name_cell(c["a"]),
                name_cell(c["b"]),
                difference_cell(c["difference"], c["low"], c["high"], decimals),
                p_cell(c["p"]),
                p_cell(c["p_holm"]),
            )
            for c in pairs
        ),
    )
