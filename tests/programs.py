"""The two command lines, told apart by the command that is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toptail import cli
from toptail_paper.cli import PAPER

ONLY_PAPER: Final = ("study", "show", "ledger", "grid", "all", "train-walker")
"""Commands that the library does not have."""


def program_of(words: Sequence[str]) -> cli.Program:
    """The program that knows a command line."""
    return PAPER if words[:1] and words[0] in ONLY_PAPER else cli.TOPTAIL
