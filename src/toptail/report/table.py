"""The one table type of every page and document, and the cells that fill it.

A table holds plain text. The page, Markdown, LaTeX and the terminal each render it in their own
way. Numbers come from ``audit.json`` and its like; null is shown as ``n/a``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from toptail.report import text
from toptail.report.text import MISSING_SHORT, Ends

_CAPTURED: Final = ("captured", "captured_low", "captured_high")


Kind = Literal["name", "word", "number", "prose"]
"""Kind of a column, which decides its alignment and wrapping; a ``name`` heads its row."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    label: str
    """Heading, plain text."""
    kind: Kind = "number"


def numbers(*labels: str) -> tuple[Column, ...]:
    return tuple(Column(label) for label in labels)


def words(*labels: str) -> tuple[Column, ...]:
    return tuple(Column(label, "word") for label in labels)


@dataclass(frozen=True)
class Whisker:
    """A number's interval as a small drawing; positions are shares of the drawing's width."""

    low: float
    value: float
    high: float
    zero: float
    """Position of zero, which is marked."""
    limit: float
    """Position of the largest tolerated loss, which is marked."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    text: str
    """What the reader sees, plain text."""
    detail: str = ""
    """An interval or remark that belongs to the text, in smaller type; may have several lines."""
    key: float | str | None = None
    """The raw number (or word) by which the page sorts the column."""
    status: str = ""
    """The status of a verdict or check, which the page marks by colour and icon."""
    share: float | None = None
    """A share between 0 and 1 by which the page tints the cell."""
    whisker: Whisker | None = None
    """The number's interval, which the page draws beside it."""
    kind: Kind = "number"
    """The kind of its column, where :meth:`Table.of` makes the columns."""

    @property
    def plain(self) -> str:
        """Text and detail on one line."""
        return ", ".join(f"{self.text} {self.detail}".strip().splitlines())


@dataclass(frozen=True)
class Table:
    """A captioned table; every row has one cell for each column."""

    name: str
    """Identifier: the LaTeX label and the page's anchor."""
    title: str
    """A few words, the heading."""
    caption: str
    """How to read it, in a sentence or two."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    stacked: bool = False
    """Set details below what they belong to: for tables with many columns."""

    @classmethod
    def of(
        cls, name: str, title: str, caption: str, rows: Iterable[Mapping[str, Cell]], **how: bool
    ) -> Table:
        """The table whose rows map each heading to its cell; ``how``: ``stacked``."""
        lines = list(rows)
        first = lines[0].items() if lines else ()
        columns = tuple(Column(label, cell.kind) for label, cell in first)
        return cls(name, title, caption, columns, tuple(tuple(x.values()) for x in lines), **how)

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name!r} has a row that does not fit its columns")

    def without_first(self) -> Table:
        """The same table without its first column, which repeats the heading above it."""
        return replace(self, columns=self.columns[1:], rows=tuple(row[1:] for row in self.rows))


def name_cell(name: object, detail: str = "", kind: Kind = "name") -> Cell:
    return Cell(text.one_line(name), detail, key=text.one_line(name).casefold(), kind=kind)


def text_cell(words: str, detail: str = "", kind: Kind = "word") -> Cell:
    return Cell(words, detail, kind=kind)


def number_cell(
    x: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    decimals: int = 2,
    sign: bool = False,
) -> Cell:
    """A number, with its interval if it has one; a difference is written with its sign."""
    write = text.signed if sign else text.number
    detail = "" if x is None else text.bracket(low, high, decimals)
    return Cell(write(x, decimals, MISSING_SHORT), detail, key=x)


def interval_cell(
    entry: Mapping[str, Any] | None, part: str = "mean", decimals: int = 2, *, sign: bool = False
) -> Cell:
    """A number of a stored entry with its interval: its ``part``, ``low`` and ``high``."""
    ends = ((entry or {}).get(name) for name in (part, "low", "high"))
    return number_cell(*ends, decimals=decimals, sign=sign)


def count_cell(n: float | None) -> Cell:
    return Cell(MISSING_SHORT if n is None else text.count(n), key=n)


def k_cell(k: int | None, missing: str = "none") -> Cell:
    """A K of a verdict, such as ``k_safe_max``, or the word for none."""
    return Cell(text.k_word(k, missing), key=k)


def p_cell(p: float | None) -> Cell:
    return Cell(text.p_value(p), key=p)


def status_cell(status: str, detail: str = "") -> Cell:
    """The status of a verdict or check."""
    return Cell(status, detail, key=status, status=status, kind="word")


def curve_cells(
    record: Mapping[str, Any], names: Sequence[str], decimals: int, start: int = 0
) -> Iterable[Cell]:
    """One cell for each K, from the lists with these names (value, low, high)."""
    lists = [record[name][start:] for name in names]
    return (number_cell(*entries, decimals=decimals) for entries in zip(*lists, strict=True))


def captured_cells(scorer: Mapping[str, Any]) -> Iterable[Cell]:
    """Captured share at each K above 1 (at K = 1 there is nothing to capture)."""
    for cell in curve_cells(scorer, _CAPTURED, 2, start=1):
        share = cell.key if isinstance(cell.key, float | int) else None
        yield replace(cell, share=None if share is None else min(1.0, max(0.0, share)))


def drawn_cells(shares: Sequence[Ends], rho: float | None, *, sign: bool = False) -> list[Cell]:
    """Shares of the headroom with drawn intervals, on one axis with marks at zero and at -rho."""
    limit = -(rho or 0.0)
    shown = [0.0, limit, *(x for ends in shares for x in ends if x is not None)]
    start, width = min(shown), (max(shown) - min(shown)) or 1.0
    cells = []
    for value, low, high in shares:
        cell = number_cell(value, low, high, sign=sign)
        if value is not None and low is not None and high is not None:
            places = ((x - start) / width for x in (low, value, high, 0.0, limit))
            cell = replace(cell, whisker=Whisker(*places))
        cells.append(cell)
    return cells
