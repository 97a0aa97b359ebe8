"""The audit as a page with interactive charts, and as the small table of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from math import log2
from typing import Any, Final

from toptail.audit.settings import exact_percent
from toptail.report.page import (
    LONG,
    Chart,
    Page,
    Section,
    Sheet,
    line_style,
    render_page,
    rounded,
    small_html,
)
from toptail.report.table import Table
from toptail.report.tables import (
    checks_table,
    groups_table,
    heterogeneity,
    numbers_table,
    steps_table,
    tables_of,
)
from toptail.report.text import (
    MISSING_SHORT,
    NOT_MEANT,
    Audit,
    basis_sentences,
    change_sentence,
    change_words,
    count,
    data_sentences,
    exception_sentences,
    exceptions,
    headline,
    k_word,
    last,
    method_rows,
    number,
    one_line,
    peak,
    percent,
    question,
    ranked,
    scope_sentence,
    shared_unseen,
    short,
    signed,
    status_lines,
    status_words,
    tally,
    unseen,
    value_decimals,
    with_interval,
)

MANY_SCORERS: Final = 6
"""Above this number, cards, legends and tables of pairs start folded."""
MOST_ROWS: Final = 1000
"""Longer tables are cut, so that the page stays light; ``audit.json`` has every row."""

_SCRIPTS: Final = ("svg.js", "shown.js", "lines.js", "panels.js", "sorting.js", "page.js")


def render_html(audit: Audit) -> str:
    tables = {table.name: _cut(table) for table in tables_of(audit)}
    page = Page(
        brand="toptail audit",
        heading=question(audit),
        measured=data_sentences(audit),
        warnings=audit["warnings"],
        notes=audit["notes"],
        method=method_rows(audit),
        scripts=_SCRIPTS,
        data=_chart_data(audit),
    )
    return (
        _picks_html(page, tables) if audit["kind"] == "picks" else _pools_html(page, audit, tables)
    )


def _picks_html(page: Page, tables: Mapping[str, Table]) -> str:
    data: Any = page.data
    forest = Section(
        "forest",
        [Chart("differences", "Paired differences", plain=True)],
        "Differences at a glance",
        f"Each line is a {data['level']} interval. Where it crosses 0 (grey), no difference "
        "between the two selectors is established.",
    )
    sections = [Section(name, [Sheet(table, sortable=True)]) for name, table in tables.items()]
    return render_page(
        replace(
            page,
            lead=[
                "How the candidates that each selector picked turned out, compared on the same "
                "queries."
            ],
            sections=[forest, *sections] if "differences" in tables else sections,
            method_lead="Values are averaged over replicates of a query; differences are paired by "
            "query, with intervals from a bootstrap over queries.",
        )
    )


def _pools_html(page: Page, audit: Audit, tables: Mapping[str, Table]) -> str:
    pairs = ("group-tests", "comparisons")
    folded = {name for name in pairs if name in tables and len(tables[name].rows) > LONG}
    return render_page(
        replace(
            page,
            lead=[
                "Best-of-K draws K candidates for a query and keeps the one with the top score. "
                "Does that help, up to which K, and how much of what was possible does it get?"
            ],
            answers=_only(audit),
            values=change_sentence(audit),
            says_safe=True,
            exceptions=exception_sentences(audit),
            method_lead="Curves are exact expectations over all subsets of K candidates of a pool, "
            "with ties averaged. Shares of the headroom and verdicts come from one set of draws of "
            "the clusters' weights, in which a cluster that was not seen takes part; the other "
            f"intervals come from a paired bootstrap over queries. {scope_sentence(audit)}",
        ),
        "pools.html",
        basis=basis_sentences(audit),
        many=len(audit["scorers"]) > MANY_SCORERS,
        cards=[_card(audit, *at) for at in enumerate(ranked(audit))],
        definitions=status_lines(audit),
        tables=tables,
        sheets={
            name: Sheet(table, sortable=name != "captured", folded=name in folded)
            for name, table in tables.items()
        },
        tail=percent((1 - audit["thresholds"]["level"]) / 2),
        tally=tally(audit),
    )


def _only(audit: Audit) -> list[tuple[str, str]]:
    """The verdict on a scorer that is alone; those of several are counted."""
    verdicts = [scorer["verdict"] for scorer in audit["scorers"].values()]
    if len(verdicts) > 1:
        return []
    return [(v["status"], f"{headline(v, audit['k'][-1])}.") for v in verdicts]


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
        "style": line_style(rank),
        "facts": _facts(audit, name),
        # The card itself names the scorer.
        "checks": checks_table(audit, [name]).without_first(),
        "steps": steps_table(audit, name),
        "numbers": numbers_table(audit, name),
        "groups": groups_table(audit, [name]).without_first(),
        "heterogeneity": heterogeneity(audit, name),
        # A sentence that is the same for all scorers stands once, below the leaderboard.
        "unseen": "" if shared_unseen(audit) else unseen(audit, name),
    }


def _facts(audit: Audit, name: str) -> list[tuple[str, str]]:
    """A scorer's K, value and gain, as pairs of label and text."""
    scorer, decimals = audit["scorers"][name], value_decimals(audit)
    verdict = scorer["verdict"]
    value, low, high = (scorer[part][-1] for part in ("value", "low", "high"))
    best, value_there = peak(scorer)
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
    """Shorten a table that would make the page heavy, with a remark in its caption."""
    if len(table.rows) <= MOST_ROWS:
        return table
    remark = f" The first {MOST_ROWS:,} of {len(table.rows):,} rows; all are in audit.json."
    return replace(table, rows=table.rows[:MOST_ROWS], caption=table.caption + remark)


def _chart_data(audit: Audit) -> dict[str, Any]:
    """The numbers that the page's script draws, scorers in the order of their ranks."""
    if audit["kind"] == "picks":
        ends = ("difference", "low", "high", "p_holm")
        pairs = [
            {"a": short(c["a"], 24), "b": short(c["b"], 24), **{part: c[part] for part in ends}}
            for c in audit["comparisons"]
        ]
        data: dict[str, Any] = {"comparisons": pairs}
    else:
        whole = ("k", "random", "oracle", "oracle_low", "oracle_high")
        data = {part: audit[part] for part in whole} | {"judge": short(audit["value"], 40)}
        for part in ("delta", "rho"):
            data |= {part: (loss := audit["thresholds"][part]), f"{part}_text": exact_percent(loss)}
        data["scorers"] = [_scorer_data(audit, *at) for at in enumerate(ranked(audit))]
    level = percent(audit["thresholds"]["level"])
    data |= {"kind": audit["kind"], "decimals": value_decimals(audit), "level": level}
    return rounded(data)


def _scorer_data(audit: Audit, rank: int, name: str) -> dict[str, Any]:
    scorer, look = audit["scorers"][name], line_style(rank)
    over_k = ("value", "band_low", "band_high", "captured", "gain")
    deciles = ("deciles", "deciles_low", "deciles_high", "deciles_within")
    seeds = scorer.get("seeds") or {}
    return {
        **{part: scorer[part] for part in (*over_k, *deciles, "tau_b")},
        "name": one_line(name),
        "hue": look.hue,
        "dash": look.dash,
        "verdict": status_words(scorer["verdict"], audit["k"][-1]),
        "k_harm": scorer["verdict"]["k_harm"],
        "k_safe_max": scorer["verdict"]["k_safe_max"],
        "off_support": scorer.get("off_support"),
        "seeds": [{"seed": one_line(seed), "value": s["value"]} for seed, s in seeds.items()],
    }


def notebook_html(audit: Audit) -> str:
    """The verdicts (or the differences between selectors) as an HTML table for a notebook.

    A notebook has no style of ours: colours are inside the tags and readable on light and dark
    ground, and curves are drawn in the colour of the text.
    """
    measured = " ".join(data_sentences(audit))
    if audit["kind"] == "picks":
        table = next(t for t in tables_of(audit) if t.name == "differences")
        return small_html([measured, table.title], table)
    k_max, grouped = audit["k"][-1], bool(audit.get("groups"))
    head = ["Scorer", "Verdict", f"K = 1 to {k_max}", "Value", "Captured share"]
    head += ["Groups"] if grouped else []
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{cell}</td>" for cell in _notebook_row(audit, name, grouped))
        + "</tr>"
        for name in ranked(audit)
    )
    lines = [measured, *exception_sentences(audit), NOT_MEANT]
    return (
        '<table><caption style="text-align:left;caption-side:top">'
        f"{'<br>'.join(map(escape, lines))}</caption>"
        f"<thead><tr>{''.join(f'<th>{text}</th>' for text in head)}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


_STATUS_COLOURS: Final = {
    "safe": "#1a7a55",
    "no gain": "#596577",
    "unsafe": "#b3261e",
    "inconclusive": "#8f5a00",
}
"""The page's colours on light ground, below white text."""


def _pill(status: str, text: str, title: str = "") -> str:
    style = f"background:{_STATUS_COLOURS[status]};color:#fff;border-radius:1em;padding:.1em .6em"
    hint = f' title="{escape(title)}"' if title else ""
    return f'<span style="{style};white-space:nowrap"{hint}>{escape(text)}</span>'


def _notebook_row(audit: Audit, name: str, grouped: bool) -> list[str]:
    scorer = audit["scorers"][name]
    parts = ("captured", "captured_low", "captured_high")
    share, low, high = (last(scorer.get(part)) for part in parts)
    row = [
        escape(short(name, 40)),
        _pill(scorer["verdict"]["status"], status_words(scorer["verdict"], audit["k"][-1], "")),
        _small_curve(audit, scorer["value"]),
        escape(change_words(audit, name)),
        escape(with_interval(share, low, high)),
    ]
    if grouped:
        groups = audit["groups"].items()
        verdicts = {g: p["scorers"][name]["verdict"] for g, p in groups if name in p["scorers"]}
        found = [_pill(v["status"], short(g, 12), v["status"]) for g, v in verdicts.items()]
        more = f" and {len(found) - _MOST_GROUPS} more" if len(found) > _MOST_GROUPS else ""
        row.append(" ".join(found[:_MOST_GROUPS]) + more)
    return row


_MOST_GROUPS: Final = 8


def _small_curve(audit: Audit, values: Sequence[float | None]) -> str:
    """The value over K, between the lines of a random candidate and of the best possible choice."""
    ends = [audit["random"], *audit["oracle"], *values]
    known = [each for each in ends if each is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    steps = [log2(k) / max(log2(audit["k"][-1]), 1e-9) for k in audit["k"]]

    def path(over: Sequence[float | None]) -> str:
        at = [
            f"{2 + 96 * x:.1f},{26 - 24 * (y - low) / ((high - low) or 1):.1f}"
            for x, y in zip(steps, over, strict=True)
            if y is not None
        ]
        return "M" + "L".join(at) if at else ""

    lines = [
        (path([audit["random"]] * len(steps)), "1", "3 3", ".6"),
        (path(audit["oracle"]), "1", "1 2", ".6"),
        (path(values), "2", "", "1"),
    ]
    drawn = "".join(
        f'<path d="{d}" fill="none" stroke="currentColor" stroke-width="{width}" '
        f'stroke-dasharray="{dash}" opacity="{opacity}"/>'
        for d, width, dash, opacity in lines
        if d
    )
    return f'<svg width="100" height="28" viewBox="0 0 100 28" aria-hidden="true">{drawn}</svg>'
