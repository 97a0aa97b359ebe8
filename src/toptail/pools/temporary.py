"""Temporary files and folders: one naming rule, and whose they are.

Their names begin with `PREFIX`, so that `toptail.pools.files.entries`, which all readers use, never
has them. Each is locked while it is written; one that is not locked was left by a process that was
killed, and the next process that writes to the folder removes it. Locks may end at the machine, so
names say which machine it was, and what another one left is removed after a day.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from toptail.pools.locks import NoLocksError, locks_exist, this_machine, try_lock

PREFIX: Final = ".toptail-"
"""How the names of all temporary files and folders begin."""

_OLD: Final = 86_400.0
"""Seconds after which something is taken for left behind where there are no locks."""

_OF_A_MACHINE: Final = re.compile(rf"{re.escape(PREFIX)}[0-9a-f]{{8}}-")
"""Names that say which machine made them."""

_SWAP: Final = 2
"""The flag of Linux (RENAME_EXCHANGE) and of macOS (RENAME_SWAP)."""

_swept: set[Path] = set()
"""Folders that this process has looked through."""


@contextmanager
def temporary(place: Path, ending: str = "", *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder in ``place``, which is gone after the block unless it was moved."""
    if (where := place.absolute()) not in _swept:
        sweep(where)
        _swept.add(where)
    path, handle = _made(place, ending, folder)
    try:
        yield path
    finally:
        try:
            remove(path)
        finally:
            if handle is not None:
                os.close(handle)


def sweep(place: Path) -> None:
    """Remove what killed processes left in a folder; what a living one holds stays."""
    for path in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            _remove_if_left(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_at_once(folder: Path) -> None:
    """Remove a folder so that nobody ever sees half of it."""
    with temporary(folder.parent, folder=True) as waste:
        folder.rename(waste / folder.name)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; false where the system cannot."""
    here, names = -100, [os.fsencode(one), os.fsencode(other)]  # -100: names count from here
    if sys.platform == "linux":
        return _called("renameat2", here, names[0], here, names[1], _SWAP)
    return sys.platform == "darwin" and _called("renamex_np", *names, _SWAP)


def _called(name: str, *arguments: Any) -> bool:
    """Whether a function of the system is there and succeeded."""
    function = getattr(ctypes.CDLL(None), name, None)
    return function is not None and function(*arguments) == 0


def _made(place: Path, ending: str, folder: bool) -> tuple[Path, int | None]:
    """A new file or folder, and the open handle that keeps it locked."""
    while True:
        if folder:
            path = Path(tempfile.mkdtemp(dir=place, prefix=_own_prefix()))
            handle = os.open(path, os.O_RDONLY) if locks_exist() else None
        else:
            handle, name = tempfile.mkstemp(dir=place, prefix=_own_prefix(), suffix=ending)
            path = Path(name)
        if not locks_exist():
            if handle is not None:
                os.close(handle)
            return path, None
        assert handle is not None
        with suppress(NoLocksError):  # then it is swept when it is old
            if not (try_lock(handle) and _is_at(path, handle)):
                os.close(handle)  # taken for left behind in the moment before it was locked
                continue
        return path, handle


@cache
def _own_prefix() -> str:
    """How names begin of what this machine makes."""
    return f"{PREFIX}{hashlib.sha256(this_machine().encode()).hexdigest()[:8]}-"


def _is_of_another_machine(path: Path) -> bool:
    return _OF_A_MACHINE.match(path.name) is not None and not path.name.startswith(_own_prefix())


def _remove_if_left(path: Path) -> None:
    if not locks_exist() or _is_of_another_machine(path):
        if _is_old(path):
            remove(path)
        return
    kind = os.O_RDONLY if stat.S_ISDIR(path.lstat().st_mode) else os.O_RDWR
    handle = os.open(path, kind | os.O_NOFOLLOW)
    try:
        if _is_left(path, handle):
            remove(path)
    finally:
        os.close(handle)


def _is_left(path: Path, handle: int) -> bool:
    """Whether nobody holds what is open."""
    try:
        return try_lock(handle) and _is_at(path, handle)
    except NoLocksError:
        return _is_old(path)


def _is_old(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _OLD


def _is_at(path: Path, handle: int) -> bool:
    """Whether a path still leads to what is open."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False
