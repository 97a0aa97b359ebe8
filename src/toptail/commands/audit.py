"""``toptail audit``: from a table of scores to verdicts and a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail.audit import Rule, Settings
from toptail.audit.standing import STANDINGS
from toptail.audit.verdict import STATUSES
from toptail.commands.lists import names, numbers
from toptail.commands.options import Words, command_line
from toptail.commands.progress import progress_bar
from toptail.errors import InputError
from toptail.pools.columns import RESERVED
from toptail.pools.files import check_folder
from toptail.results import AuditResult, PicksResult, audit, audit_picks

_Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]


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
    scores: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Score columns, separated by commas; by default every number column that is not a value."""
    values: _Column = None
    """The value column to judge by; by default 'value' or 'correct'."""
    replicates: Annotated[Words, tyro.conf.arg(metavar="V1,V2,...")] = ()
    """Two or more value columns that are independent replicates of one noisy judge."""
    k: Annotated[Words, tyro.conf.arg(metavar="1,2,4,...")] = ()
    """Candidate counts, separated by commas; by default powers of two up to the smallest pool."""
    query: _Column = None
    """The column that says which candidates form one pool; by default 'query'."""
    candidate: _Column = None
    """A column of labels that are unique inside a query; by default 'candidate'."""
    group: _Column = None
    """A column of query labels to report by; by default 'group' where there is one."""
    cluster: _Column = None
    """A column of query labels to resample by; by default 'cluster' where there is one."""
    support: _Column = None
    """A true/false column: is the candidate on the data support; by default 'support'."""
    picks: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Instead of a table: judged picks with the columns query, selector, value, replicate."""
    seed: int = Settings.seed
    """Seed of the bootstrap."""
    resamples: int = Settings.resamples
    """Bootstrap resamples."""
    delta: float = Rule.delta
    """A fall of more than this share of the headroom is harm."""
    rho: float = Rule.rho
    """A harm above this share of the headroom must be ruled out for 'safe'."""
    level: float = Rule.level
    """Confidence of intervals and bands."""
    baseline: Annotated[Path | None, tyro.conf.arg(metavar="TABLE")] = None
    """An older table: each scorer is compared with the one of the same name there."""
    baseline_scores: Annotated[Words, tyro.conf.arg(metavar="OLD=NEW,...")] = ()
    """What scorers of the older table are called in the new one, separated by commas."""
    margin: float | None = None
    """A loss of at most this share of the older table's headroom is no loss; by default 0.02."""
    fail_on: Annotated[Words, tyro.conf.arg(metavar="STATUS,...")] = ()
    """Exit with code 1 if a verdict, or with --baseline a comparison, is one of these statuses,
    separated by commas."""

    def run(self) -> int:
        """Read, audit, write, and print the summary."""
        fail_on = self._fail_on()
        check_folder(self.out)
        result = self._result()
        report = result.write(self.out)
        print(result.summary())
        print(f"\nReport: {report}")
        return 1 if _statuses(result) & fail_on else 0

    def _fail_on(self) -> set[str]:
        wanted = set(names(self.fail_on))
        if wanted and self.picks is not None:
            raise InputError("--fail-on needs verdicts, and picks have none.")
        compared = wanted & set(STANDINGS) - set(STATUSES)
        if compared and self.baseline is None:
            raise InputError(f"--fail-on {min(compared)} compares two tables; give --baseline.")
        known = dict.fromkeys((*STATUSES, *STANDINGS))
        unknown = sorted(wanted - set(known))
        if unknown:
            raise InputError(
                f"--fail-on: '{unknown[0]}' is not a status; those are {', '.join(known)}."
            )
        return wanted

    def _result(self) -> AuditResult | PicksResult:
        if (self.table is None) == (self.picks is None):
            raise InputError("Give one table of scored candidates, or --picks with judged picks.")
        how = {"command": command_line()} | self._given("seed", "resamples", "level")
        if self.picks is not None:
            for flag in ("baseline", "baseline_scores", "margin"):
                if getattr(self, flag) not in (None, ()):
                    raise InputError(
                        f"--{flag.replace('_', '-')} is about scores, and picks have none."
                    )
            return audit_picks(self.picks, **how)
        with progress_bar() as tick:
            return audit(
                self.table,
                scores=names(self.scores),
                replicates=names(self.replicates),
                k=numbers("--k", self.k, int) if self.k else None,
                tick=tick,
                **how,
                baseline_scores=self._renamed(),
                **self._given(*RESERVED, "values", "delta", "rho", "baseline", "margin"),
            )

    def _renamed(self) -> dict[str, str] | None:
        """Scorer of the older table -> its name in the new one."""
        pairs = [name.partition("=") for name in names(self.baseline_scores)]
        for old, equals, new in pairs:
            if not (old and equals and new):
                raise InputError(
                    f"--baseline-scores: '{old}{equals}{new}' does not read as old=new."
                )
        return {old: new for old, _, new in pairs} or None

    def _given(self, *flags: str) -> dict[str, Any]:
        """The flags that the audits take under the same names."""
        return {flag: getattr(self, flag) for flag in flags}


def _statuses(result: AuditResult | PicksResult) -> set[str]:
    """Every status that --fail-on may name."""
    if isinstance(result, PicksResult):
        return set()
    compared = () if result.baseline is None else result.baseline.scorers.values()
    return {what.status for what in (*result.verdicts.values(), *compared)}
