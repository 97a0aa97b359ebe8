"""What commands print: lines, tables, and the progress of long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from toptail.errors import printable

if TYPE_CHECKING:
    from toptail.report.table import Table


def print_table(table: Table) -> None:
    """Print a table of the report; details stand below their cells, each line on its own."""
    from rich.table import Table as Grid

    grid = Grid(title=plain(f"{table.title} ({table.name})"), title_justify="left")
    for column in table.columns:
        side: Any = "right" if column.kind == "number" else "left"
        grid.add_column(plain(column.label), justify=side)
    for row in table.rows:
        cells = [(plain(c.text), "\n".join(map(plain, c.detail.splitlines()))) for c in row]
        grid.add_row(*(f"{text}\n[dim]{more}[/]" if more else text for text, more in cells))
    show(grid)


def say(text: object) -> None:
    """Print lines with control characters escaped."""
    print(*map(printable, str(text).split("\n")), sep="\n")


def plain(text: object) -> str:
    """A text with control characters and rich's markup escaped."""
    from rich.markup import escape

    return escape(printable(str(text or "")))


def simple_grid() -> Any:
    """An empty table with a bold heading and one line below it."""
    from rich import box
    from rich.table import Table as Grid

    return Grid(box=box.SIMPLE, header_style="bold")


def table_with(*headers: str) -> Any:
    """A table of text with these column titles, the first column never wrapped."""
    table = simple_grid()
    for header in headers:
        table.add_column(header, overflow="fold", no_wrap=not table.columns)
    return table


def show(what: Any, width: int = 140) -> None:
    """Print a table or a line; ``width`` is used where the output is not a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = width
    if isinstance(what, str):
        console.print(printable(what), soft_wrap=True, markup=False)
    else:
        console.print(what)


SECONDS: Final = 5.0
"""Time between two plain lines, at least; a command that is done sooner prints none."""


class ProgressTick(Protocol):
    """A :data:`toptail.progress.Tick` that can be told to show something at once."""

    def __call__(self, stage: str, share: float, *, now: bool = False) -> None: ...


@contextmanager
def progress_bar(*, lines: bool = True) -> Iterator[ProgressTick]:
    """One bar for all stages of a command, each of which starts it again.

    Elsewhere than on a terminal, a plain line every few seconds, unless the command writes its own.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Left
    from rich.table import Column

    console = Console(stderr=True)
    hidden = not console.is_terminal
    if lines and hidden:
        yield _plain_lines()
        return
    text = TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold"))
    columns = text, BarColumn(20), TaskProgressColumn(), Elapsed(), Left()
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=1.0)
        shown = 0.0

        def tick(stage: str, share: float, *, now: bool = False) -> None:
            nonlocal shown
            del now
            if share < shown:  # another stage, which takes its own time
                bar.reset(task)
            shown = share
            bar.update(task, description=stage, completed=share)

        yield tick


def _plain_lines() -> ProgressTick:
    """Progress as lines on stderr: the stage, its share and the time since the command began."""
    last = began = time.monotonic()

    def tick(stage: str, share: float, *, now: bool = False) -> None:
        nonlocal last
        if now or time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            line = printable(f"{stage}: {share:.0%} · {last - began:,.0f} s")
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    return tick
