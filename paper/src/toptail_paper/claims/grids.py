"""Declared grids of trainings (``results/settled``) in which a statement is asked, too.

A cell of a grid is one training setting on one data set. A cell in which a statement holds turns
*not seen* into *depends*: it was not seen at the main setting, and there is a setting that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toptail.lab.tasks.names import parse_name
from toptail_paper.claims.criteria import Condition
from toptail_paper.claims.findings import Answer, Finding, both
from toptail_paper.claims.numbers import Number, Tables, difference, number

SETTLED: Final = "settled"
"""Name of the grids among a study's results, and of their folder."""


@dataclass(frozen=True)
class CellCheck:
    """What a grid's cell must have."""

    metric: str
    condition: Condition
    less: tuple[str, ...] = ()
    """Rows of the main table of retrieval; the lowest of them is subtracted first."""

    def answer(self, data: str, metrics: Mapping[str, Any], tables: Tables) -> Answer:
        """Whether a cell on a data set has it; None where that is open."""
        cell = metrics.get(self.metric)
        if cell is None or cell["mean"] is None:
            return None
        ends = None if cell["low"] is None else (cell["low"], cell["high"])
        x = Number(cell["mean"], ends)
        if self.less:
            task = parse_name(data).title
            others = (number(tables, "retrieval", task, row, self.metric) for row in self.less)
            x = difference(x, min(others, key=lambda other: other.mean))
        return self.condition.answer(x)


@dataclass(frozen=True)
class SettledGrid:
    """Stored grids whose cells are asked, and what they are asked."""

    names: tuple[str, ...]
    """Names of the grids: ``results/settled/NAME.json``."""
    asked: tuple[CellCheck, ...]
    """What a cell must have, all of it."""
    says: str
    """The same in words."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Settings that a cell must have to be asked."""

    @property
    def words(self) -> str:
        """How the declared criterion says it."""
        return f"in the cells of the settled grids {', '.join(self.names)}, {self.says}"

    def ask(self, finding: Finding, tables: Tables) -> Finding:
        """The finding with what the grids say, where they are stored."""
        answers = list(self._answers(tables))
        if not answers:
            return finding
        met, left_open = answers.count(True), answers.count(None)
        text = f" Settled grids ({', '.join(self.names)}), {self.says}: met in {met} of "
        text += f"{len(answers)} cells" + (f", {left_open} open." if left_open else ".")
        finding = replace(finding, comment=finding.comment + text)
        if met and finding.status == "not seen":
            return replace(finding, status="depends", on="the setting")
        return finding

    def _answers(self, tables: Tables) -> Iterator[Answer]:
        grids = tables.get(SETTLED, {})
        for name in self.names:
            for cells in grids.get(name, {}).get("cells", {}).values():
                for cell in cells.values():
                    settings = cell["settings"]
                    if self.where.items() <= settings.items():
                        data, metrics = settings["data"], cell["metrics"]
                        yield both(*(each.answer(data, metrics, tables) for each in self.asked))
