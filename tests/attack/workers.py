"""Several processes that share the attacks: each begins with its part, then helps with the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.attack.forks import ROOT
from tests.attack.state import State
from tests.attack.turns import Turns

WEIGHTS: Final[Mapping[str, int]] = {
    "crash": 5,
    "fuzz": 2,
    "cli": 2,
    "names": 2,
    "server": 1,
    "faults": 3,
}
"""How many workers begin with a part, in proportion: about what its attacks take."""
GRACE: Final = 15.0
"""Seconds that attacks have to end in when time is up."""


def taken(folder: Path, part: str) -> Path:
    """The file in which a part's turns are written down."""
    return folder / part / "taken"


def work(
    folder: Path, part: str, seconds: float | None, worker: int = 0, share: tuple[int, int] = (0, 1)
) -> State:
    """Attack in this process, with folders of its own to do it in."""
    module: Any = import_module(f"tests.attack.{part}")
    state = State(folder, part, worker)
    module.attack(state, folder / "work" / str(worker), Turns(taken(folder, part), seconds, share))
    state.save()
    return state


def route(worker: int, workers: int, parts: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
    """The parts in the order in which a worker makes them, and its share of each."""
    firsts = [_first(number, workers, parts) for number in range(workers)]
    at = parts.index(firsts[worker])
    route = []
    for part in [*parts[at:], *parts[:at]]:
        mates = [number for number in range(workers) if firsts[number] == part]
        place = mates.index(worker) if worker in mates else worker
        route.append((part, (place % max(len(mates), 1), max(len(mates), 1))))
    return route


def _first(worker: int, workers: int, parts: Sequence[str]) -> str:
    """The part that a worker begins with."""
    places = [part for part in parts for _ in range(WEIGHTS[part])]
    return places[worker * len(places) // workers]


def work_together(
    folder: Path, parts: Sequence[str], workers: int, seconds: float | None = None
) -> bool:
    """Start so many workers and wait for them; those that overstay their time are ended.

    Returns whether none of them failed.
    """
    end = None if seconds is None else time.monotonic() + seconds
    line = [sys.executable, "-m", "tests.attack", *parts, "--state", str(folder)]
    line += ["--workers", str(workers)]
    line += [] if seconds is None else ["--seconds", str(seconds)]
    started = [
        subprocess.Popen([*line, "--worker", str(n)], cwd=ROOT, start_new_session=True)
        for n in range(workers)
    ]
    try:
        for process in started:
            left = None if end is None else max(end + GRACE - time.monotonic(), 0.0)
            with suppress(subprocess.TimeoutExpired):
                process.wait(left)
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return all(process.returncode in (0, -signal.SIGKILL) for process in started)
