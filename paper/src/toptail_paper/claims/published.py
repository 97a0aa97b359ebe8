"""The paper's tables and figures beside the results that ship with this package.

Reads stored tables, ledgers and records, and writes nothing. In an installed package the results
lie in ``toptail/published``; in a checkout, in ``results``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.io.json_files import read_json, read_json_if_exists
from toptail_paper.claims.ledger import markdown_table, tally, write_text
from toptail_paper.claims.reported import EIGHT, SOCCER, WITHOUT_CELLS, cells, labels, packaged
from toptail_paper.claims.scale import stated
from toptail_paper.study.compare import Comparison
from toptail_paper.study.scale import read_scale, scale_rows
from toptail_paper.study.study import study_in

SHIPPED: Final = "published"
"""Folder of the stored results inside an installed package."""


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper."""

    kind: str
    """``table`` or ``figure``."""
    number: str
    """The paper's number: ``4``, or ``S3`` in its supplement."""
    label: str
    """The paper's label."""
    caption: str
    """The first words of its caption."""

    @property
    def name(self) -> str:
        """``Table S3``."""
        return f"{self.kind.capitalize()} {self.number}"


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Every table and figure, in the order of the paper."""
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


@cache
def published() -> Path:
    """Where the stored results lie: inside the installed package, or in this checkout."""
    package = Path(str(files("toptail_paper")))
    for folder in (package / SHIPPED, package.parents[1] / "results"):
        if folder.is_dir():
            return folder
    raise InputError(
        "This installation has no stored results: install toptail from its wheel, or work in a "
        "checkout of its repository."
    )


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
    """Where it is stored."""
    study: str
    """Name of the study."""
    tables: Mapping[str, Mapping[str, Any]]
    """Its stored tables of the label, by name."""
    claims: tuple[Mapping[str, Any], ...]
    """Entries of its ledger about the label."""
    record: Mapping[str, Any]
    """Its record: command, commit, versions."""
    config: Mapping[str, Any]
    """Its configuration."""

    @property
    def commands(self) -> list[str]:
        """Every command that made a part of it, the last first."""
        calls = [self.record, *reversed(self.record.get("earlier", ()))]
        return list(dict.fromkeys(call["command"] for call in calls if call.get("command")))

    @property
    def settings(self) -> str:
        """Its sizes in a line."""
        trained = [f"{name.lower()}: {text}" for name, text in scale_rows(read_scale(self.folder))]
        return "; ".join([stated(self.study, self.config), *trained])


def measured(label: str, root: Path | None = None) -> list[StoredStudy]:
    """The stored studies below a folder that have a table or ledger entries of a label."""
    home = published() if root is None else root
    ledgers = [path.parent for path in entries(home, "**/claims.json")]
    studies = [folder for folder in ledgers if (folder / "config.json").is_file()]
    found = [_measured(folder, label) for folder in studies]  # one over several tasks is no study
    return [each for each in found if each.tables or each.claims]


def _measured(folder: Path, label: str) -> StoredStudy:
    whole = _whole(folder)
    tables = {name: table for name, table in whole.tables.items() if table["label"] == label}
    claims = tuple(entry for entry in whole.claims if label in places(entry))
    return replace(whole, tables=tables, claims=claims)


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
    """Task of the row."""
    scorer: str
    """Critic, judge or readout."""
    metric: str
    """What was measured, as tables call it."""
    paper: Mapping[str, Any]
    """The reported cell."""
    here: Mapping[str, Any] | None
    """The stored cell; None where it was not measured."""

    @property
    def compared(self) -> Comparison | None:
        """Both, where both have a number."""
        if self.here is None or self.here.get("mean") is None or self.paper.get("mean") is None:
            return None
        return Comparison(self.task, self.scorer, self.metric, self.here, self.paper)


def pairs(label: str, found: list[StoredStudy]) -> Iterator[Pair]:
    """Every cell that the paper reports under a label, with ours."""
    rows: dict[str, Any] = {}
    for each in found:
        for table in each.tables.values():
            for task, scorers in table["rows"].items():
                rows.setdefault(task, {}).update(scorers)
    everywhere = dict.fromkeys(["PointMaze", *rows])
    for task, scorers in cells(label, everywhere).items():
        for scorer, metrics in scorers.items():
            for metric, reported in metrics.items():
                ours = rows.get(task, {}).get(scorer, {}).get(metric)
                yield Pair(task, scorer, metric, reported, ours)


def standing(exhibit: Exhibit, found: list[StoredStudy]) -> str:
    """How a table or figure stands here, in a line: cells, and what the ledgers say of it."""
    compared = list(pairs(exhibit.label, found))
    words = []
    if compared:
        both = [pair.compared for pair in compared if pair.compared is not None]
        differ = sum(each.differs() for each in both)
        words.append(f"{len(both)} of {len(compared)} cells measured, {differ} differ")
    elif exhibit.label in WITHOUT_CELLS:
        words.append(WITHOUT_CELLS[exhibit.label].partition(";")[0])
    counts = tally(entry for each in found for entry in each.claims)
    said = [f"{count} {word}" for word, count in counts.items() if count]
    return "; ".join([*words, *([f"statements: {', '.join(said)}"] if said else [])])


def tasks_of(exhibit: Exhibit, found: list[StoredStudy]) -> list[str]:
    """The tasks that the paper reports, or else those measured here."""
    compared = dict.fromkeys(pair.task.partition("@")[0] for pair in pairs(exhibit.label, found))
    stored = (task for each in found for table in each.tables.values() for task in table["rows"])
    return list(compared or dict.fromkeys(task.partition("@")[0] for task in stored))


PAGE: Final = "cells.md"
"""Where a folder of results has the list of all cells."""


@dataclass(frozen=True)
class Reason:
    """Why cells are not measured; empty fields fit every cell."""

    why: str
    """One sentence without a full stop."""
    label: str = ""
    """Table of the paper."""
    task: str = ""
    """Task, as the table names it."""
    row: str = ""
    """Critic or judge."""
    metric: str = ""
    """What is measured."""

    def fits(self, cell: PaperCell) -> bool:
        """Whether it is about a cell."""
        return all(
            asked in ("", own)
            for asked, own in (
                (self.label, cell.label),
                (self.task, cell.task),
                (self.row, cell.row),
                (self.metric, cell.metric),
            )
        )


REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "not run yet: walker, ball and collector are there, critics are not trained on it",
        task=SOCCER,
    ),
)
"""Why cells are not measured. A reason whose cells are measured is not used."""


@dataclass(frozen=True)
class PaperCell:
    """One number of the paper."""

    label: str
    """Table of the paper, or the name of a table that only gathers numbers of its text."""
    task: str
    """Task."""
    row: str
    """Critic or judge."""
    metric: str
    """What is measured."""
    paper: float
    """What the paper has."""
    here: float | None
    """What was measured; None where it was not."""
    interval: tuple[float, float] | None
    """Its 95 % interval, where it has one."""
    source: str
    """The folder that has it; empty where none has."""

    @property
    def why(self) -> str:
        """Why it is not measured; empty where it is, or where nobody says why."""
        fitting = (reason.why for reason in REASONS if reason.fits(self))
        return "" if self.here is not None else next(fitting, "")

    @property
    def gap(self) -> bool:
        """Whether there is neither a number nor a reason."""
        return self.here is None and not self.why


def all_cells(out: Path) -> list[PaperCell]:
    """Every cell of the paper, with what the studies below a folder measured."""
    measured = dict(_measured_coverage(out))
    return [
        _cell(label, task, row, metric, float(cell["mean"]), measured)
        for label in (*labels(), "noise", "judges", "deployment")
        for task, rows in cells(label, dict.fromkeys(EIGHT)).items()
        for row, metrics in rows.items()
        for metric, cell in metrics.items()
    ]


_Key = tuple[str, str, str, str]


def _cell(
    label: str,
    task: str,
    row: str,
    metric: str,
    paper: float,
    measured: Mapping[_Key, tuple[str, Mapping[str, Any]]],
) -> PaperCell:
    source, found = measured.get((label, task, row, metric), ("", {}))
    low, high = found.get("low"), found.get("high")
    interval = None if low is None or high is None else (float(low), float(high))
    return PaperCell(label, task, row, metric, paper, found.get("mean"), interval, source)


def _measured_coverage(out: Path) -> Iterable[tuple[_Key, tuple[str, Mapping[str, Any]]]]:
    """Cells of the stored tables of every study that has a ledger below a folder."""
    for ledger in entries(out, "**/claims.json"):
        folder = ledger.parent
        if read_json_if_exists(folder / "config.json") is None:
            continue  # a ledger over tasks has no tables
        for file in entries(folder / "tables", "*.json"):
            table = read_json(file)
            for task, rows in table["rows"].items():
                for row, metrics in rows.items():
                    for metric, cell in metrics.items():
                        if cell and cell.get("mean") is not None:
                            key = (table["label"], task, row, metric)
                            yield key, (folder.relative_to(out).as_posix(), cell)


def summary(found: Sequence[PaperCell]) -> str:
    """How many numbers are measured, as pages quote it."""
    measured = sum(cell.here is not None for cell in found)
    text = f"{measured} of {len(found)} numbers of the paper are measured here"
    reasons: dict[str, int] = {}
    for cell in found:
        if cell.why:
            reasons[cell.why] = reasons.get(cell.why, 0) + 1
    text += "".join(f"; {count}: {why}" for why, count in reasons.items())
    gaps = sum(cell.gap for cell in found)
    return text + (f"; {gaps}: without a reason" if gaps else "")


def write_cells(out: Path) -> list[PaperCell]:
    """Store the list of all cells as a page; returns them."""
    found = all_cells(out)
    text = f"# The paper's numbers, and ours\n\n{summary(found)}.\n"
    for label in dict.fromkeys(cell.label for cell in found):
        rows = [_row(cell) for cell in found if cell.label == label]
        head = ["task", "row", "metric", "paper", "here", "95 % interval", "from"]
        text += f"\n## {label}\n\n{markdown_table(head, rows)}"
    text += "\n## Without numbers\n\n"
    text += "".join(f"- `{label}`: {why}.\n" for label, why in WITHOUT_CELLS.items())
    write_text(out / PAGE, text)
    return found


def _row(cell: PaperCell) -> list[str]:
    if cell.here is None:
        here = cell.why or "**neither measured nor explained**"
        return [cell.task, cell.row, cell.metric, f"{cell.paper:g}", f"– ({here})", "–", "–"]
    ends = "–" if cell.interval is None else "[{:.3g}, {:.3g}]".format(*cell.interval)
    numbers = [f"{cell.paper:g}", f"{cell.here:.3g}", ends, cell.source]
    return [cell.task, cell.row, cell.metric, *numbers]
