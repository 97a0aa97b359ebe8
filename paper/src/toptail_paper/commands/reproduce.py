"""``toptail-paper reproduce``: one table or figure of the paper, measured again; or the ledgers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import tyro

from toptail.commands.options import Flag, Words
from toptail.commands.terminal import print_table, say
from toptail.errors import InputError, option
from toptail_paper.claims.published import require_own
from toptail_paper.commands.study import COMMANDS
from toptail_paper.study.study import studies, studies_of, study_in

LEDGER: Final = "ledger"
"""The label of all ledgers."""


@dataclass(frozen=True)
class Reproduce:
    """Run what a table or figure of the paper needs, and render it."""

    label: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL")]
    """The paper's label of the table or figure; 'ledger' decides every ledger below OUT again, from
    its stored files alone."""
    out: Path | None = None
    """Folder of the study: runs/controlled, runs/semantics or runs/selection unless given (for the
    ledgers: results). What is stored there is not computed again."""
    task: Annotated[Words, tyro.conf.arg(metavar="NAME|FILE")] = ()
    """Data sets, outside the 2-D world: OGBench names, the paper's names, or paths."""
    runs: Path | None = None
    """Folder of trained runs, outside the 2-D world; without it, stored scores are used."""
    train: Flag = False
    """First train what is missing in RUNS."""
    cells: Flag = False
    """With the ledgers: also list every number of the paper with what was measured below OUT, or
    why it was not, in OUT/cells.md."""

    def run(self) -> int:
        """Make what is missing, then print the table or name the figure's files."""
        if self.label == LEDGER:
            return decide_ledgers(self.out or Path("results"), cells=self.cells)
        if self.cells:
            raise InputError(f"{option('cells')} belongs to the label '{LEDGER}': leave it out.")
        found = studies_of(self.label)
        # What both worlds have is made in the 2-D one, unless flags of recorded tasks are given.
        study = found[-1 if self.task or self.runs else 0]
        out = self.out or Path("runs") / study.name
        require_own(out)
        command = COMMANDS[study.name].for_label(
            self.label, out, self.runs, self.task, train=self.train
        )
        folder, report = command.work(self._line(out))
        tables, figures = study.tables(folder, (self.label,)), study.figures(folder, self.label)
        if not tables and not figures:
            raise InputError(
                f"{folder} has no scores for {self.label}: score what it needs with "
                "'toptail-paper study "
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


def decide_ledgers(out: Path, *, cells: bool = False) -> int:
    """Decide every ledger below a folder again, and say how many statements have each status.

    Folders of the selection study hold a task each: side by side, they get a ledger over all tasks.
    ``cells`` lists the paper's numbers, too.
    """
    from toptail_paper.claims import annotate, counted, write_across
    from toptail_paper.claims.ledger_over_tasks import STUDY
    from toptail_paper.claims.published import summary, write_cells

    beside: dict[Path, list[Path]] = {}
    for folder in _decided_folders(out):
        study = study_in(folder).name
        say(f"{folder}: {counted(annotate(folder, study))}.")
        if study == STUDY:
            beside.setdefault(folder.parent, []).append(folder)
    for above, folders in beside.items():
        if len(folders) > 1:
            say(f"{above}, over {len(folders)} tasks: {counted(write_across(above, folders))}.")
    if cells:
        say(f"{out}: {summary(write_cells(out))}.")
    return 0


def _decided_folders(out: Path) -> list[Path]:
    """The folders of studies below a folder that have a ledger."""
    from toptail.io.files import entries

    found = [path.parent for path in entries(out, "**/claims.json")]
    # What stands above other ledgers is made of them.
    folders = [folder for folder in found if not any(folder in each.parents for each in found)]
    if not folders:
        raise InputError(
            f"There is no ledger below {out} (no claims.json): name a folder that 'toptail-paper "
            "study' "
            f"wrote with {option('out', 'FOLDER')}."
        )
    return folders


def _labels() -> str:
    """The labels that each study makes, as the help lists them."""
    lines = [
        f"{study.where[0].upper()}{study.where[1:]}: {', '.join(study.labels)}."
        for study in studies().values()
    ]
    return " ".join(["The labels are the paper's.", *lines, f"All ledgers: {LEDGER}."])


Reproduce.__doc__ = f"{Reproduce.__doc__}\n\n    {_labels()}\n    "
