"""What every rendering of an audit says, in one order."""

from __future__ import annotations

from toptail.report.picks import picks_tables
from toptail.report.table import Table
from toptail.report.tables import pools_tables
from toptail.report.text import Audit, count, definitions, number, one_line, percent


def tables_of(audit: Audit) -> list[Table]:
    """All tables of the audit, those without rows left out."""
    return picks_tables(audit) if audit["kind"] == "picks" else pools_tables(audit)


def method_rows(audit: Audit) -> list[tuple[str, str]]:
    """How the audit was computed, as pairs of label and text."""
    record, thresholds = audit["record"], audit["thresholds"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    rows = [
        ("Command", record["command"]),
        ("Table", record["source"]),
        ("SHA-256 of the table", record["sha256"]),
        ("Seed", record["seed"]),
        ("Versions", versions),
        ("Confidence level", percent(thresholds["level"])),
        ("Bootstrap resamples", count(thresholds["resamples"])),
    ]
    if audit["kind"] == "picks":
        rows.append(("Power of the detectable effect", percent(thresholds["power"])))
    else:
        rows.append(("Harm established (δ)", f"{number(thresholds['delta'])} of the headroom"))
        rows.append(("Harm ruled out (ρ)", f"{number(thresholds['rho'])} of the headroom"))
    return [(label, "not recorded" if text is None else one_line(text)) for label, text in rows]


def status_lines(audit: Audit) -> list[tuple[str, str]]:
    """The meaning of each status, where the audit gives verdicts."""
    return [] if audit["kind"] == "picks" else definitions(audit["thresholds"])
