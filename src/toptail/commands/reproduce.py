"""``toptail reproduce``: one table or figure of the paper, measured again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands import study_selection, study_semantics
from toptail.commands.demo import need_training, print_table
from toptail.commands.progress import progress_bar
from toptail.errors import InputError

TABLES = ("tab:toy-support", "tab:r-sweep", "tab:toy-within")
"""Tables of the controlled part."""
FIGURES = ("fig:curse", "fig:toy-regret", "fig:landscape", "fig:cartoon")
"""Figures of the controlled part."""
LABELS = (*TABLES, *FIGURES, *study_semantics.LABELS, *study_selection.LABELS)
"""Every label that can be reproduced."""
RADII = (0.25, 0.40, 0.55)
"""Support radii of the paper's radius sweep."""


@dataclass(frozen=True)
class Reproduce:
    """Run what a table or figure of the paper needs, and render it.

    The labels are the paper's. In the 2-D world: tab:toy-support, tab:r-sweep, tab:toy-within,
    fig:curse, fig:toy-regret, fig:landscape, fig:cartoon. On recorded data: tab:main,
    tab:calibration-summary, tab:retrieval, tab:readout, tab:bellman, tab:ogbench-curse,
    tab:robustness, tab:value-oracle, tab:value-oracle-diffusion, tab:twohead, fig:calibration,
    fig:good-rankers, fig:ogbench-curse, fig:ogbench-drift. At fixed queries: tab:fixed-query,
    tab:function-class.
    """

    label: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL")]
    """The paper's label of the table or figure."""
    out: Path | None = None
    """Folder of the study: runs/controlled, runs/semantics or runs/selection unless given. What is
    stored there is not computed again."""
    task: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME|FILE")
    ] = ()
    """Data sets, outside the 2-D world: OGBench names, the paper's names, or paths."""
    runs: Path | None = None
    """Folder of trained runs, outside the 2-D world; without it, stored scores are used."""
    train: tyro.conf.FlagCreatePairsOff[bool] = False
    """First train what is missing in RUNS."""

    def run(self) -> int:
        """Make what is missing, then print the table or name the figure's files."""
        if self.label not in LABELS:
            known = ", ".join(LABELS)
            raise InputError(f"'{self.label}' is not a label of the paper known here: {known}.")
        if self.label in study_semantics.LABELS:
            out = self.out or Path("runs/semantics")
            study_semantics.reproduce(self.label, out, self.runs, self.task, train=self.train)
        elif self.label in study_selection.LABELS:
            self._selection(self.out or Path("runs/selection"))
        else:
            self._controlled(self.out or Path("runs/controlled"))
        return 0

    def _selection(self, out: Path) -> None:
        """Reproduce a table at fixed queries, of one task."""
        if len(self.task) > 1:
            raise InputError(f"{self.label} is made for one task at a time; give one --task.")
        task = self.task[0] if self.task else "PointMaze"
        study_selection.reproduce(self.label, out, self.runs, task, train=self.train)

    def _controlled(self, out: Path) -> None:
        """Reproduce a table or figure of the 2-D world."""
        if self.task or self.runs or self.train:
            raise InputError(
                f"{self.label} is made in the 2-D world, which trains its own critics: leave out "
                "--task, --runs and --train."
            )
        need_training("reproduce")
        from toptail.lab.studies.controlled import StudyConfig, run_controlled
        from toptail.lab.studies.controlled.figures import drawings
        from toptail.lab.studies.controlled.results import read_study
        from toptail.lab.studies.controlled.show import paper_tables
        from toptail.lab.studies.finish import finish_controlled

        config = StudyConfig(radii=RADII if self.label == "tab:r-sweep" else ())
        with progress_bar() as tick:
            command = f"toptail reproduce {self.label} --out {out}"
            run_controlled(config, out, tick, command=command)
            tick("writing the report", 1.0)
            report = finish_controlled(config, out)
        study = read_study(out)
        for table in paper_tables(study):
            if table.name == self.label:
                print_table(table)
        for drawing in drawings(study):
            if drawing.label == self.label:
                print(f"Figure: {out / 'figures' / drawing.name}.svg and .png")
        print(f"Report: {report}")
