"""What the flags of several commands have in common: old spellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {"train": {"--critic": "--critics"}}
"""Command to the flags that it once had, and what they are called now."""


def new_spellings(words: Sequence[str]) -> list[str]:
    """The words of a command line with old flags renamed."""
    old = OLD_SPELLINGS.get(words[0], {}) if words else {}

    def renamed(word: str) -> str:
        flag, equals, value = word.partition("=")
        return f"{old.get(flag, flag)}{equals}{value}"

    return [renamed(word) for word in words]
