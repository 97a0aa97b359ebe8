"""``toptail plan``: which candidates of a table to judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.lists import names
from toptail.commands.options import Words
from toptail.commands.terminal import say
from toptail.judging.plan import plan

_Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]


@dataclass(frozen=True)
class PlanCommand:
    """Say which candidates of a table to judge, so that the verdicts are decided soonest.

    The file has one row per candidate, with its ids and the chances that the audit needs; let
    them be judged, and give the plan and the answers to 'toptail audit TABLE --plan --answers'.
    """

    table: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")]
    """The table of scored candidates; it needs no values."""
    out: Path = Path("to_judge.parquet")
    """File of the plan: Parquet or Arrow, which can be extended, CSV or JSON."""
    labels: Annotated[int | None, tyro.conf.arg(metavar="M")] = None
    """The most candidates that may be judged, those of --extend included."""
    half_width: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """Instead of --labels: the half-width that every captured share should have."""
    scores: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Score columns, separated by commas; by default every number column that may be one."""
    query: _Column = None
    """The column that says which candidates form one pool; by default 'query'."""
    candidate: _Column = None
    """A column of labels that are unique inside a query; by default 'candidate'."""
    values: _Column = None
    """Values of some candidates, from a pilot, which say how values spread."""
    cheap: _Column = None
    """The value column of a cheap judge, who judged every candidate."""
    spread: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """The standard deviation of values inside a query, where it is known."""
    min_pool: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Leave out pools with fewer candidates; by default those below the 5 % quantile of sizes."""
    seed: int = 0
    """Seed of the draws."""
    looks: int = 1
    """After how many batches the audit may be looked at, the first included."""
    extend: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """An earlier plan of this table: everything it asked for stays."""

    def run(self) -> int:
        """Plan, write, and say what is to be expected."""
        found = plan(
            self.table,
            labels=self.labels,
            half_width=self.half_width,
            query=self.query,
            candidate=self.candidate,
            scores=names(self.scores) or None,
            values=self.values,
            cheap=self.cheap,
            spread=self.spread,
            min_pool=self.min_pool,
            seed=self.seed,
            looks=self.looks,
            extend=self.extend,
        )
        found.write(self.out)
        say(f"{found.summary()}.")
        if self.extend is not None:
            say(f"{found.fresh:,} of them are new, batch {max(found.table['batch'].to_pylist())}.")
        say(f"\nTo judge: {self.out}")
        return 0
