"""The audit as Markdown: pipe tables that GitHub and most viewers draw."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toptail.report.figures import figures_of
from toptail.report.sentences import (
    basis_sentences,
    exception_sentences,
    exceptions,
    method_rows,
    shared_unseen,
    status_lines,
    unseen,
)
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


def render_markdown(audit: Audit) -> str:
    """Render the whole audit as one Markdown document."""
    parts = [f"# {question(audit)}", " ".join(map(escape, data_sentences(audit)))]
    if audit["kind"] == "pools":
        parts += [escape(f"{scope_sentence(audit)} {NOT_MEANT}")]
    parts.append(_bullets(map(escape, exception_sentences(audit))))
    # As on the page: the leaderboard, then the charts, then the tables behind them.
    tables = tables_of(audit)
    first = [table for table in tables if table.name in ("baseline", "verdicts")]
    parts += _tables(first)
    parts.append(_bullets(map(escape, basis_sentences(audit))))
    if audit["warnings"]:
        parts += ["## Warnings", _bullets(map(escape, audit["warnings"]))]
    if audit["notes"]:
        parts += ["## Notes", _bullets(map(escape, audit["notes"]))]
    parts += [f"![{title}](figures/{name}.svg)" for name, title in figures_of(audit).items()]
    if audit["kind"] == "pools":
        parts += ["## Each verdict in words", _bullets(_verdicts(audit))]
    parts += _tables(table for table in tables if table not in first)
    parts.append("## How it was computed")
    parts.append(_bullets(f"{escape(a)}: {escape(b)}" for a, b in method_rows(audit)))
    if meanings := status_lines(audit):
        parts.append("What each verdict means:")
        parts.append(_bullets(f"**{escape(a)}**: {escape(b)}" for a, b in meanings))
    return "\n\n".join(part for part in parts if part) + "\n"


def pipe_table(table: Table) -> str:
    """Draw a table with pipes; numbers are aligned right."""
    header = [escape(column.label) for column in table.columns]
    rule = ["---:" if column.kind == "number" else ":---" for column in table.columns]
    rows = [[escape(cell.plain) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows))


def _tables(tables: Iterable[Table]) -> Iterable[str]:
    for table in tables:
        yield from (f"## {escape(table.title)}", escape(table.caption), pipe_table(table))


def _verdicts(audit: Audit) -> Iterable[str]:
    for name in ranked(audit):
        verdict = audit["scorers"][name]["verdict"]
        but = exceptions(audit, name)
        words = escape(headline(verdict, audit["k"][-1]) + (f"; but {but}" if but else ""))
        reason, rest = escape(verdict["reason"]), ""
        if not shared_unseen(audit) and unseen(audit, name):
            rest = f" {escape(unseen(audit, name))}"
        yield f"**{escape(name)}: {escape(verdict['status'])}.** {words}. {reason}{rest}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
