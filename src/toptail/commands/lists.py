"""Flags that take several values: given one by one, or separated by commas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, TypeVar

from toptail.errors import InputError

Number = TypeVar("Number", int, float)
Group = TypeVar("Group")

_COMMA: Final = re.compile(r",(?![^\[]*\])")


def parts(words: Sequence[str]) -> tuple[str, ...]:
    """What stands between commas, in one word or several; ``raw[hidden=64,depth=2]`` is one."""
    found = [part.strip() for word in words for part in _COMMA.split(word)]
    return tuple(part for part in found if part)


def names(words: Sequence[str]) -> tuple[str, ...]:
    """Names given one by one or separated by commas, each once."""
    return tuple(dict.fromkeys(parts(words)))


def statuses(words: Sequence[str], known: Collection[str]) -> set[str]:
    """What ``--fail-on`` asks for: nothing where it is not given, else statuses, none empty.

    An empty word may be a variable that was not set, and a check of nothing would always pass.
    """
    wanted = {part.strip() for word in words for part in word.split(",")}
    unknown = sorted(wanted - set(known))
    if unknown:
        raise InputError(
            f"--fail-on: '{unknown[0]}' is not a status; those are {', '.join(known)}."
        )
    return wanted


def numbers(flag: str, words: Sequence[str], kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Numbers given one by one or separated by commas, at least one."""
    try:
        found = tuple(kind(part) for part in parts(words))
    except ValueError:
        found = ()
    if not found:
        whole, example = ("whole ", "42,43,44") if kind is int else ("", "0.25,0.40")
        raise InputError(
            f"{flag} takes {whole}numbers separated by commas, as in {example}; not "
            f"'{','.join(words)}'."
        )
    return found


def filled(group: type[Group], flags: object, **more: Any) -> Group:
    """A group of arguments, from the flags of the same names that were given."""
    names = {field.name for field in fields(group)}  # type: ignore[arg-type]
    found = {name: getattr(flags, name) for name in names if hasattr(flags, name)} | more
    return group(**{name: x for name, x in found.items() if x is not None and x != ()})


def unjudged(word: str | None) -> float | Literal["bounds"] | None:
    """What ``--unjudged`` says: zero, a number, or bounds."""
    if word is None:
        return None
    if word == "bounds":
        return "bounds"
    try:
        return 0.0 if word == "zero" else float(word)
    except ValueError:
        raise InputError(f"--unjudged {word} must be zero, a number, or bounds.") from None


def value_range(words: Sequence[str]) -> tuple[float, float] | None:
    """What ``--value-range`` says: the smallest and the largest value, or nothing."""
    if not words:
        return None
    ends = numbers("--value-range", words, float)
    if len(ends) != 2:
        raise InputError("--value-range takes the smallest and the largest value, as in 0,1.")
    return ends[0], ends[1]
