"""The tables that a reader meets first: the leaderboard, and what it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from toptail.report.cells import (
    captured_at_end,
    difference_cell,
    drawn_cells,
    k_cell,
    name_cell,
    number_cell,
    status_cell,
)
from toptail.report.exceptions import exceptions
from toptail.report.table import Cell, Column, Table, numbers
from toptail.report.text import (
    Audit,
    count,
    gains,
    number,
    one_line,
    peak,
    percent,
    plural,
    ranked,
    value_decimals,
)

NAME: Final = Column("Scorer", "name")


def verdict_table(audit: Audit) -> Table:
    """The leaderboard: one row for each scorer, best status and largest captured share first."""
    scorers = {name: audit["scorers"][name] for name in ranked(audit)}
    shares = drawn_cells([captured_at_end(s) for s in scorers.values()], audit["thresholds"]["rho"])
    decimals, k_max = value_decimals(audit), audit["k"][-1]
    rows = tuple(
        (
            name_cell(name),
            _verdict_cell(audit, name),
            share,
            difference_cell(gains(scorer)[-1], None, None, decimals),
            _peak_cell(audit, name),
            k_cell(scorer["verdict"]["k_safe_max"]),
            k_cell(scorer["verdict"]["k_harm"]),
            number_cell((scorer["tau_b"] or {}).get("mean")),
        )
        for (name, scorer), share in zip(scorers.items(), shares, strict=True)
    )
    return Table(
        "verdicts",
        f"Verdicts up to best of {k_max} of pools like these",
        f"Gain: what the top score of {k_max} is worth more than a random candidate, in units of "
        "the value. Captured share: the gain divided by what the best possible choice among "
        f"{k_max} would gain (the headroom), with its {percent(audit['thresholds']['level'])} "
        f"interval. Peak: the highest value over K.{_starred(rows)}",
        (
            NAME,
            Column("Verdict", "word"),
            *numbers("Captured share", "Gain (value units)", "Peak value"),
            *numbers("Safe up to K", "Hurts from K", "τ_b"),
        ),
        rows,
    )


def _verdict_cell(audit: Audit, name: str) -> Cell:
    """The status, how many queries would decide it, and whether a group or a unit differs."""
    verdict = audit["scorers"][name]["verdict"]
    needed = verdict.get("queries_needed")
    more = ["*"] if exceptions(audit, name) else []
    more += [] if needed is None else [f"(needs {count(needed)} queries)"]
    return replace(status_cell(verdict["status"]), detail=" ".join(more))


def _starred(rows: Iterable[tuple[Cell, ...]]) -> str:
    """What the star behind a status means, where there is one."""
    if not any(row[1].detail.startswith("*") for row in rows):
        return ""
    return " *: a group of queries or the other unit has another status."


def _peak_cell(audit: Audit, name: str) -> Cell:
    k, value = peak(audit["scorers"][name], audit["k"])
    cell = number_cell(value, decimals=value_decimals(audit))
    return cell if k is None else replace(cell, detail=f"(K = {k})")


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
