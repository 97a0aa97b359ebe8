"""The tables of the controlled study's page: each measured number beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.studies.controlled.compare import METRICS, Comparison, comparisons, reason
from toptail.lab.studies.controlled.figures import COUNTERFACTUALS
from toptail.lab.studies.controlled.results import MAIN, Study, critic_name
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, k_word, number, signed

CRITIC: Final = Column("Critic", "name")

_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "toy-support": ("tab:toy-support", "Controlled candidate selection at R = 0.40"),
    "toy-within": ("tab:toy-within", "Within-model readout control"),
    "r-sweep": ("tab:r-sweep", "Support-radius robustness"),
}


def paper_tables(study: Study) -> list[Table]:
    """The tables that the paper has too, in its order."""
    return [paper_table(study, name) for name in _TITLES if name in study.tables]


def paper_table(study: Study, name: str) -> Table:
    """One stored table beside the paper's cells; a triangle marks a cell that differs."""
    stored = study.tables[name]
    pairs = {(c.task, c.critic, c.metric): c for c in comparisons(stored)}
    tasks = list(stored["rows"])
    shown = [(t, m) for t in tasks for m in METRICS if any(k[0] == t and k[2] == m for k in pairs)]
    critics = list(dict.fromkeys(c for task in tasks for c in stored["rows"][task]))
    rows = []
    for critic in critics:
        cells = [
            _beside(stored["rows"][task].get(critic, {}).get(m), pairs.get((task, critic, m)), m)
            for task, m in shown
        ]
        rows.append((Cell(critic_name(critic)), *cells))
    label, title = _TITLES[name]
    caption = f"{stored['caption']}."
    columns = (CRITIC, *(Column(_heading(task, metric)) for task, metric in shown))
    return Table(label, title, caption, columns, tuple(rows), stacked=True)


def _heading(task: str, metric: str) -> str:
    """``R = 0.25: regret`` in a table over several tasks, otherwise the metric's name."""
    setting = task.partition("@")[2].replace("=", " = ")
    return f"{setting}: {METRICS[metric].lower()}" if setting else METRICS[metric]


def difference_table(study: Study) -> Table:
    """Every cell that differs from the paper's by more than its spread, with a reason."""
    rows = [
        (
            Cell(f"{critic_name(c.critic)}, {METRICS.get(c.metric, c.metric).lower()}"),
            Cell(f"{label} {c.task.partition('@')[2]}".strip()),
            Cell(_value(c.ours, c.metric)),
            Cell(_value(c.paper, c.metric)),
            Cell(_difference(c)),
            Cell(reason(c, study)),
        )
        for name, (label, _) in _TITLES.items()
        if name in study.tables
        for c in comparisons(study.tables[name])
        if c.differs
    ]
    columns = (
        Column("Cell", "name"),
        Column("Table", "word"),
        Column("Measured"),
        Column("Paper"),
        Column("Difference"),
        Column("Most likely reason", "prose"),
    )
    caption = (
        "Every cell whose mean is further from the paper's than the larger of the two standard "
        "deviations, and why it may be."
    )
    return Table("differences", "Where the numbers differ", caption, columns, tuple(rows))


def decomposition_table(study: Study) -> Table | None:
    """Regret split by support, and the share that each counterfactual removes."""
    stored = study.tables.get("support-decomposition")
    if stored is None:
        return None
    rows = []
    for critic, row in stored["rows"]["controlled"].items():
        parts = [Cell(_value(row[m], "regret")) for m in ("regret", "regret_off", "regret_on")]
        shares = [_share(row.get(f"share/{name}")) for name in COUNTERFACTUALS]
        rows.append((Cell(critic_name(critic)), *parts, *shares))
    columns = (
        CRITIC,
        Column("Regret"),
        Column("… of picks off support"),
        Column("… of picks on support"),
        *(Column(text[0].upper() + text[1:]) for text in COUNTERFACTUALS.values()),
    )
    caption = (
        "The first three columns are in units of value, mean ± standard deviation over seeds. The "
        "others are the share of regret removed by each way of selecting, on the same pools, with "
        "95 % intervals over queries."
    )
    name = "support-decomposition"
    return Table(name, "Where the regret comes from", caption, columns, tuple(rows), stacked=True)


def noise_table(study: Study) -> Table | None:
    """What transition noise changes."""
    stored = study.tables.get("noise")
    if stored is None:
        return None
    rows = [
        (
            Cell(critic_name(critic)),
            Cell(_value(row["regret"], "regret")),
            Cell(_value(row["regret_noisy"], "regret")),
            Cell(number(max(v for v in row["largest_shift"]["seeds"].values()), 4)),
            Cell(_value(row["picks_changed"], "off_support")),
        )
        for critics in stored["rows"].values()
        for critic, row in critics.items()
    ]
    columns = (
        CRITIC,
        Column("Regret, exact value"),
        Column("Regret, noisy value"),
        Column("Largest shift of any query"),
        Column("Picks changed"),
    )
    return Table("noise", "Transition noise", " ".join(stored["notes"]), columns, tuple(rows))


def norm_table(study: Study) -> Table | None:
    """Embedding norms of random candidates and of picks."""
    curves = study.curves
    if curves is None:
        return None
    rows = []
    for critic in MAIN:
        norms, k = curves.of(critic, "phi_norm"), curves.k
        ratio = norms[:, -1] / norms[:, 0]
        support = curves.in_support.get(critic, {})
        rows.append(
            (
                Cell(critic_name(critic)),
                Cell(number(float(norms[:, 0].mean()), 2)),
                Cell(number(float(norms[:, -1].mean()), 2)),
                Cell(number(support.get("mean"), 2, MISSING_SHORT)),
                Cell(number(support.get("p99"), 2, MISSING_SHORT)),
                Cell(number(float(ratio.mean()), 3), f"{ratio.min():.3f} to {ratio.max():.3f}"),
            )
        )
    columns = (
        CRITIC,
        Column("K = 1"),
        Column(f"K = {k[-1]}"),
        Column("In support: mean"),
        Column("In support: 99th percentile"),
        Column("Ratio"),
    )
    caption = (
        f"Embedding norm of the pick at K = 1 (a random candidate) and K = {k[-1]}, beside that of "
        "the in-support candidates; mean over seeds. The ratio of the first two has its range over "
        "seeds below it."
    )
    return Table("norms", "Embedding norm of the pick", caption, columns, tuple(rows))


def verdict_table(study: Study) -> Table | None:
    """The audit's verdict on each critic, by the code that any table of scores goes through."""
    audit = study.audit
    if audit is None:
        return None
    rows = []
    for name, scorer in audit["scorers"].items():
        verdict, seeds = scorer["verdict"], scorer.get("seeds") or {}
        statuses = [s["verdict"]["status"] for s in seeds.values()]
        agree = sum(s == verdict["status"] for s in statuses)
        rows.append(
            (
                Cell(critic_name(name)),
                Cell(verdict["status"], status=verdict["status"]),
                Cell(k_word(verdict["k_best"])),
                Cell(k_word(verdict["k_harm"])),
                Cell(
                    number(scorer["captured"][-1], 2, MISSING_SHORT),
                    bracket(scorer["captured_low"][-1], scorer["captured_high"][-1]),
                ),
                Cell(f"{agree} of {len(statuses)}" if statuses else MISSING_SHORT),
                Cell(verdict["reason"]),
            )
        )
    columns = (
        CRITIC,
        Column("Verdict", "word"),
        Column("Best K"),
        Column("Hurts from K"),
        Column(f"Captured at K = {audit['k'][-1]}"),
        Column("Seeds that agree"),
        Column("Reason", "prose"),
    )
    caption = (
        "What ‘toptail audit’ says of the same pools. Captured: share of what the best candidate "
        "gains over a random one."
    )
    return Table("verdicts", "The audit's verdicts", caption, columns, tuple(rows))


def theory_table(study: Study) -> Table | None:
    """One row for each claim of the theory."""
    if study.theory is None:
        return None
    rows = [
        (
            Cell(check["claim"][0].upper() + check["claim"][1:], check["where"]),
            Cell(
                "holds" if check["holds"] else "fails", status="pass" if check["holds"] else "fail"
            ),
            Cell(_exact(check["measured"])),
            Cell(_exact(check["bound"])),
            Cell(f"{check['statement']} {_theory_detail(check)}".strip()),
        )
        for check in study.theory["checks"]
    ]
    columns = (
        Column("Claim", "name"),
        Column("", "word"),
        Column("Measured"),
        Column("Compare"),
        Column("What was checked", "prose"),
    )
    caption = (
        f"On the trained {critic_name(study.theory['critic']).lower()} critic of seed "
        f"{study.theory['seed']} where a claim speaks of a critic, by simulation where it speaks "
        "of chance."
    )
    return Table("theory", "The theory, checked by running it", caption, columns, tuple(rows))


def _theory_detail(check: Mapping[str, Any]) -> str:
    d = check["details"]
    match check["claim"]:
        case "off-support nonidentifiability":
            return (
                f"Loss {_exact(d['loss'])} before and {_exact(d['perturbed_loss'])} after; off the "
                f"support scores move by up to {number(d['largest_change_off_support'], 0)}."
            )
        case "finite off-support inflation":
            text = (
                f"Scores on the support change by {_exact(d['largest_change_on_support'])}, ‖φ‖ "
                f"stays below {number(d['phi_norm_bound'], 1)}."
            )
            if "regret_after" in d:
                text += (
                    f" At the same loss, regret on the study's pools goes from "
                    f"{number(d['regret_before'])} to {number(d['regret_after'])}, with "
                    f"{number(100 * d['picks_in_bad_region_after'], 0)} % of the picks in the bad "
                    "region."
                )
            return text
        case "good ranker, bad objective" | "boundedness is not calibration":
            shares = ", ".join(
                f"K = {k}: {number(s, 3)} ({number(e, 3)})"
                for k, s, e in zip(d["k"], d["share"], d["share_expected"], strict=True)
            )
            regret = f"{number(d['regret'][-1], 3)} ≥ {number(d['regret_bound'][-1], 3)}"
            return f"Simulated share of picks in B (formula): {shares}. Regret at the end {regret}."
        case "two-epsilon bound" | "two-epsilon bound is tight":
            return f"In units of 2ε, over {d['pools']:,} pools of the study."
    return ""


def _beside(ours: Mapping[str, Any] | None, pair: Comparison | None, metric: str) -> Cell:
    if ours is None:
        return Cell(MISSING_SHORT)
    text = _value(ours, metric)
    if pair is None:
        return Cell(text, key=ours["mean"])
    mark = ("▲ " if pair.difference > 0 else "▼ ") if pair.differs else ""
    return Cell(mark + text, f"paper {_value(pair.paper, metric)}", key=ours["mean"])


def _difference(pair: Comparison) -> str:
    if pair.metric == "off_support":
        return f"{signed(100 * pair.difference, 0)} points"
    return signed(pair.difference, 3)


def _value(cell: Mapping[str, Any], metric: str) -> str:
    """``0.978 ± 0.106``, or as percentages for shares."""
    mean, std = cell["mean"], cell.get("std")
    if mean is None:
        return MISSING_SHORT
    if metric == "off_support":
        spread = "" if std is None else f" ± {number(100 * std, 0)}"
        return f"{number(100 * mean, 0)}{spread} %"
    return number(mean, 3) if std is None else f"{number(mean, 3)} ± {number(std, 3)}"


def _share(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None or cell.get("pooled") is None:
        return Cell(MISSING_SHORT)
    return Cell(number(cell["pooled"], 2), bracket(cell.get("low"), cell.get("high")))


def _exact(x: float) -> str:
    """A number with as many digits as it needs, up to six."""
    return "0" if x == 0 else f"{x:.6g}".replace("-", "−")
