"""Processes that end with the command that started them, even where that one is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

_VARIABLE: Final = "TOPTAIL_PARENT"
"""Tells a process which open file to watch: it ends when the one that started it does."""


def bound(environment: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `subprocess.Popen` with which a ``toptail`` process ends when this one does."""
    line = _line()
    return {
        "env": {**environment, _VARIABLE: str(line)},
        "pass_fds": [line],
        "start_new_session": True,
    }


@cache
def _line() -> int:
    """The end of a pipe for those who watch; the other end is open until this process ends."""
    return os.pipe()[0]


def end_with_parent() -> None:
    """If the process that started this one wants it so, end with it, and all workers too."""
    line = os.environ.pop(_VARIABLE, "")
    if line.isascii() and line.isdigit():
        threading.Thread(target=_watch, args=(int(line),), daemon=True).start()


def _watch(line: int) -> None:
    try:
        os.read(line, 1)  # nobody ever writes: this returns when the other end is gone
        os.killpg(os.getpid(), signal.SIGKILL)  # what was being written are temporary files
    except (OSError, OverflowError):  # nobody's pipe, nobody's group: the variable means nothing
        return
