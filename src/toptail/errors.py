"""The one exception a person can cause."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message is one sentence that names the file, column or row, says what was
    expected, and what to do. The command line prints it without a traceback and
    exits with code 2.
    """
