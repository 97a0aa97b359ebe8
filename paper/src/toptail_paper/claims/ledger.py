"""The claim ledger: what the paper says, and what the stored tables say about it.

A claim carries the paper's sentence and, beside it, the criterion that decides it from stored
tables and from nothing else, so that every entry can be decided again, by a test or by a reader.
What stands behind each word ("near-zero", "most", "comparable") is said in the entry's comment. A
claim whose tables were not made by a run is left open rather than decided. A sentence that the
paper says twice has one entry. A criterion that is another one than when its result was first seen
says so: `Changed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict

from toptail.audit.record import jsonable
from toptail.io.files import atomic
from toptail.io.json_files import write_json
from toptail_paper.claims.findings import INTERVALS, STATUSES, Decision, Status, computable
from toptail_paper.claims.numbers import NotMeasuredError, Tables
from toptail_paper.claims.reported import packaged

ALWAYS: Final = ("seen", "depends", "not seen")
"""Statuses that a tally counts even where there are none of them."""

UNASKED: Final = ("seen", "other task", "true by construction")
"""Statuses that leave nothing to ask."""

BEFORE: Final = (
    "Results that were seen before this rule had been decided by their means; an entry whose "
    "criterion is another one than then says so."
)
"""What is said of the rule in every ledger."""


class Quoted(TypedDict):
    """Another place where the paper says the same."""

    id: str
    """Short name that ledgers had for it."""
    sentence: str
    """The paper's statement there."""
    where: str
    """Section, table or figure label in the paper."""


class Changed(TypedDict):
    """What decided a statement when its result was first seen; in ``changed.json``."""

    criterion: str
    """The criterion then, in words."""
    status: Status
    """What it had decided."""
    why: str
    """Why it was changed."""


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
    depends_on: str | None
    """What it depends on, where its status is ``depends``."""
    number: float | None
    """The number that decided it."""
    interval: list[float | None] | None
    """Its 95 % interval, where it has one."""
    interval_over: str | None
    """What the interval is over: seeds, trajectories, queries, episodes."""
    run: str
    """The command that made the tables."""
    comment: str
    """The criterion and what stands behind the number."""
    also: list[Quoted]
    """Other places where the paper says the same."""
    changed: str | None
    """That its criterion is another one than when its result was first seen; which, and why."""
    settled: str | None
    """Where the declared experiments are that ask what is behind a disagreement."""


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
    also: tuple[Quoted, ...] = ()
    """Other places where the paper says it."""


@cache
def changed_criteria() -> dict[str, dict[str, Changed]]:
    """By study and claim, the criteria that results were first seen under."""
    content: dict[str, dict[str, Changed]] = packaged("changed.json")
    return content


@cache
def settled_questions() -> dict[str, dict[str, list[str]]]:
    """By study and claim, the questions of ``docs/results/settled.md`` that are about it."""
    content: dict[str, dict[str, list[str]]] = packaged("settled.json")
    return content


def decide(
    claims: Iterable[Claim], tables: Tables, run: str, study: str = ""
) -> tuple[list[ClaimEntry], list[Claim]]:
    """The entries of ``claims.json`` that the tables decide, in order, and the claims left open."""
    changed = changed_criteria().get(study, {})
    settled = settled_questions().get(study, {})
    entries: list[ClaimEntry] = []
    left_open: list[Claim] = []
    for claim in claims:
        try:
            finding = computable(claim.criterion(tables))
        except NotMeasuredError:
            left_open.append(claim)
            continue
        entries.append(
            {
                "id": claim.id,
                "sentence": claim.sentence,
                "where": claim.label,
                "status": finding.status,
                "depends_on": finding.on or None,
                "number": jsonable(finding.number),
                "interval": jsonable(finding.interval),
                "interval_over": finding.over or None,
                "run": run,
                "comment": finding.comment,
                "also": list(claim.also),
                "changed": _marked(changed.get(claim.id)),
                "settled": _pointed(settled.get(claim.id, []), finding.status),
            }
        )
    return entries, left_open


def write_ledger(
    out: Path,
    study: str,
    claims: Iterable[Claim],
    tables: Tables,
    record: Mapping[str, Any],
    notes: str = "",
) -> list[ClaimEntry]:
    """Decide the claims that the tables decide; store ``claims.json`` and ``claims.md``.

    ``notes`` is what a reader must know about all of them.
    """
    entries, left_open = decide(claims, tables, run_of(record), study)
    write_json(out / "claims.json", entries)
    lead = f"{counted(entries)}. {INTERVALS} {BEFORE}{notes}"
    text = f"{lead}\n\n{render_markdown(entries)}"
    if left_open:
        text += "\nNot decided by this run (it made no table for them):\n\n"
        text += "".join(f"- {claim.sentence} (`{claim.label}`)\n" for claim in left_open)
    _write_page(out, text)
    return entries


def write_undecided(out: Path, short: Sequence[str]) -> None:
    """Store an empty ledger, which says in what the run is smaller than it must be."""
    write_json(out / "claims.json", [])
    lines = "".join(f"- {words}\n" for words in short)
    _write_page(out, f"Nothing is decided: this run is below the declared scale in\n\n{lines}")


def run_of(record: Mapping[str, Any]) -> str:
    """How an entry names the run that made its tables."""
    return f"{record.get('command', '')} (config {record.get('config_hash', '')})".strip()


def _write_page(out: Path, text: str) -> None:
    write_text(out / "claims.md", f"# What the paper says, and what this run saw\n\n{text}")


def write_text(path: Path, text: str) -> None:
    """Store a page; it is there completely or not at all."""
    atomic(path, lambda target: target.write_text(text, encoding="utf-8", newline="\n"))


def render_markdown(entries: Sequence[ClaimEntry]) -> str:
    """Render the ledger as a Markdown table."""
    head = ["status", "what the paper says", "where", "number", "95 % interval"]
    rows = [
        [
            status_text(entry),
            quoted_sentences(entry),
            quoted_places(entry),
            _digits(entry["number"]),
            interval_text(entry),
            how_decided(entry),
        ]
        for entry in entries
    ]
    return markdown_table([*head, "how it was decided"], rows)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of texts."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def how_decided(entry: ClaimEntry) -> str:
    """Comment, change of the criterion and experiments of an entry, in a line."""
    parts = (entry["comment"], entry["changed"], entry["settled"])
    return " ".join(part for part in parts if part)


def status_text(entry: ClaimEntry) -> str:
    """The status in Markdown, with what it depends on."""
    return f"**{entry['status']}**" + (f" on {on}" if (on := entry["depends_on"]) else "")


def quoted_sentences(entry: ClaimEntry) -> str:
    """The paper's sentence, and those that say the same."""
    return " ".join([entry["sentence"], *(f"Also: “{q['sentence']}”" for q in entry["also"])])


def quoted_places(entry: ClaimEntry) -> str:
    """Where the paper says it."""
    places = [entry["where"], *(quoted["where"] for quoted in entry["also"])]
    return ", ".join(f"`{where}`" for where in places)


def interval_text(entry: ClaimEntry) -> str:
    """The interval with what it is over."""
    if entry["interval"] is None:
        return "–"
    low, high = entry["interval"]
    return f"[{_digits(low)}, {_digits(high)}] over {entry['interval_over']}"


def tally(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the entries of each status; of the rarer ones, where there are any."""
    found = [str(entry["status"]) for entry in entries]
    return {s: found.count(s) for s in STATUSES if s in ALWAYS or s in found}


def counted(entries: Sequence[Mapping[str, Any]]) -> str:
    """The tally in words, as pages that quote a ledger write it."""
    plural = {"depends": "depend"}
    counts = [f"{n} {plural.get(s, s) if n != 1 else s}" for s, n in tally(entries).items()]
    return f"{len(entries)} statements: {', '.join(counts)}"


def _marked(changed: Changed | None) -> str | None:
    """How an entry says that its criterion was another one when its result was first seen."""
    if changed is None:
        return None
    before = f"Before: {changed['criterion']} ({changed['status']})."
    return f"Criterion changed after the result was seen. {before} Why: {changed['why']}."


def _pointed(questions: Sequence[str], status: Status) -> str | None:
    """Where to read on about a statement that leaves something to ask."""
    if status in UNASKED or not questions:
        return None
    places = [f"docs/results/settled.md#{question}" for question in questions]
    return f"Experiments behind it: {', '.join(places)}."


def _digits(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
