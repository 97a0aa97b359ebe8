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
from toptail.audit.standing import Baseline
from toptail.audit.views import Interval, ScorerResult
from toptail.errors import InputError
from toptail.io.files import staged_folder
from toptail.io.guard import read_json
from toptail.pools.scored import queries
from toptail.report import render
from toptail.report.arrow import arrow_table, table_names
from toptail.report.choice import choice_lines
from toptail.report.choice_page import render_choice
from toptail.report.figures import draw
from toptail.report.notebook import notebook_html
from toptail.report.summary import scorer_words, summary_lines
from toptail.report.text import data_sentences, one_line
from toptail.results.schema import choice_problem, problem
from toptail.select import Selector
from toptail.select.base import FORMAT as SELECTOR
from toptail.select.catalog import selector_of


def write_report(audit: Mapping[str, Any], out: str | PathLike[str]) -> Path:
    """Write ``audit.json``, ``audit.md``, ``audit.tex``, ``report.html`` and figures.

    The folder ``out`` appears whole or not at all; returns the path of ``report.html``.
    """
    folder = Path(out)
    with staged_folder(folder) as stage:
        text = json.dumps(audit, indent=1, allow_nan=False)
        (stage / "audit.json").write_text(text + "\n", encoding="utf-8")
        render(audit, stage)
    return folder / "report.html"


def read_audit(folder: str | PathLike[str]) -> dict[str, Any]:
    """The stored ``audit.json`` of a result folder, of this edition or the first."""
    path = Path(folder) / "audit.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the folder that 'toptail audit' wrote.")
    audit = read_json(path, "audit the table again", "is not readable as JSON")
    if found := problem(audit):
        raise InputError(f"{path}: {found}.")
    content: dict[str, Any] = audit
    return content


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


class ChoiceResult:
    """What to deploy, and what it is worth: of :func:`toptail.choose`.

    Two results are equal if their content is.
    """

    def __init__(self, content: Mapping[str, Any], selector: Selector | None = None) -> None:
        """Make a result of the content of a ``choice.json``, which it keeps a copy of."""
        if found := choice_problem(dict(content)):
            raise InputError(f"This choice cannot be read: {found}.")
        self._content: dict[str, Any] = copy.deepcopy(dict(content))
        self._selector = selector

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> ChoiceResult:
        """The result that :meth:`write` or ``toptail choose`` stored in a folder."""
        path = Path(folder) / "choice.json"
        if not path.is_file():
            raise InputError(f"{path} does not exist; give the folder that 'toptail choose' wrote.")
        content = read_json(path, "choose again", "is not readable as a stored choice")
        if found := choice_problem(content):
            raise InputError(f"{path}: {found}.")
        return cls(content)

    @cached_property
    def selector(self) -> Selector:
        """What to deploy: chosen on all queries."""
        if self._selector is not None:
            return self._selector
        return selector_of(self._stored(), "choice.json")

    def _stored(self) -> dict[str, Any]:
        """The content of ``selector.json``."""
        parts = {part: self._content[part] for part in ("selector", "k", "parameters")}
        return {"format": SELECTOR, **parts}

    @property
    def value(self) -> Interval:
        """What the selector to deploy is worth; its interval allows for the choice.

        Of results that an earlier version stored: what choosing this way is worth.
        """
        return _interval(self._content)

    @property
    def gain(self) -> Interval:
        """What the selector to deploy gains over the plain best of the largest K."""
        against = (d for d in self._content["differences"] if d["against"] == "best_of_k_max")
        entry = next(against)
        return Interval(entry["difference"], entry["low"], entry["high"])

    @property
    def baselines(self) -> Mapping[str, Interval]:
        """``random``, ``best_of_k_max``, ``best_of_k_best`` and ``oracle``."""
        return {name: _interval(each) for name, each in self._content["baselines"].items()}

    @property
    def answer(self) -> str:
        """What to do, in a sentence."""
        return str(self._content["answer"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to look at before trusting the result."""
        return tuple(self._content["warnings"])

    def to_dict(self) -> dict[str, Any]:
        """The content of ``choice.json``: plain lists, numbers and strings."""
        return copy.deepcopy(self._content)

    def summary(self) -> str:
        """The result in words, as the command line prints it."""
        return "\n".join(choice_lines(self._content))

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``choice.json``, ``selector.json`` and the report; returns the page's path."""
        target = Path(folder)
        with staged_folder(target) as stage:
            for name, content in (("choice", self._content), ("selector", self._stored())):
                text = json.dumps(content, indent=1, allow_nan=False)
                (stage / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            render_choice(self._content, stage)
        return target / "report.html"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChoiceResult) and self._content == other._content

    def __hash__(self) -> int:
        return hash(json.dumps(self._content["record"], sort_keys=True))

    def __repr__(self) -> str:
        return f"ChoiceResult: {self.answer} Value {self.value}."


def _interval(entry: Mapping[str, Any]) -> Interval:
    return Interval(entry["value"], entry["low"], entry["high"])
