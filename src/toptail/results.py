"""Results of audits and choices: shown, stored in a folder, and read from one.

What draws is imported where something is drawn, because Matplotlib takes half a second.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias

import pyarrow as pa

from toptail.audit.baseline import Baseline
from toptail.audit.verdict import Interval, ScorerResult, Verdict
from toptail.errors import InputError
from toptail.io.files import staged_folder, write_texts
from toptail.io.json_files import read_json
from toptail.pools.scored import queries
from toptail.report.arrow import arrow_table, table_names
from toptail.report.choice import (
    choice_html,
    choice_latex,
    choice_lines,
    choice_markdown,
    choice_small,
)
from toptail.report.documents import render_latex, render_markdown, scorer_words, summary_lines
from toptail.report.html import notebook_html, render_html
from toptail.report.page import asset
from toptail.report.text import data_sentences, one_line
from toptail.select.base import FORMAT as SELECTOR
from toptail.select.base import Selector
from toptail.select.catalog import selector_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from toptail.pools.picks import JudgedPicks

_COMMANDS: Final = {"audit": "audit", "choice": "choose"}
"""Stored file -> the command that writes it."""


Stored: TypeAlias = Literal["audit", "choice", "check", "selector"]
"""The JSON files that toptail stores, by the first part of their names."""


def schema(what: Stored = "audit") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored file: ``audit.json``, ``choice.json`` and so on.

    >>> schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    content: dict[str, Any] = json.loads(asset(f"{what}.schema.json"))
    return content


def write_report(audit: Mapping[str, Any], out: str | PathLike[str]) -> Path:
    """Write ``audit.json``, ``audit.md``, ``audit.tex``, ``report.html`` and figures.

    The folder ``out`` appears whole or not at all; returns the path of ``report.html``.
    """
    texts = {
        "audit.json": _json(audit),
        "audit.md": render_markdown(audit),
        "audit.tex": render_latex(audit),
        "report.html": render_html(audit),
    }
    return _write(audit, texts, Path(out))


def _write(content: Mapping[str, Any], texts: Mapping[str, str], folder: Path) -> Path:
    """Write the texts and the figures of a result; returns the path of its page."""
    from toptail.report.figures import save_figures

    with staged_folder(folder) as stage:
        write_texts(stage, texts)
        save_figures(content, stage / "figures")
    return folder / "report.html"


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def read_audit(folder: str | PathLike[str]) -> dict[str, Any]:
    """The content of ``audit.json`` in a result folder."""
    return _stored(folder, "audit")


def _stored(folder: str | PathLike[str], what: Literal["audit", "choice"]) -> dict[str, Any]:
    path, command = Path(folder) / f"{what}.json", _COMMANDS[what]
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the folder that 'toptail {command}' wrote.")
    again = f"make it again with 'toptail {command}'"
    content = read_json(path, again, "is not readable as JSON")
    _check_format(content, what, f"{path}: ")
    result: dict[str, Any] = content
    return result


def _check_format(content: Any, what: Literal["audit", "choice"], where: str = "") -> None:
    stated = content.get("format") if isinstance(content, Mapping) else None
    if stated != f"toptail-{what}-2":
        raise InputError(
            f"{where}the format is {stated!r}, not 'toptail-{what}-2', which this version reads; "
            f"make it again with 'toptail {_COMMANDS[what]}'."
        )


class AnyResult:
    """What all results have in common: the content of a JSON file, tables, words and a page."""

    _content: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON file: plain lists, numbers and strings."""
        return copy.deepcopy(self._content)

    @property
    def tables(self) -> tuple[str, ...]:
        raise NotImplementedError

    def table(self, name: str) -> pa.Table:
        raise NotImplementedError

    def summary(self) -> str:
        raise NotImplementedError

    def _page(self) -> str:
        raise NotImplementedError

    def to_pandas(self, name: str | None = None) -> Any:
        """One of :attr:`tables` as a pandas data frame, by default the first: the verdicts.

        pandas must be installed.
        """
        try:
            return self.table(name or self.tables[0]).to_pandas()
        except ImportError:
            raise InputError(
                "to_pandas needs pandas; install it with: pip install pandas."
            ) from None

    def log(self, run: Any, *, step: int | None = None) -> None:
        """Send the numbers to an experiment tracker, and the page or the words where it takes them.

        ``run`` is a run of W&B or trackio, the module ``mlflow``, or a SummaryWriter of
        TensorBoard. Numbers are called ``toptail/SCORER/captured`` and so on; ``status`` is 1 for
        safe, -1 for unsafe, 0 otherwise.
        """
        from toptail.report.trackers import log

        log(run, self._content, self._page(), self.summary(), step)


class Result(AnyResult):
    """What results of audits and choices have in common.

    A result is the content of a JSON file; two results are equal if their contents are.
    """

    _FILE: ClassVar[Literal["audit", "choice"]] = "audit"
    _KIND: ClassVar[str]

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Make a result of the content of ``audit.json`` or ``choice.json``, which it copies."""
        _check_format(content, self._FILE)
        if content.get("kind") != self._KIND:
            raise InputError(
                f"This is a result of kind {content.get('kind')!r}; {type(self).__name__} takes "
                f"one of kind '{self._KIND}'."
            )
        self._content = copy.deepcopy(dict(content))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The result whose :meth:`to_dict` this is."""
        return cls(content)

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Self:
        """The result that :meth:`write` or the command line stored in a folder."""
        return cls(_stored(folder, cls._FILE))

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write the JSON file, the report and its figures; returns the path of the page."""
        return write_report(self._content, folder)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that :meth:`table` gives."""
        return table_names(self._content)

    def table(self, name: str) -> pa.Table:
        """One of :attr:`tables` with all its digits, as an Arrow table."""
        return arrow_table(self._content, name)

    def _page(self) -> str:
        return render_html(self._content)

    def plot(self, name: str | None = None) -> Figure:
        """One of the report's figures as a Matplotlib figure, by default the first."""
        from toptail.report.figures import draw

        return draw(self._content, name)

    def summary(self, *, verbose: bool = False) -> str:
        """The result in words, as the command line prints it; ``verbose`` says more."""
        return "\n".join(summary_lines(self._content, verbose=verbose))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to look at before trusting the result."""
        return tuple(self._content["warnings"])

    def _lines(self) -> list[str]:
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

    def summary(self, *, verbose: bool = False) -> str:
        """The result in words, as the command line prints it, an older table's part last."""
        text = super().summary(verbose=verbose)
        if self.baseline is None:
            return text
        where = f"Against {self.baseline.source}, {queries(self.baseline.shared_queries)} shared:"
        standings = self.baseline.scorers.items()
        lines = [f"{c.status:<12}  {one_line(name)}: {c.reason}" for name, c in standings]
        return "\n".join([text, "", one_line(where), *lines])

    def _lines(self) -> list[str]:
        return [f"{name}: {scorer_words(self._content, name)}" for name in self.scorers]


def _views(content: Mapping[str, Any]) -> dict[str, ScorerResult]:
    k, scorers = content["k"], content["scorers"]
    return {name: ScorerResult.of(name, k, entry) for name, entry in scorers.items()}


class PicksResult(Result):
    """How the picks of each selector turned out: of :func:`toptail.audit_picks`."""

    _KIND = "picks"

    def __init__(self, content: Mapping[str, Any], picks: JudgedPicks | None = None) -> None:
        """Make a result of the content of ``audit.json``; ``picks`` are those it was made from."""
        super().__init__(content)
        self.picks = picks
        """The picks with their values by query; None in a result that was read from a folder."""

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


class ChoiceResult(Result):
    """What to deploy, and what it is worth: of :func:`toptail.choose`."""

    _FILE = "choice"
    _KIND = "choice"

    def __init__(self, content: Mapping[str, Any], selector: Selector | None = None) -> None:
        """Make a result of the content of ``choice.json``; ``selector`` may hold a function."""
        super().__init__(content)
        self._selector = selector

    @cached_property
    def selector(self) -> Selector:
        """What to deploy: chosen on all queries."""
        return self._selector or selector_of(self._selector_content(), "choice.json")

    def _selector_content(self) -> dict[str, Any]:
        parts = {part: self._content[part] for part in ("selector", "k", "parameters")}
        return {"format": SELECTOR, **parts}

    @property
    def value(self) -> Interval:
        """What the selector to deploy is worth; its interval allows for the choice."""
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

    def summary(self, *, verbose: bool = False) -> str:
        """The result in words, as the command line prints it."""
        del verbose
        return "\n".join(choice_lines(self._content))

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``choice.json``, ``selector.json`` and the report; returns the page's path."""
        texts = {
            "choice.json": _json(self._content),
            "selector.json": _json(self._selector_content()),
            "choice.md": choice_markdown(self._content),
            "choice.tex": choice_latex(self._content),
            "report.html": choice_html(self._content),
        }
        return _write(self._content, texts, Path(folder))

    def _page(self) -> str:
        return choice_html(self._content)

    def __repr__(self) -> str:
        return f"ChoiceResult: {self.answer} Value {self.value}."

    def _repr_html_(self) -> str:
        return choice_small(self._content)


def _interval(entry: Mapping[str, Any]) -> Interval:
    return Interval(entry["value"], entry["low"], entry["high"])
