"""The claim ledger: what the paper says, and what the stored tables say about it.

A claim carries the paper's sentence and the criterion that decides it from stored tables and from
nothing else, so that every entry can be decided again. The comment of an entry says what each word
of the sentence ("near-zero", "most", "comparable") was taken to mean. A claim whose tables a run
did not make is left open. A sentence that the paper says twice has one entry. An entry whose
criterion was another one when its result was first seen says so (``changed.json``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.arrays import read_arrays
from toptail.io.files import atomic, entries
from toptail.io.json_files import jsonable, read_json, read_json_if_exists, write_json
from toptail_paper.claims.claim import Claim, Quoted
from toptail_paper.claims.claims_controlled import CONTROLLED, training_length
from toptail_paper.claims.claims_selection import SELECTION
from toptail_paper.claims.claims_semantics import CHECKS, ORDER
from toptail_paper.claims.claims_semantics_search import SEARCH, STABILITY
from toptail_paper.claims.findings import INTERVALS, STATUSES, Status, computable
from toptail_paper.claims.grids import SETTLED
from toptail_paper.claims.numbers import NotMeasuredError, Tables
from toptail_paper.claims.reported import CRITICS, cells, packaged, published
from toptail_paper.claims.scale import shortfalls
from toptail_paper.study.markdown import markdown_table
from toptail_paper.study.replicates import REPLICATES, read_replicates
from toptail_paper.study.results import note, read_scale

CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "controlled": CONTROLLED,
    "semantics": (*ORDER, *SEARCH, *CHECKS, *STABILITY),
    "selection": SELECTION,
}
"""The claims about each study, in the order in which a reader of the paper meets them."""

NOTES: Mapping[str, Callable[[Tables], str]] = {"controlled": training_length}
"""What a reader of a whole ledger must know."""

ALWAYS: Final = ("seen", "depends", "not seen")
"""Statuses that a tally counts even where there are none of them."""

NO_QUESTION: Final = ("seen", "other task", "true by construction")
"""Statuses of statements that no experiment asks about."""

BEFORE: Final = (
    "Results that were seen before this rule had been decided by their means; an entry whose "
    "criterion is another one than then says so."
)
"""What every ledger says of the rule."""


class ClaimEntry(TypedDict):
    """An entry of ``claims.json``."""

    id: str
    """Short stable name of the claim."""
    sentence: str
    where: str
    """Section, table or figure label in the paper."""
    status: Status
    """Whether it was seen: `STATUSES` says what each word means."""
    depends_on: str | None
    """What it depends on, where its status is ``depends``."""
    number: float | None
    interval: list[float | None] | None
    interval_over: str | None
    """What the interval is over: seeds, trajectories, queries, episodes."""
    run: str
    """The command that made the tables."""
    comment: str
    also: list[Quoted]
    changed: str | None
    """That its criterion was another one when its result was first seen; which, and why."""
    settled: str | None
    """Where the declared experiments are that ask what is behind a disagreement."""


class Round(TypedDict):
    """One time that criteria were changed."""

    date: str
    when: str
    criteria: dict[str, dict[str, dict[str, str]]]
    """By study and claim: ``criterion`` and ``status`` before, and ``why`` it changed."""


@cache
def changed_criteria() -> list[Round]:
    """Every time that criteria were changed, the first one first."""
    content: list[Round] = packaged("changed.json")
    return content


def _changed(study: str, claim: str) -> str | None:
    """What an entry says about earlier criteria; None where it has always had its own."""
    found = [(each["when"], each["criteria"].get(study, {}).get(claim)) for each in
             changed_criteria()]  # fmt: skip
    texts = [
        f"Criterion changed {when}. Before: {before['criterion']} ({before['status']}). "
        f"Why: {before['why']}."
        for when, before in found
        if before
    ]
    return " ".join(texts) or None


@cache
def settled_questions() -> dict[str, dict[str, list[str]]]:
    """By study and claim, the questions of ``docs/results/settled.md`` that are about it."""
    content: dict[str, dict[str, list[str]]] = packaged("settled.json")
    return content


def annotate(folder: str | Path, study: str) -> list[ClaimEntry]:
    """Fill the ``paper`` part of every stored table and write the ledger; returns its entries.

    A table is rewritten only if the paper's cells in it change. ``study`` is the name of the study
    whose claims are decided. A run below the declared scale decides none: see
    `toptail_paper.claims.scale`.
    """
    path = Path(folder)
    if study not in CLAIMS:
        raise InputError(f"The paper has no study '{study}'; its studies are {', '.join(CLAIMS)}.")
    for file in entries(path / "tables", "*.json"):
        table: dict[str, Any] = read_json(file)
        paper = cells(table["label"], table["rows"])
        if table.get("paper") != paper:
            write_json(file, table | {"paper": paper})
    if (path / "landscape.npz").is_file():
        write_json(path / "landscape.json", _drawn_picks(path / "landscape.npz"))
    with refusing(path, "holds settings or sizes that cannot be read", "run the study again"):
        config = (read_json_if_exists(path / "config.json") or {}).get("config", {})
        scale = read_scale(path)
        short = shortfalls(study, config, scale)
    if short or "short" in scale:
        note(path, short=short)
    return _write_ledger(path, study, short)


def _drawn_picks(path: Path) -> dict[str, Any]:
    """Lengths of the actions that each critic picked in the drawn run; the arrays do not ship."""
    arrays = read_arrays(path)
    candidates = np.asarray(arrays["candidates"], dtype=float)
    picks = {c: int(arrays[f"pick_{c}"].item()) for c in CRITICS if f"pick_{c}" in arrays}
    norms = {c: float(np.linalg.norm(candidates[pick])) for c, pick in picks.items()}
    return {"radius": float(arrays["radius"].item()), "pick_norm": norms}


def _write_ledger(path: Path, study: str, short: Sequence[str]) -> list[ClaimEntry]:
    """Store ``claims.json`` and ``claims.md``; a run ``short`` of the scale decides nothing."""
    found: list[ClaimEntry] = []
    if short:
        lines = "".join(f"- {words}\n" for words in short)
        text = f"Nothing is decided: this run is below the declared scale in\n\n{lines}"
    else:
        results = {**stored_results(path), SETTLED: settled_grids()}
        run = run_of(read_json_if_exists(path / "record.json") or {})
        found, left_open = decide(CLAIMS[study], results, run, study)
        notes = NOTES[study](results) if study in NOTES else ""
        text = f"{counted(found)}. {INTERVALS} {BEFORE}{notes}\n\n{render_markdown(found)}"
        if left_open:
            text += "\nNot decided by this run (it made no table for them):\n\n"
            text += "".join(f"- {claim.sentence} (`{claim.label}`)\n" for claim in left_open)
    write_json(path / "claims.json", found)
    write_text(path / "claims.md", f"# What the paper says, and what this run saw\n\n{text}")
    return found


def stored_results(folder: Path) -> dict[str, Mapping[str, Any]]:
    """A folder's results by name, from which claims are decided; missing ones stay out."""
    beside = (folder / f"{name}.json" for name in ("curves", "theory", "landscape"))
    files = [*entries(folder / "tables", "*.json"), *beside]
    found = {file.stem: read_json_if_exists(file) for file in files}
    found[REPLICATES] = read_replicates(folder) or None
    return {name: x for name, x in found.items() if x is not None}


@cache
def settled_grids() -> dict[str, Any]:
    """The stored grids of trainings by name; none where no results are stored."""
    try:
        home = published()
    except InputError:
        return {}
    return {path.stem: read_json(path) for path in entries(home / SETTLED, "*.json")}


def decide(
    claims: Iterable[Claim], tables: Tables, run: str, study: str = ""
) -> tuple[list[ClaimEntry], list[Claim]]:
    """The entries of ``claims.json`` that the tables decide, in order, and the claims left open."""
    settled = settled_questions().get(study, {})
    found: list[ClaimEntry] = []
    left_open: list[Claim] = []
    for claim in claims:
        try:
            finding = computable(claim.decide(tables))
        except NotMeasuredError:
            left_open.append(claim)
            continue
        questions = settled.get(claim.id, []) if finding.status not in NO_QUESTION else []
        places = ", ".join(f"docs/results/settled.md#{question}" for question in questions)
        found.append(
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
                "changed": _changed(study, claim.id),
                "settled": f"Experiments behind it: {places}." if places else None,
            }
        )
    return found, left_open


def run_of(record: Mapping[str, Any]) -> str:
    """How an entry names the run that made its tables."""
    return f"{record.get('command', '')} (config {record.get('config_hash', '')})".strip()


def write_text(path: Path, text: str) -> None:
    """Write a page, whole or not at all."""
    atomic(path, lambda target: target.write_text(text, encoding="utf-8", newline="\n"))


def render_markdown(found: Sequence[ClaimEntry]) -> str:
    head = ["status", "what the paper says", "where", "number", "95 % interval"]
    rows = [
        [
            status_text(entry),
            quoted_sentences(entry),
            quoted_places(entry),
            _digits(entry["number"]),
            interval_text(entry),
            " ".join(filter(None, (entry["comment"], entry["changed"], entry["settled"]))),
        ]
        for entry in found
    ]
    return markdown_table([*head, "how it was decided"], rows)


def status_text(entry: Mapping[str, Any]) -> str:
    return f"**{entry['status']}**" + (f" on {on}" if (on := entry["depends_on"]) else "")


def quoted_sentences(entry: ClaimEntry) -> str:
    """The paper's sentence, and those that say the same."""
    return " ".join([entry["sentence"], *(f"Also: “{q['sentence']}”" for q in entry["also"])])


def quoted_places(entry: ClaimEntry) -> str:
    places = [entry["where"], *(quoted["where"] for quoted in entry["also"])]
    return ", ".join(f"`{where}`" for where in places)


def interval_text(entry: ClaimEntry) -> str:
    ends = interval_ends(entry)
    return f"{ends} over {entry['interval_over']}" if ends else "–"


def interval_ends(entry: ClaimEntry) -> str:
    """The interval in brackets; empty where there is none."""
    if entry["interval"] is None:
        return ""
    low, high = entry["interval"]
    return f"[{_digits(low)}, {_digits(high)}]"


def tally(found: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the entries of each status; of the rarer ones, where there are any."""
    statuses = [str(entry["status"]) for entry in found]
    return {s: statuses.count(s) for s in STATUSES if s in ALWAYS or s in statuses}


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    plural = {"depends": "depend"}
    counts = [f"{n} {plural.get(s, s) if n != 1 else s}" for s, n in tally(found).items()]
    return f"{len(found)} statements: {', '.join(counts)}"


def _digits(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"
