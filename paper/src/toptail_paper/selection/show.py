"""Tables of the selection page that are not one row per scorer of one stored table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.critics.registry import MAIN
from toptail.report.page import Sheet
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, join, k_word, number, signed
from toptail_paper.selection.results import (
    AGREEMENT,
    INDEPENDENT,
    JudgeMetric,
    SelectionResults,
    judge_name,
    selector_name,
)
from toptail_paper.study.compare import MARKS, Comparison, beside, comparisons, with_spread
from toptail_paper.study.naming import in_order, is_circular, scorer_name

CRITIC: Final = Column("Critic", "name")
PASSED: Final = {"admitted": True}
"""A judge without criteria counts as admitted."""
FAILED: Final = " (not admitted)"


def circular_words(study: SelectionResults) -> str:
    """Name the scorers whose reference-judged numbers are partly built in."""
    rows, metric = study.of_task("fixed-query"), study.metric("tau_b")
    names = [scorer_name(n) for n in study.scorers if rows[n].get(metric, {}).get("circular")]
    if not names:
        return ""
    return (
        f"† Circular: {'; '.join(names)}. These are trained on Bellman targets, as the reference "
        f"ensemble is, so that their agreement with it is partly built in. {_remaining(study)} "
    )


def _remaining(study: SelectionResults) -> str:
    """Name the judges of the task that share nothing with any critic's training."""
    judged = study.of_task("judges")
    statuses = study.tables.get("judges", {}).get("statuses", {})
    words = [
        judge_name(judge).lower() + ("" if statuses.get(judge, PASSED)["admitted"] else FAILED)
        for judge in INDEPENDENT
        if judge in judged
    ]
    if not words:
        return "No independent judge has valued what they pick."
    return f"Independent of that here: {' and '.join(words)}."


def gain(cell: Mapping[str, Any], pair: Comparison | None) -> Cell:
    """What a pick gains in the simulator; a star where its interval excludes zero."""
    star = "*" if cell["ci_excludes_zero"] else ""
    lines = [bracket(cell["low"], cell["high"], 4)]
    if pair is not None:
        paper = "*" if pair.paper.get("ci_excludes_zero") else ""
        lines.append(f"paper {signed(pair.paper['mean'], 3)}{paper}")
    return Cell(signed(cell["mean"], 4) + star, "\n".join(lines), key=cell["mean"])


def group_sheets(study: SelectionResults) -> list[Sheet]:
    return [Sheet(_group_table(study, judge)) for judge in study.judges]


def _group_table(study: SelectionResults, judge: str) -> Table:
    rows = study.of_task("fixed-query")
    bounds = study.declared.get("groups", {})
    shown = [
        (study.metric(metric, judge, group), f"{heading}, {group}")
        for metric, heading in (("tau_b", "τ_b"), ("nregret", "Regret"))
        for group in study.groups
    ]
    lines = [
        (Cell(scorer_name(name)), *(beside(rows[name].get(m), None, 2) for m, _ in shown))
        for name in study.scorers
    ]
    steps = ", ".join(f"{g} {low} to {high}" for g, (low, high) in bounds.items())
    title = f"By distance: {judge_name(judge).lower()}"
    caption = f"Within-pool τ_b and normalized regret. Steps between state and goal: {steps}."
    columns = (CRITIC, *(Column(heading) for _, heading in shown))
    return Table(f"groups_{judge}", title, caption, columns, tuple(lines), stacked=True)


def square_tables(study: SelectionResults) -> list[Table]:
    stored, rows = study.tables["function-class"], study.of_task("function-class")
    pairs = {(c.critic, c.metric): c for c in comparisons(stored)}
    lines = []
    for judge in study.judges:
        for objective, title in (("contrastive", "Contrastive"), ("td", "TD / Bellman")):
            head = Cell(title, judge_name(judge))
            names = [stored["layout"][objective][kind] for kind in ("bilinear", "mlp")]
            metrics = [study.metric(name, judge) for name in ("tau_b", "nregret")]
            cells = [_square(rows.get(n, {}), pairs, n, metrics) for n in names]
            lines.append((head, *cells))
    columns = (Column("Objective", "name"), Column("Bilinear scalar"), Column("Joint-input MLP"))
    caption = "τ_b and, in brackets, normalized regret; mean ± standard deviation over seeds."
    title = "Objective against function class"
    return [Table("tab:function-class", title, caption, columns, tuple(lines), stacked=True)]


def _square(
    row: Mapping[str, Any],
    pairs: Mapping[tuple[str, str], Comparison],
    name: str,
    metrics: list[str],
) -> Cell:
    if any(m not in row for m in metrics):
        return Cell(MISSING_SHORT, name)
    tau, regret = (row[m] for m in metrics)
    lines = [scorer_name(name)]
    theirs = [pairs.get((name, m)) for m in metrics]
    if theirs[0] is not None and theirs[1] is not None:
        lines.append(f"paper {with_spread(theirs[0].paper, 2)} [{with_spread(theirs[1].paper, 2)}]")
    text = f"{with_spread(tau, 2)} [{with_spread(regret, 2)}]"
    text += "".join(sign for word, sign in MARKS.items() if tau.get(word))
    return Cell(text, "\n".join(lines), key=tau["mean"])


def verdict_sheets(study: SelectionResults) -> list[Sheet]:
    audits = {judge: study.audits[judge] for judge in study.judges if judge in study.audits}
    if not audits:
        return []
    columns = [CRITIC]
    for judge in audits:
        columns += [
            Column(judge_name(judge), "word"),
            Column("Best K"),
            Column(f"Captured at K = {study.size}"),
        ]
    lines = []
    for name in in_order(next(iter(audits.values()))["scorers"]):
        cells: list[Cell] = []
        for audit in audits.values():
            scorer = audit["scorers"][name]
            ends = bracket(scorer["captured_low"][-1], scorer["captured_high"][-1])
            status = scorer["verdict"]["status"]
            cells += [
                Cell(status, status=status),
                Cell(k_word(scorer["verdict"]["k_best"])),
                Cell(number(scorer["captured"][-1], 2, MISSING_SHORT), ends),
            ]
        lines.append((Cell(scorer_name(name)), *cells))
    caption = (
        "What ‘toptail audit’ says of the same pools. safe: more search never loses more than a "
        "tenth of what there is to gain, and the largest K gains; unsafe: some step of it loses. "
        "Captured: share of what the best candidate gains over a random one. The ensemble's "
        "members count as replicates of a noisy judge: the best candidate is chosen by one half "
        "and valued by the other, so that a share can be a little above 1. A scorer can be safe "
        "and capture little, and the verdict is about one step: following the score at every step "
        "is another question. The full reports: audit/report.html and beside it."
    )
    title = "Safe to maximize?"
    return [Sheet(Table("verdicts", title, caption, tuple(columns), tuple(lines), stacked=True))]


_ORDER: Final = ("resolvability", "spearman")
"""A judge's own consistency comes first; how it relates to others and to the data, after it."""

_DECIDING: Final = ("resolvability", "spearman", "largest_half_width")
"""The metrics that have a declared threshold."""

_PAIRED: Final = ("tdq", "raw")
"""Selectors whose gain from common random numbers the page names: one value and one
compatibility, as in the paper; the stored table has all of them."""


def judge_tables(study: SelectionResults) -> list[Table]:
    """The judges' admission numbers with the declared thresholds, which come first."""
    lines = []
    for judge, row in study.of_task("judges").items():
        shown = {m: text for m in row if (text := _judge_words(m, study)) is not None}
        order = sorted(shown, key=lambda metric: _place(metric, row[metric]))
        for place, metric in enumerate(order):
            cell, head = row[metric], judge_name(judge) if place == 0 else ""
            lines.append((Cell(head), Cell(shown[metric]), *_judge_cells(metric, cell)))
    columns = (
        Column("Judge", "name"),
        Column("What", "prose"),
        Column("Number"),
        Column("Declared"),
        Column("", "word"),
    )
    stored = study.tables["judges"]
    through, missing = (
        join(judge_name(judge).lower() for judge in stored[what])
        for what in ("included_through", "missing")
    )
    if through:
        caption = f"The task enters through: {through}."
    else:
        caption = "No judge has passed yet." if missing else "No judge passed: excluded."
    if missing:
        caption += f" Not measured: {missing}."
    title = "May the judges judge?"
    return [Table("judges", title, caption, columns, tuple(lines), stacked=True)]


def excluded_words(study: SelectionResults) -> str:
    """Say by which numbers the task is excluded; nothing where a judge passed or is missing."""
    stored = study.tables.get("judges")
    if stored is None or stored["included_through"] or stored["missing"]:
        return ""
    parts = []
    for row in study.of_task("judges").values():
        for metric in sorted((m for m in row if "threshold" in row[m]), key=_DECIDING.index):
            measured, limit, status = _judge_cells(metric, row[metric])
            parts.append(
                f"{_judge_words(metric, study)} {measured.text} ({limit.text}: {status.text})"
            )
    actors = [
        f" An actor trained on {selector_name(name)} reaches "
        f"{number(100 * cell['mean'], 0)} % of the environment's own goals "
        f"[{number(100 * cell['low'], 0)}, {number(100 * cell['high'], 0)}]."
        for name in MAIN
        if is_circular(name)
        and (cell := study.of_task("deployment").get(name, {}).get("actor_success")) is not None
    ]
    return f"Excluded, because no judge passed: {'; '.join(parts)}.{''.join(actors)}"


def _judge_cells(metric: str, cell: Mapping[str, Any]) -> tuple[Cell, Cell, Cell]:
    """Number, declared threshold and status."""
    decimals = {"resolvability": 3, "queries": 0, "variance_ratio": 1, "largest_half_width": 4}
    digits = decimals.get(JudgeMetric.parse(metric).name, 2)
    value = number(cell["mean"], digits, MISSING_SHORT)
    measured = Cell(value, bracket(cell.get("low"), cell.get("high"), digits))
    if "threshold" not in cell:
        return measured, Cell(""), Cell("")
    word = "below" if metric == "largest_half_width" else "at least"
    status = {"pass": "passes", "fail": "fails"}.get(cell["status"], cell["status"])
    limit = Cell(f"{word} {cell['threshold']:g}")
    return measured, limit, Cell(status, status=cell["status"])


def _place(metric: str, cell: Mapping[str, Any]) -> tuple[bool, bool]:
    """Sort key: what decides about admission, then the rest of the judge's own consistency."""
    known = JudgeMetric.parse(metric)
    return "threshold" not in cell, bool(known.about) or known.name not in _ORDER


def _judge_words(text: str, study: SelectionResults) -> str | None:
    """A metric of a judge in words; None for metrics that the page does not show."""
    metric, prespecified = JudgeMetric.parse(text), study.declared.get("prespecified_group", "")
    name, about, group = metric.name, metric.about, metric.group
    if about and name in AGREEMENT:
        measure = {"tau_b": "τ_b", "spearman": "Spearman"}[name]
        words = f"agreement with {judge_name(about).lower()} within pools ({measure})"
        return words if about in study.judges and not group else None
    if name == "resolvability" and group and group == prespecified:
        return None  # the prespecified group is there already
    if name == "variance_ratio" and about not in _PAIRED:
        return None
    return {
        "resolvability": f"pools resolved, {group or f'{prespecified}: the prespecified group'}",
        "spearman": f"members' agreement within pools (Spearman){f', {group}' if group else ''}",
        "support_value_correlation": "value and nearness to the data's actions (Spearman)",
        "largest_half_width": f"widest half-width of a selector's gain{_widest(study)}",
        "queries": "queries rolled out",
        "alike": "share of these queries in which every rollout returned the same",
        "random_return": "mean return of the random candidates",
        "variance_ratio": f"variance of {selector_name(about)}'s gain without common random "
        "numbers over that with them",
        "spearman_within": f"{_return_words(about)}, within queries (Spearman)",
        "spearman_across": f"{_return_words(about)}, across queries (Spearman)",
    }.get(name)


def _widest(study: SelectionResults) -> str:
    """The selector with the widest interval, if the rollouts name it."""
    rollouts = study.tables["judges"].get("statuses", {}).get("rollouts", {})
    selector = rollouts.get("checks", {}).get("selector")
    return f": {selector_name(selector)}" if selector else ""


def _return_words(judge: str) -> str:
    if judge == "split_half":
        return "realized return with itself (even and odd repeats)"
    return f"{judge_name(judge).lower()} and realized return"
