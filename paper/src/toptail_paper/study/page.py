"""One page for every study: its parts, with their tables and figures, the claims, the method."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import jinja2
from markupsafe import Markup

from toptail.io.files import atomic
from toptail.report.table import Table
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
    "other task": "it speaks of tasks that were not measured, and was measured on another",
    "true by construction": "it holds, and no score could have failed it as it was measured",
}
"""The words that are counted and explained where the ledger has them."""

_DECIDING: Final = (
    "“Seen” and “not seen” are decided from the stored tables by the criterion in each entry; "
    "“depends” means that it holds in part of the cases the statement speaks of, and says what it "
    "depends on. Intervals are 95 %."
)


@dataclass(frozen=True)
class Part:
    """A section of the page; one that a run has nothing for is left out."""

    anchor: str
    """Where the page's contents lead to; the name of its table where that is the heading."""
    title: Text = ""
    """The heading; empty: the titles of its tables are headings."""
    lead: Text = ""
    """A sentence or two below the heading."""
    link: str | None = None
    """The word in the page's contents, the title unless given; empty: none."""


@dataclass(frozen=True)
class View:
    """Something that a page shows and that is no stored table of its own."""

    part: str
    """Anchor of the page's part that shows it."""
    show: Callable[[Any], Sequence[Item]]
    """Finds it in the study's results."""
    label: str = ""
    """A name by which ``toptail-paper show`` finds its tables."""


Shown: TypeAlias = TableSpec | FigureSpec | View
"""What a study lists, in the order of its page."""


@dataclass(frozen=True)
class Picture:
    """A figure as the page embeds it."""

    kind: ClassVar = "picture"
    drawing: Drawing
    """Name, title and caption."""
    source: str
    """The image as a data address."""


@dataclass(frozen=True)
class Sheet:
    """A table as the page shows it."""

    kind: ClassVar = "table"
    table: Table
    """The table."""
    controls: Sequence[Table] = ()
    """More rows, shown on demand."""
    notes: Sequence[str] = ()
    """How to read it."""


@dataclass(frozen=True)
class Listing:
    """Named lines of text, without a table's columns."""

    kind: ClassVar = "rows"
    rows: Sequence[tuple[str, str]]
    """Name and text."""
    name: str = ""
    """Anchor."""
    title: str = ""
    """Heading, where it has one."""
    lead: str = ""
    """What the lines have in common."""


Item: TypeAlias = Picture | Sheet | Listing


@dataclass(frozen=True)
class Texts:
    """The words of a page that are the study's own."""

    title: str
    """Of the browser's window."""
    brand: str
    """The line above the heading."""
    heading: str
    """The heading."""
    lead: str
    """What the study does, in a few sentences."""
    summary: Sequence[str]
    """What came out, in sentences that hold numbers."""
    method: Sequence[tuple[str, str | None]]
    """How it was computed; lines without a text are left out."""
    deciding: str = _DECIDING
    """How claims are decided."""
    reading: Sequence[str] = ()
    """How to read the page."""
    style: str = ""
    """Rules beside the style sheet of all studies."""


def write_page(study: Study, folder: Path) -> Path:
    """Write ``figures/*.svg|png`` and the page made with them; return ``report.html``'s path."""
    results = study.read(folder)
    drawings = [
        replace(drawing, caption=where_compared(drawing.caption, compared=results.has_paper))
        for drawing in study.drawings(results)
    ]
    pictures = write_figures(folder / "figures", drawings)
    write_bytes(folder / "report.html", render_page(study, results, pictures).encode())
    return folder / "report.html"


def render_page(study: Study, results: StudyResults, pictures: Sequence[Picture]) -> str:
    """The page as HTML."""
    tally = claim_tally(results.claims)
    texts = study.texts(results)
    texts = replace(texts, deciding=_with_rarer(texts.deciding, tally))
    return template("page.html").render(
        css=page_style(),
        style=Markup(texts.style),
        texts=texts,
        method=[(label, text) for label, text in texts.method if text],
        parts=_filled_parts(study, results, pictures),
        claims=[claim_entry(entry) for entry in results.claims],
        tally=tally,
        short=short_words(results.scale),
    )


def _filled_parts(
    study: Study, results: StudyResults, pictures: Sequence[Picture]
) -> list[tuple[Part, list[Item], bool]]:
    """The parts that this run has anything for, and whether one of the items has the anchor."""
    drawn = {picture.drawing.name: picture for picture in pictures}
    found = []
    for part in study.parts:
        shown = [entry for entry in study.content if entry.part == part.anchor]
        items = [item for entry in shown for item in _items(entry, results, drawn)]
        if items:
            own = part.anchor in {item.table.name for item in items if isinstance(item, Sheet)}
            title, lead = text_of(part.title, results), text_of(part.lead, results)
            link = title if part.link is None else part.link
            found.append((Part(part.anchor, title, lead, link), items, own))
    return found


def _items(entry: Shown, results: StudyResults, drawn: Mapping[str, Picture]) -> list[Item]:
    if isinstance(entry, View):
        return list(entry.show(results))
    if isinstance(entry, FigureSpec):
        return [drawn[entry.name]] if entry.name in drawn else []
    if not results.rows(entry.stored):
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
        pictures.append(Picture(drawing, data_address(svg, png)))
    return pictures


def data_address(svg: bytes, png: bytes) -> str:
    """Return the lighter of the two as an address: many points weigh less as pixels."""
    kind, content = ("svg+xml", svg) if len(svg) <= len(png) else ("png", png)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def claim_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A claim of ``claims.json`` as the page shows it."""
    low, high = entry["interval"] or (None, None)
    x, on, over = entry["number"], entry.get("depends_on"), entry.get("interval_over")
    shown = "" if x is None else str(int(x)) if x == int(x) else number(x, 3)
    interval = f"{bracket(low, high, 3)} over {over}" if over else bracket(low, high, 3)
    return {
        "also": (),
        "changed": None,
        "settled": None,
        **entry,
        "mark": {"seen": "pass", "not seen": "fail"}.get(entry["status"], "undecided"),
        "word": f"{entry['status']} on {on}" if on else entry["status"],
        "number": f"{shown} {interval}".strip(),
    }


def claim_tally(claims: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """How many claims have each status."""
    found = [claim["status"] for claim in claims]
    words = (*STATUSES, *(word for word in RARER if word in found))
    return [(word, found.count(word)) for word in words]


def _with_rarer(deciding: str, tally: Sequence[tuple[str, int]]) -> str:
    """How claims are decided, with the rarer words that the page shows."""
    rarer = [f" “{word.capitalize()}”: {RARER[word]}." for word, _ in tally if word in RARER]
    return deciding + "".join(rarer)


def recorded(record: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Code and versions, as the method of every study ends."""
    versions = record.get("versions", {})
    code = record.get("commit")
    if code is None and "toptail" in versions:
        code = f"unknown (version {versions['toptail']})"
    return ("Code", code), ("Versions", ", ".join(f"{n} {text}" for n, text in versions.items()))


def page_style() -> Markup:
    """The style sheet of a study's page."""
    return Markup(
        _asset("toptail.report", "assets", "style.css")
        + _asset("toptail_paper.study", "templates", "study.css")
    )


def template(name: str) -> jinja2.Template:
    """A template of ``templates``; text is escaped, and a missing name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(_asset, "toptail_paper.study", "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that is there completely or not at all."""
    atomic(path, lambda target: target.write_bytes(content))


def _asset(package: str, folder: str, name: str) -> str:
    return (files(package) / folder / name).read_text(encoding="utf-8")
