"""``toptail reproduce``: one table or figure of the paper, measured again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.demo import need_training, print_table
from toptail.commands.progress import progress_bar
from toptail.errors import InputError

TABLES = ("tab:toy-support", "tab:r-sweep", "tab:toy-within")
"""Tables of the controlled part."""
FIGURES = ("fig:curse", "fig:toy-regret", "fig:landscape", "fig:cartoon")
"""Figures of the controlled part."""
RADII = (0.25, 0.40, 0.55)
"""Support radii of the paper's radius sweep."""


@dataclass(frozen=True)
class Reproduce:
    """Run what a table or figure of the paper needs, and render it.

    The labels are the paper's: tab:toy-support, tab:r-sweep, tab:toy-within, fig:curse,
    fig:toy-regret, fig:landscape, fig:cartoon.
    """

    label: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LABEL")]
    """The paper's label of the table or figure."""
    out: Path = Path("runs/controlled")
    """Folder of the run. Critics that are stored there are not trained again."""

    def run(self) -> int:
        """Train what is missing, then print the table or name the figure's files."""
        if self.label not in (*TABLES, *FIGURES):
            known = ", ".join((*TABLES, *FIGURES))
            raise InputError(f"'{self.label}' is not a label of the paper known here: {known}.")
        need_training("reproduce")
        from toptail.report.study_data import read_study
        from toptail.report.study_figures import drawings
        from toptail.report.study_tables import paper_tables
        from toptail.studies.controlled import StudyConfig, run_controlled
        from toptail.studies.finish import finish_controlled

        config = StudyConfig(radii=RADII if self.label == "tab:r-sweep" else ())
        with progress_bar() as tick:
            command = f"toptail reproduce {self.label} --out {self.out}"
            run_controlled(config, self.out, tick, command=command)
            tick("writing the report", 1.0)
            report = finish_controlled(config, self.out)
        study = read_study(self.out)
        for table in paper_tables(study):
            if table.name == self.label:
                print_table(table)
        for drawing in drawings(study):
            if drawing.label == self.label:
                print(f"Figure: {self.out / 'figures' / drawing.name}.svg and .png")
        print(f"Report: {report}")
        return 0
