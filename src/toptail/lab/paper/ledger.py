"""The claim ledger: what the paper says, and what the stored tables say about it.

A claim carries the paper's sentence and, beside it, the criterion that decides it from stored
tables and from nothing else, so that every entry can be decided again, by a test or by a reader.
What stands behind each word ("near-zero", "most", "comparable") is said in the entry's comment. A
claim whose tables were not made by a run is left open rather than decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

from toptail.audit.record import jsonable
from toptail.lab.paper.findings import STATUSES, Decision, Status
from toptail.lab.paper.numbers import NotMeasuredError, Tables
from toptail.lab.studies.folder import write_json
from toptail.pools.files import atomic

ALWAYS: Final = ("seen", "depends", "not seen")
"""Statuses that a tally counts even where there are none of them."""


class ClaimEntry(TypedDict):
    """An entry of ``claims.json``."""

    id: str
    """Short stable name of the claim."""
    sentence: str
    """The paper's statement."""
    where: str
    """Section, table or figure label in the paper."""
    status: Status
    """Whether it was seen: `STATUSES` says what each word means."""
    number: float | None
    """The number that decided it."""
    interval: list[float | None] | None
    """Its 95 % interval, where it has one."""
    run: str
    """The command that made the tables."""
    comment: str
    """The criterion and what stands behind the number."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the criterion that decides it."""

    id: str
    """Short stable name."""
    sentence: str
    """The paper's statement, quoted or closely paraphrased."""
    label: str
    """Section, table or figure label in the paper."""
    criterion: Decision
    """A `Criterion`, or a function where a statement needs one of its own."""


def decide(
    claims: Iterable[Claim], tables: Tables, run: str
) -> tuple[list[ClaimEntry], list[Claim]]:
    """The entries of ``claims.json`` that the tables decide, in order, and the claims left open."""
    entries: list[ClaimEntry] = []
    left_open: list[Claim] = []
    for claim in claims:
        try:
            finding = claim.criterion(tables)
        except NotMeasuredError:
            left_open.append(claim)
            continue
        entries.append(
            {
                "id": claim.id,
                "sentence": claim.sentence,
                "where": claim.label,
                "status": finding.status,
                "number": jsonable(finding.number),
                "interval": jsonable(finding.interval),
                "run": run,
                "comment": finding.comment,
            }
        )
    return entries, left_open


def write_ledger(
    out: Path, claims: Iterable[Claim], tables: Tables, record: Mapping[str, Any]
) -> list[ClaimEntry]:
    """Decide the claims that the tables decide; store ``claims.json`` and ``claims.md``."""
    run = f"{record.get('command', '')} (config {record.get('config_hash', '')})"
    entries, left_open = decide(claims, tables, run.strip())
    write_json(out / "claims.json", entries)
    text = "# What the paper says, and what this run saw\n\n" + render_markdown(entries)
    if left_open:
        text += "\nNot decided by this run (it made no table for them):\n\n"
        text += "".join(f"- {claim.sentence} (`{claim.label}`)\n" for claim in left_open)
    atomic(out / "claims.md", lambda path: path.write_text(text, encoding="utf-8", newline="\n"))
    return entries


def render_markdown(entries: Sequence[ClaimEntry]) -> str:
    """Render the ledger as a Markdown table."""
    lines = [
        "| status | what the paper says | where | number | 95 % interval | how it was decided |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        interval = entry["interval"]
        cells = [
            f"**{entry['status']}**",
            entry["sentence"],
            f"`{entry['where']}`",
            _digits(entry["number"]),
            "–" if interval is None else f"[{_digits(interval[0])}, {_digits(interval[1])}]",
            entry["comment"],
        ]
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def tally(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the entries of each status; of the rarer ones, where there are any."""
    found = [str(entry["status"]) for entry in entries]
    return {s: found.count(s) for s in STATUSES if s in ALWAYS or s in found}


def _digits(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
