"""Flags of commands that are made of pieces: list them, or let a cluster do them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import tyro

from toptail.commands.options import Flag
from toptail.commands.progress import progress_bar
from toptail.commands.terminal import say
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.jobs.job import Job

_OWN: Final = ("--list-jobs", "--engine", "--address")


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """Who does the work."""

    engine: Literal["local", "ray"] = "local"
    """Who works: this process, or a Ray cluster, on which all nodes see the same folders."""

    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT|auto")] = None
    """With --engine ray: the cluster; one is started on this machine unless given."""

    def check_engine(self) -> None:
        """Refuse an address that nobody asks."""
        if self.address is not None and self.engine != "ray":
            raise InputError("--address is that of a Ray cluster; give --engine ray, too.")

    def mapped(self) -> Callable[..., Iterator[Any]]:
        """What calls a function for many things, as ``map`` does."""
        self.check_engine()
        if self.engine == "local":
            return map
        from toptail.jobs.cluster import ray_map

        return partial(ray_map, address=self.address)


@dataclass(frozen=True, kw_only=True)
class JobFlags(EngineFlags):
    """Who does the pieces of a command."""

    list_jobs: Flag = False
    """Print the pieces of the work, one JSON object a line, and do nothing; 'toptail run-job' does
    one."""

    def jobs(self) -> list[Job]:
        """The pieces, those first that others need."""
        raise NotImplementedError

    def by_jobs(self) -> bool:
        """Whether nothing is left to do; else the pieces that a cluster should do are done."""
        self.check_engine()
        if self.list_jobs:
            words = own_words()
            for job in self.jobs():
                say(job.line(words))
        elif self.engine == "ray":
            from toptail.commands.run_job import COMMANDS, on_a_node
            from toptail.jobs.cluster import run_jobs

            begun = time.monotonic()
            with progress_bar() as tick:
                jobs = [job for job in self.jobs() if not job.last]
                done = run_jobs(
                    jobs,
                    partial(on_a_node, own_words(), commands=dict(COMMANDS)),
                    self.address,
                    tick,
                )
            work, nodes = (
                sum(each.seconds for each in done.values()),
                {d.node for d in done.values()},
            )
            say(
                f"{len(done)} of {len(jobs)} pieces were missing: {work:.0f} s of work in "
                f"{time.monotonic() - begun:.0f} s on {', '.join(sorted(nodes)) or 'no node'}"
            )
        return self.list_jobs


def own_words(words: Sequence[str] | None = None) -> list[str]:
    """What was typed, without what this file's flags say."""
    result: list[str] = []
    given = iter(sys.argv[1:] if words is None else words)
    for word in given:
        flag, equals, _ = word.partition("=")
        if flag not in _OWN:
            result.append(word)
        elif flag != "--list-jobs" and not equals:
            next(given, None)
    return result
