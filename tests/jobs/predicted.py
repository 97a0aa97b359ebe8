"""Seconds that the simulation of a graph of pieces predicts, beside those of real runs on Ray.

    python -m tests.jobs.predicted FOLDER

Every graph is first done by one worker: how long its pieces took there, what beginning one cost,
and what the start of the worker, are all that the simulation is told.
Then more workers do it. Pieces are episodes of a maze that are collected, which need cores, and
pieces that only wait, of which a machine has room for many. Needs the extra `ray`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.jobs.faults import TASKS
from toptail.commands.run_job import _command, on_a_node
from toptail.jobs.cluster import run_jobs
from toptail.jobs.job import Job, Resources
from toptail.jobs.simulate import TimedPiece, simulate

Graph = tuple[list[Job], Callable[[str, str], object]]


@dataclass(frozen=True)
class Measured:
    """One run of a graph."""

    wall: float
    """Seconds of the whole run."""
    pieces: dict[str, float]
    """Piece -> its seconds."""
    first: float
    """Seconds until the first piece was begun."""


def waiting(folder: Path, count: int) -> Graph:
    """Pieces that wait two seconds to eight; every fourth needs the three before it."""
    draw = random.Random(count)
    jobs: list[Job] = []
    seconds: dict[str, float] = {}
    for at in range(count):
        needs = [job.id for job in jobs[-3:]] if at % 4 == 3 else []
        path = folder / f"{at}.done"
        jobs.append(
            Job(f"wait {at}", {}, folder, [path], path.touch, path.exists, needs=tuple(needs))
        )
        seconds[jobs[-1].id] = draw.uniform(2.0, 8.0)
    return jobs, partial(_wait, folder, {job.id: job.name.split()[1] for job in jobs}, seconds)


def _wait(
    folder: Path, names: dict[str, str], seconds: dict[str, float], _where: str, identity: str
) -> None:
    time.sleep(seconds[identity])
    (folder / f"{names[identity]}.done").touch()


def _begun(folder: Path) -> Path:
    """What the first piece leaves when it begins."""
    return folder / "begun"


def _noted(work: Callable[[str, str], object], folder: Path, where: str, identity: str) -> None:
    with suppress(FileExistsError):
        _begun(folder).touch(exist_ok=False)
    work(where, identity)


def collecting(folder: Path, episodes: int) -> Graph:
    """Episodes of a maze, 25 in a piece."""
    words = ["data", "collect", TASKS[0], "--episodes", str(episodes), "--rows", "201"]
    words += ["--out", str(folder / "data.npz")]
    jobs = [job for job in _command(words).jobs() if not job.last]
    return jobs, partial(on_a_node, words)


def measured(graph: Graph, workers: int) -> Measured:
    """Do a graph on a cluster of so many nodes of one core."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's 15 a busy machine starves them
    small: dict[str, Any] = {"object_store_memory": 100 * 2**20}
    head = {**small, "num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(workers):
        cluster.add_node(**small, num_cpus=1)
    try:
        start = time.time()
        jobs, work = graph
        done = run_jobs(jobs, partial(_noted, work, jobs[0].home), cluster.address)
        wall, seconds = time.time() - start, {i: each.seconds for i, each in done.items()}
        return Measured(wall, seconds, _begun(jobs[0].home).stat().st_mtime - start)
    finally:
        ray.shutdown()
        cluster.shutdown()


def predicted(
    jobs: Sequence[Job], seconds: dict[str, float], workers: int, start: float, worker: float
) -> float:
    """What the simulation says."""
    place = {job.id: at for at, job in enumerate(jobs)}
    pieces = [TimedPiece(seconds[job.id], [place[need] for need in job.needs]) for job in jobs]
    return simulate(pieces, [Resources(cpus=1.0)] * workers, start=start, worker=worker).seconds


def main() -> int:
    """Measure, and print a table."""
    folder = Path(sys.argv[1]).absolute()
    graphs: tuple[tuple[Callable[..., Graph], int, tuple[int, ...]], ...] = (
        (waiting, 24, (2, 4, 8)),
        (waiting, 48, (4, 8)),
        (collecting, 100, (2,)),
        (collecting, 200, (2,)),
    )
    say = sys.stdout.write
    say("| graph | pieces | workers | predicted | with the run's own pieces | measured |\n")
    say("|---|---:|---:|---:|---:|---:|\n")
    for make, size, numbers in graphs:
        one: Measured | None = None
        for workers in (1, *numbers):
            home = folder / f"{make.__name__}-{size}-{workers}"
            home.mkdir(parents=True)
            jobs, work = make(home, size)
            found = measured((jobs, work), workers)
            if one is None:  # by place, since an identity may know its folder
                one = found
                first = [found.pieces[job.id] for job in jobs]
                left = (found.wall - found.first - sum(first)) / len(first)
                costs = left, found.first
            same = {job.id: each for job, each in zip(jobs, first, strict=True)}
            told = "" if workers == 1 else f"{predicted(jobs, same, workers, *costs):.1f} s"
            own = predicted(jobs, found.pieces, workers, *costs)
            say(f"| {make.__name__} | {len(jobs)} | {workers} | {told} | {own:.1f} s | ")
            say(f"{found.wall:.1f} s |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
