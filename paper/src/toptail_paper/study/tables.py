"""Stored tables, rows -> task -> critic -> metric -> cell, and their titles, columns and order.

A study has one `TableSpec` for each table. The function that makes the numbers hands its rows to
`TableSpec.table`; page, Markdown, terminal and ``toptail-paper show`` follow from the spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Required, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import jsonable, write_json
from toptail.report.table import Cell as ShownCell
from toptail.report.table import Table as ShownTable
from toptail.stats.resample import Estimate
from toptail_paper.study.compare import Comparison
from toptail_paper.study.naming import in_order, scorer_name
from toptail_paper.study.replicates import REPLICATES, split_tables, write_replicates
from toptail_paper.triples.bootstrap import LEVEL, seed_mean


class StoredCell(TypedDict, total=False):
    """One number of a table, with what is known about it."""

    mean: Required[float | None]
    """Mean over seeds; None where no seed has a number."""
    std: Required[float | None]
    """Standard deviation over seeds (ddof 1); None for one seed."""
    seeds: Required[dict[str, float | None]]
    low: float | None
    """Lower end of the 95 % interval of the mean."""
    high: float | None
    pooled: float | None
    """A ratio of seed means, which the interval belongs to."""
    undefined: int
    """Queries without a number."""
    circular: bool
    """The judge was trained as the scorer was."""
    unreliable: bool
    """The judge did not pass its declared criteria."""
    half_width: float | None
    ci_excludes_zero: bool
    variance_ratio: float | None
    """Variance without common random numbers over that with them."""
    queries: int
    """Queries behind the number."""
    threshold: float
    """The declared threshold of a judge."""
    status: str
    advice: str
    """What to do where it does not."""
    selector: str
    """Whose number it is, where it is the worst of several."""
    draws: NDArray[Any]
    """Bootstrap replicates of the mean, which `write_tables` stores in a file apart."""


Rows: TypeAlias = dict[str, dict[str, dict[str, StoredCell]]]
"""task -> critic -> metric -> cell."""


@dataclass(frozen=True)
class Metric:
    """One column of a shown table."""

    heading: str
    """The column's heading; ``{name}`` in it is replaced by what matched ``{name}`` in the key."""
    decimals: int | None = None
    """Digits after the point; the table's unless given."""
    percent: bool = False
    """Show a share as a percentage."""
    show: Callable[[Mapping[str, Any], Comparison | None], ShownCell] | None = None
    """How a cell is shown, where it is not mean, spread, interval and the paper's."""


Text: TypeAlias = str | Callable[[Any], str]
"""Words, or a function that finds them in the study's stored results."""


@dataclass(frozen=True)
class TableSpec:
    """Everything about a table but its numbers: title, columns, order, how it is shown."""

    name: str
    """``tables/NAME.json``."""
    title: Text
    """A few words, the heading."""
    meaning: Text
    """What the numbers say, for a reader who has not read the paper."""
    metrics: Mapping[str, str | Metric | None]
    """Metric -> its column, or the column's heading, in order; None: stored and not shown.
    ``{n}`` in a metric's name stands for any word."""
    part: str = ""
    """Anchor of the page's part that shows it; empty: the page does not."""
    label: str = ""
    """A name for it that others may use, such as the paper's; its own name unless given."""
    aliases: tuple[str, ...] = ()
    """Further names by which ``toptail-paper show`` finds it."""
    of: str = ""
    """The stored table that it shows some metrics of, where that has a spec of its own."""
    decimals: int = 3
    intervals: bool = True
    """Whether intervals stand below the numbers."""
    tasks: Literal["rows", "columns", "first"] = "rows"
    """Several metrics of several tasks: a row or a column for each task, or the first alone."""
    row_name: Callable[[str], str] = scorer_name
    order: Callable[[Iterable[str]], list[str]] = in_order
    apart: bool = False
    """Whether this project's controls are shown on demand."""
    notes: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    """The notes that the page shows below it."""
    words: Mapping[str, str] | None = None
    """What notes call other things than metrics."""
    show: Callable[[Any], Sequence[ShownTable]] | None = None
    """How it is shown, where it is not one row per scorer."""

    @property
    def anchor(self) -> str:
        """What the page and ``toptail-paper show`` call it."""
        return self.label or self.name

    @property
    def stored(self) -> str:
        return self.of or self.name

    def metric(self, name: str) -> tuple[str, Metric | None]:
        """The entry of `metrics` that a metric belongs to, and its column, None if not shown."""
        for pattern, entry in self.metrics.items():
            found = _pattern(pattern).fullmatch(name)
            if found is not None:
                if entry is None:
                    return pattern, None
                metric = Metric(entry) if isinstance(entry, str) else entry
                return pattern, _filled(metric, found.groupdict())
        if self.of:
            return "", None
        raise InputError(
            f"The table '{self.name}' has the metric '{name}', which its specification does not "
            "know: name it there, with the heading of its column or as stored alone."
        )

    def columns(self, rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Metric]:
        """Metric -> column of everything that is shown and that at least one row has."""
        present = dict.fromkeys(m for task in rows.values() for row in task.values() for m in row)
        found = {name: self.metric(name) for name in present}
        places = self._places()
        shown = [name for name, (_, column) in found.items() if column is not None]
        shown.sort(key=lambda name: places[found[name][0]])
        return {name: column for name in shown if (column := found[name][1]) is not None}

    def _places(self) -> dict[str, int]:
        """Where each entry stands; patterns in a row share a place, and keep the stored order."""
        places: dict[str, int] = {}
        before = ""
        for i, name in enumerate(self.metrics):
            places[name] = places[before] if "{" in name and "{" in before else i
            before = name
        return places

    def table(
        self, caption: str, rows: Rows, notes: Sequence[str] = (), **more: Any
    ) -> dict[str, Any]:
        """Assemble ``tables/NAME.json``; a metric that the spec does not know is refused.

        The caption says what was measured, with the sizes of this run, and the notes how to read
        the metrics; the paper's cells, in the nesting of the rows, are for others to fill in.
        """
        self.columns(rows)
        content = {"label": self.anchor, "caption": caption, "rows": rows, "paper": {}}
        return {**content, "notes": list(notes), **more}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """``excess_off_{n}`` as an expression."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(name)))


def _filled(metric: Metric, words: Mapping[str, str]) -> Metric:
    return replace(metric, heading=metric.heading.format(**words)) if words else metric


def cell(
    by_seed: Mapping[int, float] | Mapping[str, float], interval: tuple[float, float] | None = None
) -> StoredCell:
    """Mean and standard deviation over seeds, with every seed's value.

    Where a metric is not computable it is NaN, is stored as null, and stays out of mean and
    standard deviation. ``interval`` is the 95 % interval of the mean over queries.
    """
    values = np.array([x for x in by_seed.values() if np.isfinite(x)], dtype=np.float64)
    result: StoredCell = {
        "mean": float(values.mean()) if values.size else None,
        "std": float(values.std(ddof=1)) if values.size > 1 else None,
        "seeds": {str(seed): float(value) for seed, value in by_seed.items()},
    }
    if interval is not None:
        result |= {"low": float(interval[0]), "high": float(interval[1])}
    clean: StoredCell = jsonable(result)
    return clean


def estimate_cell(by_seed: Mapping[int, Estimate] | Mapping[str, Estimate]) -> StoredCell:
    """A scalar's mean, spread and seeds, with the interval of the mean over seeds.

    The interval resamples what the estimates resample and holds the seeds fixed. A seed in which
    the scalar is not computable is stored as null, and stays out of mean and interval.
    """
    finite = [e for e in by_seed.values() if np.isfinite(e.point)]
    low, high = seed_mean(finite).interval(LEVEL) if finite else (np.nan, np.nan)
    points = {str(seed): float(e.point) for seed, e in by_seed.items()}
    return cell(points, (float(low), float(high)))


def replicated_cell(by_seed: Mapping[int, Estimate] | Mapping[str, Estimate]) -> StoredCell:
    """The same with the bootstrap replicates of the mean over seeds."""
    finite = [e for e in by_seed.values() if np.isfinite(e.point)]
    entry = estimate_cell(by_seed)
    return with_more(entry, draws=seed_mean(finite).draws) if finite else entry


def curve_cell(by_seed: Mapping[int, Estimate] | Mapping[str, Estimate]) -> dict[str, Any]:
    """Mean, standard deviation, interval of the mean, and every seed, each over K."""
    low, high = seed_mean(list(by_seed.values())).interval(LEVEL)
    points = np.array([estimate.point for estimate in by_seed.values()])
    return {
        "mean": points.mean(axis=0),
        "std": points.std(axis=0, ddof=1) if len(points) > 1 else None,
        "low": low,
        "high": high,
        "seeds": {str(seed): estimate.point for seed, estimate in by_seed.items()},
    }


def with_more(entry: StoredCell, **more: Any) -> StoredCell:
    return cast("StoredCell", {**entry, **more})


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write every table as ``NAME.json`` and delete those of an earlier call that are none now.

    Claims are decided from what the folder holds, so a table whose numbers are gone must go, too.
    Bootstrap replicates of cells go to the folder ``replicates`` beside this one.
    """
    clean, replicates = split_tables(tables)
    write_replicates(folder.parent / REPLICATES, replicates)
    for name, content in clean.items():
        write_json(folder / f"{name}.json", content)
    for path in entries(folder, "*.json"):
        if path.stem not in tables:
            path.unlink()
