"""What an audit returns: a result that a person can hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
from matplotlib.figure import Figure

from toptail.audit import Verdict
from toptail.audit.baseline import Baseline
from toptail.audit.views import Interval, ScorerResult
from toptail.errors import InputError
from toptail.pools.scored import queries
from toptail.report.arrow import arrow_table, table_names
from toptail.report.figures import draw
from toptail.report.html import notebook_html
from toptail.report.summary import scorer_words, summary_lines
from toptail.report.text import data_sentences, one_line
from toptail.results.folder import read_audit, write_report


class Result:
    """What the results of both kinds of audit have in common.

    Two results are equal if their content is.
    """

    _KIND: ClassVar[str]

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Make a result of the content of an ``audit.json``, which it keeps a copy of."""
        if content.get("kind") != self._KIND:
            raise InputError(
                f"This is an audit of {content.get('kind') or 'an unknown kind'}; "
                f"{type(self).__name__} takes one of {self._KIND}."
            )
        self._content: dict[str, Any] = copy.deepcopy(dict(content))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The result whose :meth:`to_dict` this is."""
        return cls(content)

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Self:
        """The result that :meth:`write` or ``toptail audit`` stored in a folder."""
        return cls(read_audit(folder))

    def to_dict(self) -> dict[str, Any]:
        """The content of ``audit.json``: plain lists, numbers and strings."""
        return copy.deepcopy(self._content)

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``audit.json``, the report and its figures; returns the path of the page."""
        return write_report(self._content, folder)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that :meth:`table` gives."""
        return table_names(self._content)

    def table(self, name: str) -> pa.Table:
        """One of :attr:`tables` with all its digits, as an Arrow table."""
        return arrow_table(self._content, name)

    def plot(self, name: str | None = None) -> Figure:
        """One of the report's figures as a Matplotlib figure, by default the first."""
        return draw(self._content, name)

    def summary(self, *, verbose: bool = False) -> str:
        """The result in words, as the command line prints it; ``verbose`` says more."""
        return "\n".join(summary_lines(self._content, verbose=verbose))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to look at before trusting the result."""
        return tuple(self._content["warnings"])

    def _lines(self) -> list[str]:
        """One line for each scorer or selector."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._content == other._content

    def __hash__(self) -> int:
        return hash(json.dumps(self._content["record"], sort_keys=True))

    def __repr__(self) -> str:
        measured = data_sentences(self._content)[0]
        return "\n".join([f"{type(self).__name__}: {measured}", *map(one_line, self._lines())])

    def _repr_html_(self) -> str:
        return notebook_html(self._content)


class AuditResult(Result):
    """Whether each scorer is safe to maximize, and how much it gets: of :func:`toptail.audit`."""

    _KIND = "pools"

    @property
    def k(self) -> list[int]:
        """The measured K, ascending, starting with 1."""
        return list(self._content["k"])

    @property
    def queries(self) -> int:
        """How many queries were audited."""
        return int(self._content["queries"])

    @cached_property
    def scorers(self) -> Mapping[str, ScorerResult]:
        """Scorer -> its verdict, curve and diagnostics."""
        return _views(self._content)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Scorer -> its verdict."""
        return {name: scorer.verdict for name, scorer in self.scorers.items()}

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, ScorerResult]]:
        """Group of queries -> scorer -> its result there; empty without groups."""
        return {name: _views(part) for name, part in self._content.get("groups", {}).items()}

    @cached_property
    def baseline(self) -> Baseline | None:
        """How the scorers stand against those of an older table; None without one."""
        entry = self._content.get("baseline")
        return None if entry is None else Baseline.of(entry)

    def summary(self, **how: Any) -> str:
        """The result in words, as the command line prints it, an older table's part last."""
        return "\n".join(filter(None, [super().summary(**how), self._against()]))

    def _against(self) -> str:
        """One line for each scorer that was compared with an older table."""
        if self.baseline is None:
            return ""
        where = f"Against {self.baseline.source}, {queries(self.baseline.shared_queries)} shared:"
        standings = self.baseline.scorers.items()
        lines = [f"{c.status:<12}  {one_line(name)}: {c.reason}" for name, c in standings]
        return "\n".join(["", one_line(where), *lines])

    def _lines(self) -> list[str]:
        return [f"{name}: {scorer_words(self._content, name)}" for name in self.scorers]


def _views(content: Mapping[str, Any]) -> dict[str, ScorerResult]:
    k, scorers = content["k"], content["scorers"]
    return {name: ScorerResult.of(name, k, entry) for name, entry in scorers.items()}


class PicksResult(Result):
    """How the picks of each selector turned out: of :func:`toptail.audit_picks`."""

    _KIND = "picks"

    @property
    def baseline(self) -> str | None:
        """The selector that the others are compared with first."""
        name: str | None = self._content["baseline"]
        return name

    @cached_property
    def selectors(self) -> Mapping[str, Interval]:
        """Selector -> the mean value of its picks."""
        entries = self._content["selectors"].items()
        return {name: Interval(e["mean"], e["low"], e["high"]) for name, e in entries}

    def _lines(self) -> list[str]:
        return [f"{name}: {mean}" for name, mean in self.selectors.items()]
