"""Flags that take several values: given one by one, or separated by commas."""

from __future__ import annotations

from collections.abc import Sequence

from toptail.errors import InputError


def names(words: Sequence[str]) -> tuple[str, ...]:
    """Names given one by one or separated by commas, each once."""
    parts = [part.strip() for word in words for part in word.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas, at least one."""
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        numbers = ()
    if not numbers:
        raise InputError(
            f"{flag} takes whole numbers separated by commas, as in 42,43,44; not '{text}'."
        )
    return numbers
