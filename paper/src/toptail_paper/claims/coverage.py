"""Every number of the paper's tables: measured here, or the reason why it is not.

What is measured is read from the stored tables of all studies below a folder. A cell that no table
has needs a reason in `REASONS`; one with neither is a gap, and a test fails for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toptail.io.files import entries
from toptail.io.json_files import read_json, read_json_if_exists
from toptail_paper.claims.ledger import markdown_table, write_text
from toptail_paper.claims.reported import WITHOUT_CELLS, cells, labels
from toptail_paper.claims.vocabulary import EIGHT, SOCCER

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
    measured = dict(_measured(out))
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


def _measured(out: Path) -> Iterable[tuple[_Key, tuple[str, Mapping[str, Any]]]]:
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
