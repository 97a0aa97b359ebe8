"""The progress bar of long commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toptail.progress import Tick


@contextmanager
def progress_bar() -> Iterator[Tick]:
    """Show a progress bar with the time left on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("starting", total=1.0)
        shown = 0.0

        def tick(stage: str, share: float) -> None:
            nonlocal shown
            if share < shown:  # another stage, which takes its own time
                bar.reset(task)
            shown = share
            bar.update(task, description=stage, completed=share)

        yield tick
