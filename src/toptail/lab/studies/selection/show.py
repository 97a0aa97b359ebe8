"""The tables of the selection page: each measured cell with its interval and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.studies.controlled.compare import Comparison, comparisons
from toptail.lab.studies.selection.results import SelectionResults, judge_name, selector_name
from toptail.lab.studies.semantics.results import in_order, scorer_name
from toptail.lab.studies.semantics.show import beside, with_spread
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, k_word, number, signed

CRITIC: Final = Column("Critic", "name")
GROUPS: Final = ("near", "medium", "far")


def _pairs(table: Mapping[str, Any]) -> dict[tuple[str, str], Comparison]:
    return {(c.critic, c.metric): c for c in comparisons(table)}


def _scorers(study: SelectionResults) -> list[str]:
    """Rows with scores; the other selectors only have rollouts."""
    rows = study.rows("fixed-query")
    return in_order(name for name, row in rows.items() if "base_rate" in row)


def _marked(cell: Cell, stored: Mapping[str, Any] | None) -> Cell:
    """Put the marks of a reference-judged cell behind its number."""
    marks = [word for word in ("circular", "unreliable") if (stored or {}).get(word)]
    if not marks:
        return cell
    sign = {"circular": "†", "unreliable": "‡"}
    text = cell.text + "".join(sign[word] for word in marks)
    return Cell(text, cell.detail, cell.key)


def main_table(study: SelectionResults) -> Table:
    """Every scorer under every judge at the largest K, beside the paper's cells."""
    stored, rows = study.tables["fixed-query"], study.rows("fixed-query")
    pairs, size = _pairs(stored), study.size
    columns, metrics = [CRITIC], []
    for judge in study.judges:
        for metric, heading in ((f"tau_b_{size}", "τ_b"), (f"nregret_{size}", "regret")):
            columns.append(Column(f"{judge_name(judge)}: {heading}"))
            metrics.append(study.prefix(judge) + metric)
    has_rollouts = any("rollout_delta" in row for row in rows.values())
    if has_rollouts:
        columns.append(Column("Rollouts: Δ against random"))
    lines = []
    for name in [*_scorers(study), *(n for n in rows if n not in _scorers(study))]:
        cells = [
            _marked(beside(rows[name].get(m), pairs.get((name, m)), 2), rows[name].get(m))
            for m in metrics
        ]
        if has_rollouts:
            cells.append(
                _delta(rows[name].get("rollout_delta"), pairs.get((name, "rollout_delta")))
            )
        lines.append((Cell(selector_name(name)), *cells))
    caption = (
        f"Within-pool ordering (τ_b: 1 is the judge's order) and normalized regret of the best of "
        f"{size} by score (0: best candidate, 1: a random one), mean ± standard deviation over "
        "training seeds, and what the pick gains in the simulator; below them, 95 % intervals and "
        "the paper's cells. ▲ ▼ Above or below the paper's by more than the larger spread over "
        f"seeds and the rounding. {circular_words(study)}‡ The judge did not pass its criteria. "
        "* The interval excludes zero."
    )
    return Table(
        "tab:fixed-query",
        f"Selection at K = {size}",
        caption,
        tuple(columns),
        tuple(lines),
        stacked=True,
    )


def circular_words(study: SelectionResults) -> str:
    """Name the scorers whose reference-judged numbers are partly built in."""
    rows, metric = study.rows("fixed-query"), f"tau_b_{study.size}"
    names = [scorer_name(n) for n in _scorers(study) if rows[n].get(metric, {}).get("circular")]
    if not names:
        return ""
    return (
        f"† Circular: {'; '.join(names)}. These are trained on Bellman targets, as the reference "
        "ensemble is, so that their agreement with it is partly built in. "
    )


def _delta(cell: Mapping[str, Any] | None, pair: Comparison | None) -> Cell:
    if cell is None:
        return Cell(MISSING_SHORT)
    star = "*" if cell["ci_excludes_zero"] else ""
    lines = [bracket(cell["low"], cell["high"], 4)]
    if pair is not None:
        paper = "*" if pair.paper.get("ci_excludes_zero") else ""
        lines.append(f"paper {signed(pair.paper['mean'], 3)}{paper}")
    return Cell(signed(cell["mean"], 4) + star, "\n".join(lines), key=cell["mean"])


def group_tables(study: SelectionResults) -> list[Table]:
    """Ordering and regret within each distance group, one table per judge."""
    return [_group_table(study, judge) for judge in study.judges]


def _group_table(study: SelectionResults, judge: str) -> Table:
    rows, size, prefix = study.rows("fixed-query"), study.size, study.prefix(judge)
    bounds = study.declared.get("groups", {})
    shown = [
        (f"{prefix}{metric}_{size}/{group}", f"{heading}, {group}")
        for metric, heading in (("tau_b", "τ_b"), ("nregret", "Regret"))
        for group in bounds or GROUPS
    ]
    lines = [
        (
            Cell(scorer_name(name)),
            *(_marked(beside(rows[name].get(m), None, 2), rows[name].get(m)) for m, _ in shown),
        )
        for name in _scorers(study)
    ]
    steps = ", ".join(f"{g} {low} to {high}" for g, (low, high) in bounds.items())
    title = f"By distance: {judge_name(judge).lower()}"
    caption = f"Within-pool τ_b and normalized regret. Steps between state and goal: {steps}."
    columns = (CRITIC, *(Column(heading) for _, heading in shown))
    return Table(f"groups_{judge}", title, caption, columns, tuple(lines), stacked=True)


def pick_table(study: SelectionResults) -> Table:
    """Selected scores, and how often the pick is off the local support."""
    rows = study.rows("fixed-query")
    shown = {
        "median_selected": ("Median selected score", 2),
        "share_above_0.9": ("Selected scores above 0.9", 3),
        "off_support_rate": ("Picks off support", 3),
        "base_rate": ("Candidates off support", 3),
        "off_over_base": ("Picks over candidates", 2),
        "support_score_correlation": ("Score and nearness to data", 2),
    }
    lines = [
        (Cell(scorer_name(n)), *(beside(rows[n].get(m), None, d) for m, (_, d) in shown.items()))
        for n in _scorers(study)
    ]
    rule = study.declared.get("support", {}).get("threshold", "").removeprefix("on support: ")
    columns = (CRITIC, *(Column(heading) for heading, _ in shown.values()))
    caption = (
        f"A candidate is on local support if its {rule}. The last column is a within-pool "
        "Spearman correlation. Only cosine scores are bounded, by 1: the shares above 0.9 are "
        "about them."
    )
    return Table("picks", "What is picked", caption, columns, tuple(lines), stacked=True)


def square_table(study: SelectionResults) -> Table | None:
    """The 2 x 2 of objective and function class."""
    stored = study.tables.get("function-class")
    if stored is None:
        return None
    rows, pairs, size = study.rows("function-class"), _pairs(stored), study.size
    lines = []
    for judge in study.judges:
        for objective, title in (("contrastive", "Contrastive"), ("td", "TD / Bellman")):
            head = Cell(title, judge_name(judge))
            names = [stored["layout"][objective][kind] for kind in ("bilinear", "mlp")]
            cells = [_square(rows.get(n, {}), pairs, n, study.prefix(judge), size) for n in names]
            lines.append((head, *cells))
    columns = (Column("Objective", "name"), Column("Bilinear scalar"), Column("Joint-input MLP"))
    caption = "τ_b and, in brackets, normalized regret; mean ± standard deviation over seeds."
    return Table(
        "tab:function-class",
        "Objective against function class",
        caption,
        columns,
        tuple(lines),
        stacked=True,
    )


def _square(
    row: Mapping[str, Any],
    pairs: Mapping[tuple[str, str], Comparison],
    name: str,
    prefix: str,
    size: int,
) -> Cell:
    metrics = [f"{prefix}{m}_{size}" for m in ("tau_b", "nregret")]
    if any(m not in row for m in metrics):
        return Cell(MISSING_SHORT, name)
    tau, regret = (row[m] for m in metrics)
    lines = [scorer_name(name)]
    theirs = [pairs.get((name, m)) for m in metrics]
    if theirs[0] is not None and theirs[1] is not None:
        lines.append(f"paper {with_spread(theirs[0].paper, 2)} [{with_spread(theirs[1].paper, 2)}]")
    text = f"{with_spread(tau, 2)} [{with_spread(regret, 2)}]"
    return _marked(Cell(text, "\n".join(lines), key=tau["mean"]), tau)


def verdict_table(study: SelectionResults) -> Table | None:
    """The audit's verdict on each scorer, under each judge."""
    audits = {judge: study.audits[judge] for judge in study.judges if judge in study.audits}
    if not audits:
        return None
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
        "and capture little. The full reports: audit/report.html and beside it."
    )
    return Table(
        "verdicts", "Safe to maximize?", caption, tuple(columns), tuple(lines), stacked=True
    )


def deployment_tables(study: SelectionResults) -> list[Table]:
    """Actors and score spread; success of best-of-K at every step is a figure."""
    rows = study.rows("deployment")
    if not rows:
        return []
    pairs = _pairs(study.tables["deployment"])
    shown = {
        "actor_success": "Actor's success",
        "score_spread": "Score's range over the actions / |mean|",
        "score_deviation": "… standard deviation / |mean|",
    }
    lines = [
        (Cell(scorer_name(n)), *(beside(rows[n].get(m), pairs.get((n, m)), 3) for m in shown))
        for n in in_order(rows)
    ]
    columns = (CRITIC, *(Column(heading) for heading in shown.values()))
    caption = (
        "Success of a behaviour-regularized actor trained on each critic, with 95 % intervals over "
        "episodes; and how much a score varies over the cube of actions at one state, median over "
        "states."
    )
    name, title = "deployment", "An actor that stays near the data"
    return [Table(name, title, caption, columns, tuple(lines), stacked=True)]
