"""What every rendering of an audit says, in one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toptail.report.cells import has_gains
from toptail.report.picks import picks_tables
from toptail.report.table import Table
from toptail.report.tables import pools_tables
from toptail.report.text import Audit, count, definitions, one_line, percent, threshold


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
        rows.append(("Harm established (δ)", f"{threshold(thresholds['delta'])} of the headroom"))
        rows.append(("Harm ruled out (ρ)", f"{threshold(thresholds['rho'])} of the headroom"))
    return [(label, "not recorded" if text is None else one_line(text)) for label, text in rows]


def status_lines(audit: Audit) -> list[tuple[str, str]]:
    """The meaning of each status, where the audit gives verdicts."""
    if audit["kind"] == "picks":
        return []
    # Audits without gains were judged by another rule, which its own words describe.
    return _meanings(audit["thresholds"]) if has_gains(audit) else definitions(audit["thresholds"])


def _meanings(thresholds: Mapping[str, Any]) -> list[tuple[str, str]]:
    delta, rho = threshold(thresholds["delta"]), threshold(thresholds["rho"])
    tail = percent((1 - thresholds["level"]) / 2)
    loss = f"a loss of more than ρ = {rho} of the headroom"
    return [
        (
            "safe",
            "the largest K gains over a random candidate, and no step from one K to a larger one "
            f"loses more than ρ = {rho} of the headroom: each by its lower one-sided {tail} end, "
            "in which a cluster that was not seen counts, ordered as badly as candidates allow.",
        ),
        (
            "no gain",
            f"{loss} is ruled out at every step, but a gain over a random candidate is not shown.",
        ),
        (
            "unsafe",
            f"some step from one K to a larger one is established to lose more than δ = {delta} of "
            "the headroom, by upper ends that hold for all steps at once.",
        ),
        (
            "inconclusive",
            f"{loss} is neither established nor ruled out, there are too few queries to tell, or "
            "there is nothing to gain (no headroom).",
        ),
    ]
