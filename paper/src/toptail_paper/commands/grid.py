"""``toptail-paper grid``: a declared plan, from its grid to its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.commands.options import Flag, command_line
from toptail.commands.progress import progress_bar
from toptail.commands.requirements import need_training
from toptail.commands.terminal import say
from toptail.errors import InputError, option

if TYPE_CHECKING:
    from toptail_paper.grids.grid import PlanPart


@dataclass(frozen=True)
class Grid:
    """Answer a question by a grid of trainings that was declared in a file.

    The plan says what is trained, with which seeds, what is read, and what would count as an
    answer. Killed at any moment, the same command goes on.
    """

    plan: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PLAN.json")]
    """The plan: see docs/settle.md, and plans/ for those of the paper's open questions."""
    out: Path
    """Folder of the results."""
    small: Flag = False
    """Run the trial that the plan declares: every step at its smallest, and no answer."""
    price: Flag = False
    """Say how many trainings it takes, and do nothing."""
    networks: Path | None = None
    """Folder of final networks: a training that another plan left there is not done again. OUT's
    own unless given."""
    part: Annotated[str, tyro.conf.arg(metavar="I/N")] = "1/1"
    """Do every N-th group of trainings, from the I-th on: calls with other parts, at the same time
    or on other machines, do the rest in the same folder. Whoever finds all of them done answers."""
    so_far: Flag = False
    """Train nothing, and say what the cells that are finished decide."""

    def run(self) -> int:
        """Train and read what is missing, and say the answer."""
        from toptail_paper.grids.grid import read_plan

        plan = read_plan(self.plan, small=self.small)
        cells = list(plan.cells())
        if self.price:
            say(f"{plan.price} trainings of {plan.steps[-1]:,} steps, read as {len(cells)} cells.")
            return 0
        need_training("grid")
        from toptail_paper.grids.run import RESULTS, settle

        part = _part(self.part)
        with progress_bar() as tick:
            found = settle(
                plan, self.out, command_line(), tick,
                small=self.small, networks=self.networks, part=part, so_far=self.so_far,
            )  # fmt: skip
        if not found:
            say(f"Part {self.part} is done; cells of other parts are missing.")
            return 0
        _say(found)
        say(f"Results: {self.out / RESULTS}")
        return 0


def _part(text: str) -> PlanPart:
    from toptail_paper.grids.grid import PlanPart

    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"{option('part', text)} must be I/N with whole numbers, I from 1 to N.")
    return PlanPart(int(number), int(count))


def _say(found: dict[str, Any]) -> None:
    from toptail_paper.grids.rules import said

    marked = sum(
        bool(entry["marked"]) for cells in found["cells"].values() for entry in cells.values()
    )
    if marked:
        say(f"{marked} cells have a seed that failed or collapsed.")
    say(said(found["answer"]))
