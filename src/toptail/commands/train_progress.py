"""The progress of ``toptail train``: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from toptail.commands.progress import Lines

if TYPE_CHECKING:
    from toptail.lab.training.session import BatchProgress, Watch

SHOWN = {
    "loss": "loss",
    "logit_gap": "gap",
    "phi_norm": "‖φ‖",
    "psi_norm": "‖ψ‖",
    "tau": "tau",
    "auc": "AUC",
}
"""Scalars of the progress bar, and their names there."""

SPEED_SECONDS = 600.0
"""Seconds that the speed is averaged over: a chunk of steps may take a minute."""


class Speed(ProgressColumn):
    """Steps per second of a batch of runs."""

    def render(self, task: Task) -> Text:
        """The speed, or the stage before there is one."""
        if task.speed is None:
            return Text(f"{task.fields['stage']} …")
        count = task.fields["seeds"]
        seeds = f"{count} seeds" if count > 1 else "1 seed"
        return Text(f"{task.speed:,.{1 if task.speed < 10 else 0}f} steps/s × {seeds}")


class BatchBars:
    """One progress bar per batch of runs."""

    def __init__(self) -> None:
        self.speed, self.left = Speed(), TimeRemainingColumn()
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}", justify="right"),
            self.speed,
            self.left,
            speed_estimate_period=SPEED_SECONDS,
        )
        self._ids: dict[tuple[str, tuple[int, ...]], TaskID] = {}

    def update(self, at: BatchProgress) -> Task:
        """Update the bar of a batch."""
        key, seeds = (at.critic, at.seeds), len(at.seeds)
        if key not in self._ids:
            self._ids[key] = self.bars.add_task(
                at.critic, total=at.steps, completed=at.step, stage=at.stage, seeds=seeds
            )
        self.bars.update(self._ids[key], completed=at.step, stage=at.stage)
        (task,) = (task for task in self.bars.tasks if task.id == self._ids[key])
        return task

    def line(self, at: BatchProgress) -> str:
        """The progress of a batch in one line."""
        task = self.update(at)
        pace = f"{self.speed.render(task)}, {self.left.render(task)} left"
        parts = (f"{at.critic} {at.step:,}/{at.steps:,} steps", pace, numbers(at))
        return " · ".join(part for part in parts if part)


def numbers(at: BatchProgress) -> str:
    """The newest scalars, means over the seeds where they are finite."""
    parts = []
    for name, label in SHOWN.items():
        values = [line[name] for line in at.lines.values() if name in line]
        finite = [value for value in values if value is not None]
        if values:
            parts.append(f"{label} {sum(finite) / len(finite):.3g}" if finite else f"{label} –")
    return " · ".join(parts)


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar per batch and the newest numbers on a terminal.

    Elsewhere a line when a batch begins, at every checkpoint, and every few seconds.
    """
    console, bars = Console(stderr=True), BatchBars()
    if not console.is_terminal:
        lines = Lines()

        def write(at: BatchProgress) -> None:
            bars.update(at)
            if at.stage == "compiling" or at.stored or lines.due():
                lines.write(bars.line(at))

        yield write
        return
    with Live(Group(bars.bars), console=console, refresh_per_second=4) as live:

        def show(at: BatchProgress) -> None:
            bars.update(at)
            live.update(Group(bars.bars, numbers(at)))

        yield show
