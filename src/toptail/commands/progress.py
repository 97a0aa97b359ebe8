"""The progress bar of long commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toptail.progress import Tick


@contextmanager
def progress_bar() -> Iterator[Tick]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("starting", total=1.0)

        def tick(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=share)

        yield tick
