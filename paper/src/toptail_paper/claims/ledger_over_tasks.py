"""One ledger over the tasks of the selection study, each of which has a folder and a ledger.

An entry has the status that all tasks agree on. Where they disagree, the rule is that of a
statement about several tasks (`toptail_paper.claims.findings`): seen on one and not on another, it
depends on the task; it is open where a task leaves it open and none fails. A task that does not
decide a statement is listed with the reason, and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError
from toptail.io.json_files import read_json_if_exists, write_json
from toptail_paper.claims.claim import Claim
from toptail_paper.claims.claims_selection import MAIN
from toptail_paper.claims.findings import INTERVALS, Answer, Status, count_seen
from toptail_paper.claims.grids import SETTLED
from toptail_paper.claims.ledger import (
    CLAIMS,
    ClaimEntry,
    counted,
    decide,
    interval_text,
    quoted_places,
    quoted_sentences,
    run_of,
    settled_grids,
    status_text,
    stored_results,
    write_text,
)
from toptail_paper.claims.numbers import NotMeasuredError, Tables
from toptail_paper.claims.reported import EIGHT
from toptail_paper.study.markdown import markdown_table

STUDY: Final = "selection"
"""The study whose folders hold a task each."""

TASK: Final = "the task"

HOLDS: Final[Mapping[Status, Answer]] = {
    "seen": True,
    "true by construction": True,
    "not seen": False,
    "overstated": False,
    "inconclusive": None,
    "other task": None,
}
"""Whether a statement with some status holds on a task; parts of one that depends do and do not."""


class TasksEntry(ClaimEntry):
    """An entry of the ledger over tasks; it has a ``number`` where one task alone decides."""

    tasks: dict[str, ClaimEntry]
    not_counted: dict[str, str]
    """The other tasks, and why they do not decide it."""


def write_across(out: Path, folders: Iterable[Path]) -> list[TasksEntry]:
    """Store ``claims.json`` and ``claims.md`` over the tasks of several folders; its entries."""
    by_task: dict[str, tuple[Tables, str]] = {}
    for folder in folders:
        tables = {**stored_results(folder), SETTLED: settled_grids()}
        task = next(iter(tables.get(MAIN, {}).get("rows", {})), None)
        if task in by_task:
            raise InputError(
                f"{folder} holds {task}, and so does a folder beside it: a ledger over tasks needs "
                "one folder of each, so move one of the two away."
            )
        if task is not None:
            by_task[task] = tables, run_of(read_json_if_exists(folder / "record.json") or {})
    places = {task: i for i, task in enumerate(EIGHT)}
    ordered = sorted(by_task, key=lambda task: (places.get(task, len(EIGHT)), task))
    entries = over_tasks({task: by_task[task] for task in ordered})
    write_json(out / "claims.json", entries)
    write_text(out / "claims.md", _page(entries, ordered))
    return entries


def over_tasks(by_task: Mapping[str, tuple[Tables, str]]) -> list[TasksEntry]:
    """Decide every claim on every task; entries in the order of the claims.

    ``by_task`` has the stored tables of each task, and the name of their run.
    """
    entries = []
    for claim in CLAIMS[STUDY]:
        own = {
            task: entry
            for task, (tables, run) in by_task.items()
            for entry in decide([claim], tables, run, STUDY)[0]
        }
        # Measured on another task than it speaks of, a statement counts only where nothing else is.
        about = {task: x for task, x in own.items() if x["status"] != "other task"} or own
        if about:
            left = {t: _why_not(claim, by_task[t][0], t) for t in by_task if t not in about}
            entries.append(_combined(about, left))
    return entries


def _combined(own: Mapping[str, ClaimEntry], left: Mapping[str, str]) -> TasksEntry:
    first = next(iter(own.values()))
    alone = len(own) == 1
    status, on = _status(list(own.values()))
    return {
        **first,
        "status": status,
        "depends_on": on,
        "number": first["number"] if alone else None,
        "interval": first["interval"] if alone else None,
        "interval_over": first["interval_over"] if alone else None,
        "run": "; ".join(dict.fromkeys(entry["run"] for entry in own.values())),
        "comment": first["comment"] if alone else count_seen(_answers(own)).strip(),
        "settled": next((entry["settled"] for entry in own.values() if entry["settled"]), None),
        "tasks": dict(own),
        "not_counted": dict(left),
    }


def _status(entries: Sequence[ClaimEntry]) -> tuple[Status, str | None]:
    """The status of several tasks together, and what it depends on."""
    statuses = {entry["status"] for entry in entries}
    on = dict.fromkeys(entry["depends_on"] for entry in entries if entry["depends_on"])
    alike = len(statuses) == 1
    if alike and len(on) < 2:
        return entries[0]["status"], entries[0]["depends_on"]
    if "overstated" in statuses:  # whatever the tasks say, the paper's own numbers miss it
        return "overstated", None
    holds = statuses & {"seen", "true by construction", "depends"}
    if statuses & {"not seen", "depends"}:
        both = " and ".join([*on, *([] if alike or TASK in on else [TASK])])
        return ("depends", both) if holds else ("not seen", None)
    return ("inconclusive" if "inconclusive" in statuses else "seen"), None


def _answers(own: Mapping[str, ClaimEntry]) -> dict[str, dict[str, Answer]]:
    return {
        task: {"a part": True, "another": False}
        if entry["status"] == "depends"
        else {"whole": HOLDS[entry["status"]]}
        for task, entry in own.items()
    }


def _why_not(claim: Claim, tables: Tables, task: str) -> str:
    """Why a task's tables do not decide a claim: it is not about the task, or not measured."""
    if task not in claim.criterion.tasks:
        return f"it speaks of {', '.join(claim.criterion.tasks)}"
    try:
        claim.decide(tables)
    except NotMeasuredError as error:
        return f"not measured: {error}"
    return "not measured"


def _page(entries: Sequence[TasksEntry], tasks: Sequence[str]) -> str:
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
            f"{_times_seen(entry)} of {len(entry['tasks'])}",
            " ".join(_by_task(entry)),
        ]
        for entry in entries
    ]
    head = ["status", "what the paper says", "where", "seen on", "what each task says"]
    return (
        f"# What the paper says, and what the tasks say\n\n{lead}\n\n{markdown_table(head, rows)}"
    )


def seen_on_tasks(entries: Sequence[Mapping[str, Any]]) -> str:
    """In words, how many statements were seen on every task, on some, and on none."""
    several = [entry for entry in entries if len(entry["tasks"]) > 1]
    shares = [_times_seen(entry) / len(entry["tasks"]) for entry in several]
    every, none = shares.count(1.0), shares.count(0.0)
    return (
        f"{len(several)} statements were decided on more than one task: seen on every task "
        f"{every}, on some of them {len(several) - every - none}, on none {none}"
    )


def _times_seen(entry: Mapping[str, Any]) -> int:
    return sum(HOLDS.get(each["status"]) is True for each in entry["tasks"].values())


def _by_task(entry: TasksEntry) -> list[str]:
    """Status, number and interval of each task, the tasks that are not counted, experiments."""
    texts = []
    for task, own in entry["tasks"].items():
        number = "" if own["number"] is None else f", {own['number']:.3g}"
        interval = f" {interval_text(own)}" if own["interval"] else ""
        texts.append(f"{task}: {status_text(own)}{number}{interval}.")
    by_reason: dict[str, list[str]] = {}
    for task, why in entry["not_counted"].items():
        by_reason.setdefault(why, []).append(task)
    texts += [f"Not counted: {', '.join(tasks)} ({why})." for why, tasks in by_reason.items()]
    return [*texts, *([entry["settled"]] if entry["settled"] else [])]
