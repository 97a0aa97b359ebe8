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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from toptail.report.scorer_tables import (
    checks_table,
    groups_table,
    heterogeneity,
    numbers_table,
    steps_table,
)
from toptail.report.sentences import (
    basis_sentences,
    exception_sentences,
    exceptions,
    method_rows,
    shared_unseen,
    status_lines,
    unseen,
)
from toptail.report.style import DARK, LIGHT, style
from toptail.report.table import Table, has_gains
from toptail.report.tables import tables_of
from toptail.report.text import (
    MISSING_SHORT,
    NOT_MEANT,
    Audit,
    count,
    data_sentences,
    ends_sentence,
    headline,
    k_word,
    number,
    one_line,
    peak,
    percent,
    question,
    ranked,
    scope_sentence,
    short,
    signed,
    status_words,
    tally,
    threshold,
    value_decimals,
    with_interval,
)


def chart_data(audit: Audit) -> dict[str, Any]:
    """Everything the page's script needs, scorers in the order of their ranks."""
    data = _picks(audit) if audit["kind"] == "picks" else _pools(audit)
    data["decimals"] = value_decimals(audit)
    data["level"] = percent(audit["thresholds"]["level"])
    small: dict[str, Any] = rounded(data)
    return small


def _pools(audit: Audit) -> dict[str, Any]:
    whole = ("kind", "k", "random", "oracle", "oracle_low", "oracle_high")
    scorers = [_scorer(audit, *at) for at in enumerate(ranked(audit))]
    margins: dict[str, Any] = {}
    for part in ("delta", "rho"):
        margins |= {part: (loss := audit["thresholds"][part]), f"{part}_text": threshold(loss)}
    return {**{part: audit[part] for part in whole}, **margins, "scorers": scorers}


def _scorer(audit: Audit, rank: int, name: str) -> dict[str, Any]:
    scorer = audit["scorers"][name]
    over_k = ("value", "band_low", "band_high", "captured")
    deciles = ("deciles", "deciles_low", "deciles_high", "deciles_within")
    look = style(rank)
    seeds = scorer.get("seeds") or {}
    return {
        **{part: scorer[part] for part in (*over_k, *deciles, "tau_b")},
        "name": one_line(name),
        "hue": look.hue,
        "dash": look.dash,
        "gain": scorer.get("gain"),
        "verdict": status_words(scorer["verdict"], audit["k"][-1]),
        "k_harm": scorer["verdict"]["k_harm"],
        "k_safe_max": scorer["verdict"]["k_safe_max"],
        "off_support": scorer.get("off_support"),
        "seeds": [{"seed": one_line(seed), "value": s["value"]} for seed, s in seeds.items()],
    }


def _picks(audit: Audit) -> dict[str, Any]:
    parts = ("difference", "low", "high", "p_holm")
    return {
        "kind": "picks",
        "comparisons": [
            {"a": short(c["a"], 24), "b": short(c["b"], 24), **{part: c[part] for part in parts}}
            for c in audit["comparisons"]
        ],
    }


def rounded(value: Any) -> Any:
    """Keep six significant digits of every number: more than a chart shows."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value


MANY_SCORERS: Final = 6
"""Above this number, cards, legends and tables of pairs start folded."""

MOST_ROWS: Final = 1000
"""Longer tables are cut: the page must stay light, and the rest is in ``audit.json``."""

_SCRIPTS: Final = ("svg.js", "shown.js", "lines.js", "panels.js", "sorting.js", "page.js")


def render_html(audit: Audit) -> str:
    """Render the page."""
    pools = audit["kind"] == "pools"
    return page(
        f"{audit['kind']}.html",
        _SCRIPTS,
        audit=audit,
        basis=basis_sentences(audit),
        many=len(audit.get("scorers", ())) > MANY_SCORERS,
        cards=[_card(audit, *at) for at in enumerate(ranked(audit))] if pools else (),
        data=chart_data(audit),
        definitions=status_lines(audit),
        exceptions=exception_sentences(audit),
        gains=has_gains(audit),
        measured=[*data_sentences(audit), *([ends_sentence(audit)] if pools else [])],
        method=method_rows(audit),
        question=question(audit),
        scope=scope_sentence(audit) if pools else "",
        tables={table.name: _cut(table) for table in tables_of(audit)},
        tail=percent((1 - audit["thresholds"]["level"]) / 2),
        tally=tally(audit) if pools else (),
    )


def page(template: str, scripts: Sequence[str], **content: Any) -> str:
    """Render a template with the house's style and these scripts, and no others."""
    script = Markup("\n".join(map(_asset, scripts)))
    return (
        _templates()
        .get_template(template)
        .render(
            script=script,
            script_hash=_hash(script),
            not_meant=NOT_MEANT,
            css=Markup(_hues() + _asset("style.css")),
            **content,
        )
    )


def _card(audit: Audit, rank: int, name: str) -> dict[str, Any]:
    """The verdict on one scorer in plain words, its numbers, and the tables behind them."""
    verdict: Mapping[str, Any] = audit["scorers"][name]["verdict"]
    return {
        "name": one_line(name),
        "rank": rank + 1,
        "status": verdict["status"],
        "headline": headline(verdict, audit["k"][-1]),
        "exceptions": exceptions(audit, name),
        "reason": one_line(verdict["reason"]),
        "style": style(rank),
        "facts": _facts(audit, name),
        # The card itself names the scorer.
        "checks": checks_table(audit, [name]).without_first(),
        "steps": steps_table(audit, name),
        "numbers": numbers_table(audit, name),
        "groups": groups_table(audit, [name]).without_first(),
        "heterogeneity": heterogeneity(audit, name),
        # What is the same for all stands once, below the leaderboard.
        "unseen": "" if shared_unseen(audit) else unseen(audit, name),
    }


def _facts(audit: Audit, name: str) -> list[tuple[str, str]]:
    """A scorer's K, value and gain, as pairs of label and text."""
    scorer, decimals = audit["scorers"][name], value_decimals(audit)
    verdict = scorer["verdict"]
    value, low, high = (scorer[part][-1] for part in ("value", "low", "high"))
    best, value_there = peak(scorer, audit["k"])
    facts = [
        ("Peak", f"{number(value_there, decimals, MISSING_SHORT)} at K = {k_word(best)}"),
        ("Safe up to K", k_word(verdict["k_safe_max"])),
        ("Hurts from K", k_word(verdict["k_harm"])),
        ("Gain per doubling of K (value units)", signed(scorer["gain_per_doubling"], decimals)),
        (f"Value at K = {audit['k'][-1]}", with_interval(value, low, high, decimals)),
    ]
    needed = verdict["queries_needed"]
    return facts if needed is None else [*facts, ("Queries needed", count(needed))]


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
