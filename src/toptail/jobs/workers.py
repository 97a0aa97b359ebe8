"""Worker processes for work that is shared out inside one job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from typing import Final, TypeVar

from toptail.errors import NotDoneError

Item = TypeVar("Item")
Done = TypeVar("Done")

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def worker_map(
    work: Callable[[Item], Done], items: Sequence[Item], workers: int, *, one_thread: bool = False
) -> Generator[Done, None, None]:
    """``map`` over worker processes, in order; in this process where one is enough.

    With ``one_thread`` each process uses one thread for matrix products.
    """
    if workers < 2 or len(items) < 2:
        yield from map(work, items)
        return
    threads = _one_thread_each() if one_thread else nullcontext()
    with threads, worker_pool(min(workers, len(items))) as pool:
        with _deaf_to_interrupts():
            results = pool.map(work, items)
        yield from results


@contextmanager
def worker_pool(size: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes: forking after MuJoCo or JAX started threads is not safe.

    If the block fails, the workers are killed. A worker that was killed from outside raises a
    :class:`NotDoneError`.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(size, mp_context=context, initializer=_leave_with_parent)
    try:
        yield pool
    except BaseException as error:
        for worker in list((pool._processes or {}).values()):
            worker.kill()  # files are written whole or not at all
        pool.shutdown(wait=True, cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise NotDoneError(
                f"One of {size} worker processes was ended from outside, perhaps for lack of "
                "memory: run the same command again with fewer workers; what is finished is kept."
            ) from error
        raise
    pool.shutdown()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Block Ctrl-C in the processes that start inside the block.

    A terminal sends it to all processes, and each would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start inside the block use one thread each for matrix products."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _leave_with_parent() -> None:
    """End this worker when its parent process ends, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
