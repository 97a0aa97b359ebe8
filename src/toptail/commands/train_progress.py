"""The progress of ``toptail train``: a bar on a terminal, a line per checkpoint elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from toptail.lab.training.group import Tick, Watch

SHOWN = {"loss": "loss", "logit_gap": "gap", "phi_norm": "‖φ‖", "psi_norm": "‖ψ‖", "tau": "tau"}
"""Scalars of the progress bar, and what it calls them."""


class Clock:
    """Steps per second and time left of the group that is training."""

    def __init__(self) -> None:
        self.began, self.first = time.monotonic(), 0

    def restart(self, step: int) -> None:
        """Count from here."""
        self.began, self.first = time.monotonic(), step

    def text(self, tick: Tick) -> str:
        """Say how fast it goes and how long it will take."""
        rate = (tick.step - self.first) / max(time.monotonic() - self.began, 1e-9)
        left = int((tick.steps - tick.step) / rate) if rate > 0 else 0
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        time_left = f"{hours}:{minutes:02}:{seconds:02} left"
        seeds = f"{len(tick.seeds)} seeds" if len(tick.seeds) > 1 else "1 seed"
        return f"{rate:,.{1 if rate < 10 else 0}f} steps/s × {seeds}, {time_left}"


def numbers(tick: Tick) -> str:
    """The newest scalars, means over the seeds where they are finite."""
    parts = []
    for name, label in SHOWN.items():
        values = [line[name] for line in tick.lines.values() if name in line]
        finite = [value for value in values if value is not None]
        if values:
            parts.append(f"{label} {sum(finite) / len(finite):.3g}" if finite else f"{label} –")
    return " · ".join(parts)


@contextmanager
def progress() -> Iterator[Watch]:
    """A progress bar on a terminal; elsewhere one line per checkpoint."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    with _bars(console) as watch:
        yield watch


def _lines() -> Watch:
    clock = Clock()

    def watch(tick: Tick) -> None:
        if not tick.lines:
            clock.restart(tick.step)
        elif tick.stored:
            done = f"{tick.critic} {tick.step:,}/{tick.steps:,} steps"
            sys.stderr.write(f"{done} · {clock.text(tick)} · {numbers(tick)}\n")
            sys.stderr.flush()

    return watch


@contextmanager
def _bars(console: Console) -> Iterator[Watch]:
    """One bar per group, and below them the numbers of the one that is training."""
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn

    clock = Clock()
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}", justify="right"),
        TextColumn("{task.fields[speed]}"),
    )
    tasks: dict[tuple[str, tuple[int, ...]], Any] = {}
    with Live(Group(bars), console=console, refresh_per_second=4) as live:

        def watch(tick: Tick) -> None:
            key = (tick.critic, tick.seeds)
            if key not in tasks:
                tasks[key] = bars.add_task(tick.critic, total=tick.steps, speed="")
            if not tick.lines:
                clock.restart(tick.step)
            speed = clock.text(tick) if tick.lines else f"{tick.stage} …"
            bars.update(tasks[key], completed=tick.step, speed=speed)
            live.update(Group(bars, numbers(tick)))

        yield watch
