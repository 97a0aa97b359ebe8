"""A table before it is Markdown, LaTeX or HTML: one content, three renderers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    label: str
    """Heading, plain text."""
    kind: Literal["name", "word", "number", "prose"] = "number"
    """Decides alignment and wrapping; ``name`` heads its row."""


def numbers(*labels: str) -> tuple[Column, ...]:
    """Columns of numbers with these headings."""
    return tuple(Column(label) for label in labels)


@dataclass(frozen=True)
class Whisker:
    """A number's interval as a small drawing; places are shares of the drawing's width."""

    low: float
    """Where the interval begins."""
    value: float
    """Where the number lies."""
    high: float
    """Where the interval ends."""
    zero: float
    """Where zero is marked."""
    limit: float
    """Where the largest loss that is put up with is marked."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    text: str
    """What the reader sees, plain text."""
    detail: str = ""
    """An interval or remark that belongs to the text and may be set smaller."""
    key: float | str | None = None
    """The raw number (or word) by which the page sorts the column."""
    status: str = ""
    """A verdict's or check's word where the cell shows one; the page marks it."""
    share: float | None = None
    """A share between 0 and 1 by which the page tints the cell."""
    whisker: Whisker | None = None
    """The number's interval, which the page draws beside it."""

    @property
    def plain(self) -> str:
        """Text and detail on one line."""
        return f"{self.text} {self.detail}".strip()


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
    over_k: bool = False
    """One column for each K: may be split where a page is too narrow."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name!r} has a row that does not fit its columns")

    def without_first(self) -> Table:
        """The same without its first column: for where a heading says what that would."""
        return replace(self, columns=self.columns[1:], rows=tuple(row[1:] for row in self.rows))

    def blocks(self, width: int) -> Iterator[Table]:
        """Split into tables of at most ``width`` columns beside the first, which repeats."""
        for start in range(1, len(self.columns), width):
            pick = slice(start, start + width)
            yield replace(
                self,
                columns=(self.columns[0], *self.columns[pick]),
                rows=tuple((row[0], *row[pick]) for row in self.rows),
            )
