"""Tables on the terminal."""

from __future__ import annotations

from typing import Any

from toptail.report.table import Table


def print_table(table: Table) -> None:
    """Print a table of the report on the terminal."""
    from rich.table import Table as Grid

    grid = Grid(title=f"{table.title} ({table.name})", title_justify="left")
    for column in table.columns:
        grid.add_column(column.label, justify="left" if column.kind == "name" else "right")
    for row in table.rows:
        grid.add_row(*(f"{c.text}\n[dim]{c.detail}[/]" if c.detail else c.text for c in row))
    show(grid)


def simple_grid() -> Any:
    """An empty table with no more lines than one below its bold head."""
    from rich import box
    from rich.table import Table as Grid

    return Grid(box=box.SIMPLE, header_style="bold")


def show(what: Any, width: int = 140) -> None:
    """Print a table or a line; ``width`` columns are for a pipe, which has none of its own."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = width
    console.print(what, soft_wrap=isinstance(what, str))
