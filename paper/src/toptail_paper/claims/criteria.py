"""Criteria: conditions that print themselves, asked of numbers on the tasks that have them.

A threshold stands once, in its condition; the comment of an entry is made of it. Most statements
say the same thing of several critics on several tasks: a `Criterion` asks every number. Tasks that
a run did not measure stay out, and the comment names those that decided. ``a & b`` asks both on
the tasks that have both; the number shown is a's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import eq, ge, gt, le, lt
from typing import TypeVar

from toptail_paper.claims.findings import (
    PART,
    Answer,
    Finding,
    alike,
    certain,
    elsewhere,
    from_tasks,
    scope,
)
from toptail_paper.claims.numbers import (
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
        """The number ``value``, written as ``words``."""
        limit = super().__new__(cls, value)
        limit.words = words
        return limit


ZERO = Words(0.0, "zero")
HALF = Words(0.5, "half")
TWO_THIRDS = Words(2 / 3, "two thirds")
WEAK = HALF
"""The one meaning of "weak", and where a weak order ends: see `WEAKLY`."""

SPREAD = (
    "Criterion: a standard deviation over seeds of {condition} in each of {count} cells. The "
    "number is the largest, {shown}."
)
"""How claims about standard deviations are said."""


def percent(x: float) -> str:
    """A share as the comments write it."""
    return f"{100 * x:.0f} %"


@dataclass(frozen=True)
class Condition:
    """What a number must be; ``f"{condition}"`` says it, ``f"{condition:%}"`` in percent."""

    words: str
    """How it is said, with {} for each limit."""
    limits: tuple[float, ...]
    """The thresholds."""
    worst: str
    """Which of several numbers comes nearest to failing, or fails most."""
    holds: Callable[[Number], bool]
    """Whether a number meets it."""
    edges: tuple[float, ...] = ()
    """Numbers that meet it or bound it: an interval may contain them while its ends miss it."""

    def __call__(self, x: Number | float) -> bool:
        """Whether a number meets it."""
        return bool(self.holds(x if isinstance(x, Number) else Number(x)))

    def asked(self, x: Number) -> Answer:
        """Whether a number's whole interval meets it, or misses it; None in between.

        A number without an interval is asked by its mean. One that could not be computed (NaN), or
        an end that could not, leaves it open.
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
        """Both conditions."""
        words, limits = f"{self.words} and {other.words}", self.limits + other.limits
        edges = self.edges + other.edges
        return Condition(words, limits, self.worst, lambda x: self(x) and other(x), edges)

    def __format__(self, spec: str) -> str:
        """The condition in words."""
        return self.words.format(*(_limit(limit, spec) for limit in self.limits))


def _limit(limit: float, spec: str) -> str:
    if isinstance(limit, Words):
        return limit.words
    return f"{100 * limit:g} %" if spec == "%" else f"{limit:{spec or 'g'}}"


Limited = Callable[[float], Condition]
"""A limit to the condition that it makes."""


def _of_mean(words: str, worst: str, holds: Callable[[float, float], bool]) -> Limited:
    """Conditions that compare a mean with one limit."""
    return lambda x: Condition(words, (x,), worst, lambda n: holds(n.mean, x), (x,))


at_most = _of_mean("at most {}", "highest", le)
at_least = _of_mean("at least {}", "lowest", ge)
below = _of_mean("below {}", "highest", lt)
above = _of_mean("above {}", "lowest", gt)
exactly = _of_mean("exactly {}", "highest", eq)
short_by_at_most = _of_mean("at most {} below", "lowest", lambda mean, x: mean >= -x)
"""The last: a difference that falls short of zero by no more than the limit."""


def between(x: float, y: float) -> Condition:
    """A mean within two limits."""
    return Condition("between {} and {}", (x, y), "lowest", lambda n: x <= n.mean <= y, (x, y))


def near(x: float, within: float) -> Condition:
    """A mean close to a number."""
    farthest = f"farthest from {_limit(x, '')}"

    def holds(n: Number) -> bool:
        return abs(n.mean - x) <= within

    return Condition("within {} of {}", (within, x), farthest, holds, (x,))


def _weak(n: Number) -> bool:
    return abs(n.mean) <= WEAK


WEAKLY = Condition("at most {} of TD-Q's in size", (WEAK,), "farthest from zero", _weak, (0.0,))
"""What a weak order is, asked of a share of TD-Q's on the same task."""

WEAK_OR_INVERTED = at_most(WEAK)
"""The same, or below zero."""

WEAK_MEANS = (
    f"An order (tau, tau_b or the gap between score deciles) is weak if it is {WEAKLY} on the "
    "same task. One below zero is inverted; “weak or inverted” asks only for the upper limit."
)
"""Both in a sentence."""


def wholly_above(x: float) -> Condition:
    """An interval over a limit; a number without one does not meet it."""
    return Condition(
        "above {} with its whole interval",
        (x,),
        "lowest",
        lambda n: n.interval is not None and n.interval[0] > x,
        (x,),
    )


def spelled(numbers: Mapping[str, Number] | Mapping[str, float], digits: str = ".3f") -> str:
    """Name number; name number. The digits are a format, ``.1%`` one in percent."""
    means = {name: x.mean if isinstance(x, Number) else x for name, x in numbers.items()}
    if digits.endswith("%"):
        return "; ".join(f"{name} {100 * x:{digits[:-1]}f} %" for name, x in means.items())
    return "; ".join(f"{name} {x:{digits}}" for name, x in means.items())


def pick(numbers: Mapping[str, Number], shown: str) -> str:
    """The name of the number that decides: see `Criterion.shown`."""
    numbers = {name: x for name, x in numbers.items() if not x.missing} or numbers
    if shown == "first":
        return next(iter(numbers))
    if shown.startswith("farthest from "):
        origin = float(shown.removeprefix("farthest from ").replace("zero", "0"))
        return max(numbers, key=lambda name: abs(numbers[name].mean - origin))
    sign = {"lowest": -1.0, "highest": 1.0}[shown]
    return max(numbers, key=lambda name: sign * numbers[name].mean)


T = TypeVar("T")


def measured(tasks: Sequence[str], of: Callable[[str], T]) -> dict[str, T]:
    """What is looked up, on those of the tasks that have it."""
    found = {}
    for task in tasks:
        with suppress(NotMeasuredError):
            found[task] = of(task)
    return found


def where(tables: Tables, numbers: Numbers, tasks: Sequence[str]) -> dict[str, Named]:
    """The numbers of those of the tasks that have them; at least one does."""
    found = measured(tasks, lambda task: numbers.of(tables, task))
    if not found:
        raise NotMeasuredError(f"{numbers.what} on {', '.join(tasks)}")
    return found


Beside = Callable[[Tables, Sequence[str]], str]
"""Stored results and the tasks that decided to a sentence more, with a space before it."""


def listed(numbers: Numbers, digits: str = ".3f") -> Beside:
    """Further numbers on the tasks that decided, where all of these have them."""

    def text(tables: Tables, tasks: Sequence[str]) -> str:
        try:
            found = [numbers.of(tables, task) for task in tasks]
        except NotMeasuredError:
            return ""
        shown = {name: x for named in found for name, x in named.items()}
        return f" {numbers.what}: {spelled(shown, digits)}."

    return text


@dataclass(frozen=True)
class Criterion:
    """A condition that several numbers must meet, and which of them is shown."""

    numbers: Numbers
    """What is asked."""
    tasks: Sequence[str]
    """The tasks that the statement speaks of."""
    condition: Condition
    """What the numbers must be."""
    said: str
    """The criterion in words; {condition}, or {TASK} for one apart, stands for the limits.

    Where it has {numbers} (or {spelled}, {shown}, {count}) it is the whole comment; {also} then
    stands for the criteria that are joined to it.
    """
    shown: str = ""
    """Which number is shown: "lowest", "highest", "farthest from X" or "first"; unless it is
    said, the condition's worst."""
    apart: Mapping[str, Condition] = field(default_factory=dict)
    """Conditions of tasks that have their own."""
    part: str = "{}"
    """What a failing case is called, with {} for the number's name."""
    digits: str = ".3f"
    """How the comment writes the numbers, as `spelled` has it."""
    own: bool = False
    """Whether the comment says in which cells the paper's own numbers miss the criterion."""
    beside: Sequence[Beside] = ()
    """What else the comment says."""
    chosen: Callable[[Tables], Sequence[str]] | None = None
    """Which tasks are asked, where that depends on the stored results."""
    certain: bool = False
    """Whether no score could fail it as it is measured."""
    differ: str = "the critic"
    """What the numbers of one task differ in."""
    joined: tuple[Criterion, ...] = ()
    """Criteria that must be met, too."""

    def __and__(self, other: Criterion) -> Criterion:
        """Both criteria, on the tasks that have the numbers of both."""
        return replace(self, joined=(*self.joined, other))

    def __call__(self, tables: Tables) -> Finding:
        """Decide from stored results."""
        by_task = self._measured(tables)
        decided = list(by_task)
        parts: dict[str, dict[str, Answer]] = {task: {} for task in by_task}
        halves: dict[int, dict[str, Answer]] = {}
        cells: list[dict[str, Answer]] = []
        numberless: set[str] = set()
        for task, found in by_task.items():
            for criterion, numbers in found:
                answers = criterion._parts(task, numbers)
                numberless |= {criterion.part.format(n) for n, x in numbers.items() if x.missing}
                parts[task] |= answers
                halves.setdefault(id(criterion), {}).update(answers)
                cells.append(answers)
        numbers = self._of(self, by_task)
        at = pick(numbers, self.shown or self.condition.worst)
        finding = from_tasks(
            parts,
            numbers[at],
            self._comment(by_task, at)
            + (self._paper(tables) if self.own else "")
            + "".join(more(tables, decided) for more in self.beside)
            + scope(decided, self.tasks),
            on=self._differ(halves.values(), cells),
            numberless=numberless,
        )
        if self.certain:
            finding = certain(finding)
        return elsewhere(finding, decided, self.tasks)

    def _differ(
        self, halves: Iterable[Mapping[str, Answer]], cells: Iterable[Mapping[str, Answer]]
    ) -> str:
        """What parts differ in that no task tells apart: halves, halves by task, or neither."""
        if self.joined and alike(halves):
            return PART
        return f"{PART} and the task" if self.joined and alike(cells) else self.differ

    def _measured(self, tables: Tables) -> dict[str, list[tuple[Criterion, Named]]]:
        """The numbers of every criterion, on the tasks that have all; at least one does."""

        def of(task: str) -> list[tuple[Criterion, Named]]:
            asked = [c for c in (self, *self.joined) if c is self or task in c.tasks]
            return [(c, c.numbers.of(tables, task)) for c in asked]

        asked = self.tasks if self.chosen is None else self.chosen(tables)
        result = measured(asked, of)
        if not result:
            for task in asked:
                of(task)  # raises, and says what is missing
            raise NotMeasuredError(self.said)
        return result

    def _parts(self, task: str, numbers: Named) -> dict[str, Answer]:
        condition = self.apart.get(task, self.condition)
        return {self.part.format(name): condition.asked(x) for name, x in numbers.items()}

    @staticmethod
    def _of(criterion: Criterion, by_task: Mapping[str, list[tuple[Criterion, Named]]]) -> Named:
        """All the numbers of one criterion."""
        return {
            name: x
            for found in by_task.values()
            for asked, numbers in found
            if asked is criterion
            for name, x in numbers.items()
        }

    def _comment(self, by_task: Mapping[str, list[tuple[Criterion, Named]]], at: str) -> str:
        numbers = self._of(self, by_task)
        also = [
            f" {c.numbers.what}: {spelled(self._of(c, by_task), c.digits)}."
            for c in self.joined
            if c.numbers.what
        ]
        text = spelled(numbers, self.digits)
        the = (
            f"that of {at}"
            if self.shown == "first"
            else f"the {self.shown or self.condition.worst}"
        )
        words = {
            "spelled": text,
            "shown": at,
            "count": len(numbers),
            "numbers": f"{self.numbers.what}: {text}; the number is {the}." + "".join(also),
        }
        beside = ", and ".join(c.words() for c in self.joined)
        if any(f"{{{name}}}" in self.said for name in words):
            return self.words(also=beside, **words)
        said = self.words() + (f", and {beside}" if beside else "")
        return f"Criterion: {said}. {words['numbers']}"

    def words(self, **more: object) -> str:
        """The criterion in words."""
        return self.said.format(condition=self.condition, **self.apart, **more)

    def stated(self) -> str:
        """The criterion in words, with those that are joined to it and without any numbers."""
        blank = dict.fromkeys(("numbers", "spelled", "shown", "count"), "…")
        beside = ", and ".join(c.words() for c in self.joined)
        said = self.words(also=beside, **blank)
        return f"{said}, and {beside}" if beside and "{also}" not in self.said else said

    def conditions(self) -> list[str]:
        """Every condition that is asked, of single tasks and of joined criteria, too."""
        own = [f"{self.condition}", *(f"{task}: {c}" for task, c in self.apart.items())]
        return own + [said for criterion in self.joined for said in criterion.conditions()]

    def _paper(self, tables: Tables) -> str:
        """Name the cells in which the paper's own numbers miss the criterion."""
        reported = {name: {"rows": table.get("paper", {})} for name, table in tables.items()}
        misses: Named = {}
        for task, numbers in measured(self.tasks, lambda at: self.numbers.of(reported, at)).items():
            condition = self.apart.get(task, self.condition)
            misses |= {name: x for name, x in numbers.items() if not condition(x)}
        if not misses:
            return ""
        return f" The paper's own cells miss it for {spelled(misses, self.digits)}."
