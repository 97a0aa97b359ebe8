"""Executors: where jobs run. All of them skip jobs that are done and respect what each needs.

The method ``run(jobs, tick)`` of each returns id -> where and how long the job ran.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from toptail.errors import NotDoneError
from toptail.jobs.job import Job, Resources, find_job
from toptail.progress import Tick, no_tick
from toptail.stats.resample import available_threads

RETRIES: Final = 10
"""How often Ray starts a job again whose worker or node was lost."""
_LINES: Final = 12
"""Lines of a failed job's log that its error shows."""


@dataclass(frozen=True)
class Done:
    """Where a job ran, and how long it took."""

    node: str
    seconds: float


class ThisProcess:
    """The process of the command, one job after another."""

    def run(self, jobs: Sequence[Job], tick: Tick = no_tick) -> dict[str, Done]:
        missing = [job for job in jobs if not job.is_done()]
        found = {}
        for number, job in enumerate(missing):
            tick(job.name, number / len(missing))
            start = time.monotonic()
            find_job(jobs, job.id).run()
            found[job.id] = Done(platform.node(), time.monotonic() - start)
        return found


@dataclass(frozen=True)
class Processes:
    """Processes of this machine: a job is a command line, whose output goes to a log file."""

    command: Callable[[Job], Sequence[str]]
    """The words that run a job."""
    room: Resources
    """Cores and accelerators that jobs share: one starts when what it uses is free."""
    seconds: float | None = None
    """Time for all jobs: what runs then is stopped. None: no limit."""

    def run(self, jobs: Sequence[Job], tick: Tick = no_tick) -> dict[str, Done]:
        """Run them side by side; after a failure, all that do not need the failed one."""
        end = None if self.seconds is None else time.monotonic() + self.seconds
        children: list[subprocess.Popen[bytes]] = []
        with ThreadPoolExecutor(max(1, len(jobs))) as threads:

            def start(job: Job) -> Future[Done]:
                return threads.submit(self._run, job, end, children)

            def first(running: Sequence[Future[Done]]) -> Future[Done]:
                return next(iter(wait(running, return_when=FIRST_COMPLETED).done))

            try:
                return _scheduled(jobs, start, first, lambda f, _: f.result(), tick, self.room)
            except KeyboardInterrupt:
                for child in children:
                    child.terminate()
                raise

    def _run(self, job: Job, end: float | None, children: list[subprocess.Popen[bytes]]) -> Done:
        log = job.lock.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        if end is not None and start >= end:
            raise NotDoneError(f"Time is up before {job.name}: the same command goes on.")
        with log.open("ab") as output:
            words = list(self.command(job))
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            children.append(child)
            try:
                code = child.wait(None if end is None else max(0.0, end - start))
            except subprocess.TimeoutExpired:
                child.terminate()
                child.wait()
                raise NotDoneError(
                    f"Time is up, and {job.name} was stopped: the same command goes on."
                ) from None
        if code:
            tail = log.read_text("utf-8", errors="replace").splitlines()[-_LINES:]
            raise NotDoneError(
                f"{job.name} ended with code {code}; its log {log} ends: {' / '.join(tail)}"
            )
        return Done(platform.node(), time.monotonic() - start)


@dataclass(frozen=True)
class Ray:
    """A Ray cluster whose nodes see the same folders."""

    jobs_of: Callable[[], Sequence[Job]]
    """Lists the command's jobs; it is called again on the node that runs one."""
    address: str | None = None
    """The cluster's address; one is started on this machine unless given."""

    def run(self, jobs: Sequence[Job], tick: Tick = no_tick) -> dict[str, Done]:
        """Run them on the nodes of the cluster; an interrupt cancels the running ones."""
        ray = connect(self.address)
        about = self.jobs_of, list(sys.argv), str(Path.cwd())
        references: list[Any] = []

        def start(job: Job) -> Any:
            used, name = job.resources, job.name
            task = ray.remote(_on_node).options(
                num_cpus=used.cpus, num_gpus=used.gpus, max_retries=RETRIES, name=name
            )
            references.append(task.remote(*about, job.id))
            return references[-1]

        def first(running: Sequence[Any]) -> Any:
            return ray.wait(list(running), num_returns=1)[0][0]

        try:
            return _scheduled(jobs, start, first, partial(_result, ray), tick)
        except BaseException:
            for reference in references:
                ray.cancel(reference, force=True)
            raise


def _scheduled(
    jobs: Sequence[Job],
    start: Callable[[Job], Any],
    first: Callable[[Sequence[Any]], Any],
    result: Callable[[Any, str], Done],
    tick: Tick,
    room: Resources | None = None,
) -> dict[str, Done]:
    """Start every missing job as soon as its needs are done and there is room for it.

    A job that fails fails those that need it; the others are run, and the first failure is raised
    when nothing is left to do.
    """
    waiting = {job.id: job for job in jobs if not job.is_done()}
    finished = {job.id for job in jobs} - waiting.keys()
    running: dict[Any, Job] = {}
    found: dict[str, Done] = {}
    failures: list[NotDoneError] = []
    total = len(waiting)
    while running or any(finished.issuperset(job.needs) for job in waiting.values()):
        for job in [job for job in waiting.values() if finished.issuperset(job.needs)]:
            if room is None or not running or _fits(job, running.values(), room):
                running[start(waiting.pop(job.id))] = job
        handle = first(list(running))
        job = running.pop(handle)
        try:
            found[job.id] = result(handle, job.name)
        except NotDoneError as error:
            failures.append(error)
            tick(f"failed: {job.name}", len(found) / total)
            continue
        finished.add(job.id)
        tick(f"{len(found)} of {total} jobs, last {job.name}", len(found) / total)
    if failures:
        raise failures[0]
    return found


def _fits(job: Job, running: Iterable[Job], room: Resources) -> bool:
    used = [each.resources for each in (job, *running)]
    return sum(x.cpus for x in used) <= room.cpus and sum(x.gpus for x in used) <= room.gpus


def connect(address: str | None) -> Any:
    """Ray, connected to a cluster, or to one that is started here where no address is given."""
    import ray

    if not ray.is_initialized():
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
        here: dict[str, Any] = {"address": address}
        if address is None:
            here = {"address": "local", "include_dashboard": False}  # not one that runs already
            # Ray's own niceness of 15 would let everything else on this machine go first.
            os.environ.setdefault("RAY_worker_niceness", "0")
        # As many threads as here, because how a matrix product is split decides its last bits;
        # Ray would give a worker as many as its task has cores.
        threads = os.environ.get("OMP_NUM_THREADS") or str(available_threads())
        env = {"env_vars": {"OMP_NUM_THREADS": threads}}
        try:
            ray.init(configure_logging=False, runtime_env=env, **quiet, **here)
        except ConnectionError as error:
            raise NotDoneError(
                f"No Ray cluster answers at {address} ({error}); start one with 'ray start --head'."
            ) from None
    return ray


def ray_map(
    work: Callable[[Any], Any], items: Iterable[Any], address: str | None = None
) -> Iterator[Any]:
    """``map`` on a cluster: results in order, one core each, repeated where a node is lost."""
    ray = connect(address)
    task = ray.remote(_called).options(num_cpus=1, max_retries=RETRIES)
    submit = partial(task.remote, ray.put(work), str(Path.cwd()))
    every = list(items)
    ahead = int(2 * ray.cluster_resources().get("CPU", 1))  # results that wait to be read
    running: list[Any] = [submit(item) for item in every[:ahead]]
    for at in range(len(every)):
        if at + ahead < len(every):
            running.append(submit(every[at + ahead]))
        yield _result(ray, running[at], "a part of the work")
        running[at] = None


def _result(ray: Any, reference: Any, name: str) -> Any:
    """What a task returned; its own error as it was raised, a lost worker as a `NotDoneError`."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise NotDoneError(
            f"{name} was lost with its worker or node {RETRIES + 1} times, or this process lost "
            f"its own node ({type(error).__name__}); look at the cluster's memory and disks, and "
            "run the same command again: finished jobs are not repeated."
        ) from None


def _on_node(
    jobs_of: Callable[[], Sequence[Job]], argv: Sequence[str], folder: str, identity: str
) -> Done:
    """Run one job on a node, in the folder and with the command line of the driver."""
    import ray

    start = time.monotonic()
    os.chdir(folder)
    sys.argv = list(argv)  # records name the command line
    find_job(jobs_of(), identity).run_when_free()
    number = ray.get_runtime_context().get_node_id()[:8]
    return Done(f"{platform.node()} {number}", time.monotonic() - start)


def _called(work: Callable[[Any], Any], folder: str, item: Any) -> Any:
    with suppress(OSError):  # a node that lacks the driver's folder works where it is
        os.chdir(folder)
    return work(item)
