"""Pieces on a Ray cluster: what can run runs, what was killed runs again, what is done stays."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from toptail.errors import NotDoneError
from toptail.jobs.job import Job
from toptail.progress import Tick
from toptail.stats.resample import available_threads

RETRIES: Final = 10
"""How often a piece is begun again whose worker or node was lost."""


@dataclass(frozen=True)
class Done:
    """Where a piece was done, and how long that took."""

    node: str
    """The node: its name, and its number in the cluster."""
    seconds: float
    """Wall time on the node."""


def connect(address: str | None) -> Any:
    """Ray, connected to a cluster, or started here where no address is given."""
    import ray

    if not ray.is_initialized():
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
        here: dict[str, Any] = {"address": address}
        if address is None:
            here = {"address": "local", "include_dashboard": False}  # not one that is there already
            # Ray's own 15 would let whatever else runs here go before what was just typed.
            os.environ.setdefault("RAY_worker_niceness", "0")
        try:
            ray.init(configure_logging=False, runtime_env={"env_vars": _threads()}, **quiet, **here)
        except ConnectionError as error:
            raise NotDoneError(
                f"No Ray cluster answers at {address} ({error}); start one with 'ray start --head'."
            ) from None
    return ray


def _threads() -> dict[str, str]:
    """As many threads for products of matrices as here: how they are shared out decides last bits.

    Ray would give each worker as many as its task has cores.
    """
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(available_threads())}


def run_jobs(
    jobs: Sequence[Job],
    work: Callable[[str, str], object],
    address: str | None = None,
    tick: Tick | None = None,
) -> dict[str, Done]:
    """Do every piece that is missing, each as soon as what it needs is done.

    ``work`` is called on some node with the folder that this process works in and a piece's
    identity. Returns piece -> where it was done.
    """
    ray = connect(address)
    waiting = {job.id: job for job in jobs if not job.is_done()}
    running: dict[Any, Job] = {}
    nodes: dict[str, Done] = {}
    total = len(waiting)
    done = {job.id for job in jobs} - set(waiting)
    try:
        while waiting or running:
            ready = [job for job in waiting.values() if done.issuperset(job.needs)]
            for job in ready:
                running[_submit(ray, job, work)] = waiting.pop(job.id)
            finished, _ = ray.wait(list(running), num_returns=1)
            for reference in finished:
                job = running.pop(reference)
                nodes[job.id] = _result(ray, reference, job.name)
                done.add(job.id)
                if tick is not None:
                    tick(f"{len(nodes)} of {total} pieces, last {job.name}", len(nodes) / total)
    except BaseException:
        for reference in running:
            ray.cancel(reference, force=True)
        raise
    return nodes


def _submit(ray: Any, job: Job, work: Callable[[str, str], object]) -> Any:
    task = ray.remote(_done).options(
        num_cpus=job.resources.cpus,
        num_gpus=job.resources.gpus,
        max_retries=RETRIES,
        name=job.name,
    )
    return task.remote(work, str(Path.cwd()), job.id)


def _result(ray: Any, reference: Any, name: str) -> Any:
    """What a task returned; an error of its own as itself, a lost worker as a sentence."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise NotDoneError(
            f"{name} was lost with its worker or node {RETRIES + 1} times, or this process lost "
            f"its own node ({type(error).__name__}); look at the cluster's memory and disks, and "
            "run the same command again: what is done is kept."
        ) from None


def ray_map(
    work: Callable[[Any], Any], items: Iterable[Any], address: str | None = None
) -> Iterator[Any]:
    """``map`` on a cluster: results in order, one core each, begun again where a node is lost."""
    ray = connect(address)
    shared = ray.put(work)

    one = partial(
        ray.remote(_called).options(num_cpus=1, max_retries=RETRIES).remote, shared, str(Path.cwd())
    )
    every = list(items)
    ahead = int(2 * ray.cluster_resources().get("CPU", 1))  # results that nobody took wait there
    running: list[Any] = [one(item) for item in every[:ahead]]
    for at in range(len(every)):
        if at + ahead < len(every):
            running.append(one(every[at + ahead]))
        yield _result(ray, running[at], "a part of the work")
        running[at] = None


def _done(work: Callable[[str, str], object], folder: str, identity: str) -> Done:
    """Runs on a node."""
    import ray

    begun = time.monotonic()
    work(folder, identity)
    number = ray.get_runtime_context().get_node_id()[:8]
    return Done(f"{platform.node()} {number}", time.monotonic() - begun)


def _called(work: Callable[[Any], Any], folder: str, item: Any) -> Any:
    """Runs on a node, in the folder that the command was typed in where the node has it."""
    with suppress(OSError):
        os.chdir(folder)
    return work(item)
