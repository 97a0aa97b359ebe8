"""What a task's folder of the selection study holds for a reader: stored results, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError
from toptail.io.json_files import read_json_if_exists
from toptail.lab.judges.point import EXACT, EXACT_CONTINUOUS
from toptail_paper.selection.files import REFERENCE
from toptail_paper.study.naming import in_order, scorer_name
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.results import StudyResults, common_parts

SELECTORS: Final[Mapping[str, str]] = {
    "reference": "Best by the reference ensemble",
    "logged": "Logged action",
}
"""Selectors of the rollouts that are no scorers."""

JUDGES: Final[Mapping[str, str]] = {
    "reference": "Reference ensemble",
    EXACT: "Exact value",
    EXACT_CONTINUOUS: "Exact value, continuous",
    EUCLIDEAN: "Euclidean shortest way",
    "rollouts": "Simulator rollouts",
}
"""How the study's own judges are called; a user's keeps its own name."""

INDEPENDENT: Final = (EXACT, EXACT_CONTINUOUS, EUCLIDEAN, "rollouts")
"""Those of them that share nothing with the training of any critic."""


def selector_name(selector: str) -> str:
    """Name of a scorer or of another selector, as a reader sees it."""
    return SELECTORS.get(selector) or scorer_name(selector)


def judge_name(judge: str) -> str:
    return JUDGES.get(judge, judge)


@dataclass(frozen=True)
class SelectionMetric:
    """A metric of the table ``fixed-query``; its text is the key of the stored cell."""

    name: str
    """``tau_b``, ``nregret``, ``pool_nregret`` or ``best_pick``."""
    k: int
    """Candidates that the pick is the best of."""
    judge: str = REFERENCE
    group: str = ""
    """The distance group that it is over; all queries where empty."""

    def __str__(self) -> str:
        judge = "" if self.judge == REFERENCE else self.judge
        return "/".join(filter(None, (judge, f"{self.name}_{self.k}", self.group)))

    def by(self, judge: str) -> SelectionMetric:
        return replace(self, judge=judge)


@dataclass(frozen=True)
class JudgeMetric:
    """A metric of the table ``judges``; its text is the key of the stored cell."""

    name: str
    """What is measured, such as ``spearman`` or ``half_width``."""
    about: str = ""
    """The other judge or the selector that it is about."""
    group: str = ""
    """The distance group that it is over; all queries where empty."""

    def __str__(self) -> str:
        first = (self.about, self.name) if self.name in AGREEMENT else (self.name, self.about)
        return "/".join(filter(None, (*first, self.group)))

    @staticmethod
    def parse(text: str) -> JudgeMetric:
        """The metric that a stored key is the text of."""
        first, _, rest = text.partition("/")
        second, _, group = rest.partition("/")
        if second in AGREEMENT:
            return JudgeMetric(second, first, group)
        grouped = first in ("resolvability", *AGREEMENT)
        return JudgeMetric(first, group=second) if grouped else JudgeMetric(first, second)


AGREEMENT: Final = ("tau_b", "spearman")
"""How two judges, or the members of one, agree within pools."""

_LOOP: Final = "closed_loop/K="


def closed_loop(k: int | str) -> str:
    """The metric of the table ``deployment`` that is success with the best of K at every step."""
    return f"{_LOOP}{k}"


def closed_loop_ks(row: Mapping[str, Any]) -> list[int]:
    return sorted(int(m.removeprefix(_LOOP)) for m in row if m.startswith(_LOOP))


@dataclass(frozen=True)
class SelectionResults(StudyResults):
    """Everything the page is made of."""

    declared: Mapping[str, Any]
    curves: Mapping[str, Any]
    audits: Mapping[str, Mapping[str, Any]]

    @property
    def task(self) -> str:
        return str(next(iter(self.tables["fixed-query"]["rows"])))

    def of_task(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """Scorer (or judge) → metric → cell; empty where there is no such table."""
        rows: Mapping[str, Mapping[str, Any]] = self.rows(table).get(self.task, {})
        return rows

    @property
    def scorers(self) -> list[str]:
        """Rows of the main table with scores; the other selectors only have rollouts."""
        rows = self.of_task("fixed-query")
        return in_order(name for name, row in rows.items() if "base_rate" in row)

    @property
    def judges(self) -> list[str]:
        """Judges that value every candidate, in the order of the curves."""
        return list(self.curves["judges"])

    @property
    def size(self) -> int:
        return int(self.curves["k"][-1])

    @property
    def candidates(self) -> Mapping[str, Any]:
        """Where the candidates came from; empty where a user put the files there."""
        found: Mapping[str, Any] = self.scale.get("candidates", {})
        return found

    def metric(self, name: str, judge: str = REFERENCE, group: str = "") -> str:
        """The key of a metric of the table ``fixed-query`` at the largest K."""
        return str(SelectionMetric(name, self.size, judge, group))

    @property
    def groups(self) -> list[str]:
        return list(self.declared.get("groups", ("near", "medium", "far")))


def read_selection_results(folder: str | Path) -> SelectionResults:
    """Read a task's folder after its tables were made; one without tables is refused."""
    path = Path(folder)
    curves, parts = read_json_if_exists(path / "curves.json"), common_parts(path)
    if curves is None or "fixed-query" not in parts["tables"]:
        raise InputError(
            f"{path} holds no tables of a selection study; run 'toptail-paper study selection "
            "--stage "
            "tables' for this task first."
        )
    audits = {
        judge: read_json_if_exists(path / ("audit" if i == 0 else f"audit_{judge}") / "audit.json")
        for i, judge in enumerate(curves["judges"])
    }
    return SelectionResults(
        **parts,
        declared=read_json_if_exists(path / "declared.json") or {},
        curves=curves,
        audits={judge: audit for judge, audit in audits.items() if audit is not None},
    )
