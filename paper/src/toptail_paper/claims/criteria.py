"""Criteria: conditions on the numbers of stored tables, and the comments made of both.

A `Criterion` asks a condition of every number on every task that has them; ``a & b`` asks both, on
the tasks that have the numbers of both, and shows a number of ``a``. Tasks that a run did not
measure stay out, and the comment names those that decided. A limit stands once, in its condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import eq, ge, gt, le, lt
from typing import Any

from toptail_paper.claims.findings import (
    PART,
    Answer,
    Finding,
    both,
    by_construction,
    consistent,
    from_parts,
    on_its_tasks,
)
from toptail_paper.claims.numbers import (
    INDEPENDENT,
    PAIRED,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
)


class Words(float):
    """A limit that comments write in words."""

    words: str

    def __new__(cls, value: float, words: str) -> Words:
        limit = super().__new__(cls, value)
        limit.words = words
        return limit


ZERO = Words(0.0, "zero")
HALF = Words(0.5, "half")


@dataclass(frozen=True)
class Condition:
    """What a number must be; ``f"{condition}"`` says it, ``f"{condition:%}"`` in percent."""

    words: str
    """The condition in words, with {} for each limit."""
    limits: tuple[float, ...]
    worst: str
    """Which of several numbers comes nearest to failing: a rule of `pick`."""
    holds: Callable[[Number], bool]
    edges: tuple[float, ...] = ()
    """Points that an interval may contain although both of its ends give the same answer."""

    def __call__(self, x: Number | float) -> bool:
        """Whether a number meets it, its interval aside."""
        return bool(self.holds(x if isinstance(x, Number) else Number(x)))

    def answer(self, x: Number) -> Answer:
        """Whether a number's whole interval meets it (True) or misses it (False); else None.

        A number without an interval answers by its mean. NaN answers None.
        """
        if x.missing:
            return None
        if x.interval is None:
            return self(x)
        low, high = x.interval
        points = (low, x.mean, high, *(edge for edge in self.edges if low <= edge <= high))
        answers = {self(Number(point, (point, point))) for point in points}
        return answers.pop() if len(answers) == 1 else None

    def __and__(self, other: Condition) -> Condition:
        words, limits = f"{self.words} and {other.words}", self.limits + other.limits
        edges = self.edges + other.edges
        return Condition(words, limits, self.worst, lambda x: self(x) and other(x), edges)

    def __format__(self, spec: str) -> str:
        return self.words.format(*(_limit(limit, spec) for limit in self.limits))


def _limit(limit: float, spec: str) -> str:
    if isinstance(limit, Words):
        return limit.words
    return f"{100 * limit:g} %" if spec == "%" else f"{limit:{spec or 'g'}}"


def _of_mean(
    words: str, worst: str, holds: Callable[[float, float], bool]
) -> Callable[[float], Condition]:
    """Conditions that compare a mean with one limit."""
    return lambda x: Condition(words, (x,), worst, lambda n: holds(n.mean, x), (x,))


at_most = _of_mean("at most {}", "highest", le)
at_least = _of_mean("at least {}", "lowest", ge)
below = _of_mean("below {}", "highest", lt)
above = _of_mean("above {}", "lowest", gt)
exactly = _of_mean("exactly {}", "highest", eq)
short_by_at_most = _of_mean("at most {} below", "lowest", lambda mean, x: mean >= -x)
"""A difference that falls short of zero by no more than the limit."""


def between(x: float, y: float) -> Condition:
    return Condition("between {} and {}", (x, y), "lowest", lambda n: x <= n.mean <= y, (x, y))


def near(x: float, within: float) -> Condition:
    """A mean that differs from a number by no more than ``within``."""
    farthest = f"farthest from {_limit(x, '')}"
    return Condition(
        "within {} of {}", (within, x), farthest, lambda n: abs(n.mean - x) <= within, (x,)
    )


def wholly_above(x: float) -> Condition:
    """An interval above a limit; a number without an interval does not meet it."""
    words = "above {} with its whole interval"

    def holds(n: Number) -> bool:
        return n.interval is not None and n.interval[0] > x

    return Condition(words, (x,), "lowest", holds, (x,))


WEAK_OR_INVERTED = at_most(HALF)
"""An order that is weak or below zero, asked of a share of TD-Q's on the same task."""

WEAKLY = Condition(
    "at most {} of TD-Q's in size",
    (HALF,),
    "farthest from zero",
    lambda n: abs(n.mean) <= HALF,
    (0.0,),
)
"""A weak order, asked of a share of TD-Q's on the same task."""

WEAK_MEANS = (
    f"An order (tau, tau_b or the gap between score deciles) is weak if it is {WEAKLY} on the "
    "same task. One below zero is inverted; “weak or inverted” asks only for the upper limit."
)
"""Both limits in a sentence, which is part of the declared criterion."""

MOST_LISTED = 24
"""A comment lists at most so many numbers."""


def listing(numbers: Mapping[str, Number], digits: str = ".3f") -> str:
    """``name number; name number``. The digits are a format; ``.1%`` writes percent."""
    percent = digits.endswith("%")
    scale, form, unit = (100, f"{digits[:-1]}f", " %") if percent else (1, digits, "")
    return "; ".join(f"{name} {scale * x.mean:{form}}{unit}".strip() for name, x in numbers.items())


def pick(numbers: Mapping[str, Number], rule: str) -> str:
    """The name of one number: the ``lowest``, ``highest``, ``first`` or ``farthest from X``."""
    numbers = {name: x for name, x in numbers.items() if not x.missing} or numbers
    if rule == "first":
        return next(iter(numbers))
    if rule.startswith("farthest from "):
        origin = float(rule.removeprefix("farthest from ").replace("zero", "0"))
        return max(numbers, key=lambda name: abs(numbers[name].mean - origin))
    sign = {"lowest": -1.0, "highest": 1.0}[rule]
    return max(numbers, key=lambda name: sign * numbers[name].mean)


Remark = Callable[[Tables, Sequence[str]], str]
"""From stored results and the tasks that decided, a further sentence with a space before it."""


def listed(numbers: Numbers, digits: str = ".3f") -> Remark:
    """Further numbers on the tasks that decided; nothing where one of these lacks them."""

    def text(tables: Tables, tasks: Sequence[str]) -> str:
        try:
            found = [numbers.of(tables, task) for task in tasks]
        except NotMeasuredError:
            return ""
        shown = {name: x for named in found for name, x in named.items()}
        return f" {numbers.what}: {listing(shown, digits)}."

    return text


@dataclass(frozen=True)
class OverTasks:
    """A condition on numbers of all measured tasks together; all of them are one part."""

    numbers: Callable[[Tables, Sequence[str]], Named]
    """Numbers from stored results and the tasks that decided; empty asks nothing."""
    condition: Condition
    words: str
    part: str


@dataclass(frozen=True)
class Criterion:
    """A condition that several numbers must meet, and which of them is shown."""

    numbers: Numbers
    tasks: Sequence[str]
    """The tasks that the statement speaks of."""
    condition: Condition | None
    """What the numbers must be; None shows them and asks nothing."""
    words: str = ""
    """The criterion in words; {condition} stands for the limits, {TASK} for a task's own."""
    shown: str = ""
    """Which number is shown, a rule of `pick`; unless given, the condition's worst."""
    by_task: Mapping[str, Condition] = field(default_factory=dict)
    part: str = "{}"
    """What a part is called, with {} for the number's name and {task} for its task. Numbers with
    the same part must all meet their conditions for it to hold."""
    digits: str = ".3f"
    """How the comment writes the numbers, as `listing` does."""
    note: str = ""
    remarks: Sequence[Remark] = ()
    measured_on: Callable[[Tables], Sequence[str]] | None = None
    """The tasks that are asked, where that depends on the stored results."""
    certain: bool = False
    """Whether no score could fail it as it is measured."""
    premise: bool = False
    """Whether the statement is open, and does not fail, where this is missed."""
    differ: str = "the critic"
    """What a statement depends on if the numbers of one task disagree within this criterion."""
    on: str = ""
    """What the statement depends on within a task, whatever its parts say."""
    joined: tuple[Criterion, ...] = ()
    """Criteria that must be met, too."""
    over_tasks: tuple[OverTasks, ...] = ()

    def __and__(self, other: Criterion | OverTasks) -> Criterion:
        """Both, on the tasks that have the numbers of both."""
        if isinstance(other, OverTasks):
            return replace(self, over_tasks=(*self.over_tasks, other))
        return replace(self, joined=(*self.joined, other))

    def __call__(self, tables: Tables) -> Finding:
        by_task = self._measured(tables)
        decided = list(by_task)
        parts: dict[str, dict[str, Answer]] = {task: {} for task in by_task}
        by_criterion: dict[int, dict[str, Answer]] = {}
        cells: list[dict[str, Answer]] = []
        without_number: set[str] = set()
        for task, measured in by_task.items():
            for criterion, numbers in measured:
                answers = criterion._answers(task, numbers)
                missing = [name for name, x in numbers.items() if x.missing]
                without_number |= {criterion.part.format(name, task=task) for name in missing}
                for name, answer in answers.items():
                    parts[task][name] = both(answer, parts[task].get(name, True))
                by_criterion.setdefault(id(criterion), {}).update(answers)
                cells.append(answers)
        on = self.on or self.differ
        if self.joined and not self.on and consistent(by_criterion.values()):
            on = PART
        elif self.joined and not self.on and consistent(cells):
            on = f"{PART} and the task"
        numbers = _of(self, by_task)
        shown = pick(numbers, self._rule)
        comment = self._comment(by_task, shown)
        comment += "".join(remark(tables, decided) for remark in self.remarks)
        together = {}
        for each in self.over_tasks:
            if found := each.numbers(tables, decided):
                together[each.part] = both(*map(each.condition.answer, found.values()))
                met = sum(each.condition.answer(x) is True for x in found.values())
                comment += f" {each.part.capitalize()}: met by {met} of {len(found)}."
        finding = from_parts(parts, numbers[shown], comment, together, on, without_number)
        finding = by_construction(finding) if self.certain else finding
        return on_its_tasks(finding, decided, self.tasks)

    @property
    def _rule(self) -> str:
        return self.shown or (self.condition.worst if self.condition else "first")

    def _measured(self, tables: Tables) -> dict[str, list[tuple[Criterion, Named]]]:
        """The numbers of every criterion, on the tasks that have all; at least one does."""

        def of(task: str) -> list[tuple[Criterion, Named]]:
            found = [(self, self.numbers.of(tables, task))]
            for c in self.joined:
                if task in c.tasks:
                    found.append((c, c.numbers.of(tables, task)))
                elif task not in self.tasks:  # another task: what it has is asked
                    with suppress(NotMeasuredError):
                        found.append((c, c.numbers.of(tables, task)))
            return found

        tasks = self.tasks if self.measured_on is None else self.measured_on(tables)
        measured = {}
        for task in tasks:
            with suppress(NotMeasuredError):
                measured[task] = of(task)
        if not measured:
            for task in tasks:
                of(task)  # raises, and says what is missing
            raise NotMeasuredError(self.words)
        return measured

    def _answers(self, task: str, numbers: Named) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        condition = self.by_task.get(task, self.condition)
        if condition is not None:
            for name, x in numbers.items():
                answer = condition.answer(x)
                if self.premise and answer is False:
                    answer = None
                part = self.part.format(name, task=task)
                answers[part] = both(answer, answers.get(part, True))
        return answers

    def _comment(self, by_task: Mapping[str, list[tuple[Criterion, Named]]], shown: str) -> str:
        text = f"Criterion: {self.stated()}."
        which = f"that of {shown}" if self._rule == "first" else f"the {self._rule}"
        for criterion in (self, *self.joined):
            numbers, what = _of(criterion, by_task), criterion.numbers.what
            if not what or not numbers:
                continue
            if len(numbers) > MOST_LISTED:
                text += f" {what}: {len(numbers)} numbers"
                which += f", {shown}" if criterion is self and self._rule != "first" else ""
            else:
                text += f" {what}: {listing(numbers, criterion.digits)}"
            several = criterion is self and len(numbers) > 1
            text += f"; the number is {which}." if several else "."
        found = [x for measured in by_task.values() for _, named in measured for x in named.items()]
        apart = dict.fromkeys(name for name, x in found if x.over.endswith(INDEPENDENT))
        if apart:
            some = any(x.over.endswith(PAIRED) for _, x in found)
            which = f" for {', '.join(apart)}" if some else ""
            text += f" Taken as independent{which}: no bootstrap replicates of both are stored."
        return text + (f" {self.note}" if self.note else "")

    def stated(self) -> str:
        """The criterion in words, with those that are joined to it."""
        asked = (self, *self.joined)
        words = [c.words.format(condition=c.condition, **c.by_task) for c in asked if c.words]
        return ", and ".join([*words, *(each.words for each in self.over_tasks)])

    def conditions(self) -> list[str]:
        own = [f"{self.condition}"] if self.condition else []
        own += [f"{task}: {condition}" for task, condition in self.by_task.items()]
        own += [f"{each.part}: {each.condition}" for each in self.over_tasks]
        return own + [words for criterion in self.joined for words in criterion.conditions()]

    def reported(self, tables: Tables) -> tuple[dict[str, Answer], str]:
        """Whether the paper's own numbers meet each part, and in words those that do not.

        What the paper does not report, or reports without what a part needs, is left out.
        """
        paper, parts, missed = reported_tables(tables), dict[str, Answer](), list[str]()
        if not any(table["rows"] for table in paper.values()):
            return parts, ""
        for criterion in (self, *self.joined):
            for task in criterion.tasks:
                with suppress(LookupError, ValueError):  # a ValueError: the paper has no seeds
                    numbers = criterion.numbers.of(paper, task)
                    for part, answer in criterion._answers(task, numbers).items():
                        parts[part] = both(answer, parts.get(part, True))
                    condition = criterion.by_task.get(task, criterion.condition)
                    if condition is not None and not criterion.premise:
                        fail = {n: x for n, x in numbers.items() if condition.answer(x) is False}
                        missed += [listing(fail, criterion.digits)] if fail else []
        for each in self.over_tasks:
            with suppress(LookupError, ValueError):
                found = each.numbers(paper, self.tasks)
                parts |= {each.part: both(*map(each.condition.answer, found.values()))}
                missed += [each.part] if parts[each.part] is False else []
        return parts, "; ".join(missed)


def reported_tables(tables: Tables) -> dict[str, dict[str, Any]]:
    """What the paper reports, as tables; the interval of a cell is what rounds to its number."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        paper: Mapping[str, Any] = table.get("paper", {})
        cells = [(m, cell) for rows in paper.values() for row in rows.values()
                 for m, cell in row.items()]  # fmt: skip
        digits: dict[str, int] = {}
        for metric, cell in cells:
            decimals = len(f"{cell['mean']}".partition(".")[2])
            digits[metric] = max(digits.get(metric, 0), decimals)
        found[name] = {
            "rows": {
                task: {
                    row: {m: _rounded(cell, digits[m]) for m, cell in metrics.items()}
                    for row, metrics in rows.items()
                }
                for task, rows in paper.items()
            }
        }
    return found


def _rounded(cell: Mapping[str, Any], digits: int) -> dict[str, float]:
    mean, half = float(cell["mean"]), 0.5 * 10.0**-digits
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _of(criterion: Criterion, by_task: Mapping[str, list[tuple[Criterion, Named]]]) -> Named:
    return {
        name: x
        for measured in by_task.values()
        for asked, numbers in measured
        if asked is criterion
        for name, x in numbers.items()
    }


def show(numbers: Numbers, tasks: Sequence[str], shown: str = "first", **more: object) -> Criterion:
    """The numbers of which one is shown, where a criterion asks others: ``show(…) & …``."""
    return replace(Criterion(numbers, tasks, None, shown=shown), **more)  # type: ignore[arg-type]
