"""Numbers of stored tables by name, of which the criteria of claims ask conditions.

`each`, `curve`, `seed_curve`, `spread` look numbers up; `ratio`, `less`, `paired`, `combined`,
`each_as`, `most` and `least` make numbers of them. All of these are about one task at a time and
raise `NotMeasuredError` where the stored results do not hold what they need. An interval is the
table's own, or one over training seeds where the table has none; `Number.over` says which. A
difference or a ratio of two numbers of one task is paired where bootstrap replicates of both are
stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import fdtri, stdtrit

from toptail.stats import percentile_interval
from toptail.stats.best_of_k import Floats
from toptail_paper.study.replicates import REPLICATES, key_of

Interval = tuple[float, float]
Tables = Mapping[str, Mapping[str, Any]]
"""Stored results by name: ``tables/NAME.json`` as NAME, and curves, theory and landscape."""


SEEDS, TRAJECTORIES = "training seeds", "whole trajectories"
RESAMPLED: Mapping[str, str] = {"deployment": "episodes", "support-decomposition": "queries"}
"""What the intervals of a stored table are over, where that is not whole trajectories."""
PAIRED, INDEPENDENT = ", paired", "both numbers as independent"
"""How what an interval is over ends for a number of two others."""
UNBOUNDED = 1e12
"""What a replicate of a ratio is where its reference is not above zero."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """Bootstrap replicates of a number."""

    draws: Floats
    """One value for each resample ``[resamples]``."""
    task: str
    """The task whose trajectories were resampled; all its numbers share the resamples."""


class NotMeasuredError(LookupError):
    """The stored results do not hold what a claim needs."""


@dataclass(frozen=True)
class Number:
    """One number with what is known of its uncertainty."""

    mean: float
    interval: Interval | None = None
    """Its 95 % interval, where it has one: the table's own, or one over seeds."""
    seeds: Mapping[str, float] = field(default_factory=dict)
    over: str = ""
    """What the interval is over; empty where there is none."""
    replicates: Replicates | None = field(default=None, compare=False, repr=False)
    """Its bootstrap replicates, where they are stored."""

    @property
    def missing(self) -> bool:
        """Whether it, or an end of its interval, could not be computed: that decides nothing."""
        return any(math.isnan(x) for x in (self.mean, *(self.interval or ())))

    @property
    def std(self) -> float:
        """Standard deviation over seeds (ddof 1); NaN for a single seed."""
        values = list(self.seeds.values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan

    @property
    def low(self) -> float:
        """Lower end of the interval; raises `NotMeasuredError` where there is none."""
        return self._ends[0]

    @property
    def high(self) -> float:
        return self._ends[1]

    @property
    def _ends(self) -> Interval:
        if self.interval is None:
            raise NotMeasuredError("an interval")
        return self.interval

    def minus(self, other: Number) -> Number:
        """Paired difference over the seeds that both have, with its interval over seeds.

        Numbers without seeds, as the paper reports them, are subtracted as they are.
        """
        if not self.seeds and not other.seeds:
            return difference(self, other)
        return from_seeds(
            {s: v - other.seeds[s] for s, v in self.seeds.items() if s in other.seeds}
        )


def from_seeds(values: Mapping[str, float]) -> Number:
    """Mean of one number per seed, with its interval over seeds."""
    numbers = list(values.values())
    if not numbers:
        raise NotMeasuredError("values of seeds")
    interval = seed_interval(numbers)
    return Number(float(np.mean(numbers)), interval, values, SEEDS if interval else "")


def seed_interval(values: Iterable[float]) -> Interval | None:
    """95 % Student-t interval of a mean over seeds; None for one seed, or without numbers."""
    numbers = list(values)
    n = len(numbers)
    if n < 2 or not all(map(math.isfinite, numbers)):
        return None
    mean = float(np.mean(numbers))
    half = float(stdtrit(n - 1, 0.975) * np.std(numbers, ddof=1) / math.sqrt(n))
    return mean - half, mean + half


def stored(
    tables: Tables, table: str, task: str, row: str, metric: str, value: str = "mean"
) -> Mapping[str, Any]:
    """Look up a cell that holds a value: rows → task → row → metric of a stored table."""
    try:
        cell: Mapping[str, Any] = tables[table]["rows"][task][row][metric]
    except KeyError as missing:
        raise NotMeasuredError(f"{table}: {task}/{row}/{metric}") from missing
    if cell[value] is None:
        raise NotMeasuredError(f"{table}: {task}/{row}/{metric} has no number")
    return cell


def number(tables: Tables, table: str, task: str, row: str, metric: str) -> Number:
    """Look up a cell as a number with its table's interval, or else with one over seeds."""
    cell = stored(tables, table, task, row, metric)
    low, high = cell.get("low"), cell.get("high")
    seeds = {seed: float(v) for seed, v in cell.get("seeds", {}).items() if v is not None}
    if low is None or high is None:
        return (
            replace(from_seeds(seeds), mean=float(cell["mean"])) if seeds else Number(cell["mean"])
        )
    over = RESAMPLED.get(table, TRAJECTORIES)
    draws = tables.get(REPLICATES, {}).get(task, {}).get(key_of(table, row, metric))
    replicates = None if draws is None else Replicates(draws, task)
    return Number(float(cell["mean"]), (low, high), seeds, over, replicates)


def seeded(tables: Tables, table: str, task: str, row: str, metric: str) -> Number:
    """Look up a cell as a number with its interval over seeds; as it is where it has no seeds."""
    cell = number(tables, table, task, row, metric)
    return from_seeds(cell.seeds) if cell.seeds else cell


Named = dict[str, Number]
Lookup = Callable[[Tables, str, str, str, str], Number]

ON, BY_TASK, ALONE = "{critic} on {task}", "{task}", "{critic}"
"""How numbers are called: by critic and task, by task where there is one critic, by critic."""


@dataclass(frozen=True)
class Numbers:
    """Which numbers a criterion is asked of."""

    of: Callable[[Tables, str], Named]
    """Stored results and a task to numbers by name."""
    what: str = "Measured"
    """What a comment calls them."""

    def called(self, what: str) -> Numbers:
        return replace(self, what=what)

    def requiring(self, *others: Numbers) -> Numbers:
        """The same numbers, on the tasks that have others, too."""

        def of(tables: Tables, task: str) -> Named:
            for other in others:
                other.of(tables, task)
            return self.of(tables, task)

        return replace(self, of=of)


def each(
    table: str,
    metric: str,
    critics: Sequence[str],
    name: str = ON,
    *,
    required: Sequence[str] | None = None,
    lookup: Lookup = number,
) -> Numbers:
    """One metric of several critics; those that are not ``required`` may lack it."""

    def of(tables: Tables, task: str) -> Named:
        found = {}
        for critic in critics:
            try:
                found[name.format(critic=critic, task=task)] = lookup(
                    tables, table, task, critic, metric
                )
            except NotMeasuredError:
                if required is None or critic in required:
                    raise
        if not found:
            raise NotMeasuredError(f"{table}: {task}: {metric} of no critic")
        return found

    return Numbers(of)


def together(*parts: Numbers) -> Numbers:
    def of(tables: Tables, task: str) -> Named:
        return {name: x for part in parts for name, x in part.of(tables, task).items()}

    return Numbers(of)


def spread(
    table: str,
    metrics: Sequence[str],
    critics: Sequence[str],
    unless: Callable[[str, str, str], bool] = lambda _task, _critic, _metric: False,
) -> Numbers:
    """Standard deviations over seeds; a task needs the first metric, and may lack the others."""

    def of(tables: Tables, task: str) -> Named:
        found: Named = {}
        for metric in metrics:
            try:
                cells = {c: number(tables, table, task, c, metric) for c in critics}
            except NotMeasuredError:
                if metric == metrics[0]:
                    raise
                continue
            found |= {
                f"{metric} of {critic} on {task}": Number(cell.std)
                for critic, cell in cells.items()
                if math.isfinite(cell.std) and not unless(task, critic, metric)
            }
        if not found:
            raise NotMeasuredError(f"{table}: one seed alone has no spread")
        return found

    return Numbers(of)


Of = Callable[[list[float]], float]


def of_curve(tables: Tables, task: str, critic: str, name: str, of: Of) -> Number:
    """A number of one critic's mean curve on a task; raises where that is missing or has gaps.

    Points of a curve rise and fall together, so that their own intervals say nothing about a
    number of several. The interval is one over seeds, each of which has a curve.
    """
    try:
        stored_curve = tables["curves"]["tasks"][task][critic][name]
    except KeyError as missing:
        raise NotMeasuredError(f"curves: {task}/{critic}/{name}") from missing
    if any(value is None for value in stored_curve["mean"]):
        raise NotMeasuredError(f"curves: {task}/{critic}/{name} has gaps")
    whole = [y for y in stored_curve["seeds"].items() if None not in y[1]]
    mean, seeds = of(stored_curve["mean"]), {seed: of(y) for seed, y in whole}
    ends = seed_interval(seeds.values())
    if ends is None:
        return Number(mean, None, seeds)
    half = (ends[1] - ends[0]) / 2
    return Number(mean, (mean - half, mean + half), seeds, SEEDS)


def curve(name: str, critics: Sequence[str], of: Of) -> Numbers:
    return Numbers(
        lambda tables, task: {
            f"{c} on {task}": of_curve(tables, task, c, name, of) for c in critics
        }
    )


def seed_curve(name: str, critics: Sequence[str], of: Of, called: str = ALONE) -> Numbers:
    """A number of every seed's curve, of the controlled study's curves."""

    def one(tables: Tables, critic: str) -> Number:
        try:
            seeds = tables["curves"]["critics"][critic][name]["seeds"]
        except KeyError as missing:
            raise NotMeasuredError(f"curves: {critic}/{name}") from missing
        if any(value is None for values in seeds.values() for value in values):
            raise NotMeasuredError(f"curves: {critic}/{name} has gaps")
        return from_seeds({seed: of(values) for seed, values in seeds.items()})

    return Numbers(lambda tables, _task: {called.format(critic=c): one(tables, c) for c in critics})


def ratio(top: Numbers, bottom: Numbers, what: str = "Ratios") -> Numbers:
    return combined(top, bottom, quotient, what)


def over_tdq(
    table: str, metric: str, critics: Sequence[str], what: str = "As a multiple of tdq"
) -> Numbers:
    return ratio(each(table, metric, critics), each(table, metric, ("tdq",)), what)


def times(x: float, reference: float) -> float:
    """How many times the reference; infinite where that is zero, NaN where it is negative.

    NaN decides nothing: a negative reference is no yardstick.
    """
    if reference > 0:
        return x / reference
    return math.inf if reference == 0 and x > 0 else math.nan


def quotient(x: Number, reference: Number) -> Number:
    """How many times the reference, with the paired interval where replicates of both are stored.

    Otherwise the interval is that of independent numbers: its ends solve for the ratio r at which
    x − r·reference, by `difference`, just reaches zero (Donner and Zou, 2012). Unbounded where the
    reference's interval reaches zero.
    """
    mean = times(x.mean, reference.mean)
    if x.interval is None or reference.interval is None or not math.isfinite(mean):
        return Number(mean)
    if reference.interval[0] <= 0:
        return Number(mean, (-math.inf, math.inf), over=_both(x, reference))
    if (draws := _shared(x, reference)) is not None:
        top, bottom = draws
        known = bottom > 0
        shares = np.where(known, top / np.where(known, bottom, 1.0), np.copysign(UNBOUNDED, top))
        return _paired(mean, shares, x, reference)
    product = x.mean * reference.mean

    def end(mine: float, sign: int) -> float:
        other = reference.high if (mine >= 0) == (sign < 0) else reference.low
        scale = other * (2 * reference.mean - other)
        if scale <= 0:
            return sign * math.inf
        inside = product**2 - mine * (2 * x.mean - mine) * scale
        return (product + sign * math.sqrt(max(inside, 0.0))) / scale

    return Number(mean, (end(x.low, -1), end(x.high, 1)), over=_both(x, reference))


def difference(x: Number, y: Number) -> Number:
    """Difference of two numbers, with the paired interval where replicates of both are stored.

    Otherwise the interval is that of independent numbers: distances from mean to end add in
    squares (Newcombe, 1998). For numbers that rise and fall together, as on the same pools, this
    is wider than need be.
    """
    mean = x.mean - y.mean
    if x.interval is None or y.interval is None:
        return Number(mean)
    if (draws := _shared(x, y)) is not None:
        return _paired(mean, draws[0] - draws[1], x, y)
    down = math.hypot(x.mean - x.low, y.high - y.mean)
    up = math.hypot(x.high - x.mean, y.mean - y.low)
    return Number(mean, (mean - down, mean + up), over=_both(x, y))


def _shared(x: Number, y: Number) -> tuple[Floats, Floats] | None:
    """The replicates of two numbers from the same resamples; None where there are none."""
    if x.replicates is None or y.replicates is None or x.replicates.task != y.replicates.task:
        return None
    count = min(len(x.replicates.draws), len(y.replicates.draws))
    return x.replicates.draws[:count], y.replicates.draws[:count]


def _paired(mean: float, draws: Floats, x: Number, y: Number) -> Number:
    """A number of two that share their resamples, with its percentile interval."""
    assert x.replicates is not None
    low, high = percentile_interval(draws, 0.95)
    over = f"{_joined(x, y)}{PAIRED}"
    replicates = Replicates(draws, x.replicates.task)
    return Number(mean, (float(low), float(high)), over=over, replicates=replicates)


def _joined(x: Number, y: Number) -> str:
    """The units that the intervals of two numbers resample, for a comment."""
    plain = (each.over.removesuffix(PAIRED).removesuffix(f", {INDEPENDENT}") for each in (x, y))
    return " and ".join(dict.fromkeys(plain))


def _both(x: Number, y: Number) -> str:
    """What the interval of two numbers is over, which are taken as independent."""
    return f"{_joined(x, y)}, {INDEPENDENT}"


def spread_ratio(x: Number, y: Number) -> Number:
    """One standard deviation over seeds over another, with its interval by Fisher's F.

    As if seeds were normal; the only interval that a spread of a few seeds can have.
    """
    mean = times(x.std, y.std)
    if not math.isfinite(mean):
        return Number(mean)
    n, m = len(x.seeds) - 1, len(y.seeds) - 1
    low, high = (mean / math.sqrt(float(fdtri(n, m, p))) for p in (0.975, 0.025))
    return Number(mean, (low, high), over=SEEDS)


def shifted(x: Number, by: float) -> Number:
    ends = None if x.interval is None else (x.interval[0] + by, x.interval[1] + by)
    moved = x.replicates and Replicates(x.replicates.draws + by, x.replicates.task)
    return replace(x, mean=x.mean + by, interval=ends, replicates=moved)


def less(top: Numbers, bottom: Numbers, what: str = "Differences") -> Numbers:
    """Differences of numbers, paired where their replicates are stored."""
    return combined(top, bottom, difference, what)


def paired(top: Numbers, bottom: Numbers, what: str = "Differences") -> Numbers:
    """Differences seed by seed, with intervals over seeds."""
    return combined(top, bottom, Number.minus, what)


def seed_gap(top: Numbers, bottom: Numbers) -> Numbers:
    """The lowest seed less the highest seed of the other: above zero where no seeds overlap."""

    def gap(x: Number, y: Number) -> Number:
        if not x.seeds or not y.seeds:
            raise NotMeasuredError("values of seeds")
        return Number(min(x.seeds.values()) - max(y.seeds.values()))

    return combined(top, bottom, gap, "")


def each_as(numbers: Numbers, by: Callable[[Number], float]) -> Numbers:
    """One number of each number, without an interval: its mean, an end, its lowest seed."""
    return replace(
        numbers,
        of=lambda tables, task: {n: Number(by(x)) for n, x in numbers.of(tables, task).items()},
    )


def mean(x: Number) -> float:
    return x.mean


def lowest_seed(x: Number) -> float:
    return min(x.seeds.values())


def combined(
    top: Numbers, bottom: Numbers, by: Callable[[Number, Number], Number], what: str
) -> Numbers:
    """Each number with the reference of the same name, or with the only one there is."""

    def of(tables: Tables, task: str) -> Named:
        found, references = top.of(tables, task), bottom.of(tables, task)
        if len(references) == 1:
            references = dict.fromkeys(found, next(iter(references.values())))
        return {name: by(x, references[name]) for name, x in found.items()}

    return Numbers(of, what)


def most(numbers: Numbers, sign: int = 1) -> Numbers:
    """The number with the largest mean of each task."""

    def extreme(tables: Tables, task: str) -> Named:
        found = numbers.of(tables, task).values()
        return {task: max(found, key=lambda x: sign * x.mean)}

    return Numbers(extreme)


def least(numbers: Numbers) -> Numbers:
    return most(numbers, -1)
