"""The audit as a page with interactive charts, and as the small table of a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any, Final

from toptail.audit.settings import exact_percent
from toptail.report.page import (
    LONG,
    Chart,
    Page,
    Section,
    Sheet,
    line_style,
    log_steps,
    notebook_table,
    pill,
    render_page,
    rounded,
    small_curve,
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
            answers=_single_verdict(audit),
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


def _single_verdict(audit: Audit) -> list[tuple[str, str]]:
    """The verdict of the only scorer, for the top of the page; empty where there are several."""
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
    top = number(scorer["peak_value"], decimals, MISSING_SHORT)
    facts = [
        ("Peak", f"{top} at K = {k_word(verdict['k_best'])}"),
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
    """The verdicts (or the differences between selectors) as an HTML table for a notebook."""
    measured = " ".join(data_sentences(audit))
    if audit["kind"] == "picks":
        table = next(t for t in tables_of(audit) if t.name == "differences")
        return small_html([measured, table.title], table)
    grouped = bool(audit.get("groups"))
    head = ["Scorer", "Verdict", f"K = 1 to {audit['k'][-1]}", "Value", "Captured share"]
    head += ["Groups"] if grouped else []
    lines = [measured, *exception_sentences(audit), NOT_MEANT]
    rows = (_notebook_row(audit, name, grouped) for name in ranked(audit))
    return notebook_table(lines, head, rows)


def _notebook_row(audit: Audit, name: str, grouped: bool) -> list[str]:
    scorer, ks = audit["scorers"][name], audit["k"]
    parts = ("captured", "captured_low", "captured_high")
    share, low, high = (last(scorer.get(part)) for part in parts)
    ends = {"random": [audit["random"]] * len(ks), "best": audit["oracle"]}
    row = [
        escape(short(name, 40)),
        pill(scorer["verdict"]["status"], status_words(scorer["verdict"], ks[-1], "")),
        small_curve(log_steps(ks), scorer["value"], **ends),
        escape(change_words(audit, name)),
        escape(with_interval(share, low, high)),
    ]
    if grouped:
        groups = audit["groups"].items()
        verdicts = {g: p["scorers"][name]["verdict"] for g, p in groups if name in p["scorers"]}
        found = [pill(v["status"], short(g, 12), v["status"]) for g, v in verdicts.items()]
        more = f" and {len(found) - _MOST_GROUPS} more" if len(found) > _MOST_GROUPS else ""
        row.append(" ".join(found[:_MOST_GROUPS]) + more)
    return row


_MOST_GROUPS: Final = 8
