"""The one exception a person can cause, and the checks of arguments that raise it."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from numbers import Real

_OPTION = re.compile("\x1f([^\x1e]*)\x1e([^\x1f]*)\x1f")
"""An option inside a sentence, as Python writes it and as the command line does."""


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message is one sentence that names the file, column or row, says what was
    expected, and what to do. An :func:`option` in it reads as an argument in Python and as
    a flag on the command line, which prints :attr:`for_command_line` without a traceback
    and exits with code 2.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(_OPTION.sub(r"\1", sentence))
        self.for_command_line = _OPTION.sub(r"\2", sentence)


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
    return f"\x1f{name}={value!r}\x1e{flag} {text}\x1f"


def check_whole(name: str, value: object, least: int) -> None:
    """Raise an :class:`InputError` unless the option is a whole number of at least ``least``."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or operator.index(value) < least:  # type: ignore[arg-type]
        raise InputError(f"{option(name, value)} must be a whole number of at least {least}.")


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
