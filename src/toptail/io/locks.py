"""Locks between processes, by ``filelock``. The system frees the lock of a process that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from toptail.errors import BusyError, system_error

_TRY: Final = 0.5
"""Seconds of one try to lock a file: :func:`is_locked` holds the lock for a moment, too."""


@contextmanager
def locked(
    path: Path, busy: str | None = None, wait: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Hold the lock file ``path``, which stays there.

    Where another process holds it, raise :class:`BusyError` with the sentence ``busy``. Without
    such a sentence, wait until it is free, and call ``wait`` about twice a second.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        while not lock.is_locked:
            try:
                lock.acquire(timeout=_TRY)
            except Timeout:
                if busy is not None:
                    raise BusyError(busy) from None
                wait()
    except OSError as error:
        raise system_error(error, path) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file right now."""
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder in which this process may not write
        return False
