"""The one exception a person can cause, and the commonest reason for it."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message is one sentence that names the file, column or row, says what was
    expected, and what to do. The command line prints it without a traceback and
    exits with code 2.
    """


def require_count(name: str, value: int) -> None:
    """Refuse a number of things that is not at least 1."""
    if value < 1:
        raise InputError(f"{name} is {value}: expected at least 1.")
