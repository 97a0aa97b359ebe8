"""What the decisions about the semantics study share: look-ups over tasks, and two criteria.

Most statements say the same thing of several critics on several tasks. `each` asks every cell,
`compared` every cell beside a reference's. Tasks that a run did not measure stay out, and the
comment names those that decided. Intervals are those of the tables: trajectories resampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toptail.lab.paper.ledger import (
    Finding,
    Interval,
    Measured,
    NotMeasuredError,
    Tables,
    from_parts,
    measured,
)

CORE = ("PointMaze", "AntMaze", "HumanoidMaze")
NAVIGATION = (*CORE, "AntSoccer")
MANIPULATION = ("Cube-single", "Cube-double", "Scene", "Puzzle")
EIGHT = (*NAVIGATION, *MANIPULATION)

RANKERS = ("raw", "cosine")
"""The critics the paper calls near-perfect retrievers."""
BOUNDED = ("cosine", "hybrid")
CONTRASTIVE = ("raw", "cosine", "hybrid")
CRITICS = ("tdq", *CONTRASTIVE)

Decision = Callable[[Tables], Finding]
Worst = Literal["lowest", "highest", "farthest from zero"]
"""Which of several numbers decides: the one that comes nearest to failing, or fails most."""


@dataclass(frozen=True)
class Found(Measured):
    """A cell with the interval that its table stores."""

    ends: Interval | None = None
    """95 % interval of the mean over seeds, trajectories resampled."""


def found(tables: Tables, name: str, task: str, critic: str, metric: str) -> Found:
    """Look up a cell of a stored table."""
    m = measured(tables, name, task, critic, metric)
    cell = tables[name]["rows"][task][critic][metric]
    ends = None if cell.get("low") is None else (cell["low"], cell["high"])
    return Found(m.mean, m.std, m.seeds, ends)


def row(
    tables: Tables, name: str, task: str, critics: Iterable[str], metric: str
) -> dict[str, Found]:
    """One metric of several critics on one task; all must be there."""
    return {critic: found(tables, name, task, critic, metric) for critic in critics}


def known_row(
    tables: Tables, name: str, task: str, critics: Iterable[str], metric: str
) -> dict[str, Found]:
    """One metric of those of the critics that have it on one task."""
    result = {}
    for critic in critics:
        try:
            result[critic] = found(tables, name, task, critic, metric)
        except NotMeasuredError:
            continue
    return result


def tasks_with(
    tables: Tables, name: str, critics: Sequence[str], metric: str, among: Sequence[str]
) -> list[str]:
    """Those of the tasks on which all the critics have the metric; at least one."""
    result = []
    for task in among:
        try:
            row(tables, name, task, critics, metric)
        except NotMeasuredError:
            continue
        result.append(task)
    if not result:
        raise NotMeasuredError(f"{name}: {metric} of {', '.join(critics)}")
    return result


def scope(tasks: Sequence[str], among: Sequence[str]) -> str:
    """Say which tasks decided, where not all were measured."""
    missing = [task for task in among if task not in tasks]
    if not missing:
        return ""
    return f" Decided on {', '.join(tasks)} alone; not measured: {', '.join(missing)}."


def spelled(numbers: Mapping[str, float], digits: int = 3) -> str:
    """Name: number; name: number."""
    return "; ".join(f"{name} {value:.{digits}f}" for name, value in numbers.items())


def extreme(numbers: Mapping[str, float], worst: Worst) -> str:
    """The name with the lowest or highest number, or with the one farthest from zero."""
    sign = -1.0 if worst == "lowest" else 1.0
    size = abs if worst == "farthest from zero" else float
    return max(numbers, key=lambda name: sign * size(numbers[name]))


def each(
    name: str,
    metric: str,
    critics: Sequence[str],
    among: Sequence[str],
    holds: Callable[[Found], bool],
    criterion: str,
    worst: Worst,
) -> Decision:
    """Decide a statement that is about every cell by itself."""

    def decide(tables: Tables) -> Finding:
        tasks = tasks_with(tables, name, critics, metric, among)
        cells = {
            f"{critic} on {task}": cell
            for task in tasks
            for critic, cell in row(tables, name, task, critics, metric).items()
        }
        means = {key: cell.mean for key, cell in cells.items()}
        at = extreme(means, worst)
        return from_parts(
            {key: holds(cell) for key, cell in cells.items()},
            means[at],
            cells[at].ends,
            f"Criterion: {criterion}. Measured: {spelled(means)}; the number is the {worst}."
            + scope(tasks, among),
        )

    return decide


def spread(
    name: str,
    metrics: Sequence[str],
    critics: Sequence[str],
    among: Sequence[str],
    limit: float,
    unless: Callable[[str, str, str], bool] = lambda _task, _critic, _metric: False,
) -> Decision:
    """Decide whether every cell's standard deviation over seeds is at most a limit."""

    def decide(tables: Tables) -> Finding:
        tasks = tasks_with(tables, name, critics, metrics[0], among)
        stds = {
            f"{metric} of {critic} on {task}": cell.std
            for metric in metrics
            for task in tasks_with(tables, name, critics, metric, tasks)
            for critic, cell in row(tables, name, task, critics, metric).items()
            if not unless(task, critic, metric) and math.isfinite(cell.std)
        }
        if not stds:
            raise NotMeasuredError(f"{name}: one seed alone has no spread")
        at = extreme(stds, "highest")
        return from_parts(
            {key: std <= limit for key, std in stds.items()},
            stds[at],
            None,
            f"Criterion: a standard deviation over seeds of at most {limit:g} in each of "
            f"{len(stds)} cells. The number is the largest, {at}." + scope(tasks, among),
        )

    return decide


def ratio(cell: Found, reference: Found) -> float:
    """How many times the reference's mean; infinite where that is zero, NaN where it is negative.

    NaN fails every criterion: a negative reference is no yardstick.
    """
    if reference.mean > 0:
        return cell.mean / reference.mean
    return math.inf if reference.mean == 0 and cell.mean > 0 else math.nan


def difference(cell: Found, reference: Found) -> float:
    """Mean less the reference's mean."""
    return cell.mean - reference.mean


def below(cell: Found, other: Found) -> bool:
    """Whether every seed of a cell lies below every seed of another: no matter of the seed."""
    return max(cell.seeds.values()) < min(other.seeds.values())


def compared(
    name: str,
    metric: str,
    critics: Sequence[str],
    reference: str,
    among: Sequence[str],
    by: Callable[[Found, Found], float],
    holds: Callable[[float], bool],
    criterion: str,
    worst: Worst,
    paper: bool = False,
) -> Decision:
    """Decide a statement about every critic beside a reference on the same task.

    With ``paper`` the comment says in which cells the paper's own numbers miss the criterion.
    """

    def decide(tables: Tables) -> Finding:
        tasks = tasks_with(tables, name, (reference, *critics), metric, among)
        numbers: dict[str, float] = {}
        for task in tasks:
            cells = row(tables, name, task, (reference, *critics), metric)
            numbers |= {f"{c} on {task}": by(cells[c], cells[reference]) for c in critics}
        own = _paper_misses(tables, name, metric, critics, reference, among, by, holds)
        at = extreme(numbers, worst)
        what = "As a multiple of" if by is ratio else "Difference from"
        return from_parts(
            {key: holds(number) for key, number in numbers.items()},
            numbers[at],
            None,
            f"Criterion: {criterion}. {what} {reference}: {spelled(numbers)}; the number is the "
            f"{worst}." + (own if paper else "") + scope(tasks, among),
        )

    return decide


def _paper_misses(
    tables: Tables,
    name: str,
    metric: str,
    critics: Sequence[str],
    reference: str,
    among: Sequence[str],
    by: Callable[[Found, Found], float],
    holds: Callable[[float], bool],
) -> str:
    reported = tables[name].get("paper", {})
    misses: dict[str, float] = {}
    for task in among:
        cells = {c: _reported(reported, task, c, metric) for c in (reference, *critics)}
        known = {c: cell for c, cell in cells.items() if cell is not None}
        if reference in known:
            numbers = {c: by(cell, known[reference]) for c, cell in known.items() if c in critics}
            misses |= {f"{c} on {task}": x for c, x in numbers.items() if not holds(x)}
    return f" The paper's own cells miss it for {spelled(misses)}." if misses else ""


def _reported(paper: Mapping[str, Any], task: str, critic: str, metric: str) -> Found | None:
    mean = paper.get(task, {}).get(critic, {}).get(metric, {}).get("mean")
    return None if mean is None else Found(mean, float("nan"), {})


def with_temperature(
    decision: Decision, metric: str, holds: Callable[[float], bool], criterion: str
) -> Decision:
    """Turn a statement about the cosine critic into "depends" where its temperature decides it.

    Settings of the temperature study in which any seed collapsed say nothing about ordering and
    stay out. Without that study the decision stands as it is.
    """

    def decide(tables: Tables) -> Finding:
        finding = decision(tables)
        met, failed = sweep(tables, metric, holds)
        if not met and not failed:
            return finding
        listed = spelled(met), spelled(failed)
        text = (
            f" Over the temperature study's settings without collapse, {criterion} in "
            f"{len(met)} of {len(met) + len(failed)}"
            + (f" (met: {listed[0]})" if met else "")
            + (f" (not met: {listed[1]})" if failed else "")
            + "."
        )
        split = (finding.status == "seen" and failed) or (finding.status == "not seen" and met)
        status = "depends" if split else finding.status
        return Finding(status, finding.number, finding.interval, finding.comment + text)

    return decide


def sweep(
    tables: Tables, metric: str, holds: Callable[[float], bool]
) -> tuple[dict[str, float], dict[str, float]]:
    """Settings of the temperature study that meet a criterion, and those that do not."""
    met: dict[str, float] = {}
    failed: dict[str, float] = {}
    rows = tables.get("temperature", {}).get("rows", {})
    for task, settings in rows.items():
        for setting, cells in settings.items():
            mean = cells.get(metric, {}).get("mean")
            if mean is None or cells["collapsed"]["mean"] > 0:
                continue
            (met if holds(mean) else failed)[f"{setting} on {task}"] = mean
    return met, failed


def curve(tables: Tables, task: str, scorer: str, name: str) -> list[float]:
    """The mean curve of one scorer; raises where it is missing or has gaps."""
    try:
        mean = tables["curves"]["tasks"][task][scorer][name]
    except KeyError as missing:
        raise NotMeasuredError(f"curves: {task}/{scorer}/{name}") from missing
    if isinstance(mean, Mapping):
        mean = mean["mean"]
    if any(value is None for value in mean):
        raise NotMeasuredError(f"curves: {task}/{scorer}/{name} has gaps")
    return [float(value) for value in mean]


def each_curve(
    name: str,
    critics: Sequence[str],
    among: Sequence[str],
    of: Callable[[Tables, str, str, list[float]], float],
    holds: Callable[[float], bool],
    criterion: str,
    worst: Worst,
) -> Decision:
    """Decide a statement about a number ``of(tables, task, critic, y)`` of every curve y."""

    def decide(tables: Tables) -> Finding:
        numbers: dict[str, float] = {}
        tasks = []
        for task in among:
            try:
                curves = {critic: curve(tables, task, critic, name) for critic in critics}
            except NotMeasuredError:
                continue
            tasks.append(task)
            numbers |= {f"{c} on {task}": of(tables, task, c, y) for c, y in curves.items()}
        if not tasks:
            raise NotMeasuredError(f"curves: {name}")
        at = extreme(numbers, worst)
        return from_parts(
            {key: holds(number) for key, number in numbers.items()},
            numbers[at],
            None,
            f"Criterion: {criterion}. Measured: {spelled(numbers)}; the number is the {worst}."
            + scope(tasks, among),
        )

    return decide
