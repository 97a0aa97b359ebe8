"""The paper's tables and figures beside stored results, such as those of this package.

In an installed package the results lie in ``toptail_paper/published``; in a checkout, in
``results``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.io.json_files import read_json, read_json_if_exists
from toptail_paper.claims.ledger import tally, write_text
from toptail_paper.claims.reported import (
    EIGHT,
    VARIANTS,
    WITHOUT_CELLS,
    cells,
    labels,
    packaged,
    published,
)
from toptail_paper.claims.scale import stated
from toptail_paper.study.compare import Comparison
from toptail_paper.study.markdown import markdown_table
from toptail_paper.study.results import read_scale, scale_rows
from toptail_paper.study.study import study_in


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper."""

    kind: str
    """``table`` or ``figure``."""
    number: str
    """The paper's number: ``4``, or ``S3`` in its supplement."""
    label: str
    caption: str
    """The first words of its caption."""

    @property
    def name(self) -> str:
        """``Table S3``."""
        return f"{self.kind.capitalize()} {self.number}"


@cache
def exhibits() -> tuple[Exhibit, ...]:
    return tuple(Exhibit(**entry) for entry in packaged("contents.json"))


def find_exhibit(word: str) -> Exhibit:
    """A table or figure by label, by number (of a table), or by name as in ``figure S1``."""
    asked = " ".join(word.lower().split())
    for each in exhibits():
        if asked in (each.label, each.name.lower()):
            return each
    for each in exhibits():
        if each.kind == "table" and asked == each.number.lower():
            return each
    known = ", ".join(f"{each.label} ({each.name})" for each in exhibits())
    raise InputError(f"'{word}' is no table or figure of the paper: {known}.")


def require_own(folder: Path, *, copied: bool = False) -> None:
    """Refuse to make a study in a folder of published results.

    A copy of one is refused unless it may have been ``copied``, to be continued.
    """
    try:
        home = published()
    except InputError:
        return
    record = folder / "record.json"
    kept = [] if copied else [path.read_bytes() for path in entries(home, "**/record.json")]
    same = record.is_file() and record.read_bytes() in kept
    if same or folder.resolve().is_relative_to(home.resolve()):
        raise InputError(
            f"{folder} holds published results, which are not made again in place: "
            "'toptail-paper show' "
            f"shows them, and another {option('out')} takes results of your own."
        )


@dataclass(frozen=True)
class StoredStudy:
    """One stored study, as far as a label is concerned."""

    folder: Path
    study: str
    tables: Mapping[str, Mapping[str, Any]]
    """Its stored tables of the label, by name."""
    claims: tuple[Mapping[str, Any], ...]
    """Entries of its ledger about the label."""
    record: Mapping[str, Any]
    """Its record: command, commit, versions."""
    config: Mapping[str, Any]

    @property
    def commands(self) -> list[str]:
        """Every command that made a part of it, the last first."""
        calls = [self.record, *reversed(self.record.get("earlier", ()))]
        return list(dict.fromkeys(call["command"] for call in calls if call.get("command")))

    @property
    def settings(self) -> str:
        trained = [f"{name.lower()}: {text}" for name, text in scale_rows(read_scale(self.folder))]
        return "; ".join([stated(self.study, self.config), *trained])


def measured(label: str, root: Path | None = None) -> list[StoredStudy]:
    """The stored studies below a folder that have a table or ledger entries of a label.

    Those of variants are left out.
    """
    home = published() if root is None else root
    ledgers = [path.parent for path in entries(home, "**/claims.json")]
    ledgers = [folder for folder in ledgers if home / VARIANTS not in folder.parents]
    # A ledger over several tasks has no configuration: it is no study.
    studies = [_whole(folder) for folder in ledgers if (folder / "config.json").is_file()]
    found = []
    for each in studies:
        tables = {name: table for name, table in each.tables.items() if table["label"] == label}
        claims = tuple(entry for entry in each.claims if label in places(entry))
        if tables or claims:
            found.append(replace(each, tables=tables, claims=claims))
    return found


@cache
def _whole(folder: Path) -> StoredStudy:
    """A stored study with all its tables and statements."""
    return StoredStudy(
        folder,
        study_in(folder).name,
        {path.stem: read_json(path) for path in entries(folder / "tables", "*.json")},
        tuple(read_json(folder / "claims.json")),
        read_json_if_exists(folder / "record.json") or {},
        (read_json_if_exists(folder / "config.json") or {}).get("config", {}),
    )


def places(entry: Mapping[str, Any]) -> list[str]:
    """Where the paper says what an entry of a ledger is about."""
    return [entry["where"], *(quoted["where"] for quoted in entry.get("also", ()))]


@dataclass(frozen=True)
class Pair:
    """A cell that the paper reports, and what was measured for it here."""

    task: str
    scorer: str
    """Critic, judge or readout."""
    metric: str
    paper: Mapping[str, Any]
    here: Mapping[str, Any] | None
    """The stored cell; None where it was not measured."""
    folder: Path | None = None

    @property
    def compared(self) -> Comparison | None:
        """Both, where both have a number."""
        if self.here is None or self.here.get("mean") is None or self.paper.get("mean") is None:
            return None
        return Comparison(self.task, self.scorer, self.metric, self.here, self.paper)


def pairs(label: str, found: list[StoredStudy]) -> Iterator[Pair]:
    """Every cell that the paper reports under a label, with ours."""
    ours = {
        (task, scorer, metric): (cell, each.folder)
        for each in found
        for table in each.tables.values()
        for task, scorers in table["rows"].items()
        for scorer, metrics in scorers.items()
        for metric, cell in metrics.items()
    }
    for task, scorers in cells(label, dict.fromkeys(EIGHT)).items():
        for scorer, metrics in scorers.items():
            for metric, reported in metrics.items():
                here = ours.get((task, scorer, metric), (None, None))
                yield Pair(task, scorer, metric, reported, *here)


def status_line(exhibit: Exhibit, found: list[StoredStudy]) -> str:
    """In a line, how many cells of a table were measured, and its statements by status."""
    compared = list(pairs(exhibit.label, found))
    words = []
    if compared:
        both = [pair.compared for pair in compared if pair.compared is not None]
        differ = sum(each.differs() for each in both)
        words.append(f"{len(both)} of {len(compared)} cells measured, {differ} differ")
    elif exhibit.label in WITHOUT_CELLS:
        words.append(WITHOUT_CELLS[exhibit.label].partition(";")[0])
    counts = tally(entry for each in found for entry in each.claims)
    statuses = [f"{count} {status}" for status, count in counts.items() if count]
    return "; ".join([*words, *([f"statements: {', '.join(statuses)}"] if statuses else [])])


def tasks_of(exhibit: Exhibit, found: list[StoredStudy]) -> list[str]:
    """The tasks that the paper reports, or else those measured here."""
    compared = dict.fromkeys(pair.task.partition("@")[0] for pair in pairs(exhibit.label, found))
    stored = (task for each in found for table in each.tables.values() for task in table["rows"])
    return list(compared or dict.fromkeys(task.partition("@")[0] for task in stored))


Cells = dict[str, list[Pair]]
"""Every cell of the paper by label: of a table, or of a table that gathers numbers of its text."""


def all_cells(out: Path) -> Cells:
    """Every cell of the paper, with what the studies below a folder measured."""
    return {
        label: list(pairs(label, measured(label, out)))
        for label in (*labels(), "noise", "judges", "deployment")
    }


def summary(found: Cells) -> str:
    every = [pair for each in found.values() for pair in each]
    both = sum(pair.compared is not None for pair in every)
    return f"{both} of {len(every)} numbers of the paper are measured here"


def write_cells(out: Path) -> Cells:
    """Store the list of all cells as ``cells.md``; returns them."""
    found = all_cells(out)
    text = f"# The paper's numbers, and ours\n\n{summary(found)}.\n"
    head = ["task", "row", "metric", "paper", "here", "95 % interval", "from"]
    for label, each in found.items():
        text += f"\n## {label}\n\n{markdown_table(head, (_row(pair, out) for pair in each))}"
    text += "\n## Without numbers\n\n"
    text += "".join(f"- `{label}`: {why}.\n" for label, why in WITHOUT_CELLS.items())
    write_text(out / "cells.md", text)
    return found


def _row(pair: Pair, out: Path) -> list[str]:
    row = [pair.task, pair.scorer, pair.metric, f"{pair.paper['mean']:g}"]
    if pair.compared is None or pair.folder is None:
        return [*row, "**not measured**", "–", "–"]
    here = pair.compared.ours
    low, high = here.get("low"), here.get("high")
    ends = "–" if low is None or high is None else f"[{low:.3g}, {high:.3g}]"
    return [*row, f"{here['mean']:.3g}", ends, pair.folder.relative_to(out).as_posix()]
