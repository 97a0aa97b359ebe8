"""``toptail demo``: the controlled study in a few minutes, and its report page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from toptail.commands.progress import progress_bar
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.report.table import Table


@dataclass(frozen=True)
class Demo:
    """Train the paper's critics in its 2-D world, let them search, and report what happens.

    Takes a few minutes on two cores: main table, within-model control, best-of-K curves,
    support decomposition, noise, theory checks, claims, and one page with all of it.
    """

    out: Path = Path("toptail-demo")
    """Folder of the run; a killed demo goes on where it stopped."""

    def run(self) -> int:
        """Run the study's default setting, render everything, and say where it is."""
        need_training("demo")
        from toptail.lab.paper import tally
        from toptail.lab.studies.controlled import StudyConfig, run_controlled
        from toptail.lab.studies.controlled.results import read_study
        from toptail.lab.studies.controlled.show import paper_tables
        from toptail.lab.studies.finish import finish_controlled

        config = StudyConfig()
        with progress_bar() as tick:
            run_controlled(config, self.out, tick, command=f"toptail demo --out {self.out}")
            tick("writing the report", 1.0)
            report = finish_controlled(config, self.out)
        study = read_study(self.out)
        for table in paper_tables(study):
            print_table(table)
        counts = ", ".join(f"{count} {status}" for status, count in tally(study.claims).items())
        print(f"Of the paper's statements about this part: {counts}.")
        print(f"Report: {report}")
        return 0


def need_training(command: str) -> None:
    """Refuse in one sentence where the packages that train critics are missing."""
    missing = [name for name in ("jax", "flax", "optax", "safetensors") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"'toptail {command}' trains critics and needs {', '.join(missing)}; "
            "install them with: pip install 'toptail[train]'."
        )


def print_table(table: Table) -> None:
    """Print a table of the report on the terminal."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=f"{table.title} ({table.name})", title_justify="left")
    for column in table.columns:
        grid.add_column(column.label, justify="left" if column.kind == "name" else "right")
    for row in table.rows:
        grid.add_row(*(f"{c.text}\n[dim]{c.detail}[/]" if c.detail else c.text for c in row))
    # A pipe has no width of its own; the default of 80 columns would break every number.
    Console(width=None if sys.stdout.isatty() else 140).print(grid)
