"""What the flags of several commands have in common: old spellings, and errors that name flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from toptail.errors import InputError

OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {"train": {"--critic": "--critics"}}
"""Command to the flags that it once had, and what they are called now."""


def new_spellings(words: Sequence[str]) -> list[str]:
    """The words of a command line with old flags renamed."""
    old = OLD_SPELLINGS.get(words[0], {}) if words else {}

    def renamed(word: str) -> str:
        flag, equals, value = word.partition("=")
        return f"{old.get(flag, flag)}{equals}{value}"

    return [renamed(word) for word in words]


@contextmanager
def as_flags(command: Any) -> Iterator[None]:
    """Have errors that begin with the name of a command's setting begin with its flag."""
    try:
        yield
    except InputError as error:
        setting, _, rest = str(error).partition(" ")
        if setting not in {field.name for field in fields(command)}:
            raise
        raise InputError(f"--{setting.replace('_', '-')} {rest}") from None
