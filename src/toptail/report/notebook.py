"""An audit as a notebook shows it: its first table with its exceptions, escaped."""

from __future__ import annotations

from html import escape

from toptail.report.content import tables_of
from toptail.report.exceptions import exception_sentences
from toptail.report.text import Audit, data_sentences


def notebook_html(audit: Audit) -> str:
    """The verdicts (or the differences between selectors) as an HTML table."""
    table = next(t for t in tables_of(audit) if t.name in ("verdicts", "differences"))
    lines = [" ".join(data_sentences(audit)), table.title, *exception_sentences(audit)]
    caption = "<br>".join(map(escape, lines))
    head = "".join(f"<th>{escape(column.label)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell.plain)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    style = "text-align:left;caption-side:top"
    return (
        f'<table><caption style="{style}">{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
