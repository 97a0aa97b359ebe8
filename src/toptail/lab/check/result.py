"""What a check returns: verdicts, a page, a figure, and a folder with everything behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toptail.io.arrays import write_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import write_json
from toptail.lab.check.candidates import Source
from toptail.lab.check.verdicts import QUESTIONS, asked, questions
from toptail.lab.tasks.queries import FrozenQueries
from toptail.pools import ScoredPools
from toptail.report.text import one_line
from toptail.results import AuditResult, PicksResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class SourceResult:
    """Results among the candidates of one source."""

    source: Source
    """The source."""
    pools: Mapping[str, np.ndarray]
    """``actions [Q, N, a]``, ``support_distance``, ``on_support``, ``scores/COLUMN``, and of the
    source 'ascent' the maximizers ``ascent/COLUMN [Q, a]``."""
    table: ScoredPools | None
    """Scores and values, the input of the audit; None unless all candidates were judged."""
    audit: AuditResult | None
    """The audit of one step; None unless all candidates were judged."""
    followed: Mapping[str, PicksResult]
    """Scorer -> the audit of its episodes; empty without episodes."""
    doubts: tuple[str, ...]
    """Reasons not to believe the judge; then the audit decides nothing."""
    picked: Mapping[str, PicksResult] = field(default_factory=dict)
    """Scorer -> the audit of its picks, where these alone were judged."""


@dataclass(frozen=True)
class CheckVerdict:
    """The verdict about one scorer."""

    status: str
    """The worst of its statuses: ``safe``, ``no gain``, ``unsafe`` or ``inconclusive``."""
    headline: str
    """Every question with its status, in one line."""
    answers: Mapping[str, tuple[str, str]]
    """Question -> status and reason."""
    warnings: tuple[str, ...]
    """Where a status says less than it seems to."""


@dataclass(frozen=True, eq=False, repr=False)
class CheckResult:
    """The result of :func:`toptail.check`."""

    content: dict[str, Any]
    """``check.json``."""
    queries: FrozenQueries
    """States and goals of the queries."""
    sources: tuple[SourceResult, ...]
    """One for each source of candidates."""

    @property
    def verdicts(self) -> dict[str, CheckVerdict]:
        """Scorer -> its verdict."""
        return {name: _verdict(entry) for name, entry in self.content["scorers"].items()}

    def __repr__(self) -> str:
        first = f"CheckResult: {self.content['task']}, judge: {self.content['judge']['name']}"
        lines = (f"{v.status:<12}  {one_line(v.headline)}" for v in self.verdicts.values())
        return "\n".join([first, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(one_line(x))}</td>" for x in (name, *row)) + "</tr>"
            for name, verdict in self.verdicts.items()
            for row in ((question, *answer) for question, answer in verdict.answers.items())
        )
        head = "".join(f"<th>{x}</th>" for x in ("Critic", "Question", "Verdict", "Why"))
        caption = escape(f"{self.content['task']}, judge: {self.content['judge']['name']}")
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{rows}</table>"

    def plot(self) -> Figure:
        """A figure: for each source the one-step value and the value of episodes by K."""
        from matplotlib.figure import Figure

        columns = len(self.sources)
        figure = Figure(figsize=(1 + 3.6 * columns, 5.6), layout="constrained")
        axes = figure.subplots(2, columns, squeeze=False)
        for column, each in enumerate(self.sources):
            for row, (kind, words) in enumerate(QUESTIONS.items()):
                self._draw(axes[row, column], each, kind)
                axes[row, column].set_title(f"{each.source.name}: {words}", fontsize=9)
        axes[0, 0].legend(frameon=False)
        return figure

    def _draw(self, axes: Axes, source: SourceResult, kind: str) -> None:
        axes.set_xlabel("K")
        for name, entry in self.content["scorers"].items():
            (part,) = (p for p in entry["parts"] if p["pools"] == source.source.name)
            if not part.get(kind):
                continue
            if kind == "one_step" and source.audit is not None:
                audit = source.audit.to_dict()
                found, labels = audit["scorers"][name], list(map(str, audit["k"]))
                mean, low, high = (found[f"captured{end}"] for end in ("", "_low", "_high"))
                axes.set_ylabel("share of the headroom captured")
            else:
                worth = dict(sorted(part[kind]["worth"].items(), key=lambda x: _place(x[0])))
                labels = [selector.removeprefix("K = ") for selector in worth]
                ends = ("mean", "low", "high")
                mean, low, high = ([each[end] for each in worth.values()] for end in ends)
                axes.set_ylabel("value" if kind == "one_step" else "value of an episode")
            x = np.arange(len(labels))
            (line,) = axes.plot(x, _numbers(mean), marker="o", markersize=3, label=name)
            axes.fill_between(x, _numbers(low), _numbers(high), color=line.get_color(), alpha=0.15)
            axes.set_xticks(x, labels)

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``check.json``, the page and the files behind them; returns the page's path.

        ``SOURCE/`` has the candidates (``pools.npz``), their scores and values
        (``table.parquet``), the audit of one step and those of the episodes. Files of an earlier
        check about sources that this one does not have are removed. The folder is written whole or
        not at all.
        """
        from toptail.lab.check.page import check_html

        out, names = Path(folder), {each.source.name for each in self.sources}
        with staged_folder(out, _older(out, names)) as stage:
            for each in self.sources:
                _write_source(each, stage / each.source.name)
            self.queries.save(stage / "queries.npz")
            write_json(stage / "check.json", self.content)
            (stage / "report.html").write_text(check_html(self.content), encoding="utf-8")
        return out / "report.html"


def _verdict(entry: Mapping[str, Any]) -> CheckVerdict:
    answers = {
        asked(part, kind): (part[kind]["status"], part[kind]["reason"])
        if part[kind]
        else ("inconclusive", "not done")
        for part in entry["parts"]
        for kind in questions(part)
    }
    return CheckVerdict(entry["status"], entry["headline"], answers, tuple(entry["warnings"]))


def _place(selector: str) -> float:
    """Selectors in the order of their K, ascent last."""
    return float(selector.removeprefix("K = ")) if "=" in selector else np.inf


def _numbers(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


def _write_source(result: SourceResult, folder: Path) -> None:
    folder.mkdir()
    write_arrays(folder / "pools.npz", dict(result.pools), compressed=True)
    if result.table is not None and result.audit is not None:
        result.table.write(folder / "table.parquet")
        result.audit.write(folder / "one_step")
    for kind, results in (("one_step", result.picked), ("closed_loop", result.followed)):
        for name, picks in results.items():
            picks.write(folder / kind / name)


def _older(out: Path, sources: set[str]) -> list[str]:
    """Files of an earlier check about other sources."""
    stale = [p.parent for p in entries(out, "*/pools.npz") if p.parent.name not in sources]
    files = [path for folder in stale for path in entries(folder, "**/*") if path.is_file()]
    return [str(path.relative_to(out)) for path in files]
