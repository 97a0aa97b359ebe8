"""Locks of files and folders; they go with the process that holds them, however it ends."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NoLocksError(OSError):
    """The file system there has no locks."""


def locks_exist() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock what is open, until it is closed; false where somebody else holds it."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # ENOLCK, ENOTSUP, ENOSYS, or what a network's disk says
        raise NoLocksError(error.errno, error.strerror) from None
    return True


@cache
def this_machine() -> str:
    """What tells this machine from others, also from others of its name."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.is_file() else platform.node()
