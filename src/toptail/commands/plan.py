"""``toptail plan``: which candidates of a table to judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.api import HowJudged, TableColumns, plan
from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    PoolFlags,
    Tables,
    check_tables,
    filled,
    names,
    source,
)
from toptail.commands.terminal import say


@dataclass(frozen=True, kw_only=True)
class PlanCommand(PoolFlags):
    """Say which candidates of a table to judge, so that the verdicts are decided soonest.

      toptail plan scores.parquet --labels 2000
      toptail audit scores.parquet --plan to_judge.parquet --answers judged.csv

    The file has one row per candidate, with its ids and the chances that the audit needs; let
    them be judged, and give the plan and the answers to 'toptail audit'. Without a column that
    names candidates (--candidate) they are numbered by their row in the query, from 0, and the
    rows of the table must stay in their order.
    """

    tables: Tables
    """The table of scored candidates; it needs no values, those of a pilot help."""
    extend: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """An earlier plan of this table: everything it asked for stays."""
    labels: Annotated[int | None, DECIDE, tyro.conf.arg(metavar="N")] = None
    """The most candidates that may be judged, those of --extend included."""
    half_width: Annotated[float | None, DECIDE, tyro.conf.arg(metavar="SHARE")] = None
    """Instead of --labels: the half-width that every captured share should have."""
    spread: Annotated[float | None, DECIDE] = None
    """The standard deviation of values inside a query, where it is known."""
    looks: Annotated[int, DECIDE] = 1
    """After how many batches the audit may be looked at, the first included."""
    out: Annotated[Path, OUTPUT] = Path("to_judge.parquet")
    """File of the plan: Parquet or Arrow, which can be extended, CSV or JSON."""
    seed: Annotated[int, SCALE] = 0
    """Seed of the draws."""

    def run(self) -> int:
        same = ("labels", "half_width", "spread", "min_pool", "seed", "looks", "extend")
        check_tables(self.tables)
        found = plan(
            source(self.tables),
            columns=filled(
                TableColumns, self, scores=names(self.scores), query=self.query_columns()
            ),
            judged=HowJudged(cheap=self.cheap),
            **{name: getattr(self, name) for name in same},
        )
        found.write(self.out)
        say(f"{found.summary()}.")
        if self.extend is not None:
            say(f"{found.fresh:,} of them are new, batch {max(found.table['batch'].to_pylist())}.")
        if found.numbered:
            say(
                "No column names candidates (--candidate), so that each has the number of its row "
                "in the query, from 0: keep the rows of the table in this order."
            )
        say(f"\nTo judge: {self.out}")
        return 0
