"""Standard output and error as a command needs them, whatever they are connected to."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path


class PipeOutput(TextIOWrapper):
    """Standard output that ignores a closed pipe.

    A reader such as ``head`` may close it early; the command still finishes, with its exit code.
    """

    def write(self, text: str) -> int:
        """Write; drop the text once the pipe is closed."""
        try:
            return super().write(text)
        except BrokenPipeError:
            drop(self.fileno())
            return len(text)

    def flush(self) -> None:
        """Flush; do nothing once the pipe is closed."""
        try:
            super().flush()
        except BrokenPipeError:
            drop(self.fileno())


def open_output() -> None:
    """Make both outputs take any character, a closed pipe, and being closed from the start."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdout, TextIOWrapper):
        how = (sys.stdout.encoding, "backslashreplace", None, sys.stdout.line_buffering)
        sys.stdout = PipeOutput(sys.stdout.detach(), *how)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def drop(handle: int) -> None:
    """Redirect an open file to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)
