"""The tables that a reader meets first: the leaderboard, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from toptail.report.cells import (
    count_cell,
    difference_cell,
    gain_at_end,
    gain_cells,
    k_cell,
    name_cell,
    number_cell,
    status_cell,
)
from toptail.report.table import Cell, Column, Table, numbers
from toptail.report.text import (
    Audit,
    count,
    number,
    one_line,
    percent,
    plural,
    ranked,
    value_decimals,
)

NAME: Final = Column("Scorer", "name")


def verdict_table(audit: Audit) -> Table:
    """The leaderboard: one row for each scorer, best status and highest gain first."""
    scorers = {name: audit["scorers"][name] for name in ranked(audit)}
    gains = gain_cells([gain_at_end(s) for s in scorers.values()], audit["thresholds"]["rho"])
    rows = tuple(
        (
            name_cell(name),
            status_cell(scorer["verdict"]["status"]),
            gain,
            k_cell(scorer["verdict"]["k_safe_max"]),
            k_cell(scorer["verdict"]["k_harm"]),
            number_cell((scorer["tau_b"] or {}).get("mean")),
            _queries_cell(audit, scorer["verdict"]),
        )
        for (name, scorer), gain in zip(scorers.items(), gains, strict=True)
    )
    return Table(
        "verdicts",
        "Verdicts",
        "Does search hurt, and what does it gain? Gain: what the top score of K gains over a "
        "random pick, as a share of what the best possible choice would gain (the headroom), "
        f"with its {percent(audit['thresholds']['level'])} interval: the captured share.",
        (
            NAME,
            Column("Verdict", "word"),
            Column(f"Gain at K = {audit['k'][-1]}"),
            *numbers("Safe up to K", "Hurts from K", "τ_b", "Queries"),
        ),
        rows,
    )


def _queries_cell(audit: Audit, verdict: Mapping[str, Any]) -> Cell:
    """How many queries there are, and about how many would decide what is undecided."""
    cell, needed = count_cell(audit["queries"]), verdict.get("queries_needed")
    return cell if needed is None else replace(cell, detail=f"(needs {count(needed)})")


def baseline_table(audit: Audit) -> Table:
    """Each scorer against its earlier self, on the queries that both tables have."""
    base: Mapping[str, Any] = audit.get("baseline") or {"scorers": {}}
    rows = tuple(
        (
            replace(name_cell(name), detail=_old_name(name, entry.get("old"))),
            status_cell(entry["status"]),
            difference_cell(entry["difference"], entry["low"], entry["high"], 3),
            k_cell(entry["k"], "n/a"),
            Cell(one_line(entry["reason"])),
        )
        for name, entry in base["scorers"].items()
    )
    return Table(
        "baseline",
        "Against the baseline",
        _baseline_caption(audit, base) if rows else "",
        (
            NAME,
            Column("Status", "word"),
            *numbers("New − old", "at K"),
            Column("Why", "prose"),
        ),
        rows,
    )


def _old_name(name: str, old: str | None) -> str:
    """What a scorer was called in the old table, where that was something else."""
    return "" if old is None or old == name else f"(was “{one_line(old)}”)"


def _baseline_caption(audit: Audit, base: Mapping[str, Any]) -> str:
    shared = plural(base["shared_queries"], "shared query", "shared queries")
    alone = f"{count(base['only_new'])} only here and {count(base['only_old'])} only there"
    return (
        f"This table against “{one_line(base['source'])}”, paired over {shared} ({alone}, not "
        "compared). Differences in value, as shares of the old table's headroom at that K, with "
        f"{percent(audit['thresholds']['level'])} intervals; losing less than "
        f"{number(base['margin'])} counts as not worse."
    )


def populations_table(audit: Audit) -> Table:
    """What was audited beside everything there is, where small pools were left out."""
    populations: Mapping[str, Any] = audit.get("populations") or {}
    decimals, parts = value_decimals(audit), list(populations.values())
    titles = {"audited": "Audited", "all": "All pools"}
    labels = [
        f"{titles.get(which, one_line(which))} ({plural(part['queries'], 'query', 'queries')}, "
        f"smallest pool {count(part['smallest_pool'])})"
        for which, part in populations.items()
    ]
    rows = tuple(
        (
            name_cell(name),
            *(number_cell(part["value"].get(name), decimals=decimals) for part in parts),
        )
        for name in ranked(audit)
        if parts
    )
    return Table(
        "populations",
        "With the pools left out",
        f"Value at K = {count(parts[0]['k'] if parts else None)}, the largest K that every pool "
        "allows. Where the two columns differ, the pools left out are of another kind.",
        (NAME, *numbers(*labels)),
        rows,
    )
