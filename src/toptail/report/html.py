"""The audit as one self-contained page: no requests, readable without scripts.

Names come from a user's table and may hold anything. Jinja escapes every text, the
charts' numbers are embedded as JSON whose angle brackets are escaped, and the page's
content security policy lets only the page's own script run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from toptail.report.chart_data import chart_data
from toptail.report.content import method_rows, status_lines, tables_of
from toptail.report.palette import DARK, LIGHT, style
from toptail.report.scorer_tables import checks_table, numbers_table
from toptail.report.table import Table
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    data_sentences,
    headline,
    k_word,
    one_line,
    question,
    ranked,
    scope_sentence,
    signed,
    tally,
    value_decimals,
    with_interval,
)

MANY_SCORERS: Final = 6
"""Above this number, tables of pairs and repeated legends start folded."""

MOST_ROWS: Final = 1000
"""Longer tables are cut: the page must stay light, and the rest is in ``audit.json``."""

_SCRIPTS: Final = ("svg.js", "shown.js", "lines.js", "panels.js", "sorting.js", "page.js")


def render_html(audit: Audit) -> str:
    """Render the page."""
    script = Markup("\n".join(_asset(name) for name in _SCRIPTS))
    pools = audit["kind"] == "pools"
    template = _templates().get_template(f"{audit['kind']}.html")
    return template.render(
        audit=audit,
        many=len(audit.get("scorers", ())) > MANY_SCORERS,
        cards=[_card(audit, *at) for at in enumerate(ranked(audit))] if pools else (),
        data=chart_data(audit),
        definitions=status_lines(audit),
        measured=data_sentences(audit),
        method=method_rows(audit),
        question=question(audit),
        scope=scope_sentence(audit) if pools else "",
        script=script,
        script_hash=_hash(script),
        css=Markup(_hues() + _asset("style.css")),
        tables={table.name: _cut(table) for table in tables_of(audit)},
        tally=tally(audit) if pools else (),
    )


def _card(audit: Audit, rank: int, name: str) -> dict[str, Any]:
    """The verdict on one scorer in plain words, its K and gains as pairs of label and text."""
    scorer: Mapping[str, Any] = audit["scorers"][name]
    verdict, k_max = scorer["verdict"], audit["k"][-1]
    captured = with_interval(*(scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")))
    gain = signed(scorer["gain_per_doubling"], value_decimals(audit))
    checks = checks_table(audit, [name])
    # The card itself names the scorer.
    checks = replace(checks, columns=checks.columns[1:], rows=tuple(row[1:] for row in checks.rows))
    return {
        "name": one_line(name),
        "rank": rank + 1,
        "status": verdict["status"],
        "headline": headline(verdict, k_max),
        "reason": one_line(verdict["reason"]),
        "style": style(rank),
        "ks": (
            ("Best K", k_word(verdict["k_best"], MISSING_SHORT)),
            ("Safe up to K", k_word(verdict["k_safe_max"])),
            ("Hurts from K", k_word(verdict["k_harm"])),
        ),
        "gains": ((f"Captured, K = {k_max}", captured), ("Gain per doubling", gain)),
        "tables": (checks, numbers_table(audit, name)),
    }


def _cut(table: Table) -> Table:
    """Shorten a table that would make the page heavy, and say so."""
    if len(table.rows) <= MOST_ROWS:
        return table
    remark = f" The first {MOST_ROWS:,} of {len(table.rows):,} rows; all are in audit.json."
    return replace(table, rows=table.rows[:MOST_ROWS], caption=table.caption + remark)


def _asset(name: str) -> str:
    return (files("toptail.report") / "assets" / name).read_text(encoding="utf-8")


def breakable(name: str) -> Markup:
    """Escape a name and let it wrap after the marks that join its words."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./:-])(?=[^_./:-])", name))


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment


def _hash(script: str) -> str:
    """Digest by which the content security policy admits this script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _hues() -> str:
    """Scorers' colours as style variables, for light and dark."""

    def rule(colours: tuple[str, ...]) -> str:
        return ":root{" + "".join(f"--hue-{i}:{c};" for i, c in enumerate(colours)) + "}"

    return f"{rule(LIGHT)}\n@media screen and (prefers-color-scheme:dark){{{rule(DARK)}}}\n"
