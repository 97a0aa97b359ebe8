"""Ctrl-C on the command line: one line and exit code 130 at any moment, never a traceback.

The package imports this module before anything else, and this module next to nothing, because
the imports that follow take a second.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # without the import of typing, for the same reason
    from typing import NoReturn

CODE = 130
"""The exit code of what was interrupted."""

_PATIENCE = 3
"""How often Ctrl-C must be pressed to leave at once, whatever is going on."""

_SOON = 0.05
"""Seconds until something ignored is raised again, elsewhere."""

_pressed = 0


def pressed() -> bool:
    """Whether Ctrl-C was pressed, even if what was interrupted said something else about it."""
    return _pressed > 0


def _while_importing() -> None:
    """Leave at once on Ctrl-C if this process is a command: there is nothing to lose yet."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: leave())


def while_running() -> None:
    """Raise KeyboardInterrupt on Ctrl-C, and remember it.

    Extension modules that are interrupted while they are imported report other errors.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as below nohup
        signal.signal(signal.SIGINT, _press)
        sys.unraisablehook = _press_again


def leave(*, said: bool = False) -> NoReturn:
    """End this process as interrupted, and say so unless that was said.

    Nothing else that runs at a process's end is waited for: jaxlib does not survive that where it
    was interrupted (a segmentation fault).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.stdout.flush()
        sys.stderr.write("" if said else "toptail: interrupted\n")
        sys.stderr.flush()
    finally:
        os._exit(CODE)


def _press(*_: object) -> None:
    global _pressed
    _pressed += 1
    if _pressed >= _PATIENCE:  # a user's code may catch what is raised here
        leave()
    raise KeyboardInterrupt


def _press_again(what: sys.UnraisableHookArgs) -> None:
    """Raise again what was raised where Python ignores it, as in JAX's hook of the collector."""
    global _pressed
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)
        return
    import _thread
    import threading

    _pressed -= 1  # it was pressed once
    again = threading.Timer(_SOON, _thread.interrupt_main)
    again.daemon = True
    again.start()


def is_command() -> bool:
    """Whether the process was started as ``toptail`` or as ``python -m toptail``."""
    first = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""  # noqa: PTH119
    started = {*sys.orig_argv} & {"toptail", "toptail_paper"} if first == "-m" else set()
    return first.removesuffix(".exe") in ("toptail", "toptail-paper") or bool(started)


_while_importing()
