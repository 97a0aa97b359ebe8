"""The page system: every page is one self-contained HTML file with the same template and style.

A `Page` holds words, sections and method; a section holds tables, pictures, charts and lists.
Pages make no requests and are readable without scripts. Names come from users' tables and may
hold anything: Jinja escapes every text, the numbers of charts are embedded as JSON whose angle
brackets are escaped, and the content security policy lets only the page's own script run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from math import log2
from typing import Any, ClassVar, Final, TypeAlias

import jinja2
from markupsafe import Markup

from toptail.report.table import Table
from toptail.report.text import NOT_MEANT

_ASSETS: Final = ("toptail.report", "assets")
LONG: Final = 15
"""Tables of pairs and of selectors with more rows start folded."""

# Six hues of different lightness that stay apart under simulated colour vision deficiencies; the
# seventh scorer starts again with dashed lines, the thirteenth with dotted ones. The rank printed
# beside each line identifies a scorer without any colour.
LIGHT: Final = ("#1788ec", "#d5359f", "#b08a28", "#0d6b39", "#05188f", "#5b0c01")
DARK: Final = ("#78b7ff", "#df4199", "#996520", "#70fdcb", "#4c64f3", "#f49e6a")
DASHES: Final = ("", "7 3", "2 3")  # in SVG's notation; the empty one is solid


@dataclass(frozen=True)
class Sheet:
    """A table on a page."""

    kind: ClassVar = "table"
    table: Table
    controls: Sequence[Table] = ()
    """Tables of further rows, folded."""
    notes: Sequence[str] = ()
    """How to read it."""
    sortable: bool = False
    """Headings sort the rows; the page then needs ``sorting.js``."""
    folded: bool = False
    """The rows start folded."""


@dataclass(frozen=True)
class Picture:
    """A figure that the page embeds as an image."""

    kind: ClassVar = "picture"
    name: str
    title: str
    caption: str
    source: str
    """The image as a data address."""
    label: str = ""
    """The label of the paper's figure, such as ``fig:search``; empty where it has none."""


@dataclass(frozen=True)
class Chart:
    """A place for a chart that the page's script draws."""

    kind: ClassVar = "chart"
    name: str
    """The script finds it as ``chart-NAME``."""
    title: str
    caption: str = ""
    plain: bool = False
    low: bool = False
    """The legend stands below the plot."""


@dataclass(frozen=True)
class Listing:
    """Named lines of text."""

    kind: ClassVar = "rows"
    rows: Sequence[tuple[str, str]]
    name: str = ""
    title: str = ""
    lead: str = ""


@dataclass(frozen=True)
class Links:
    """Links to other files."""

    kind: ClassVar = "links"
    rows: Sequence[tuple[str, str]]


Item: TypeAlias = Sheet | Picture | Chart | Listing | Links


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    anchor: str
    """What links to it name."""
    items: Sequence[Item] = ()
    title: str = ""
    """The heading; without one the titles of its tables are headings."""
    lead: str = ""
    """A sentence or two below the heading."""
    link: str = ""
    """Its name in the page's contents; empty: it is not listed there."""

    @property
    def has_own_anchor(self) -> bool:
        """Whether the section carries the anchor, because none of its tables does."""
        return self.anchor not in {i.table.name for i in self.items if isinstance(i, Sheet)}


@dataclass(frozen=True)
class Page:
    """What a page shows, from top to bottom."""

    brand: str
    """The small line above the heading."""
    heading: str
    title: str = ""
    """Title of the browser's window; by default the heading."""
    answers: Sequence[tuple[str, str]] = ()
    """Answers below the heading, each with a status to mark it (or none)."""
    values: str = ""
    """What search makes of a random candidate's value, in a sentence."""
    exceptions: Sequence[str] = ()
    """Where the answers do not hold."""
    opening: Sequence[Section] = ()
    """The main picture, directly below the heading."""
    lead: Sequence[str] = ()
    measured: Sequence[str] = ()
    """Sentences about the data."""
    first: Sequence[Section] = ()
    """Sections above the warnings."""
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    sections: Sequence[Section] = ()
    method: Sequence[tuple[str, str]] = ()
    """How it was computed, as label and text."""
    method_lead: str = ""
    scripts: Sequence[str] = ()
    """Files of ``assets`` that draw charts and sort tables."""
    data: Mapping[str, Any] | None = None
    """The numbers of the charts."""
    says_safe: bool = False
    """The page speaks of *safe*: a line says what that does not mean."""


def render_page(
    page: Page,
    template: str = "base.html",
    folder: tuple[str, str] = _ASSETS,
    css: str = "",
    **more: Any,
) -> str:
    """Render a page as HTML.

    ``template`` extends ``base.html`` where a page has parts of its own; it and the additional
    style sheet ``css`` lie in ``folder`` (package and folder), and ``more`` is for it alone.
    """
    script = Markup("\n".join(asset(name) for name in page.scripts))
    style = _hues() + asset("style.css") + (asset(css, folder) if css else "")
    return (
        _templates(folder)
        .get_template(template)
        .render(
            page=page,
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            not_meant=NOT_MEANT,
            css=Markup(style),
            **more,
        )
    )


def data_address(content: bytes, kind: str = "svg+xml") -> str:
    """An image as an address that a page can embed."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def asset(name: str, folder: tuple[str, str] = _ASSETS) -> str:
    return (files(folder[0]) / folder[1] / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class LineStyle:
    """Colour and dashes of one scorer's line."""

    hue: int
    """Index into the palette."""
    dash: str
    """SVG dash pattern; empty for a solid line."""

    @property
    def colour(self) -> str:
        return LIGHT[self.hue]

    @property
    def matplotlib(self) -> dict[str, Any]:
        """The arguments of Matplotlib's ``plot``."""
        dashes = (0, tuple(map(float, self.dash.split()))) if self.dash else "solid"
        return {"color": self.colour, "linestyle": dashes, "marker": "o", "markersize": 3}


def line_style(rank: int) -> LineStyle:
    return LineStyle(rank % len(LIGHT), DASHES[rank // len(LIGHT) % len(DASHES)])


def small_html(lines: Sequence[str], table: Table) -> str:
    """A table below a few lines, as HTML for a notebook."""
    rows = [[escape(cell.plain) for cell in row] for row in table.rows]
    return notebook_table(lines, [column.label for column in table.columns], rows)


def notebook_table(lines: Sequence[str], head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table below a few lines, as HTML for a notebook; the cells of ``rows`` are HTML already.

    A notebook has no style of ours: colours are inside the tags and readable on light and dark
    ground, and curves are drawn in the colour of the text.
    """
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        '<table><caption style="text-align:left;caption-side:top">'
        f"{'<br>'.join(map(escape, lines))}</caption>"
        f"<thead><tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


STATUS_COLOURS: Final = {
    "safe": "#1a7a55",
    "no gain": "#596577",
    "unsafe": "#b3261e",
    "inconclusive": "#8f5a00",
}
"""The page's colours on light ground, below white text."""


def pill(status: str, text: str = "", title: str = "") -> str:
    """A status in its colour, as HTML for a notebook."""
    style = f"background:{STATUS_COLOURS[status]};color:#fff;border-radius:1em;padding:.1em .6em"
    hint = f' title="{escape(title)}"' if title else ""
    return f'<span style="{style};white-space:nowrap"{hint}>{escape(text or status)}</span>'


def small_curve(
    steps: Sequence[float],
    values: Sequence[float | None],
    *,
    random: Sequence[float | None] = (),
    best: Sequence[float | None] = (),
) -> str:
    """A curve of a table's height, as HTML for a notebook; ``steps`` are places in [0, 1].

    Dashed: a random candidate. Dotted: the best possible choice.
    """
    known = [each for line in (random, best, values) for each in line if each is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)

    def path(over: Sequence[float | None]) -> str:
        at = [
            f"{2 + 96 * x:.1f},{26 - 24 * (y - low) / ((high - low) or 1):.1f}"
            for x, y in zip(steps, over, strict=False)
            if y is not None
        ]
        return "M" + "L".join(at) if at else ""

    lines = [
        (path(random), "1", "3 3", ".6"),
        (path(best), "1", "1 2", ".6"),
        (path(values), "2", "", "1"),
    ]
    drawn = "".join(
        f'<path d="{d}" fill="none" stroke="currentColor" stroke-width="{width}" '
        f'stroke-dasharray="{dash}" opacity="{opacity}"/>'
        for d, width, dash, opacity in lines
        if d
    )
    return f'<svg width="100" height="28" viewBox="0 0 100 28" aria-hidden="true">{drawn}</svg>'


def log_steps(ks: Sequence[int]) -> list[float]:
    """Places of K between the ends of an axis with logarithmic scale."""
    return [log2(k) / max(log2(ks[-1]), 1e-9) for k in ks]


def rounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keep six significant digits of every number: more than a chart shows."""
    return {key: _rounded(each) for key, each in data.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return rounded(value)
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def breakable(name: str) -> Markup:
    """Escape a name and let it wrap after the marks that join its words."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./:-])(?=[^_./:-])", name))


@functools.cache
def _templates(folder: tuple[str, str]) -> jinja2.Environment:
    def load(name: str) -> str:
        own = files(folder[0]) / folder[1] / name
        return own.read_text(encoding="utf-8") if own.is_file() else asset(name)

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment


def _hues() -> str:
    """Scorers' colours as style variables, for light and dark."""

    def rule(colours: tuple[str, ...]) -> str:
        return ":root{" + "".join(f"--hue-{i}:{c};" for i, c in enumerate(colours)) + "}"

    return f"{rule(LIGHT)}\n@media screen and (prefers-color-scheme:dark){{{rule(DARK)}}}\n"
