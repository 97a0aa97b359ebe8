"""What the pages of all studies share: templates, figures, the list of claims."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from toptail.lab.studies.controlled.figures import Drawing, svg_and_png
from toptail.pools.files import atomic
from toptail.report.text import bracket, number

STATUSES: Final = ("seen", "depends", "not seen")
"""The words of the claim ledger, in the order of the page's tally."""


@dataclass(frozen=True)
class Picture:
    """A figure as the page embeds it."""

    drawing: Drawing
    """Name, title and caption."""
    source: str
    """The image as a data address."""


def write_figures(folder: Path, drawings: Iterable[Drawing]) -> list[Picture]:
    """Write ``NAME.svg`` and ``NAME.png`` of every drawing; return them as a page embeds them."""
    pictures = []
    for drawing in drawings:
        svg, png = svg_and_png(drawing)
        write_bytes(folder / f"{drawing.name}.svg", svg)
        write_bytes(folder / f"{drawing.name}.png", png)
        pictures.append(Picture(drawing, data_address(svg, png)))
    return pictures


def write_page(
    folder: Path, drawings: Iterable[Drawing], render: Callable[[list[Picture]], str]
) -> Path:
    """Write ``figures/*.svg|png`` and the page made with them; return ``report.html``'s path."""
    pictures = write_figures(folder / "figures", drawings)
    write_bytes(folder / "report.html", render(pictures).encode())
    return folder / "report.html"


def data_address(svg: bytes, png: bytes) -> str:
    """Return the lighter of the two as an address: many points weigh less as pixels."""
    kind, content = ("svg+xml", svg) if len(svg) <= len(png) else ("png", png)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def claim_entry(entry: Mapping[str, Any]) -> dict[str, str]:
    """A claim of ``claims.json`` as the page shows it."""
    low, high = entry["interval"] or (None, None)
    x = entry["number"]
    shown = "" if x is None else str(int(x)) if x == int(x) else number(x, 3)
    return {
        "status": entry["status"],
        "mark": {"seen": "pass", "not seen": "fail"}.get(entry["status"], "undecided"),
        "sentence": entry["sentence"],
        "where": entry["where"],
        "number": f"{shown} {bracket(low, high, 3)}".strip(),
        "comment": entry["comment"],
        "id": entry["id"],
    }


def claim_tally(claims: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """How many claims have each status."""
    found = [claim["status"] for claim in claims]
    return [(word, found.count(word)) for word in STATUSES]


def page_style() -> Markup:
    """The style sheet of a study's page."""
    return Markup(
        _asset("toptail.report", "assets", "style.css")
        + _asset("toptail.lab.studies", "templates", "study.css")
    )


def template(name: str) -> jinja2.Template:
    """A template of ``templates``; text is escaped, and a missing name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(_asset, "toptail.lab.studies", "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that is there completely or not at all."""
    atomic(path, lambda target: _write(target, content))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _asset(package: str, folder: str, name: str) -> str:
    return (files(package) / folder / name).read_text(encoding="utf-8")
