"""``toptail-paper grid``: a declared grid of trainings, from its file to its answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail_paper.grids.grid import DeclaredGrid
from toptail.commands.flags import OUTPUT, SCALE, JobFlags, command_line, need_training
from toptail.commands.terminal import progress_bar, say


@dataclass(frozen=True)
class Grid(JobFlags):
    """Answer a question by a grid of trainings that was declared in a file.

      toptail-paper grid plans/positives.json --out runs/positives

    The file says what is trained, with which seeds, what is read, and what would count as an
    answer. Killed at any moment, the same command goes on.
    """

    grid: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="GRID.json")]
    """The declaration: see docs/settle.md, and plans/ for those of the paper's open questions."""
    out: Annotated[Path, OUTPUT]
    """Folder of the results."""
    small: Annotated[bool, SCALE] = False
    """Run the trial that the file declares: every step at its smallest, and no answer."""
    price: Annotated[bool, OUTPUT] = False
    """Say how many trainings it takes, and do nothing."""
    networks: Path | None = None
    """Folder of final networks: a training whose network another grid left there is not repeated.
    OUT/networks unless given."""
    so_far: Annotated[bool, OUTPUT] = False
    """Train nothing, and say what the finished cells decide."""

    @cached_property
    def declared(self) -> DeclaredGrid:
        from toptail_paper.grids.grid import read_grid

        return read_grid(self.grid, small=self.small)

    def run(self) -> int:
        declared = self.declared
        if self.price:
            trainings = f"{declared.price} trainings of {declared.steps[-1]:,} steps"
            say(f"{trainings}, read as {len(list(declared.cells()))} cells.")
            return 0
        need_training("grid")
        if not self.so_far and self.by_jobs():
            return 0
        from toptail_paper.grids.run import RESULTS, run_grid

        how: dict[str, Any] = {"small": self.small, "networks": self.networks}
        with progress_bar() as tick:
            found = run_grid(declared, self.out, command_line(), tick, so_far=self.so_far, **how)
        _print_answer(found)
        say(f"Results: {self.out / RESULTS}")
        return 0

    def jobs(self) -> list[Job]:
        """One job per batch of trainings; the command itself answers."""
        from toptail_paper.grids.run import grid_jobs

        return grid_jobs(self.declared, self.out, self.networks)


def _print_answer(found: dict[str, Any]) -> None:
    from toptail_paper.grids.rules import sentence

    marked = sum(
        bool(entry["marked"]) for cells in found["cells"].values() for entry in cells.values()
    )
    if marked:
        say(f"{marked} cells have a seed that failed or collapsed.")
    say(sentence(found["answer"]))
