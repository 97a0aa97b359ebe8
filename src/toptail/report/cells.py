"""Cells of the report's tables, from the numbers of ``audit.json``; null reads as ``n/a``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toptail.report.table import Cell
from toptail.report.text import (
    MISSING_SHORT,
    bracket,
    count,
    k_word,
    number,
    one_line,
    p_value,
    signed,
)


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
    names = ("captured", "captured_low", "captured_high")
    for cell in curve_cells(scorer, names, 2, start=1):
        share = cell.key if isinstance(cell.key, float | int) else None
        tint = None if share is None else min(1.0, max(0.0, share))
        yield replace(cell, share=tint)
