"""Markdown, read back with an independent parser."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from toptail.report.documents import as_markdown, pipe_table, render_markdown, tabular
from toptail.report.table import Cell, Column, Table, name_cell
from toptail.report.tables import tables_of


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def rows_of(tokens: list[Token]) -> list[list[str]]:
    """Cells of every table row, headings included."""
    rows: list[list[str]] = []
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("th_open", "td_open"):
            rows[-1].append(plain(token))
    return rows


@pytest.mark.parametrize("name", ["audit", "compared", "fifteen", "picks", "hostile"])
def test_tables_read_back_as_they_were(name: str, request: pytest.FixtureRequest) -> None:
    audit = request.getfixturevalue(name)
    expected = []
    for table in tables_of(audit):
        expected.append([column.label for column in table.columns])
        expected += [[cell.plain for cell in row] for row in table.rows]
    assert rows_of(parse(render_markdown(audit))) == expected


def test_hostile_names_stay_text(hostile: dict[str, Any]) -> None:
    tokens = parse(render_markdown(hostile))
    kinds = {token.type for token in tokens}
    inline = {child.type for token in tokens for child in token.children or ()}
    assert "html_block" not in kinds
    assert inline <= {"text", "text_special", "strong_open", "strong_close", "image", "softbreak"}
    images = [c for token in tokens for c in token.children or () if c.type == "image"]
    assert [image.attrs["src"] for image in images] == [
        "figures/gain.svg",
        "figures/best_of_k.svg",
        "figures/deciles.svg",
    ]


def test_parts_come_in_the_order_of_the_page(compared: dict[str, Any]) -> None:
    text = render_markdown(compared)
    assert text.startswith("# Are these scores safe to maximize?\n")
    parts = [
        "- “perfect” is safe up to best of 16 of pools like these; but ",
        *("## Against the baseline", "## Verdicts", "## Warnings", "figures/gain.svg"),
        "figures/best_of_k.svg",
        "**cursed: unsafe.** Search hurts from K = 8; but inconclusive measured in ",
        *("## Value at each K", "## Groups", "## Between groups", "## How it was computed"),
    ]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


@pytest.mark.parametrize(
    "text", ["a|b", "*x*", "_x_", "`x`", "[x](y)", "<b>", "&amp;", "#1", "~~x~~"]
)
def test_escaped_text_reads_back(text: str) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"x {as_markdown(text)}")
    assert plain(tokens[1]) == f"x {text}"


def test_an_empty_cell_or_heading_stays_empty() -> None:
    columns = (Column("Selector", "name"), Column(""))
    table = Table("x", "X", "", columns, ((name_cell(""), Cell("")),))
    assert pipe_table(table).splitlines() == [
        "| Selector |  |",
        "| :--- | ---: |",
        "| (unnamed) |  |",
    ]
    assert "unnamed" not in tabular(table).replace("(unnamed) & ", "")
