"""Code that a person gives has a time limit: a scorer that hangs is named, and left."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from toptail import interrupts
from toptail.errors import Exit, InputError, NotDoneError

MINUTES: Final = "TOPTAIL_SCORER_MINUTES"
"""Environment variable, also set by ``--scorer-minutes``: how long one call may take."""

_USUAL: Final = 60.0
"""Minutes where nobody says: studies hand over some thousand rows at a time."""
_GRACE: Final = 30.0
"""Seconds after which code that does not let itself be interrupted ends the command."""


class _LateError(BaseException):
    """Time is up; no ``except Exception`` of a person's code catches it."""


@contextmanager
def in_time(where: str) -> Iterator[None]:
    """Raise :class:`NotDoneError` where a person's code in the block takes longer than allowed.

    Only a main thread can be interrupted, and not on Windows: elsewhere there is no limit. Code
    that catches everything, or is compiled and does not return, ends the process with the same
    sentence if that is a command of ours and other threads get to run.
    """
    minutes = allowed_minutes()
    if not _can_interrupt():
        yield
        return
    late = NotDoneError(
        f"{where} took longer than {minutes:g} minutes; mend it, or allow more with "
        f"--scorer-minutes, or {MINUTES} in the environment."
    )
    before = signal.signal(signal.SIGALRM, _raise_late)
    at_last = threading.Timer(60 * minutes + _GRACE, _leave, [late])
    at_last.daemon = True
    if interrupts.is_command():
        at_last.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 60 * minutes, 1.0)  # again, where it was caught
        yield
    except _LateError:
        raise late from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)  # none where compiled code set it
        at_last.cancel()


def allowed_minutes() -> float:
    """Minutes that a person allows, or the usual ones."""
    text = os.environ.get(MINUTES) or str(_USUAL)
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= 1e6:  # two years: systems know no much longer timers
        raise InputError(f"--scorer-minutes {text} ({MINUTES}) is no number of minutes above 0.")
    return minutes


def _can_interrupt() -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and hasattr(signal, "setitimer")


def _raise_late(*_: object) -> NoReturn:
    raise _LateError


def _leave(late: NotDoneError) -> None:
    try:
        sys.stderr.write(f"toptail: {late}\n")
        sys.stderr.flush()
    finally:
        os._exit(Exit.NOT_DONE)
