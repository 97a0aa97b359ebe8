"""The report ``paper/REPORT.md``: the template ``report.md`` with its numbers from stored files.

A placeholder ``{{source word … format}}`` names a source (the functions in `SOURCES`), where the
number is, and how it is written (`written`). Words with spaces are quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import Any, Final

from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.lab.tasks.names import parse_name
from toptail_paper.claims import pages, pages_power, pages_tables
from toptail_paper.claims.numbers import Number
from toptail_paper.claims.pages_tables import JUDGED, Shown, written
from toptail_paper.claims.reported import ANT, HUMANOID, POINT, SOCCER, packaged, published

PRINTED: Final = "main/antmaze_printed.txt"
"""Printed tables of a run whose files were lost."""
PACKAGED: Final = {"declared": ("declared.json", "parts"), "prose": ("reported.json", "prose")}
"""The declaration of the main settings, and what the paper says outside its tables."""
STORED: Final[Mapping[str, str]] = {
    parse_name(name.partition("/")[2]).family.lower(): name
    for name in pages.LEDGERS
    if name.startswith("selection/")
}


def cell(study: str, table: str, task: str, row: str, metric: str) -> Any:
    return pages_tables.stored(study, table, task)["rows"][task][row][metric]


def paper(study: str, table: str, task: str, row: str, metric: str) -> Any:
    """What the paper reports for a cell."""
    return pages_tables.stored(study, table, task)["paper"][task][row][metric]


def main(study: str, table: str, task: str, row: str, metric: str) -> Any:
    """A cell of the runs at the main settings, of which a part is stored."""
    return cell(f"zoo/{study}", table, task, row, metric)


def less(a: str, b: str, task: str = POINT) -> Any:
    """The paired difference of two gains by rollouts at the main settings."""
    return _ends(pages_power.less(a, b, task))


def times(a: str, b: str, task: str = POINT) -> Any:
    """How many times the second of two such gains the first is."""
    return _ends(pages_power.times(a, b, task))


def grid(name: str, data: str, critic: str, metric: str) -> Any:
    """A number of a cell of a settled grid."""
    return _json(f"settled/{name}.json")["cells"][data][critic]["metrics"][metric]


def nearest(name: str) -> Any:
    """How far the nearest setting of a fingerprint is from the paper's cells."""
    return _json(f"settled/{name}.json")["answer"]["nearest"]["distance"]


def stored(file: str, *keys: str) -> Any:
    """A number of a stored JSON file, or of what `PACKAGED` names."""
    source, part = PACKAGED.get(file, ("", ""))
    found: Any = packaged(source)[part] if source else _json(file)
    for key in keys:
        found = found[key]
    return found


def claims(ledgers: str, status: str) -> int:
    """How many statements have a status; ``all`` counts every ledger and every status."""
    names = pages.EVERY if ledgers == "all" else (ledgers,)
    found = [entry["status"] for name in names for entry in pages.ledger(name)]
    return len(found) if status == "all" else found.count(status)


def claim(name: str, statement: str) -> Any:
    """The number of a ledger's entry, with its interval."""
    entry = _entry(name, statement)
    low, high = entry["interval"] or (None, None)
    return {"mean": entry["number"], "low": low, "high": high}


SOURCES: Final[Mapping[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (cell, main, less, times, paper, grid, nearest, stored, claims, claim)
}
"""Where numbers come from."""


def status(name: str, statement: str) -> str:
    """The status of a ledger's entry, and on what it depends."""
    entry = _entry(name, statement)
    return " on ".join(filter(None, (entry["status"], entry["depends_on"])))


def met(name: str, kind: str = "cells") -> str:
    """In how many cells of a settled grid the answer's condition is met."""
    found = _json(f"settled/{name}.json")
    every = [cell for cells in found["cells"].values() for cell in cells]
    return f"{len(found['answer'][kind])} of {len(every)}"


def printed(table: str, row: str, column: str, line: str = "0") -> str:
    """A line of a cell of the printed tables: its number, its interval or the paper's number."""
    text = (published() / PRINTED).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n{table}")
    lines = re.split(r"\n└", rest)[0].splitlines()
    (head,) = (each for each in lines if each.startswith("┃"))
    at = [name.strip() for name in head.split("┃")].index(column)
    body = [[part.strip() for part in each.split("│")] for each in lines if each.startswith("│")]
    starts = {parts[1]: i for i, parts in enumerate(body) if parts[1]}
    end = min((i for i in starts.values() if i > starts[row]), default=len(body))
    found = [parts[at] for parts in body[starts[row] : end] if parts[at]]
    return re.sub(r"^([▲▼]|paper) |[*†]$", "", found[int(line)])


def sentence(name: str) -> str:
    """A sentence that the pages have, too."""
    makers: Mapping[str, Callable[[], str]] = {
        "changes": pages.change_counts,
        "cells": lambda: f"{'. '.join(pages.numbers())}.",
        "tasks": pages.tasks,
        "corrected": pages_power.corrected,
    }
    return " ".join(makers[name]().split())


TABLES: Final[Mapping[str, Shown]] = {
    "walkers": Shown(
        "",
        JUDGED | {"most likely action of the behaviour": "likely", "logged action": "logged"},
        "zoo/selection fixed-query",
        " | ".join(
            f"{task}: τ_b <{task} {{0}} tau_b_64 2(2)> | gain <{task} {{0}} rollout_delta +4ci(+3)>"
            for task in (ANT, HUMANOID, SOCCER)
        ),
    ),
}
"""Tables that no page has."""


def table(name: str) -> str:
    """A table of stored numbers, the paper's in parentheses."""
    return TABLES[name].made().rstrip()


TEXTS: Final[Mapping[str, Callable[..., str]]] = {
    function.__name__: function for function in (status, met, printed, sentence, table)
}
"""Sources that give words."""


def report() -> str:
    """The template, with every placeholder filled and paragraphs in lines of a page."""
    text = re.sub(r"\{\{(.+?)\}\}", lambda x: _filled(x[1]), template(), flags=re.DOTALL)
    return "\n\n".join(_lines(block) for block in text.strip().split("\n\n")) + "\n"


def template() -> str:
    return (files("toptail_paper.claims") / "report.md").read_text(encoding="utf-8")


def _filled(placeholder: str) -> str:
    name, *words = shlex.split(placeholder)
    try:
        if name in TEXTS:
            return TEXTS[name](*words)
        return written(SOURCES[name](*words[:-1]), words[-1])
    except (LookupError, OSError, ValueError) as error:
        raise InputError(f"report.md: '{{{{{placeholder}}}}}' names nothing stored.") from error


def _lines(block: str) -> str:
    """A paragraph or list in lines of at most 118 characters; other blocks as they are."""
    if block.startswith(("#", "|", "```", "    ")):
        return block
    items = re.split(r"\n(?=- |\d+\. )", block)
    return "\n".join(_item(" ".join(item.split())) for item in items)


def _item(text: str) -> str:
    mark = re.match(r"- |\d+\. ", text)
    indent = " " * (len(mark[0]) if mark else 0)
    wide = {"break_long_words": False, "break_on_hyphens": False}
    return fill(text, 118, subsequent_indent=indent, **wide)  # type: ignore[arg-type]


def _ends(x: Number) -> dict[str, float]:
    return {"mean": x.mean, "low": x.low, "high": x.high}


def _entry(name: str, statement: str) -> Mapping[str, Any]:
    folder = STORED.get(name.lower(), name)
    entry: Mapping[str, Any] = {e["id"]: e for e in pages.ledger(folder)}[statement]
    return entry


@cache
def _json(name: str) -> Any:
    return read_json(published() / name)
