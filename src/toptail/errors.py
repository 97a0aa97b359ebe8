"""Errors that are one sentence each, and the exit codes of the command line."""

from __future__ import annotations

import ast
import errno
import math
import operator
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from numbers import Real


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    FAILED = 1
    INPUT = 2
    NOT_DONE = 3
    BUSY = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The sentence that help and docs print."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.FINE: "done, and whatever was to be checked holds",
    Exit.FAILED: "a check that was asked for failed, or could not be made",
    Exit.INPUT: "something that was given cannot be used: a flag, a file, a folder",
    Exit.NOT_DONE: "it could not be done here: disk, memory, a worker that was ended",
    Exit.BUSY: "another process holds the lock: try again later",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
}


def printable(text: str) -> str:
    r"""A text on one line: control characters and invalid Unicode are escaped.

    >>> printable("one\ntwo")
    'one\\ntwo'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def brief(error: object) -> str:
    """The text of an error or of a server's answer, on one line of at most 160 characters."""
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


class _SentenceError(Exception):
    """One printable sentence. Arguments in it are spelled as in Python: see :func:`option`."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))

    def for_command(self, flags: Collection[str] | None = None) -> str:
        """The sentence with flags in place of arguments: ``--level 1.5`` for ``level=1.5``.

        Of a command with these ``flags``, another argument is a setting of its ``--set``, if it
        has one, and else spelled as in Python; by default every argument is a flag.
        """
        return _ARGUMENT.sub(partial(_as_flag, flags), str(self))


class InputError(_SentenceError, ValueError):
    """Input that cannot be used.

    The message is one sentence that names the file, column or row, says what was expected, and
    what to do. The command line prints it without a traceback and exits with :attr:`code`.
    """

    code = Exit.INPUT


class NotDoneError(_SentenceError, RuntimeError):
    """The input is fine, and the work could not be done here: disk, memory, a worker's end."""

    code = Exit.NOT_DONE


class BusyError(NotDoneError):
    """Another process holds a lock."""

    code = Exit.BUSY


_ARGUMENT = re.compile(r"(?<![\w/.=-])([a-z]\w*)=(\.\.\.|\[.*?\]|\(.*?\)|'.*?'|\".*?\"|[\w.+-]*\w)")
"""An argument as :func:`option` spells it; not the ``task=cube`` inside of a path."""


def option(name: str, value: object = None) -> str:
    """An argument inside an error's sentence: ``values=...``, or with a value ``level=1.5``.

    The command line prints it as a flag, ``--values`` or ``--level 1.5``.
    """
    return f"{name}=..." if value is None else f"{name}={value!r}"


def _as_flag(flags: Collection[str] | None, argument: re.Match[str]) -> str:
    name, value = argument[1], argument[2]
    if flags is not None and name not in flags and "set" not in flags:
        return argument[0]
    setting = flags is not None and name not in flags
    flag = f"--set {name}" if setting else f"--{name.replace('_', '-')}"
    if value == "...":
        return flag
    if value[0] in "'\"[(":
        content = ast.literal_eval(value)
        value = content if isinstance(content, str) else ",".join(map(str, content))
    return f"{flag}{'=' if setting else ' '}{printable(value)}"


def how_to_install(extra: str) -> str:
    """How to get the packages of an extra: from a checkout, since no package index has toptail.

    >>> how_to_install("sim")
    "pip install '.[sim]' in a checkout of toptail"
    """
    return f"pip install '.[{extra}]' in a checkout of toptail"


_WRONG_PATH = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EACCES, errno.EPERM, errno.EXDEV, errno.EBUSY),
}
"""Error numbers of the system that another path would avoid."""


def system_error(error: OSError, path: object = None) -> InputError | NotDoneError:
    """An error of the operating system about a file or folder, as a sentence."""
    where = path or error.filename
    why = error.strerror or str(error) or type(error).__name__
    if error.errno in _WRONG_PATH:
        place = where or "a file"
        return InputError(f"{place}: cannot be read or written there ({why}); give another path.")
    at = f"{where}: the" if where else "The"
    return NotDoneError(
        f"{at} system refused to go on ({why}); mend that, and run the same command again."
    )


@contextmanager
def refusing(
    path: object, what: str, advice: str = "it may be truncated or of another type"
) -> Iterator[None]:
    """Turn any error of a parser into an :class:`InputError`: ``PATH WHAT (why); ADVICE``."""
    try:
        yield
    except (InputError, NotDoneError, NameError):  # a NameError is a bug
        raise
    except MemoryError:
        raise NotDoneError(f"{path}: that takes more memory than there is.") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # of the system, not of a parser
            raise system_error(error, path) from error
        raise InputError(f"{path} {what} ({brief(error)}); {advice}.") from error


def check_whole(name: str, value: object, least: int) -> None:
    """Raise an :class:`InputError` unless the option is a whole number of at least ``least``.

    A count (``least`` of 1 or more) must also fit a machine integer; a seed may be larger.
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
    """The number; NaN, which fails every comparison, for anything else."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
