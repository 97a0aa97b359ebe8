"""Standard output and error as a command needs them, whatever they are connected to."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path


class Patient(TextIOWrapper):
    """Text to whoever reads, until nobody does: then the work goes on, and the exit code counts.

    A reader such as ``head`` leaves when it has seen enough; a check must still be made.
    """

    def write(self, text: str) -> int:
        """Write; in vain once the reader is gone."""
        try:
            return super().write(text)
        except BrokenPipeError:
            drop(self.fileno())
            return len(text)

    def flush(self) -> None:
        """Flush; in vain once the reader is gone."""
        try:
            super().flush()
        except BrokenPipeError:
            drop(self.fileno())


def open_output() -> None:
    """Make both outputs take any character and any reader, also where they are closed."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdout, TextIOWrapper):
        how = (sys.stdout.encoding, "backslashreplace", None, sys.stdout.line_buffering)
        sys.stdout = Patient(sys.stdout.detach(), *how)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def drop(handle: int) -> None:
    """Let what is still to be written to an open file vanish."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)
