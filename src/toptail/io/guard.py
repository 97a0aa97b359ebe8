"""The door for every file that a person gives: what cannot be read is said in one sentence.

Whatever a parser throws on a damaged or hostile file becomes an :class:`InputError`, and what a
file would unpack to is looked at before room is made for it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, NotDoneError, printable, told
from toptail.memory import scarce

MOST: Final = "TOPTAIL_MAX_GB"
"""Environment variable, also set by ``--max-gb``: gigabytes that a file may unpack to."""

_RATIO: Final = 1_000
_UNSUSPECTED: Final = 1 << 30
"""A file may unpack to a thousand times its size, or to a gigabyte."""


@contextmanager
def refusing(
    path: object, what: str, advice: str = "it may be truncated or of another type"
) -> Iterator[None]:
    """Turn whatever is raised about a person's file into a sentence: ``PATH WHAT (…); ADVICE``."""
    try:
        yield
    except (InputError, NotDoneError, NameError):  # a NameError is a bug
        raise
    except Exception as error:
        if scarce(error):
            raise NotDoneError(f"{path}: that takes more memory than there is.") from None
        if isinstance(error, OSError) and error.errno:  # of the system, not of a parser
            raise told(error, path) from error
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else brief(error)
        raise InputError(f"{path} {what} ({why}); {advice}.") from error


def brief(error: object) -> str:
    """What an error or a server says, on one line and not too long."""
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def check_unpacked(path: Path | str, size: int, packed: int | None = None) -> None:
    """Raise :class:`InputError` where a file unpacks to much more than it is, or than fits.

    ``packed`` is its size, where it is no file of its own.
    """
    packed = Path(path).stat().st_size if packed is None else packed
    allowed = allowed_bytes()
    if allowed is None:
        allowed = max(_RATIO * packed, _UNSUSPECTED)
        if (memory := _memory()) is not None:
            allowed = min(allowed, memory)
    if size > allowed:
        raise InputError(
            f"{path}: unpacks to {size / 1e9:,.1f} GB from {packed / 1e6:,.1f} MB, and "
            f"{allowed / 1e9:,.1f} GB are allowed; if the file is what it should be, allow more "
            f"with --max-gb, or {MOST} in the environment."
        )


def allowed_bytes() -> float | None:
    """Bytes that a person allowed."""
    text = os.environ.get(MOST)
    if not text:
        return None
    try:
        allowed = 1e9 * float(text)
    except ValueError:
        allowed = -1.0
    if not allowed > 0:
        raise InputError(f"--max-gb {text} ({MOST}) is no number of gigabytes above 0.")
    return allowed


def _memory() -> int | None:
    """Bytes of memory that the machine has; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def read_json(path: Path, advice: str, what: str = "cannot be read as JSON") -> Any:
    """The content of a JSON file, with finite numbers only, or a sentence with an advice."""
    with refusing(path, what, advice):
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


def read_object(path: Path, advice: str) -> dict[str, Any]:
    """The content of a JSON file that holds an object."""
    content = read_json(path, advice)
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object: {advice}.")
    return content
