"""The table every benchmark prints."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toptail.stats.resample import available_threads


@dataclass(frozen=True)
class Row:
    """One line of a benchmark."""

    what: str
    """What was measured."""
    result: str
    """The number, with its unit."""
    against: str
    """The other side, measured in the same run, or how it was measured."""


def machine() -> str:
    """The processor and how many of its cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name}, {available_threads()} cores, Python {platform.python_version()}"


def print_rows(title: str, rows: Iterable[Row]) -> None:
    """Print rows as they come, then nothing more: what was printed is the result."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold]{title}[/bold]  ({machine()})")
    for row in rows:
        console.print(f"  {row.what}: [bold]{row.result}[/bold]  [dim]{row.against}[/dim]")
