"""What stored tables say about a claim: statuses, and how the answers of its parts make one.

A number is asked with its 95 % interval: a condition is met only by the whole interval, missed
only by the whole interval, and open otherwise. A number that can have none is asked by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from toptail_paper.claims.numbers import Interval, Number, Tables

Status = Literal[
    "seen", "depends", "not seen", "inconclusive", "other task", "true by construction"
]

STATUSES: Final[Mapping[Status, str]] = {
    "seen": "every part of the statement holds in the stored tables",
    "depends": "parts of it hold and parts of it fail; the comment names those that fail",
    "not seen": "parts of it fail, and none holds",
    "inconclusive": "no part fails, and the interval of at least one contains its limit",
    "other task": "it speaks of tasks that were not measured, and was measured on another",
    "true by construction": "it holds, and no score could have failed it as it was measured",
}
"""What can be said of a statement, and when."""

INTERVALS: Final = (
    "A condition holds if the whole 95 % interval of its number meets it, fails if the whole "
    "interval misses it, and is open otherwise. The interval of a difference or a ratio is that "
    "of two independent numbers. A number without an interval is compared by itself."
)
"""The rule by which every statement is decided."""

Answer: TypeAlias = bool | None
"""Whether a part of a statement holds; None where its interval leaves it open."""


@dataclass(frozen=True)
class Finding:
    """What the tables say about one claim."""

    status: Status
    """Whether the statement holds in the stored tables."""
    number: float
    """The number that decided it."""
    interval: Interval | None
    """Its 95 % interval, where it has one."""
    comment: str
    """The criterion and what stands behind the number, in plain sentences."""
    over: str = ""
    """What the interval is over: seeds, trajectories, queries, episodes."""
    on: str = ""
    """What the statement depends on, where its status is ``depends``."""


Decision = Callable[[Tables], Finding]
"""Pure function of the stored tables; raises `NotMeasuredError` where they do not suffice."""


@dataclass(frozen=True)
class Ruling:
    """A decision that no criterion says, with its own criterion in words."""

    decision: Decision
    """What decides."""
    tasks: Sequence[str]
    """The tasks that the statement speaks of."""
    said: str
    """The criterion, limits included."""

    def __call__(self, tables: Tables) -> Finding:
        """Decide from stored results."""
        return self.decision(tables)


def ruled(tasks: Sequence[str], said: str) -> Callable[[Decision], Ruling]:
    """Give a deciding function its tasks and its criterion in words."""
    return lambda decision: Ruling(decision, tasks, said)


PART = "the part of the statement"
"""What a statement depends on whose parts say different things."""


def from_parts(
    parts: Mapping[str, Answer],
    x: Number,
    comment: str,
    on: str = PART,
    numberless: Collection[str] = (),
) -> Finding:
    """Decide a statement about several cases; name those that fail and those left open.

    ``on`` is what the cases differ in: what the statement depends on if only some of them hold.
    ``numberless`` are cases left open because their number could not be computed.
    """
    failing = [name for name, answer in parts.items() if answer is False]
    left_open = [name for name, answer in parts.items() if answer is None]
    status: Status = "seen"
    if failing:
        status = "depends" if any(parts.values()) else "not seen"
    elif left_open:
        status = "inconclusive"
    if 0 < len(failing) < len(parts):
        comment += f" It does not hold for: {', '.join(failing)}."
    for why, cases in (
        ("the interval containing the limit", [n for n in left_open if n not in numberless]),
        ("there being no number", [n for n in left_open if n in numberless]),
    ):
        comment += f" Open, {why}: {', '.join(cases)}." if cases else ""
    return Finding(status, x.mean, x.interval, comment, x.over, on if status == "depends" else "")


def from_tasks(
    by_task: Mapping[str, Mapping[str, Answer]],
    x: Number,
    comment: str,
    among: Mapping[str, Answer] | None = None,
    on: str = PART,
    numberless: Collection[str] = (),
) -> Finding:
    """Decide a statement about several tasks, and say on how many of them it was seen.

    ``among`` are parts that are about all tasks together, ``on`` is what the parts of one task
    differ in; for ``numberless`` see `from_parts`.
    """
    parts = {name: answer for found in by_task.values() for name, answer in found.items()}
    if len(by_task) > 1:
        comment += count_seen(by_task)
    if not among and alike(by_task.values()):
        on = "the task"
    return from_parts({**parts, **(among or {})}, x, comment, on, numberless)


def alike(groups: Iterable[Mapping[str, Answer]]) -> bool:
    """Whether no group has both parts that hold and parts that fail: the groups differ."""
    return not any({True, False} <= set(parts.values()) for parts in groups)


def both(*answers: Answer) -> Answer:
    """One answer of a part that asks several things: all hold, one fails, or it is open."""
    return False if False in answers else None if None in answers else True


def count_seen(by_task: Mapping[str, Mapping[str, Answer]]) -> str:
    """On how many tasks every part holds, and on which not."""
    whole = {
        task: None
        if None in parts.values() and False not in parts.values()
        else all(parts.values())
        for task, parts in by_task.items()
    }
    seen, failed, left_open = (
        [task for task, answer in whole.items() if answer is wanted]
        for wanted in (True, False, None)
    )
    text = f" Seen on {len(seen)} of {len(whole)} tasks"
    text += f": {', '.join(seen)}" if seen and len(seen) < len(whole) else ""
    text += f"; not on {', '.join(failed)}" if failed else ""
    text += f"; open on {', '.join(left_open)}" if left_open else ""
    return f"{text}."


def elsewhere(finding: Finding, decided: Sequence[str], about: Sequence[str]) -> Finding:
    """The finding as it is, or ``other task`` where none of the statement's tasks decided it."""
    if not about or set(about) & set(decided):
        return finding
    text = f" The paper says it of {', '.join(about)}; this was measured on {', '.join(decided)}."
    would = f" By its criterion it would be “{finding.status}”."
    return replace(finding, status="other task", comment=finding.comment + text + would, on="")


def certain(finding: Finding) -> Finding:
    """A finding that no score could have made fail; one that fails all the same stays as it is."""
    if finding.status not in ("seen", "inconclusive"):
        return finding
    return replace(finding, status="true by construction")


def computable(finding: Finding) -> Finding:
    """A finding as it is, or open where the number that it rests on could not be computed.

    No condition can be met or missed by what is no number.
    """
    if not math.isnan(finding.number) or finding.status in ("inconclusive", "other task"):
        return finding
    text = " Not decided: the number could not be computed from this run's tables."
    return replace(finding, status="inconclusive", comment=finding.comment + text, on="")


def scope(decided: Sequence[str], among: Sequence[str]) -> str:
    """Say which tasks decided, where not all were measured."""
    missing = [task for task in among if task not in decided]
    if not missing or len(missing) == len(among):
        return ""
    return f" Decided on {', '.join(decided)} alone; not in this ledger: {', '.join(missing)}."
