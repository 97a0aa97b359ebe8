"""``toptail audit``: from a table of scores to verdicts and a report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail.commands.progress import progress_bar
from toptail.errors import InputError

STATUSES = ("safe", "no gain", "unsafe", "inconclusive")


@dataclass(frozen=True)
class Audit:
    """Tell whether each scorer of a table is safe to maximize.

    The table (Parquet, CSV, JSON Lines, Arrow or npz) has one row per candidate with the
    columns 'query', one or more scores and a value, or one row per query with lists.
    """

    table: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")] = None
    """The table of scored candidates."""
    out: Path = Path("toptail-audit")
    """Folder for audit.json, audit.md, audit.tex and report.html."""
    scores: Annotated[str | None, tyro.conf.arg(metavar="A,B,...")] = None
    """Score columns, separated by commas; by default every number column that is not a value."""
    values: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """The value column to judge by; by default 'value' or 'correct'."""
    replicates: Annotated[str | None, tyro.conf.arg(metavar="V1,V2,...")] = None
    """Two or more value columns that are independent replicates of one noisy judge."""
    k: Annotated[str | None, tyro.conf.arg(metavar="1,2,4,...")] = None
    """Candidate counts, separated by commas; by default powers of two up to the smallest pool."""
    query: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """The column that says which candidates form one pool; by default 'query'."""
    group: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """A column of query labels to report by; by default 'group' where there is one."""
    cluster: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """A column of query labels to resample by; by default 'cluster' where there is one."""
    support: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """A true/false column: is the candidate on the data support; by default 'support'."""
    picks: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Instead of a table: judged picks with the columns query, selector, value, replicate."""
    seed: int = 0
    """Seed of the bootstrap."""
    resamples: int = 10_000
    """Bootstrap resamples."""
    delta: float = 0.02
    """A fall of more than this share of the headroom is harm."""
    rho: float = 0.10
    """A harm above this share of the headroom must be ruled out for 'safe'."""
    level: float = 0.95
    """Confidence of intervals and bands."""
    fail_on: Annotated[str | None, tyro.conf.arg(metavar="STATUS,...")] = None
    """Exit with code 1 if a verdict is one of these statuses, separated by commas."""

    def run(self) -> int:
        """Read, audit, write, and print the summary."""
        fail_on = self._fail_on()
        self._check()
        from toptail.report import summary_lines
        from toptail.results import write_report

        result = self._audit_picks() if self.picks is not None else self._audit_pools()
        report = write_report(result, self.out)
        print("\n".join(summary_lines(result)))
        print(f"\nReport: {report}")
        statuses = {s["verdict"]["status"] for s in result.get("scorers", {}).values()}
        return 1 if statuses & fail_on else 0

    def _check(self) -> None:
        if (self.table is None) == (self.picks is None):
            raise InputError("Give one table of scored candidates, or --picks with judged picks.")
        if self.picks is not None and self.fail_on:
            raise InputError("--fail-on needs verdicts, and picks have none.")
        if not 0 < self.level < 1:
            raise InputError(f"--level must lie between 0 and 1, not {self.level:g}.")
        if self.resamples < 100:
            raise InputError(f"--resamples must be at least 100, not {self.resamples}.")
        if self.seed < 0 or self.delta < 0 or self.rho < 0:
            raise InputError("--seed, --delta and --rho must not be negative.")
        if self.out.exists() and not self.out.is_dir():
            raise InputError(f"{self.out} is a file; --out needs a folder.")

    def _fail_on(self) -> set[str]:
        wanted = set(_split(self.fail_on) or ())
        unknown = sorted(wanted - set(STATUSES))
        if unknown:
            raise InputError(
                f"--fail-on: '{unknown[0]}' is not a status; those are {', '.join(STATUSES)}."
            )
        return wanted

    def _audit_pools(self) -> dict[str, Any]:
        from toptail.audit import audit
        from toptail.pools import ScoredPools

        assert self.table is not None
        names = {
            part: column
            for part in ("query", "group", "cluster", "support")
            if (column := getattr(self, part)) is not None
        }
        replicates = _split(self.replicates)
        with progress_bar() as tick:
            tick("reading the table", 0.0)
            pools = ScoredPools.read(
                self.table,
                scores=_split(self.scores),
                values=replicates or _split(self.values),
                names=names,
            )
            return audit(
                pools,
                values=self.values if replicates is None else None,
                replicates=replicates,
                k=self._counts(),
                seed=self.seed,
                resamples=self.resamples,
                delta=self.delta,
                rho=self.rho,
                level=self.level,
                group_column=self.group or "group",
                cluster_column=self.cluster or "cluster",
                command=_command(),
                tick=tick,
            )

    def _audit_picks(self) -> dict[str, Any]:
        from toptail.audit import audit_picks
        from toptail.pools import JudgedPicks

        assert self.picks is not None
        return audit_picks(
            JudgedPicks.read(self.picks),
            seed=self.seed,
            resamples=self.resamples,
            level=self.level,
            command=_command(),
        )

    def _counts(self) -> list[int] | None:
        parts = _split(self.k)
        if parts is None:
            return None
        try:
            return [int(part) for part in parts]
        except ValueError:
            raise InputError(
                f"--k takes whole numbers separated by commas, as in 1,2,4,8; not '{self.k}'."
            ) from None


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _command() -> str:
    return shlex.join(["toptail", *sys.argv[1:]])
