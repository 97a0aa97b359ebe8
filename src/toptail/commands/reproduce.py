"""``toptail reproduce``: one table or figure of the paper, measured again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.options import Flag, Words
from toptail.commands.study import COMMANDS
from toptail.commands.terminal import print_table, say
from toptail.errors import InputError
from toptail.lab.studies.study import studies, study_of


@dataclass(frozen=True)
class Reproduce:
    """Run what a table or figure of the paper needs, and render it."""

    label: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL")]
    """The paper's label of the table or figure."""
    out: Path | None = None
    """Folder of the study: runs/controlled, runs/semantics or runs/selection unless given. What is
    stored there is not computed again."""
    task: Annotated[Words, tyro.conf.arg(metavar="NAME|FILE")] = ()
    """Data sets, outside the 2-D world: OGBench names, the paper's names, or paths."""
    runs: Path | None = None
    """Folder of trained runs, outside the 2-D world; without it, stored scores are used."""
    train: Flag = False
    """First train what is missing in RUNS."""

    def run(self) -> int:
        """Make what is missing, then print the table or name the figure's files."""
        study = study_of(self.label)
        out = self.out or Path("runs") / study.name
        command = COMMANDS[study.name].for_label(
            self.label, out, self.runs, self.task, train=self.train
        )
        folder, report = command.work(self._line(out))
        tables, figures = study.tables(folder, (self.label,)), study.figures(folder, self.label)
        if not tables and not figures:
            raise InputError(
                f"{folder} has no scores for {self.label}: score what it needs with 'toptail study "
                f"{study.name} --runs RUNS --train'."
            )
        for table in tables:
            print_table(table)
        for figure in figures:
            say(f"Figure: {figure}.svg and .png")
        say(f"Report: {report}")
        return 0

    def _line(self, out: Path) -> str:
        """What to record as the command."""
        flags = [f"--out={out}", *(f"--task={name}" for name in self.task)]
        flags += [f"--runs={self.runs}"] if self.runs else []
        return shlex.join(["toptail", "reproduce", self.label, *flags, *["--train"] * self.train])


def _labels() -> str:
    """The labels that each study makes, as the help lists them."""
    lines = [
        f"{study.where[0].upper()}{study.where[1:]}: {', '.join(study.labels)}."
        for study in studies().values()
    ]
    return " ".join(["The labels are the paper's.", *lines])


Reproduce.__doc__ = f"{Reproduce.__doc__}\n\n    {_labels()}\n    "
