"""Tables of a report on the terminal."""

from __future__ import annotations

import sys

from toptail.report.table import Table


def print_table(table: Table) -> None:
    """Print a table of the report on the terminal."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=f"{table.title} ({table.name})", title_justify="left")
    for column in table.columns:
        grid.add_column(column.label, justify="left" if column.kind == "name" else "right")
    for row in table.rows:
        grid.add_row(*(f"{c.text}\n[dim]{c.detail}[/]" if c.detail else c.text for c in row))
    # A pipe has no width of its own; the default of 80 columns would break every number.
    Console(width=None if sys.stdout.isatty() else 140).print(grid)
