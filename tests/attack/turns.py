"""Whose turn it is: attacks within a budget and a time, and none made by two workers."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other attacks out of a state's folder: they would work in the same places."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"Another attack is at work in {folder}.") from None
        yield


class Turns:
    """The attacks of a part that are made in this sitting.

    A file says how many are to be made, and then, a line each, which were begun. It is of one
    sitting: what was begun and not finished comes again in the next.
    """

    def __init__(self, path: Path, seconds: float | None = None, share: tuple[int, int] = (0, 1)):
        """Turns of the ``share[0]``-th of ``share[1]`` workers, for so many seconds."""
        self._path = path
        self._end = None if seconds is None else time.monotonic() + seconds
        self._share = share
        self._used_up = False

    @staticmethod
    def open(path: Path, budget: int) -> None:
        """Let so many attacks be made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{budget}\n")

    @property
    def over(self) -> bool:
        """Whether no more attacks are to be made."""
        return self._used_up or (self._end is not None and time.monotonic() > self._end)

    def first(self, what: str, attacks: Iterable[int], size: int = 1) -> int | None:
        """Begin the first of some attacks that nobody has begun; None where there is none."""
        with self._path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            budget, *begun = file.read().splitlines()
            self._used_up = sum(int(line.split("\t")[0]) for line in begun) >= int(budget)
            if self.over:
                return None
            others = {line.partition("\t")[2] for line in begun}
            at = next((n for n in attacks if f"{what}\t{n}" not in others), None)
            if at is not None:
                file.write(f"{size}\t{what}\t{at}\n")
            return at

    def begun(self, what: str) -> int:
        """How many attacks on something were begun in this sitting."""
        return self._path.read_text().count(f"\t{what}\t")

    def split(self, things: Sequence[T]) -> tuple[list[T], list[T]]:
        """What is for this worker, and what it takes up when that is done."""
        at, of = self._share
        mine = list(things[at::of])
        return mine, [thing for thing in things if thing not in mine]
