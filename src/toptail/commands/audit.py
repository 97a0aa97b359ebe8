"""``toptail audit``: from a table of scores to verdicts and a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import tyro

from toptail.api import BaselineTable, TableColumns, Thresholds, audit, audit_picks
from toptail.audit.baseline import COMPARISON_STATUSES
from toptail.audit.settings import Rule, Settings
from toptail.audit.verdict import STATUSES, reach
from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    File,
    JudgedFlags,
    RayFlag,
    Share,
    Statuses,
    Tables,
    Words,
    command_line,
    filled,
    names,
    numbers,
    source,
    statuses,
)
from toptail.commands.terminal import progress_bar, say
from toptail.errors import Exit, InputError
from toptail.io.files import check_folder
from toptail.progress import Caller, called_by
from toptail.results import AuditResult, PicksResult

_OF_PICKS: Final = ("query", "values", "cluster", "group", "p_judged")
_OF_TABLES: Final = (
    *("candidate", "scores", "replicates", "k", "delta", "rho", "unit", "min_pool", "value_range"),
    *("baseline", "baseline_scores", "margin", "cheap", "unjudged", "plan", "answers", "pairs"),
    "fail_on",
    "missing",
)
"""Flags that say nothing about picks, which have no candidates, no curves and no verdicts."""


@dataclass(frozen=True, kw_only=True)
class Audit(RayFlag, JudgedFlags):
    """Tell whether each scorer of a table is safe to maximize.

      toptail audit scores.parquet --scores reward
      toptail audit a.jsonl b.jsonl --query policy,prompt --values is_correct
      toptail audit new.csv --scores reward --fail-on unsafe --baseline old.csv

    The table (Parquet, CSV, JSON, JSON Lines, Arrow or npz) has one row per candidate with
    the columns 'query', one or more scores and a value, or one row per query with lists; or it
    is a log of lm-evaluation-harness, Inspect, RewardBench, or a Hugging Face data set's folder.

    Safe here is about taking the best of K of pools like these: not about AI safety, and not
    about training against the score.
    """

    tables: Tables = ()
    """The table of scored candidates: a file, a folder or address of partitioned Parquet, which
    may be larger than memory, or - for standard input. Each of several tables is a group."""
    picks: File = None
    """Instead of a table: judged picks with the columns query, selector, value, replicate."""
    k: Annotated[Words, DECIDE, tyro.conf.arg(metavar="N,N,...")] = ()
    """Candidate counts to show beside the powers of two."""
    delta: Annotated[Share, DECIDE] = None
    """A fall of more than this share of the headroom is harm; 0.02 unless given."""
    rho: Annotated[Share, DECIDE] = None
    """A harm above this share of the headroom must be ruled out for 'safe'; 0.1 unless given."""
    level: Annotated[float, DECIDE] = Rule.level
    """Confidence of intervals and bands."""
    unit: Annotated[Literal["pooled", "query"] | None, DECIDE] = None
    """Measure in all queries' headroom (pooled, unless given) or each query in its own (query)."""
    baseline: Annotated[Path | None, DECIDE, tyro.conf.arg(metavar="TABLE")] = None
    """An older table: each scorer is compared with the one of the same name there."""
    baseline_scores: Annotated[Words, DECIDE, tyro.conf.arg(metavar="OLD=NEW,...")] = ()
    """What scorers of the older table are called in the new one."""
    margin: Annotated[Share, DECIDE] = None
    """A loss of at most this share of the older table's headroom is no loss; 0.02 unless given."""
    fail_on: Statuses = ()
    """Exit with code 1 if a scorer of --scores has such a status, over all queries or in a group,
    or cannot be decided at all."""
    out: Annotated[Path, OUTPUT] = Path("toptail-audit")
    """Folder for audit.json, audit.md, audit.tex and report.html."""
    verbose: Annotated[bool, OUTPUT, tyro.conf.arg(aliases=["-v"])] = False
    """Say more about each scorer."""
    resamples: Annotated[int, SCALE] = Settings.resamples
    """Bootstrap resamples."""
    seed: Annotated[int, SCALE] = Settings.seed
    """Seed of the bootstrap."""

    def run(self) -> int:
        fail_on = self._fail_on()
        check_folder(self.out)
        result = self._result()
        report = result.write(self.out)
        say(result.summary(verbose=self.verbose))
        say(f"\nReport: {report}")
        failed = _failed(result, fail_on) if isinstance(result, AuditResult) else []
        for sentence in failed:
            say(f"--fail-on: {sentence}")
        return Exit.FAILED if failed else Exit.FINE

    def _fail_on(self) -> set[str]:
        wanted = statuses(self.fail_on, dict.fromkeys((*STATUSES, *COMPARISON_STATUSES)))
        compared = wanted & set(COMPARISON_STATUSES) - set(STATUSES)
        if compared and self.picks is None and self.baseline is None:
            raise InputError(f"--fail-on {min(compared)} compares two tables; give --baseline.")
        if wanted and self.picks is None and not names(self.scores):
            raise InputError(
                "--fail-on needs to know which scorers it checks; name them with --scores."
            )
        return wanted

    def _result(self) -> AuditResult | PicksResult:
        if (not self.tables) == (self.picks is None):
            raise InputError("Give a table of scored candidates, or --picks with judged picks.")
        how = self._given("seed", "resamples", "level")
        if self.picks is not None:
            self._refuse_table_flags()
            with called_by(Caller(command_line())):
                return audit_picks(self.picks, **how, **self._given(*_OF_PICKS))
        with progress_bar() as tick, called_by(Caller(command_line(), tick, self.mapped())):
            return audit(
                source(self.tables),
                k=numbers("--k", self.k, int) if self.k else None,
                min_pool=self.min_pool,
                columns=filled(
                    TableColumns, self, scores=names(self.scores), query=self.query_columns()
                ),
                judged=self.judged(),
                thresholds=filled(Thresholds, self),
                baseline=self._older(),
                **how,
            )

    def _older(self) -> BaselineTable | None:
        renamed = self._renamed()
        if self.baseline is not None:
            return filled(BaselineTable, self, source=self.baseline, scores=renamed)
        for flag, value in (("--margin", self.margin), ("--baseline-scores", renamed)):
            if value is not None:
                raise InputError(f"{flag} is about the table that --baseline names; give both.")
        return None

    def _renamed(self) -> dict[str, str] | None:
        """Scorer of the older table -> its name in the new one."""
        pairs = [name.partition("=") for name in names(self.baseline_scores)]
        for old, equals, new in pairs:
            if not (old and equals and new):
                raise InputError(
                    f"--baseline-scores: '{old}{equals}{new}' does not read as OLD=NEW."
                )
        return {old: new for old, _, new in pairs} or None

    def _given(self, *flags: str) -> dict[str, Any]:
        """The flags that were given and that the audits take under the same names."""
        given = {flag: getattr(self, flag) for flag in flags}
        return {flag: value for flag, value in given.items() if value is not None}

    def _refuse_table_flags(self) -> None:
        for flag in _OF_TABLES:
            if getattr(self, flag) not in (None, ()):
                name = flag.replace("_", "-")
                raise InputError(f"--{name} says nothing about judged picks; leave it out.")


def _failed(result: AuditResult, fail_on: set[str]) -> list[str]:
    """Reasons why ``--fail-on`` fails, by scorer; what cannot be decided at all fails, too."""
    failed = []
    if fail_on & set(STATUSES):
        for name, verdict in result.verdicts.items():
            if not verdict.checks:
                failed.append(f"{name}: {verdict.reason}")
            elif verdict.status in fail_on:
                failed.append(f"{name} is {verdict.status} {reach(verdict, result.k[-1])}")
            failed += [
                f"{name} is {found.status} {reach(found, result.k[-1], '')} in the group {group}"
                for group, scorers in result.groups.items()
                if name in scorers and (found := scorers[name].verdict).status in fail_on
            ]
    if result.baseline is not None and fail_on & set(COMPARISON_STATUSES):
        for name, comparison in result.baseline.scorers.items():
            if comparison.low is None or comparison.status in fail_on:
                failed.append(f"{name}, compared: {comparison.status}. {comparison.reason}")
    return failed
