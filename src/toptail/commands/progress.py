"""The progress of long commands: bars with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from toptail.errors import printable
from toptail.progress import Tick

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

SECONDS: Final = 5.0
"""Time between two plain lines, at least; a command that is done sooner prints none."""


class Lines:
    """Plain lines on stderr, one in a few seconds: for logs, pipes and whoever waits there."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether a few seconds have passed since the last line."""
        return time.monotonic() - self._last >= SECONDS

    def write(self, line: str) -> None:
        """Write a line at once."""
        self._last = time.monotonic()
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()


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
def progress_bar(*, lines: bool = True) -> Iterator[Tick]:
    """One bar for all stages of a command, each of which starts it again.

    Elsewhere than on a terminal, a plain line every few seconds, unless the command writes its own.
    """
    from rich.console import Console
    from rich.progress import TaskProgressColumn, TimeElapsedColumn

    if lines and not Console(stderr=True).is_terminal:
        yield _plain_lines()
        return
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


def _plain_lines() -> Tick:
    """Progress as lines: the stage, its share and the time since the command began."""
    lines, began = Lines(), time.monotonic()

    def tick(stage: str, share: float) -> None:
        if lines.due():
            lines.write(f"{stage}: {share:.0%} · {time.monotonic() - began:,.0f} s")

    return tick
