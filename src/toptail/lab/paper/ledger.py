"""The claim ledger: what the paper says, and what the stored tables say about it.

A claim carries the paper's sentence and a function that decides it from stored tables and from
nothing else, so that every entry can be decided again, by a test or by a reader. The criterion
behind each word ("near-zero", "most", "comparable") stands in the entry's comment. A claim whose
tables were not made by a run is left open rather than decided.

An entry of ``claims.json`` has the keys id, sentence, where, status ("seen", "not seen" or
"depends": it holds in part of the cases it speaks of), number, interval, run and comment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

Status = Literal["seen", "not seen", "depends"]
Interval = tuple[float, float]
Tables = Mapping[str, Mapping[str, Any]]
"""Stored results by name: ``tables/NAME.json`` as NAME, and curves, theory and landscape."""


class NotMeasuredError(LookupError):
    """The stored tables do not hold what a claim needs."""


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


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the function that decides it."""

    id: str
    """Short stable name."""
    sentence: str
    """The paper's statement, quoted or closely paraphrased."""
    where: str
    """Section, table or figure label in the paper."""
    decide: Callable[[Tables], Finding]
    """Pure function of the stored tables; raises `NotMeasuredError` where they do not suffice."""


@dataclass(frozen=True)
class Measured:
    """One cell of a stored table."""

    mean: float
    """Mean over seeds."""
    std: float
    """Standard deviation over seeds (ddof 1)."""
    seeds: Mapping[str, float]
    """The value of each seed."""

    def interval(self) -> Interval | None:
        """Student-t interval of the mean over seeds; None for a single seed."""
        return seed_interval(self.seeds.values())

    def share(self) -> Interval | None:
        """As `interval`, cut at 0 and 1."""
        ends = self.interval()
        return None if ends is None else (max(0.0, ends[0]), min(1.0, ends[1]))

    def minus(self, other: Measured) -> Measured:
        """Paired difference over the seeds that both have."""
        pairs = {s: v - other.seeds[s] for s, v in self.seeds.items() if s in other.seeds}
        return from_seeds(pairs)


def from_seeds(values: Mapping[str, float]) -> Measured:
    """Mean and spread of one number per seed."""
    numbers = list(values.values())
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan
    return Measured(float(np.mean(numbers)), spread, values)


def measured(tables: Tables, name: str, task: str, critic: str, metric: str) -> Measured:
    """Look up rows → task → critic → metric of a stored table."""
    try:
        cell = tables[name]["rows"][task][critic][metric]
    except KeyError as missing:
        raise NotMeasuredError(f"{name}: {task}/{critic}/{metric}") from missing
    seeds = {seed: float(v) for seed, v in cell["seeds"].items() if v is not None}
    if cell["mean"] is None or not seeds:
        raise NotMeasuredError(f"{name}: {task}/{critic}/{metric} has no number")
    return from_seeds(seeds)


def seed_interval(values: Iterable[float]) -> Interval | None:
    """95 % Student-t interval of a mean over seeds."""
    numbers = list(values)
    n = len(numbers)
    if n < 2:
        return None
    mean = float(np.mean(numbers))
    half = float(stdtrit(n - 1, 0.975) * np.std(numbers, ddof=1) / math.sqrt(n))
    return mean - half, mean + half


def status_of(parts: Mapping[str, bool]) -> Status:
    """Seen where every part holds, not seen where none does, otherwise it depends."""
    if all(parts.values()):
        return "seen"
    return "depends" if any(parts.values()) else "not seen"


def from_parts(
    parts: Mapping[str, bool], number: float, interval: Interval | None, comment: str
) -> Finding:
    """Decide a statement about several cases and name the cases in which it fails."""
    status = status_of(parts)
    if status == "depends":
        comment += f" It does not hold for: {', '.join(k for k, v in parts.items() if not v)}."
    return Finding(status, number, interval, comment)


def decide(
    claims: Iterable[Claim], tables: Tables, run: str
) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Decide every claim the tables can decide.

    Returns
    -------
    tuple
        The entries of ``claims.json`` in the order of the claims, and the claims left open.
    """
    entries: list[dict[str, Any]] = []
    left_open: list[Claim] = []
    for claim in claims:
        try:
            finding = claim.decide(tables)
        except NotMeasuredError:
            left_open.append(claim)
            continue
        entries.append(
            {
                "id": claim.id,
                "sentence": claim.sentence,
                "where": claim.where,
                "status": finding.status,
                "number": _plain(finding.number),
                "interval": None
                if finding.interval is None
                else [_plain(end) for end in finding.interval],
                "run": run,
                "comment": finding.comment,
            }
        )
    return entries, left_open


def render_markdown(entries: Sequence[Mapping[str, Any]]) -> str:
    """Render the ledger as a Markdown table."""
    lines = [
        "| status | what the paper says | where | number | 95 % interval | how it was decided |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        interval = entry["interval"]
        cells = [
            f"**{entry['status']}**",
            entry["sentence"],
            f"`{entry['where']}`",
            _digits(entry["number"]),
            "–" if interval is None else f"[{_digits(interval[0])}, {_digits(interval[1])}]",
            entry["comment"],
        ]
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def tally(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the entries of each status."""
    found = [str(entry["status"]) for entry in entries]
    return {status: found.count(status) for status in ("seen", "depends", "not seen")}


def _plain(x: float) -> float | None:
    """A number for JSON, which knows neither NaN nor infinity."""
    return float(x) if math.isfinite(x) else None


def _digits(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
