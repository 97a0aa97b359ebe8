"""A job: one part of a long command, which can be run by itself and at most once at a time."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from toptail.errors import BusyError, InputError, NotDoneError
from toptail.io.locks import is_locked, locked

State = Literal["done", "running", "missing"]

PATIENCE: Final = 600.0
"""Seconds that a worker waits for another process that runs its job, and may have been killed."""


@dataclass(frozen=True)
class Resources:
    """What a job uses while it runs."""

    cpus: float = 1.0
    gpus: float = 0.0


ONE_CORE: Final = Resources()


@dataclass(frozen=True)
class Job:
    """One part of a command. Running it again, or elsewhere, leaves the same files."""

    name: str
    """Its name in lists and progress, unique in its command."""
    content: Mapping[str, Any]
    """All settings that decide the result, as JSON; hashed into the `id`."""
    home: Path
    """Folder of the command's results, where the lock of the job lies."""
    outputs: Sequence[Path]
    """Files and folders that it leaves."""
    work: Callable[[], object]
    """Does the work; results that exist are not computed again."""
    done: Callable[[], bool] | None = None
    """Whether the results exist; None where that cannot be seen, so that a marker file is left."""
    needs: Sequence[str] = ()
    """Ids of the jobs that must be done before."""
    resources: Resources = ONE_CORE
    last: bool = False
    """Whether it puts together what the others left; the process of the command runs it itself."""

    @property
    def id(self) -> str:
        """Hash of the name and of what decides the result."""
        text = json.dumps([self.name, self.content], sort_keys=True, allow_nan=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def lock(self) -> Path:
        """The lock that a running job holds."""
        return self.home / ".jobs" / f"{self.id}.lock"

    def is_done(self) -> bool:
        if self.done is not None:
            return self.done()
        marker = self.lock.with_suffix(".done")
        return marker.is_file() and all(path.exists() for path in self.outputs)

    def state(self) -> State:
        """Whether it is done, running somewhere, or missing."""
        if self.is_done():
            return "done"
        return "running" if is_locked(self.lock) else "missing"

    def run(self) -> bool:
        """Run it unless it is done; returns whether there was something to do."""
        busy = f"The job {self.name} ({self.id}) is run by another process: try later."
        with locked(self.lock, busy):
            if self.is_done():
                return False
            self.work()
            missing = [path for path in self.outputs if not path.exists()]
            if self.done is None and missing:
                raise NotDoneError(f"{self.name} ({self.id}) left no {missing[0]}.")
            if self.done is None:
                self.lock.with_suffix(".done").touch()
            return True

    def run_when_free(self, patience: float = PATIENCE) -> bool:
        """`run`, after another process that runs the job has ended."""
        end = time.monotonic() + patience
        while True:
            try:
                return self.run()
            except BusyError:
                if time.monotonic() > end:
                    raise
                time.sleep(1.0)

    def line(self, command: Sequence[str]) -> str:
        """The job as one line of JSON; ``command`` runs it."""
        return json.dumps(
            {
                "id": self.id,
                "name": self.name,
                "state": self.state(),
                "needs": list(self.needs),
                "outputs": [str(path) for path in self.outputs],
                "resources": vars(self.resources),
                "command": list(command),
            }
        )


def find_job(jobs: Sequence[Job], identity: str) -> Job:
    """The job of an id, or of its beginning; the jobs that it needs must be done."""
    found = [job for job in jobs if identity and job.id.startswith(identity)]
    if len(found) != 1:
        raise InputError(
            f"The command has {len(found) or 'no'} jobs whose id begins with '{identity}'; its "
            "settings or inputs may have changed: list its jobs again with --list-jobs."
        )
    (job,) = found
    missing = [each for each in jobs if each.id in job.needs and not each.is_done()]
    if missing:
        raise NotDoneError(
            f"{job.name} ({job.id}) needs {len(missing)} jobs that are not done yet, such as "
            f"{missing[0].name} ({missing[0].id}); run those first."
        )
    return job
