"""The two command lines, told apart by the command that is typed."""

from __future__ import annotations

from collections.abc import Sequence

from toptail import cli
from toptail_paper.cli import PAPER


def program_of(words: Sequence[str]) -> cli.Program:
    """The program that knows a command line."""
    return PAPER if words and words[0] in PAPER.commands else cli.TOPTAIL
