"""One ledger over the tasks of the selection study, each of which has a folder and a ledger.

An entry has the status that all tasks agree on. Where they do not agree, the rule is that of a
statement about several tasks (`toptail_paper.claims.findings`): seen on one and not on another, it
depends on the task; it is open where a task leaves it open and none fails. A task that does not
decide a statement says why, and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError
from toptail.io.json_files import read_json_if_exists, write_json
from toptail_paper.claims.annotate import CLAIMS, stored_results
from toptail_paper.claims.findings import INTERVALS, Answer, Status, count_seen
from toptail_paper.claims.ledger import (
    Claim,
    ClaimEntry,
    counted,
    decide,
    interval_text,
    markdown_table,
    quoted_places,
    quoted_sentences,
    run_of,
    status_text,
    write_text,
)
from toptail_paper.claims.numbers import NotMeasuredError, Tables
from toptail_paper.claims.reported import EIGHT
from toptail_paper.claims.selection_order import MAIN

STUDY: Final = "selection"
"""The study whose folders hold a task each."""

TASK: Final = "the task"

HOLDS: Final[Mapping[Status, Answer]] = {
    "seen": True,
    "true by construction": True,
    "not seen": False,
    "inconclusive": None,
    "other task": None,
}
"""What a task's status says of the statement there; a statement that depends does both."""


class AcrossEntry(ClaimEntry):
    """An entry of the ledger over tasks: ``number`` is one task's, where one alone decides."""

    tasks: dict[str, ClaimEntry]
    """What each task says that decides the statement."""
    not_counted: dict[str, str]
    """The other tasks, and why they do not decide it."""


def write_across(out: Path, folders: Iterable[Path]) -> list[AcrossEntry]:
    """Store ``claims.json`` and ``claims.md`` over the tasks of several folders; its entries."""
    found: dict[str, tuple[Tables, str]] = {}
    for folder in folders:
        tables = stored_results(folder)
        task = next(iter(tables.get(MAIN, {}).get("rows", {})), None)
        if task in found:
            raise InputError(
                f"{folder} holds {task}, and so does a folder beside it: a ledger over tasks needs "
                "one folder of each, so move one of the two away."
            )
        if task is not None:
            found[task] = tables, run_of(read_json_if_exists(folder / "record.json") or {})
    in_order = {task: found[task] for task in sorted(found, key=_place)}
    entries = across(in_order)
    write_json(out / "claims.json", entries)
    write_text(out / "claims.md", _page(entries, list(in_order)))
    return entries


def across(found: Mapping[str, tuple[Tables, str]]) -> list[AcrossEntry]:
    """Decide every claim on every task; entries in the order of the claims.

    ``found`` has the stored tables of each task, and what to name as their run.
    """
    entries = []
    for claim in CLAIMS[STUDY]:
        said = {
            task: entry
            for task, (tables, run) in found.items()
            for entry in decide([claim], tables, run, STUDY)[0]
        }
        # Measured on another task than it speaks of, a statement counts only where nothing else is.
        about = {task: x for task, x in said.items() if x["status"] != "other task"} or said
        if about:
            left = {t: _why_not(claim, found[t][0], t) for t in found if t not in about}
            entries.append(_combined(about, left))
    return entries


def _place(task: str) -> tuple[int, str]:
    """The paper's order of tasks, and then any other."""
    return (EIGHT.index(task) if task in EIGHT else len(EIGHT), task)


def _combined(said: Mapping[str, ClaimEntry], left: Mapping[str, str]) -> AcrossEntry:
    """One entry of those of the tasks that count."""
    first = next(iter(said.values()))
    alone = len(said) == 1
    status, on = _status(list(said.values()))
    return {
        **first,
        "status": status,
        "depends_on": on,
        "number": first["number"] if alone else None,
        "interval": first["interval"] if alone else None,
        "interval_over": first["interval_over"] if alone else None,
        "run": "; ".join(dict.fromkeys(entry["run"] for entry in said.values())),
        "comment": first["comment"] if alone else _comment(said),
        "settled": next((entry["settled"] for entry in said.values() if entry["settled"]), None),
        "tasks": dict(said),
        "not_counted": dict(left),
    }


def _status(entries: Sequence[ClaimEntry]) -> tuple[Status, str | None]:
    """What several tasks say together, and what it depends on."""
    found = {entry["status"] for entry in entries}
    on = dict.fromkeys(entry["depends_on"] for entry in entries if entry["depends_on"])
    alike = len(found) == 1
    if alike and len(on) < 2:
        return entries[0]["status"], entries[0]["depends_on"]
    holds = found & {"seen", "true by construction", "depends"}
    if found & {"not seen", "depends"}:
        both = " and ".join([*on, *([] if alike or TASK in on else [TASK])])
        return ("depends", both) if holds else ("not seen", None)
    return ("inconclusive" if "inconclusive" in found else "seen"), None


def _comment(said: Mapping[str, ClaimEntry]) -> str:
    """On how many tasks it was seen, as statements about several tasks are counted."""
    answers = {
        task: {"in part": True, "in another": False}
        if entry["status"] == "depends"
        else {"whole": HOLDS[entry["status"]]}
        for task, entry in said.items()
    }
    return count_seen(answers).strip()


def _why_not(claim: Claim, tables: Tables, task: str) -> str:
    """Why a task's tables do not decide a claim: it is not about the task, or not measured."""
    about: Sequence[str] = getattr(claim.criterion, "tasks", ())
    missing = ""
    try:
        claim.criterion(tables)
    except NotMeasuredError as error:
        missing = str(error)
        about = about or [error.task or task]
    if task not in about:
        return f"it speaks of {', '.join(about)}"
    return f"not measured: {missing}"


def _page(entries: Sequence[AcrossEntry], tasks: Sequence[str]) -> str:
    """The ledger in Markdown."""
    lead = (
        f"{counted(entries)}. Tasks: {', '.join(tasks)}. {seen_on_tasks(entries)}. {INTERVALS} "
        "Tasks that do not decide a statement are not counted. How each task decides stands in its "
        "own ledger, in its folder."
    )
    rows = [
        [
            status_text(entry),
            quoted_sentences(entry),
            quoted_places(entry),
            f"{_seen(entry)} of {len(entry['tasks'])}",
            " ".join(_words(entry)),
        ]
        for entry in entries
    ]
    head = ["status", "what the paper says", "where", "seen on", "what each task says"]
    return (
        f"# What the paper says, and what the tasks say\n\n{lead}\n\n{markdown_table(head, rows)}"
    )


def seen_on_tasks(entries: Sequence[Mapping[str, Any]]) -> str:
    """In words, as pages quote it: how many statements were seen on every task, some, and none."""
    several = [entry for entry in entries if len(entry["tasks"]) > 1]
    shares = [_seen(entry) / len(entry["tasks"]) for entry in several]
    every, none = shares.count(1.0), shares.count(0.0)
    return (
        f"{len(several)} statements were decided on more than one task: seen on every task "
        f"{every}, on some of them {len(several) - every - none}, on none {none}"
    )


def _seen(entry: Mapping[str, Any]) -> int:
    """On how many tasks a statement was seen."""
    return sum(HOLDS.get(each["status"]) is True for each in entry["tasks"].values())


def _said(task: str, entry: ClaimEntry) -> str:
    """One task's word: status, number and interval."""
    number = "" if entry["number"] is None else f", {entry['number']:.3g}"
    interval = f" {interval_text(entry)}" if entry["interval"] else ""
    return f"{task}: {status_text(entry)}{number}{interval}."


def _words(entry: AcrossEntry) -> list[str]:
    """What each task says, which are not counted, and where the experiments are."""
    said = [_said(task, own) for task, own in entry["tasks"].items()]
    return [*said, *_left(entry), *([entry["settled"]] if entry["settled"] else [])]


def _left(entry: AcrossEntry) -> list[str]:
    """The tasks that are not counted, by their reason."""
    by_reason: dict[str, list[str]] = {}
    for task, why in entry["not_counted"].items():
        by_reason.setdefault(why, []).append(task)
    return [f"Not counted: {', '.join(tasks)} ({why})." for why, tasks in by_reason.items()]
