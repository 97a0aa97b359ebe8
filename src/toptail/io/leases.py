"""Locks that several machines obey on one file system.

Two files say who works: one that is locked for as long as its holder lives, which every process of
this machine sees; and a lease, made by whoever comes first on any machine and kept fresh by a
heartbeat, for file systems whose locks end at the machine. How old a heartbeat is, is told by the
file system's clock alone, so that machines need not agree about the time.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from toptail.errors import BusyError, NotDoneError, told
from toptail.io.files import NoLocksError, locks_exist, sweep, temporary, this_machine, try_lock

BEAT: Final = 15.0
"""Seconds between two heartbeats."""
STALE: Final = 120.0
"""Seconds without a heartbeat after which a holder on another machine counts as gone."""


@contextmanager
def held(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock, or raise :class:`BusyError` with this sentence where somebody else does.

    ``path`` is locked and stays; the lease beside it goes with the block. A holder of this
    machine that is gone, however it ended, holds nothing; one of another machine does until its
    heartbeat is `STALE` seconds old.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise told(error, path) from None
    with file:
        locked = _locked(file.fileno())
        if locked is False:
            raise BusyError(busy)
        token = uuid.uuid4().hex
        _take(path, token, busy, by_lock=locked is not None)
        sweep(path.parent)
        stop, lost = threading.Event(), threading.Event()
        beat = threading.Thread(target=_beat, args=(path, token, stop, lost), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()
            if _holder(path).get("token") == token:
                _lease(path).unlink(missing_ok=True)
        if lost.is_set():
            raise NotDoneError(
                f"{path.parent}: this process was silent for {STALE:g} seconds, and another one "
                "has taken over; run the same command again."
            )


def is_held(path: Path) -> bool:
    """Whether a process holds a lock right now, here or on another machine."""
    try:
        with path.open() as file:
            locked = _locked(file.fileno(), shared=True)
    except FileNotFoundError:
        return False
    return locked is False or _is_elsewhere(path, by_lock=locked is not None)


def _locked(handle: int, *, shared: bool = False) -> bool | None:
    """Lock what is open; None where there are no locks, and the lease has to do."""
    try:
        return try_lock(handle, shared=shared) if locks_exist() else None
    except NoLocksError:
        return None


def _lease(path: Path) -> Path:
    return path.with_name(f"{path.name}.lease")


def _holder(path: Path) -> dict[str, Any]:
    """What the lease says."""
    return _content(_lease(path))


def _content(lease: Path) -> dict[str, Any]:
    """What a lease says; nothing where there is none, or none that was written whole."""
    try:
        content = json.loads(lease.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_elsewhere(path: Path, *, by_lock: bool) -> bool:
    """Whether a living process has the lease, and no lock says so.

    Where files can be locked, one of this machine would have locked this one.
    """
    if by_lock and _holder(path).get("machine") == this_machine():
        return False
    age = _age(path)
    return age is not None and age <= STALE


def _age(path: Path) -> float | None:
    """Seconds since the last heartbeat, by the file system's clock; None where there is none."""
    with temporary(path.parent) as probe:
        try:
            return probe.stat().st_mtime - _lease(path).stat().st_mtime
        except FileNotFoundError:
            return None


def _take(path: Path, token: str, busy: str, *, by_lock: bool) -> None:
    """Make the lease, once whoever had it is gone."""
    content = {"machine": this_machine(), "node": platform.node(), "pid": os.getpid()}
    while True:
        try:
            _make(path, json.dumps(content | {"token": token}))
            return
        except FileExistsError:
            before = _holder(path)
            if _is_elsewhere(path, by_lock=by_lock):
                raise BusyError(busy) from None
            _remove(path, before, busy)
        except OSError as error:
            raise told(error, path) from None


def _make(path: Path, text: str) -> None:
    """Make the lease with its content in one step, or raise `FileExistsError`."""
    with temporary(path.parent) as staged:
        staged.write_text(text, encoding="utf-8")
        staged.chmod(0o644)  # for whoever else comes to the folder
        try:
            os.link(staged, _lease(path))
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):  # a file system without hard links
            with _lease(path).open("x", encoding="utf-8") as file:
                file.write(text)


def _remove(path: Path, before: dict[str, Any], busy: str) -> None:
    """Move away the lease of somebody who is gone, unless another process was faster."""
    with temporary(path.parent, folder=True) as waste:
        moved = waste / _lease(path).name
        try:
            _lease(path).rename(moved)
        except FileNotFoundError:
            return
        if _content(moved) != before:
            with suppress(OSError):
                os.link(moved, _lease(path))
            raise BusyError(busy)


def _beat(path: Path, token: str, stop: threading.Event, lost: threading.Event) -> None:
    """Keep the lease fresh for as long as it is one's own."""
    while not stop.wait(BEAT):
        if _holder(path).get("token") != token:
            lost.set()
            return
        with suppress(OSError):  # a file system that is away for a moment
            os.utime(_lease(path))
