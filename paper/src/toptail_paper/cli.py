"""The command line of the reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import tyro

from toptail import cli
from toptail_paper.commands.all import All
from toptail_paper.commands.check_data import CheckData
from toptail_paper.commands.grid import Grid
from toptail_paper.commands.ledger import Ledger
from toptail_paper.commands.show import Show
from toptail_paper.commands.study import StudyCommand
from toptail_paper.commands.train_walker import TrainWalker

_Command = (
    Annotated[StudyCommand, tyro.conf.subcommand("study")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Ledger, tyro.conf.subcommand("ledger")]
    | Annotated[Grid, tyro.conf.subcommand("grid")]
    | Annotated[All, tyro.conf.subcommand("all")]
    | Annotated[TrainWalker, tyro.conf.subcommand("train-walker")]
    | Annotated[CheckData, tyro.conf.subcommand("check-data")]
)

PAPER = cli.Program(
    "toptail-paper", _Command, "The reproduction of 'Good Rankers, Bad Objectives'."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return cli.main(argv, PAPER)


def run() -> None:
    """Entry point of the console script."""
    cli.run(PAPER)
