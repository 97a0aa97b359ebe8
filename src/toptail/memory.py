"""Memory that is not enough: one sentence and exit code 3, while libraries are loaded too.

The package imports this module before its libraries, which take some hundred megabytes.
"""

from __future__ import annotations

import os
import sys

from toptail.interrupts import is_command

TYPE_CHECKING = False
if TYPE_CHECKING:  # without the import of typing, which takes time
    from types import TracebackType

CODE = 3
"""The exit code of what could not be done."""

_SIGNS = (
    "can't start new thread",
    "Failed to launch worker thread",
    "failed to map segment",
    "annot allocate memory",
    "RESOURCE_EXHAUSTED",
)
"""What Python, Arrow, the loader of libraries, the system and JAX say instead of MemoryError."""


def scarce(error: BaseException) -> bool:
    """Whether an error is one of too little memory, whatever a library calls it."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _SIGNS)


def _while_importing() -> None:
    """Say it in a sentence if this process is a command: nobody else is there to do so yet."""
    if is_command():
        sys.excepthook = _say


def _say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not scarce(error):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write("toptail: the memory of this machine is not enough to load the libraries.\n")
    sys.stderr.flush()
    os._exit(CODE)


_while_importing()
