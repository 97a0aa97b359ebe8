"""The audit as Markdown: pipe tables that GitHub and most viewers draw."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toptail.report.sentences import (
    basis_sentences,
    exception_sentences,
    exceptions,
    method_rows,
    shared_unseen,
    status_lines,
    unseen,
)
from toptail.report.style import FIGURES
from toptail.report.table import Table
from toptail.report.tables import tables_of
from toptail.report.text import (
    NOT_MEANT,
    Audit,
    data_sentences,
    headline,
    one_line,
    question,
    ranked,
    scope_sentence,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$@])")


def escape(text: object) -> str:
    """Make text mean itself in Markdown, on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text).replace("&", "&amp;"))


def pipe_table(table: Table) -> str:
    """Draw a table with pipes; numbers are aligned right."""
    header = [escape(column.label) for column in table.columns]
    rule = ["---:" if column.kind == "number" else ":---" for column in table.columns]
    rows = [[escape(cell.plain) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows))


def table_parts(tables: Iterable[Table]) -> Iterable[str]:
    """Heading, caption and table, one after the other."""
    for table in tables:
        yield from (f"## {escape(table.title)}", escape(table.caption), pipe_table(table))


def bullets(lines: Iterable[str]) -> str:
    """Lines that are escaped already, as a list."""
    return "\n".join(f"- {line}" for line in lines)


def method_parts(rows: Iterable[tuple[str, str]]) -> list[str]:
    """The section that ends every document."""
    return ["## How it was computed", bullets(f"{escape(a)}: {escape(b)}" for a, b in rows)]


def document(parts: Iterable[str]) -> str:
    """The parts with blank lines between them; empty parts are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def render_markdown(audit: Audit) -> str:
    """Render the whole audit as one Markdown document."""
    pools = audit["kind"] == "pools"
    parts = [f"# {question(audit)}", " ".join(map(escape, data_sentences(audit)))]
    parts += [escape(f"{scope_sentence(audit)} {NOT_MEANT}")] if pools else []
    parts.append(bullets(map(escape, exception_sentences(audit))))
    # In the order of the page: the leaderboard, then the charts, then the other tables.
    tables = tables_of(audit)
    first = [table for table in tables if table.name in ("baseline", "verdicts")]
    parts += [*table_parts(first), bullets(map(escape, basis_sentences(audit)))]
    for title, sentences in (("Warnings", audit["warnings"]), ("Notes", audit["notes"])):
        parts += [f"## {title}", bullets(map(escape, sentences))] if sentences else []
    parts += [f"![{t}](figures/{name}.svg)" for name, t in FIGURES[audit["kind"]].items()]
    parts += ["## Each verdict in words", bullets(_verdicts(audit))] if pools else []
    parts += table_parts(table for table in tables if table not in first)
    parts += method_parts(method_rows(audit))
    if meanings := status_lines(audit):
        parts += ["What each verdict means:"]
        parts += [bullets(f"**{escape(a)}**: {escape(b)}" for a, b in meanings)]
    return document(parts)


def _verdicts(audit: Audit) -> Iterable[str]:
    shared = shared_unseen(audit)
    for name in ranked(audit):
        verdict = audit["scorers"][name]["verdict"]
        but = exceptions(audit, name)
        words = escape(headline(verdict, audit["k"][-1]) + (f"; but {but}" if but else ""))
        own = "" if shared or not unseen(audit, name) else f" {escape(unseen(audit, name))}"
        status = f"**{escape(name)}: {escape(verdict['status'])}.**"
        yield f"{status} {words}. {escape(verdict['reason'])}{own}"
