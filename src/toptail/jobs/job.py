"""A piece of a long command: what decides it, what it leaves, and whether that is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from toptail.errors import InputError, NotDoneError
from toptail.io.locks import is_locked, locked

State = Literal["done", "running", "missing"]


@dataclass(frozen=True)
class Resources:
    """What a piece takes while it is done."""

    cpus: float = 1.0
    """Cores."""
    gpus: float = 0.0
    """Accelerators."""


ONE_CORE: Final = Resources()
"""What most pieces take."""


@dataclass(frozen=True)
class Job:
    """One piece: whoever does it, and however often, the same files come of it."""

    name: str
    """What a person calls it, unique in its command."""
    content: Mapping[str, Any]
    """All that decides it, as JSON has it."""
    home: Path
    """The folder of its command's results, where its lock lies."""
    outputs: Sequence[Path]
    """Files and folders that it leaves."""
    work: Callable[[], object]
    """Does it; what is there already is not made again."""
    finished: Callable[[], bool] | None = None
    """Whether all that it leaves is there, where that can be seen; else a mark is left."""
    inputs: Sequence[str] = ()
    """Files, folders and data sets that it reads."""
    needs: Sequence[str] = ()
    """Identities of pieces that must be done before."""
    resources: Resources = ONE_CORE
    """What it takes."""
    last: bool = False
    """Whether it puts together what the others left: that is for whoever gave the command."""

    @property
    def id(self) -> str:
        """Its identity: a hash of its name and of what decides it."""
        text = json.dumps([self.name, self.content], sort_keys=True, allow_nan=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def lock(self) -> Path:
        """The lock of whoever does it."""
        return self.home / ".jobs" / f"{self.id}.lock"

    @property
    def _mark(self) -> Path:
        return self.lock.with_suffix(".done")

    def is_done(self) -> bool:
        """Whether there is nothing to do."""
        if self.finished is not None:
            return self.finished()
        return self._mark.is_file() and all(path.exists() for path in self.outputs)

    def state(self) -> State:
        """How it stands."""
        if self.is_done():
            return "done"
        return "running" if is_locked(self.lock) else "missing"

    def run(self) -> bool:
        """Do it unless it is done; whether there was something to do."""
        busy = f"The piece {self.name} ({self.id}) is being done by another process: try later."
        with locked(self.lock, busy):
            if self.is_done():
                return False
            self.work()
            if self.finished is None:
                self._mark.touch()
            return True

    def line(self, command: Sequence[str]) -> str:
        """The piece as one line of JSON; ``command`` are the words that it is a piece of."""
        return json.dumps(
            {
                "id": self.id,
                "name": self.name,
                "state": self.state(),
                "needs": list(self.needs),
                "inputs": list(self.inputs),
                "outputs": [str(path) for path in self.outputs],
                "resources": vars(self.resources),
                "command": list(command),
            }
        )


def find_job(jobs: Sequence[Job], identity: str) -> Job:
    """The piece of an identity, among those that a command has now; what it needs must be done."""
    for job in jobs:
        if job.id == identity:
            open_ones = [each for each in jobs if each.id in job.needs and not each.is_done()]
            if open_ones:
                raise NotDoneError(
                    f"{job.name} ({job.id}) needs {len(open_ones)} pieces that are not done yet, "
                    f"such as {open_ones[0].name} ({open_ones[0].id}); do those first."
                )
            return job
    raise InputError(
        f"The command has no piece {identity} any more: its settings or inputs have changed since "
        "they were listed; list its pieces again."
    )
