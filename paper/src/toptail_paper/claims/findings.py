"""What stored tables say about a claim: statuses, and how the answers of its parts make one.

A condition is asked of a number with its 95 % interval: the whole interval meets it, the whole
interval misses it, or the answer is open. A number without an interval is asked by itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from toptail_paper.claims.numbers import Interval, Number

Status = Literal[
    "seen",
    "depends",
    "not seen",
    "overstated",
    "inconclusive",
    "other task",
    "true by construction",
]

STATUSES: Final[Mapping[Status, str]] = {
    "seen": "every part of the statement holds in the stored tables",
    "depends": "parts of it hold and parts of it fail; the comment names those that fail",
    "not seen": "parts of it fail, and none holds",
    "overstated": "it is not seen as a whole, and numbers that the paper itself reports miss it, "
    "rounding allowed for; the comment says what ours would make of it",
    "inconclusive": "no part fails, and the interval of at least one contains its limit",
    "other task": "it speaks of tasks that were not measured, and was measured on another",
    "true by construction": "it holds, and no score could have failed it as it was measured",
}
"""The statuses of a statement, and when it has each."""

INTERVALS: Final = (
    "A condition holds if the whole 95 % interval of its number meets it, fails if the whole "
    "interval misses it, and is open otherwise. The interval of a difference or a ratio of two "
    "numbers of a task is that of their paired bootstrap replicates, with resamples shared across "
    "critics; where a result has none, it is that of two independent numbers. A number without an "
    "interval is compared by itself."
)
"""The rule by which every statement is decided."""

Answer: TypeAlias = bool | None
"""Whether a part of a statement holds; None where its interval leaves it open."""

PART = "the part of the statement"
"""What a statement is said to depend on if its parts have different answers."""


@dataclass(frozen=True)
class Finding:
    """What the tables say about one claim."""

    status: Status
    number: float
    interval: Interval | None
    comment: str
    """The criterion and its numbers, in sentences."""
    over: str = ""
    """What the interval is over: seeds, trajectories, queries, episodes."""
    on: str = ""
    """What the statement depends on, where its status is ``depends``."""
    parts: Mapping[str, Answer] = field(default_factory=dict)


def from_parts(
    by_task: Mapping[str, Mapping[str, Answer]],
    x: Number,
    comment: str,
    over_tasks: Mapping[str, Answer] | None = None,
    on: str = PART,
    without_number: Collection[str] = (),
) -> Finding:
    """Decide a statement from the answers of its parts, by task.

    ``over_tasks`` are parts about all tasks together, ``on`` is what the parts of one task differ
    in, and ``without_number`` names the parts whose number could not be computed. The comment gets
    the number of tasks on which the statement was seen, and the parts that fail or are open.
    """
    parts = {name: answer for answers in by_task.values() for name, answer in answers.items()}
    if len(by_task) > 1:
        comment += count_seen(by_task)
    if not over_tasks and consistent(by_task.values()):
        on = "the task"
    parts |= over_tasks or {}
    failing = [name for name, answer in parts.items() if answer is False]
    left_open = [name for name, answer in parts.items() if answer is None]
    status: Status = "seen"
    if failing:
        status = "depends" if any(parts.values()) else "not seen"
    elif left_open:
        status = "inconclusive"
    if 0 < len(failing) < len(parts):
        comment += f" It does not hold for: {', '.join(failing)}."
    for why, names in (
        ("the interval containing the limit", [n for n in left_open if n not in without_number]),
        ("there being no number", [n for n in left_open if n in without_number]),
    ):
        comment += f" Open, {why}: {', '.join(names)}." if names else ""
    on = on if status == "depends" else ""
    return Finding(status, x.mean, x.interval, comment, x.over, on, parts)


def consistent(groups: Iterable[Mapping[str, Answer]]) -> bool:
    """Whether no group has both parts that hold and parts that fail."""
    return not any({True, False} <= set(answers.values()) for answers in groups)


def both(*answers: Answer) -> Answer:
    """The answer of a part with several conditions: all hold, one fails, or it is open."""
    return False if False in answers else None if None in answers else True


def count_seen(by_task: Mapping[str, Mapping[str, Answer]]) -> str:
    """The sentence that says on how many tasks every part holds, and on which not."""
    by_answer: dict[Answer, list[str]] = {True: [], False: [], None: []}
    for task, answers in by_task.items():
        by_answer[both(*answers.values())].append(task)
    seen, failed, left_open = by_answer.values()
    text = f" Seen on {len(seen)} of {len(by_task)} tasks"
    text += f": {', '.join(seen)}" if seen and len(seen) < len(by_task) else ""
    text += f"; not on {', '.join(failed)}" if failed else ""
    text += f"; open on {', '.join(left_open)}" if left_open else ""
    return f"{text}."


def in_settings(finding: Finding, answers: Mapping[str, Answer], kind: str, on: str) -> Finding:
    """The finding with what other settings say: it depends where some of them disagree with it.

    ``answers`` says for each setting of that ``kind`` whether the criterion holds there; a setting
    that leaves it open is named and changes nothing.
    """
    met, failed, left_open = (
        [name for name, answer in answers.items() if answer is wanted]
        for wanted in (True, False, None)
    )
    text = f" {kind}: met in {len(met)} of {len(answers)} settings"
    text += f"; not at {', '.join(failed)}" if failed else ""
    text += f"; open at {', '.join(left_open)}" if left_open else ""
    disagree = {"seen": failed, "not seen": met, "inconclusive": met and failed}
    finding = replace(finding, comment=f"{finding.comment}{text}.")
    if disagree.get(finding.status):
        return replace(finding, status="depends", on=on)
    return finding


def against_reported(finding: Finding, reported: Mapping[str, Answer], missed: str) -> Finding:
    """The finding, or ``overstated`` where numbers that the paper itself reports fail a part.

    ``reported`` says whether the paper's own numbers meet each part that they can answer, and
    ``missed`` lists those that do not. A statement that is seen here stays seen.
    """
    if False not in reported.values():
        return finding
    text = f" The paper's own numbers miss it for {missed}."
    if finding.status in ("depends", "not seen", "inconclusive"):
        text += f" By ours it would be “{finding.status}”"
        met = [finding.parts[part] for part, holds in reported.items()
               if holds and part in finding.parts]  # fmt: skip
        text += f"; where the paper's meet it, ours do in {met.count(True)} of {len(met)} parts."
        finding = replace(finding, status="overstated", on="")
    return replace(finding, comment=finding.comment + text)


def on_its_tasks(finding: Finding, decided: Sequence[str], about: Sequence[str]) -> Finding:
    """The finding, or ``other task`` where none of the statement's tasks decided it."""
    if not about or set(about) & set(decided):
        missing = [task for task in about if task not in decided]
        text = f" Decided on {', '.join(decided)} alone; not in this ledger: {', '.join(missing)}."
        return replace(finding, comment=finding.comment + text) if missing else finding
    text = f" The paper says it of {', '.join(about)}; this was measured on {', '.join(decided)}."
    would = f" By its criterion it would be “{finding.status}”."
    return replace(finding, status="other task", comment=finding.comment + text + would, on="")


def by_construction(finding: Finding) -> Finding:
    """The finding of a statement that no score can fail; one that fails stays as it is."""
    if finding.status not in ("seen", "inconclusive"):
        return finding
    return replace(finding, status="true by construction")


def computable(finding: Finding) -> Finding:
    """The finding, or an open one where the number that it rests on is not a number."""
    if not math.isnan(finding.number) or finding.status in ("inconclusive", "other task"):
        return finding
    text = " Not decided: the number could not be computed from this run's tables."
    return replace(finding, status="inconclusive", comment=finding.comment + text, on="")
