"""What a task's folder of the selection study holds for a reader: stored results, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError
from toptail.lab.studies.folder import read_stored
from toptail.lab.studies.semantics.results import scorer_name

SELECTORS: Final[Mapping[str, str]] = {
    "reference": "Best by the reference ensemble",
    "logged": "Logged action",
}
"""Selectors of the rollouts that are no scorers."""

JUDGES: Final[Mapping[str, str]] = {
    "reference": "Reference ensemble",
    "geodesic": "Geodesic distance",
    "rollouts": "Simulator rollouts",
}
"""How the study's own judges are called; a user's keeps its own name."""


def selector_name(selector: str) -> str:
    """Name of a scorer or of another selector, as a reader sees it."""
    return SELECTORS.get(selector) or scorer_name(selector)


def judge_name(judge: str) -> str:
    """Name of a judge, as a reader sees it."""
    return JUDGES.get(judge, judge)


@dataclass(frozen=True)
class SelectionResults:
    """Everything the page is made of."""

    folder: Path
    """``OUT/TASK``."""
    declared: Mapping[str, Any]
    """The declared criteria, with their hash."""
    record: Mapping[str, Any]
    """Command, versions, commit, seconds; empty where the stages were brought by hand."""
    tables: Mapping[str, Mapping[str, Any]]
    """``tables/*.json`` by name."""
    curves: Mapping[str, Any]
    """``curves.json``."""
    claims: Sequence[Mapping[str, Any]]
    """``claims.json``."""
    audits: Mapping[str, Mapping[str, Any]]
    """Judge → its audit."""

    @property
    def task(self) -> str:
        """The task's name in the tables."""
        return str(next(iter(self.tables["fixed-query"]["rows"])))

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """Scorer (or judge) → metric → cell; empty where there is no such table."""
        tasks: Mapping[str, Any] = self.tables.get(table, {}).get("rows", {})
        rows: Mapping[str, Mapping[str, Any]] = tasks.get(self.task, {})
        return rows

    @property
    def judges(self) -> list[str]:
        """Judges that value every candidate, in the order of the curves."""
        return list(self.curves["judges"])

    @property
    def size(self) -> int:
        """Candidates in a pool: the largest K."""
        return int(self.curves["k"][-1])

    def prefix(self, judge: str) -> str:
        """How a judge's metrics begin in the main table."""
        return "" if judge == "reference" else f"{judge}/"


def read_selection_results(folder: str | Path) -> SelectionResults:
    """Read a task's folder after its tables were made.

    Raises
    ------
    InputError
        If the tables are missing, or a file cannot be read.
    """
    path = Path(folder)
    curves = read_stored(path / "curves.json")
    tables = {p.stem: read_stored(p) for p in sorted((path / "tables").glob("*.json"))}
    if curves is None or "fixed-query" not in tables:
        raise InputError(
            f"{path} holds no tables of a selection study; run 'toptail study selection --stage "
            "tables' for this task first."
        )
    judges = list(curves["judges"])
    audits = {
        judge: read_stored(path / ("audit" if i == 0 else f"audit_{judge}") / "audit.json")
        for i, judge in enumerate(judges)
    }
    return SelectionResults(
        folder=path,
        declared=read_stored(path / "declared.json") or {},
        record=read_stored(path / "record.json") or {},
        tables=tables,
        curves=curves,
        claims=read_stored(path / "claims.json") or [],
        audits={judge: audit for judge, audit in audits.items() if audit is not None},
    )
