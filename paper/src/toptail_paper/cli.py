"""The command line of the reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import tyro

from toptail import cli
from toptail.commands.run_job import COMMANDS, RunJob
from toptail_paper.commands.demo import ControlledDemo
from toptail_paper.commands.grid import Grid
from toptail_paper.commands.ledger import Reproduce
from toptail_paper.commands.show import Show
from toptail_paper.commands.study import StudyCommand
from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.commands.study_semantics import StudySemantics
from toptail_paper.commands.train_walker import TrainWalker

COMMANDS.update(
    {
        ("study", "controlled"): StudyControlled,
        ("study", "selection"): StudySelection,
        ("study", "semantics"): StudySemantics,
    }
)

_Command = (
    Annotated[StudyCommand, tyro.conf.subcommand("study")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Grid, tyro.conf.subcommand("grid")]
    | Annotated[TrainWalker, tyro.conf.subcommand("train-walker")]
    | Annotated[ControlledDemo, tyro.conf.subcommand("demo")]
    | Annotated[RunJob, tyro.conf.subcommand("run-job")]
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
