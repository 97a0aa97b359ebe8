"""The progress bars of long commands: on a terminal only, with the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toptail.progress import Tick

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


@contextmanager
def bars(*amounts: ProgressColumn, transient: bool = False) -> Iterator[Progress]:
    """Bars that say in these columns how much is done; nothing is shown elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), *amounts, TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=transient, disable=hidden) as shown:
        yield shown


@contextmanager
def progress_bar() -> Iterator[Tick]:
    """One bar for all stages of a command, each of which starts it again."""
    from rich.progress import TaskProgressColumn, TimeElapsedColumn

    with bars(TaskProgressColumn(), TimeElapsedColumn(), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        shown = 0.0

        def tick(stage: str, share: float) -> None:
            nonlocal shown
            if share < shown:  # another stage, which takes its own time
                bar.reset(task)
            shown = share
            bar.update(task, description=stage, completed=share)

        yield tick
