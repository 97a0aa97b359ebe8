"""The page of a study: its parts with their tables and figures, the claims, the method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toptail.io.files import atomic
from toptail.report.page import Item, Page, Picture, Section, Sheet, data_address, render_page
from toptail.report.text import bracket, number
from toptail_paper.study.compare import where_compared
from toptail_paper.study.figures import Drawing, FigureSpec, svg_and_png
from toptail_paper.study.results import StudyResults, short_words
from toptail_paper.study.show import shown_notes, shown_tables, text_of
from toptail_paper.study.tables import TableSpec, Text

if TYPE_CHECKING:
    from toptail_paper.study.study import Study

STATUSES: Final = ("seen", "depends", "not seen")
"""The words of the claim ledger that the page's tally always counts, in its order."""

RARER: Final[Mapping[str, str]] = {
    "inconclusive": "no part fails, and the interval of at least one contains its limit",
    "overstated": "numbers that the paper itself reports miss it, and it is not seen here",
    "other task": "it speaks of tasks that were not measured, and was measured on another",
    "true by construction": "it holds, and no score could have failed it as it was measured",
}
"""The words that are counted and explained only if the ledger has them."""

_DECIDING: Final = (
    "“Seen” and “not seen” are decided from the stored tables by the criterion in each entry; "
    "“depends” means that it holds in part of the cases the statement speaks of, and says what it "
    "depends on. Intervals are 95 %."
)
_MARKS: Final = {"seen": "pass", "not seen": "fail"}


@dataclass(frozen=True)
class Part:
    """A section of the page; it is left out if the run has none of its tables and figures."""

    anchor: str
    """Where the page's contents lead to; the name of its table if that table is the heading."""
    title: Text = ""
    """The heading; without one the titles of its tables are headings."""
    lead: Text = ""
    """A sentence or two below the heading."""
    link: str | None = None
    """Its name in the page's contents; by default the title, empty: not listed."""
    opens: bool = False
    """It stands directly below the page's heading."""


@dataclass(frozen=True)
class View:
    """Tables or lists of a page that are not one stored table."""

    part: str
    """Anchor of the page's part that shows it."""
    show: Callable[[Any], Sequence[Item]]
    """Makes the items from the study's results."""
    label: str = ""
    """A name by which ``toptail-paper show`` finds its tables."""


Shown: TypeAlias = TableSpec | FigureSpec | View
"""What a study lists, in the order of its page."""


@dataclass(frozen=True)
class Texts:
    """The words of a page that are the study's own."""

    title: str
    """Title of the browser's window."""
    brand: str
    """The line above the heading."""
    heading: str
    lead: str
    """What the study does, in a few sentences."""
    summary: Sequence[str]
    """The main results, in sentences that hold numbers."""
    method: Sequence[tuple[str, str | None]]
    """How it was computed; lines without a text are left out."""
    deciding: str = _DECIDING
    """How claims are decided."""
    reading: Sequence[str] = ()
    """How to read the page."""


def write_page(study: Study, folder: Path) -> Path:
    """Write ``figures/*.svg|png`` and the page made with them; return ``report.html``'s path."""
    results = study.read(folder)
    drawings = [
        replace(drawing, caption=where_compared(drawing.caption, compared=results.has_paper))
        for drawing in study.drawings(results)
    ]
    pictures = write_figures(folder / "figures", drawings)
    write_bytes(folder / "report.html", study_page(study, results, pictures).encode())
    return folder / "report.html"


def study_page(study: Study, results: StudyResults, pictures: Sequence[Picture]) -> str:
    texts, tally = study.texts(results), claim_tally(results.claims)
    short, reading = short_words(results.scale), " ".join(texts.reading)
    sections = _sections(study, results, pictures)
    opening = {part.anchor for part in study.parts if part.opens}
    first = [section for section in sections if section.anchor in opening]
    sections = [section for section in sections if section.anchor not in opening]
    if reading:
        title = "How to read this page"
        sections.append(Section("reading", (), title, reading, "How to read"))
    page = Page(
        title=texts.title,
        brand=f"toptail · {texts.brand}",
        heading=texts.heading,
        opening=first,
        says_safe="safe" in texts.heading,
        lead=[texts.lead, *texts.summary, *([short] if short else [])],
        sections=sections,
        method=[(label, text) for label, text in texts.method if text],
    )
    return render_page(
        page,
        "study.html",
        ("toptail_paper.study", "templates"),
        "study.css",
        claims=[claim_entry(entry) for entry in results.claims],
        tally=[(word, _MARKS.get(word, "undecided"), n) for word, n in tally],
        deciding=texts.deciding
        + "".join(f" “{w.capitalize()}”: {RARER[w]}." for w, _ in tally if w in RARER),
    )


def _sections(study: Study, results: StudyResults, pictures: Sequence[Picture]) -> list[Section]:
    """The parts for which this run has tables or figures."""
    drawn = {picture.name: picture for picture in pictures}
    sections = []
    for part in study.parts:
        shown = [entry for entry in study.content if entry.part == part.anchor]
        items = [item for entry in shown for item in _items(entry, results, drawn)]
        if items:
            title, lead = text_of(part.title, results), text_of(part.lead, results)
            link = title if part.link is None else part.link
            sections.append(Section(part.anchor, items, title, lead, link))
    return sections


def _items(entry: Shown, results: StudyResults, drawn: Mapping[str, Picture]) -> list[Item]:
    if isinstance(entry, View):
        return list(entry.show(results))
    if isinstance(entry, FigureSpec):
        return [drawn[entry.name]] if entry.name in drawn else []
    rows = results.rows(entry.stored)
    if not rows or not (entry.show or entry.columns(rows)):
        return []
    first, *more = shown_tables(entry, results)
    notes = shown_notes(entry, results.tables[entry.stored])
    if entry.apart:
        return [Sheet(first, more, notes)]
    return [Sheet(first, (), notes), *(Sheet(table) for table in more)]


def write_figures(folder: Path, drawings: Iterable[Drawing]) -> list[Picture]:
    """Write ``NAME.svg`` and ``NAME.png`` of every drawing; return them as a page embeds them."""
    pictures = []
    for drawing in drawings:
        svg, png = svg_and_png(drawing)
        write_bytes(folder / f"{drawing.name}.svg", svg)
        write_bytes(folder / f"{drawing.name}.png", png)
        # The smaller file is embedded: many points take less space as pixels.
        image = (svg, "svg+xml") if len(svg) <= len(png) else (png, "png")
        label = drawing.labels[0] if drawing.labels else ""
        words = (drawing.name, drawing.title, drawing.caption)
        pictures.append(Picture(*words, data_address(*image), label))
    return pictures


def claim_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A claim of ``claims.json`` as the page shows it."""
    low, high = entry["interval"] or (None, None)
    x, on, over = entry["number"], entry["depends_on"], entry["interval_over"]
    shown = "" if x is None else str(int(x)) if x == int(x) else number(x, 3)
    interval = f"{bracket(low, high, 3)} over {over}" if over else bracket(low, high, 3)
    return {
        "id": entry["id"],
        "mark": _MARKS.get(entry["status"], "undecided"),
        "word": f"{entry['status']} on {on}" if on else entry["status"],
        "quoted": [entry, *entry["also"]],
        "number": f"{shown} {interval}".strip(),
        "comment": entry["comment"],
        "remarks": [text for text in (entry["changed"], entry["settled"]) if text],
    }


def claim_tally(claims: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    statuses = [claim["status"] for claim in claims]
    words = (*STATUSES, *(word for word in RARER if word in statuses))
    return [(word, statuses.count(word)) for word in words]


def recorded(record: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Code and versions, with which the method of every study ends."""
    versions = record.get("versions", {})
    code = record.get("commit")
    if code is None and "toptail" in versions:
        code = f"unknown (version {versions['toptail']})"
    return ("Code", code), ("Versions", ", ".join(f"{n} {text}" for n, text in versions.items()))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    atomic(path, lambda target: target.write_bytes(content))
