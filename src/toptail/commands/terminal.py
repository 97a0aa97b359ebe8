"""Tables on the terminal."""

from __future__ import annotations

from typing import Any

from toptail.errors import printable
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
    """Print lines, without what would steer a terminal."""
    print(*map(printable, str(text).split("\n")), sep="\n")


def plain(text: object) -> str:
    """A text that a table shows as it is: no controls of terminals, no marks for colours."""
    from rich.markup import escape

    return escape(printable(str(text or "")))


def simple_grid() -> Any:
    """An empty table with no more lines than one below its bold head."""
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
    """Print a table or a line; ``width`` columns are for a pipe, which has none of its own."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = width
    if isinstance(what, str):
        console.print(printable(what), soft_wrap=True, markup=False)
    else:
        console.print(what)
