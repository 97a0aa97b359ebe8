"""Cells of the report's tables, from the numbers of ``audit.json``; null reads as ``n/a``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toptail.report.table import Cell, Whisker
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    bracket,
    count,
    k_word,
    last,
    number,
    one_line,
    p_value,
    signed,
)

_CAPTURED: Final = ("captured", "captured_low", "captured_high")


def name_cell(name: object) -> Cell:
    """The name of a scorer, selector or group."""
    return Cell(one_line(name), key=one_line(name).casefold())


def number_cell(
    x: float | None, low: float | None = None, high: float | None = None, *, decimals: int = 2
) -> Cell:
    """A number, with its interval where it has one."""
    detail = "" if x is None else bracket(low, high, decimals)
    return Cell(number(x, decimals, MISSING_SHORT), detail, key=x)


def difference_cell(x: float | None, low: float | None, high: float | None, decimals: int) -> Cell:
    """A difference, with its sign and interval."""
    cell = number_cell(x, low, high, decimals=decimals)
    return replace(cell, text=signed(x, decimals, MISSING_SHORT))


def count_cell(n: float | None) -> Cell:
    """A whole number."""
    return Cell(MISSING_SHORT if n is None else count(n), key=n)


def k_cell(k: int | None, missing: str = "none") -> Cell:
    """One of a verdict's K."""
    return Cell(k_word(k, missing), key=k)


def p_cell(p: float | None) -> Cell:
    """A p-value."""
    return Cell(p_value(p), key=p)


def status_cell(status: str) -> Cell:
    """The word of a verdict or a check."""
    return Cell(status, key=status, status=status)


def summary_cell(summary: Mapping[str, Any] | None, decimals: int = 2) -> Cell:
    """A mean with its interval, from ``{"mean", "low", "high"}``."""
    summary = summary or {}
    return number_cell(*(summary.get(part) for part in ("mean", "low", "high")), decimals=decimals)


def curve_cells(
    record: Mapping[str, Any], names: Sequence[str], decimals: int, start: int = 0
) -> Iterable[Cell]:
    """One cell for each K from the lists called (value, low, high)."""
    lists = [record[name][start:] for name in names]
    return (number_cell(*entries, decimals=decimals) for entries in zip(*lists, strict=True))


def captured_cells(scorer: Mapping[str, Any]) -> Iterable[Cell]:
    """Captured share at each K above 1 (at K = 1 there is nothing to capture)."""
    for cell in curve_cells(scorer, _CAPTURED, 2, start=1):
        share = cell.key if isinstance(cell.key, float | int) else None
        tint = None if share is None else min(1.0, max(0.0, share))
        yield replace(cell, share=tint)


Ends = tuple[float | None, float | None, float | None]
"""A number and the ends of its interval."""


def has_gains(audit: Audit) -> bool:
    """Whether gains over headroom are stored, which they were not from the beginning."""
    scorers = audit.get("scorers") or {}
    return bool(scorers) and all("gain" in scorer for scorer in scorers.values())


def captured_at_end(scorer: Mapping[str, Any]) -> Ends:
    """The captured share at the largest K, with the ends behind the verdict where there are any."""
    names = ("value", "low", "high") if "gain" in scorer else _CAPTURED
    lists = scorer.get("gain", scorer)
    value, low, high = (last(lists.get(name)) for name in names)
    return value, low, high


def drawn_cells(
    shares: Sequence[Ends], rho: float | None, make: Callable[..., Cell] = number_cell
) -> list[Cell]:
    """Shares of the headroom with intervals, on one axis with zero and the loss put up with."""
    limit = -(rho or 0.0)
    shown = [0.0, limit, *(x for ends in shares for x in ends if x is not None)]
    start, width = min(shown), (max(shown) - min(shown)) or 1.0

    def cell(value: float | None, low: float | None, high: float | None) -> Cell:
        cell = make(value, low, high, decimals=2)
        if value is None or low is None or high is None:
            return cell
        places = ((x - start) / width for x in (low, value, high, 0.0, limit))
        return replace(cell, whisker=Whisker(*places))

    return [cell(*ends) for ends in shares]
