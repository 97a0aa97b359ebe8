"""What can go wrong, in one printable sentence each, and the exit code that says so."""

from __future__ import annotations

import errno
import math
import operator
import re
import sys
from collections.abc import Sequence
from enum import IntEnum
from numbers import Real

from toptail import interrupts, memory

_OPTION = re.compile("\x1f([^\x1e]*)\x1e([^\x1f]*)\x1f")
"""An option inside a sentence, as Python writes it and as the command line does."""


class Exit(IntEnum):
    """What the exit code of a command says, for whoever reads it, CI above all."""

    def __new__(cls, code: int, meaning: str) -> Exit:
        """Give a number the sentence that help and docs print."""
        exit_code = int.__new__(cls, code)
        exit_code._value_ = code
        exit_code.meaning = meaning
        return exit_code

    meaning: str
    """What it stands for."""

    FINE = 0, "done, and whatever was to be checked holds"
    FAILED = 1, "a check that was asked for failed, or could not be made"
    INPUT = 2, "something that was given cannot be used: a flag, a file, a folder"
    NOT_DONE = memory.CODE, "it could not be done here: disk, memory, time, a worker that was ended"
    BUSY = 4, "another process, here or on another machine, holds the lock: try again later"
    INTERRUPTED = interrupts.CODE, "interrupted by Ctrl-C"


def printable(text: str) -> str:
    r"""A text on one line: control characters and what is not Unicode are escaped.

    >>> printable("one\ntwo")
    'one\\ntwo'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _SentenceError(Exception):
    """One printable sentence; :func:`option` in it reads as the caller writes options."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(_OPTION.sub(r"\1", sentence)))
        self.for_command_line = printable(_OPTION.sub(r"\2", sentence))


class InputError(_SentenceError, ValueError):
    """Something the user gave cannot be used.

    The message is one sentence that names the file, column or row, says what was
    expected, and what to do. An :func:`option` in it reads as an argument in Python and as
    a flag on the command line, which prints :attr:`for_command_line` without a traceback
    and exits with :attr:`code`.
    """

    code = Exit.INPUT


class NotDoneError(_SentenceError, RuntimeError):
    """What was asked for is fine, and could not be done here: disk, memory, a worker's end.

    The command line prints the sentence and exits with :attr:`code`.
    """

    code = Exit.NOT_DONE


class BusyError(NotDoneError):
    """Somebody else is at it: a lock is held by another process, here or on another machine."""

    code = Exit.BUSY


_OF_THE_PATH = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EACCES, errno.EPERM, errno.EXDEV, errno.EBUSY),
}
"""Complaints of the system that another path would mend."""


def told(error: OSError, path: object = None) -> InputError | NotDoneError:
    """What the system says about a file or folder, as a sentence."""
    where = path or error.filename
    why = error.strerror or str(error) or type(error).__name__
    if error.errno in _OF_THE_PATH:
        place = where or "a file"
        return InputError(f"{place}: cannot be read or written there ({why}); give another path.")
    at = f"{where}: the" if where else "The"
    return NotDoneError(
        f"{at} system refused to go on ({why}); mend that, and run the same command again."
    )


def option(name: str, value: object = None) -> str:
    """Name an option in the sentence of an :class:`InputError`.

    ``values=...`` in Python is ``--values`` on the command line; with a value,
    ``level=1.5`` is ``--level 1.5``.
    """
    flag = f"--{name.replace('_', '-')}"
    if value is None:
        return f"\x1f{name}=...\x1e{flag}\x1f"
    many = isinstance(value, Sequence) and not isinstance(value, str)
    text = ",".join(map(str, value)) if many else str(value)  # type: ignore[call-overload]
    return f"\x1f{name}={value!r}\x1e{flag} {printable(text)}\x1f"


def check_whole(name: str, value: object, least: int) -> None:
    """Raise an :class:`InputError` unless the option is a whole number of at least ``least``.

    What is at least one is counted, and no machine counts beyond its longest integer; a seed may.
    """
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or operator.index(value) < least:  # type: ignore[arg-type]
        raise InputError(f"{option(name, value)} must be a whole number of at least {least}.")
    if least and operator.index(value) > sys.maxsize:  # type: ignore[arg-type]
        raise InputError(f"{option(name, value)} must be a whole number of at most {sys.maxsize}.")


def check_share(name: str, value: object) -> None:
    """Raise an :class:`InputError` unless the option lies strictly between 0 and 1."""
    if not 0 < _number(value) < 1:
        raise InputError(f"{option(name, value)} must lie between 0 and 1.")


def check_not_negative(name: str, value: object) -> None:
    """Raise an :class:`InputError` unless the option is a finite number of at least 0."""
    if not 0 <= _number(value) < math.inf:
        raise InputError(f"{option(name, value)} must be a number of at least 0.")


def _number(value: object) -> float:
    """The number, or NaN, which no check lets pass, for what is none."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
