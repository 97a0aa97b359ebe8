"""A claim of the paper, and the other settings in which its criterion is asked, too.

In the controlled world a statement about a trained critic is asked in every setting of the sweeps:
the whole criterion, of the results as if that setting were the default. Critics that a setting did
not train anew are the default's: a temperature changes nothing about TD-Q. On recorded data,
statements about cosine critics are asked at every temperature and loss of the temperature study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from toptail_paper.claims.criteria import Criterion
from toptail_paper.claims.findings import Answer, Finding, against_reported, in_settings
from toptail_paper.claims.grids import SettledGrid
from toptail_paper.claims.numbers import NotMeasuredError, Tables, number

TASK = "controlled"
"""The controlled world, as its tables name it."""


class Quoted(TypedDict):
    """Another place where the paper says the same."""

    sentence: str
    where: str
    """Section, table or figure label in the paper."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the criterion that decides it."""

    id: str
    """Short stable name."""
    sentence: str
    """The paper's statement, quoted or closely paraphrased."""
    label: str
    """Section, table or figure label in the paper."""
    criterion: Criterion
    settings: Sweeps | Temperatures | None = None
    """Settings in which the criterion is asked, too."""
    also: tuple[Quoted, ...] = ()
    """Other places where the paper says it."""
    grids: tuple[SettledGrid, ...] = ()
    """Declared grids of trainings in which the statement is asked, too."""

    def decide(self, tables: Tables) -> Finding:
        """What stored results say; raises `NotMeasuredError` where they do not suffice."""
        finding = self.criterion(tables)
        if self.settings is not None:
            finding = self.settings.ask(self, finding, tables)
        for grid in self.grids:
            finding = grid.ask(finding, tables)
        return against_reported(finding, *self.criterion.reported(tables))

    @property
    def stated(self) -> str:
        """The criterion in words, settings included."""
        words = self.criterion.stated() + (self.settings.words if self.settings else "")
        return words + "".join(f"; {grid.words}" for grid in self.grids)


@dataclass(frozen=True)
class Sweeps:
    """The settings of the controlled world's sweeps."""

    critics: Sequence[str]
    """The critics and readouts that the statement speaks of; other settings stay out."""

    words = "; in every swept setting, too"

    def ask(self, claim: Claim, finding: Finding, tables: Tables) -> Finding:
        answers = self.answers(claim.criterion, tables)
        if not answers:
            text = " No sweep has what it asks: decided at the default setting alone."
            return replace(finding, comment=finding.comment + text)
        return in_settings(finding, answers, "The whole criterion in the sweeps", "the setting")

    def answers(self, criterion: Criterion, tables: Tables) -> dict[str, Answer]:
        """Whether the whole criterion holds, by setting; settings that lack a number stay out."""
        found: dict[str, Answer] = {}
        for name, row in swept_settings(tables):
            if set(self.critics) & set(row):
                try:
                    status = criterion(at_setting(tables, name, row)).status
                except NotMeasuredError:
                    continue
                answers: dict[str, Answer] = {"depends": False, "not seen": False}
                answer = answers.get(status, None if status == "inconclusive" else True)
                found[name.partition("@")[2]] = answer
        return found


@dataclass(frozen=True)
class Temperatures:
    """The settings of the temperature study, without those in which a seed collapsed."""

    metric: str
    """The metric of the temperature study on which the criterion's condition is asked."""
    what: str
    """What that metric is."""

    @property
    def words(self) -> str:
        """How the declared criterion says it."""
        return f"; where the temperature study was run, {self.what} in all its settings"

    def ask(self, claim: Claim, finding: Finding, tables: Tables) -> Finding:
        """The finding with what the temperature study says, where it was run."""
        condition = claim.criterion.condition
        assert condition is not None, claim.id
        answers = {
            name: condition.answer(x) for name, x in by_temperature(tables, self.metric).items()
        }
        kind = f"At other temperatures and losses, {self.what} {condition}"
        on = "the temperature and the loss"
        return in_settings(finding, answers, kind, on) if answers else finding


def by_temperature(tables: Tables, metric: str) -> dict[str, Any]:
    """A metric in every setting of the temperature study in which no seed collapsed."""
    return {
        f"{setting} on {task}": number(tables, "temperature", task, setting, metric)
        for task, by_setting in tables.get("temperature", {}).get("rows", {}).items()
        for setting, cells in by_setting.items()
        if metric in cells and cells["collapsed"]["mean"] == 0
    }


def swept_settings(tables: Tables) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every swept setting but the default, with the critics trained in it; each one once."""
    found = [
        (name, row)
        for table in sorted(tables)
        if table.startswith("sweep-")
        for name, row in tables[table]["rows"].items()
        if name not in tables[table].get("default", ())
    ]
    rows: list[Mapping[str, Any]] = []
    for name, row in sorted(found, key=lambda setting: setting[0].count("=")):
        if row not in rows:  # two sweeps may meet in a setting; its shorter name stays
            rows.append(row)
            yield name, row


def at_setting(tables: Tables, name: str, row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The results as if a setting were the default; what was not stored of it is left out."""
    view = dict(tables)
    for table in ("toy-support", "toy-within"):
        if table in view:
            cells = view[table]["rows"][TASK]
            view[table] = {"rows": {TASK: {c: row.get(c, cell) for c, cell in cells.items()}}}
    decomposed = view.pop("support-decomposition", {}).get("rows", {})
    if name in decomposed:
        view["support-decomposition"] = {"rows": {TASK: decomposed[name]}}
    if "curves" in view:
        critics = view["curves"]["critics"]
        ends = {c: _ends(y, row[c]) if c in row else y for c, y in critics.items()}
        view["curves"] = {**view["curves"], "critics": ends}
    return view


def _ends(curves: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
    """Curves of a critic that a setting trained: a random candidate, then the largest K.

    The pools are the same in every setting, and so is a random candidate of them.
    """
    return {
        name: {
            "seeds": {
                seed: [*y[:1], cells[name]["seeds"][seed]]
                for seed, y in curves[name]["seeds"].items()
                if seed in cells[name]["seeds"]
            },
            "mean": [curves[name]["mean"][0], cells[name]["mean"]],
        }
        for name in ("value", "off_support", "regret")
        if name in curves and name in cells
    }
