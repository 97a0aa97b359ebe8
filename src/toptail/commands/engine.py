"""Flags of commands that consist of jobs: list them, run one, or choose where all of them run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import tyro

from toptail.commands.options import Flag, program_name
from toptail.commands.progress import progress_bar
from toptail.commands.terminal import say
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.jobs.job import Job

_OWN: Final = ("--list-jobs", "--job", "--engine", "--address")


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """Where the work is done."""

    engine: Literal["local", "ray"] = "local"
    """Where the work is done: on this machine, or on a Ray cluster whose nodes see the same
    folders."""

    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT|auto")] = None
    """With --engine ray: the cluster; one is started on this machine unless given."""

    def check_engine(self) -> None:
        """Refuse an address without Ray."""
        if self.address is not None and self.engine != "ray":
            raise InputError("--address is that of a Ray cluster; give --engine ray, too.")

    def mapped(self) -> Callable[..., Iterator[Any]]:
        """``map``, or the same on the cluster."""
        self.check_engine()
        if self.engine == "local":
            return map
        from toptail.jobs.executors import ray_map

        return partial(ray_map, address=self.address)


@dataclass(frozen=True, kw_only=True)
class JobFlags(EngineFlags):
    """Which jobs of a command run, and where."""

    list_jobs: Flag = False
    """Print the jobs of the command, one JSON object a line, and do nothing; 'command' runs one."""

    job: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """Run only the job of this id, or of its beginning, as --list-jobs lists it."""

    def jobs(self) -> list[Job]:
        """The jobs, those first that others need."""
        raise NotImplementedError

    def by_jobs(self) -> bool:
        """Do what the flags of this class ask for; returns whether nothing else is left to do."""
        self.check_engine()
        if self.list_jobs:
            for job in self.jobs():
                say(job.line([program_name(), *own_words(), "--job", job.id]))
        elif self.job is not None:
            from toptail.jobs.job import find_job

            job = find_job(self.jobs(), self.job)
            words = "is done" if job.run() else "was done already"
            say(f"{job.name} ({job.id}) {words}")
        elif self.engine == "ray":
            self._on_cluster()
        return self.list_jobs or self.job is not None

    def _on_cluster(self) -> None:
        from toptail.jobs.executors import Ray

        start = time.monotonic()
        with progress_bar() as tick:
            jobs = [job for job in self.jobs() if not job.last]
            done = Ray(self.jobs, self.address).run(jobs, tick)
        work = sum(each.seconds for each in done.values())
        nodes = ", ".join(sorted({each.node for each in done.values()})) or "no node"
        say(
            f"{len(done)} of {len(jobs)} jobs were missing: {work:.0f} s of work in "
            f"{time.monotonic() - start:.0f} s on {nodes}"
        )


def own_words(words: Sequence[str] | None = None) -> list[str]:
    """The command line without the flags of this module."""
    result: list[str] = []
    typed = iter(sys.argv[1:] if words is None else words)
    for word in typed:
        flag, equals, _ = word.partition("=")
        if flag not in _OWN:
            result.append(word)
        elif flag != "--list-jobs" and not equals:
            next(typed, None)
    return result
