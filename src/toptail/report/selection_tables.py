"""The tables of the selection page: each measured cell with its interval and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.report.selection_data import SelectionResults, judge_name, selector_name
from toptail.report.semantics_data import in_order, scorer_name
from toptail.report.semantics_tables import beside, with_spread
from toptail.report.study_compare import Comparison, comparisons
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, join, k_word, number, signed

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
        "training seeds, and what the pick gains in the simulator. † The judge is of the critic's "
        "own family. ‡ The judge did not pass its criteria. * The interval excludes zero."
    )
    return Table(
        "tab:fixed-query",
        f"Selection at K = {size}",
        caption,
        tuple(columns),
        tuple(lines),
        stacked=True,
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


def group_table(study: SelectionResults) -> Table:
    """Ordering and regret within each distance group, under the first judge."""
    rows, size = study.rows("fixed-query"), study.size
    prefix = study.prefix(study.judges[0])
    shown = [
        (f"{prefix}{metric}_{size}/{group}", f"{heading}, {group}")
        for metric, heading in (("tau_b", "τ_b"), ("nregret", "Regret"))
        for group in study.declared.get("groups", GROUPS)
    ]
    lines = [
        (
            Cell(scorer_name(name)),
            *(_marked(beside(rows[name].get(m), None, 2), rows[name].get(m)) for m, _ in shown),
        )
        for name in _scorers(study)
    ]
    bounds = study.declared.get("groups", {})
    steps = ", ".join(f"{g} {low} to {high}" for g, (low, high) in bounds.items())
    caption = f"By {judge_name(study.judges[0]).lower()}. Steps between state and goal: {steps}."
    columns = (CRITIC, *(Column(heading) for _, heading in shown))
    return Table("groups", "By distance", caption, columns, tuple(lines), stacked=True)


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
    rule = study.declared.get("support", {}).get("threshold", "")
    columns = (CRITIC, *(Column(heading) for heading, _ in shown.values()))
    caption = f"A candidate is {rule}. The last column is a within-pool Spearman correlation."
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


def judge_table(study: SelectionResults) -> Table:
    """The judges' admission numbers beside the declared thresholds; those first."""
    lines = []
    for judge, row in study.rows("judges").items():
        shown = {m: text for m in row if (text := _judge_words(m, study)) is not None}
        order = sorted(shown, key=lambda metric: "threshold" not in row[metric])
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
    return Table("judges", "May the judges judge?", caption, columns, tuple(lines), stacked=True)


def _judge_cells(metric: str, cell: Mapping[str, Any]) -> tuple[Cell, Cell, Cell]:
    """Number, declared threshold and status."""
    decimals = {"queries": 0, "variance_ratio": 1, "largest_half_width": 4}
    digits = decimals.get(metric.partition("/")[0], 2)
    value = number(cell["mean"], digits, MISSING_SHORT)
    measured = Cell(value, bracket(cell.get("low"), cell.get("high"), digits))
    if "threshold" not in cell:
        return measured, Cell(""), Cell("")
    word = "below" if metric == "largest_half_width" else "at least"
    status = {"pass": "passes", "fail": "fails"}.get(cell["status"], cell["status"])
    limit = Cell(f"{word} {cell['threshold']:g}")
    return measured, limit, Cell(status, status=cell["status"])


def _judge_words(metric: str, study: SelectionResults) -> str | None:
    """What a metric of a judge says; None for those that the page leaves to the stored table."""
    name, _, rest = metric.partition("/")
    group = study.declared.get("prespecified_group", "")
    words = {
        "resolvability": f"pools resolved, {rest or f'{group}: the prespecified group'}",
        "spearman": f"members' agreement within pools (Spearman){f', {rest}' if rest else ''}",
        "support_value_correlation": "value and nearness to the data's actions (Spearman)",
        "largest_half_width": "widest half-width of a selector's gain",
        "queries": "queries rolled out",
        "variance_ratio": f"variance saved by common random numbers, {selector_name(rest)}",
        "spearman_within": f"{_return_words(rest)}, within queries (Spearman)",
        "spearman_across": f"{_return_words(rest)}, across queries (Spearman)",
    }
    if metric == f"resolvability/{group}":
        return None  # the prespecified group is there already
    if name in study.judges and rest in ("tau_b", "spearman"):
        return f"agreement with {judge_name(name).lower()} within pools ({rest})"
    if name == "variance_ratio" and rest not in ("tdq", "raw"):
        return None
    return words.get(name)


def _return_words(judge: str) -> str:
    if judge == "split_half":
        return "realized return with itself (even and odd repeats)"
    return f"{judge_name(judge).lower()} and realized return"


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
        "and valued by the other. The full reports: audit/report.html and beside it."
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
