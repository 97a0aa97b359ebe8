"""Tables of the controlled study's page that are not stored tables, and special cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.critics.registry import MAIN
from toptail.report.page import Sheet
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, k_word, number
from toptail_paper.controlled.results import ControlledResults, critic_name
from toptail_paper.study.compare import Comparison, with_spread
from toptail_paper.study.naming import setting_in, setting_text

CRITIC: Final = Column("Critic", "name")


def share(cell: Mapping[str, Any], _: Comparison | None) -> Cell:
    """The share of the seed means, with its interval."""
    if cell.get("pooled") is None:
        return Cell(MISSING_SHORT)
    return Cell(number(cell["pooled"], 2), bracket(cell.get("low"), cell.get("high")))


def changed(cell: Mapping[str, Any], _: Comparison | None) -> Cell:
    """A share as a percentage; what the paper has for it is a bound, and stands in the notes."""
    return Cell(with_spread(cell, 2, percent=True))


def largest(cell: Mapping[str, Any], _: Comparison | None) -> Cell:
    return Cell(number(max(cell["seeds"].values()), 4))


def norm_sheets(study: ControlledResults) -> list[Sheet]:
    curves = study.curves
    if curves is None:
        return []
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
    return [Sheet(Table("norms", "Embedding norm of the pick", caption, columns, tuple(rows)))]


def verdict_sheets(study: ControlledResults) -> list[Sheet]:
    """The audit's verdict on each critic, by the code that any table of scores goes through."""
    audit = study.audit
    if audit is None:
        return []
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
    title = "The audit's verdicts"
    return [Sheet(Table("verdicts", title, caption, columns, tuple(rows), stacked=True))]


def theory_sheets(study: ControlledResults) -> list[Sheet]:
    if study.theory is None:
        return []
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
    return [
        Sheet(Table("theory", "The theory, checked by running it", caption, columns, tuple(rows)))
    ]


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


def _exact(x: float) -> str:
    """A number with as many digits as it needs, up to six."""
    return "0" if x == 0 else f"{x:.6g}".replace("-", "−")


UNSAID: Final = (
    "The paper states neither the training length nor the network, batch size, temperature or "
    "mixture of its data"
)


def reason(cell: Comparison, heading: str, study: ControlledResults) -> str:
    """The most likely reason why a cell differs from the paper's, in a sentence or two.

    ``heading`` is what the cell's column is called.
    """
    parts = [_self_contradiction(cell, study), _chance(cell), _split_seeds(cell)]
    parts.append(_settings(cell, heading, study))
    found = " ".join(part for part in parts if part)
    return (
        found
        or f"{UNSAID}; the sweeps of ‘toptail-paper study controlled’ show how far each moves it."
    )


def _self_contradiction(cell: Comparison, study: ControlledResults) -> str:
    """The paper gives two numbers for the critics at R = 0.40."""
    other = {
        "controlled": ("r-sweep", "controlled@R=0.40"),
        "controlled@R=0.40": ("toy-support", "controlled"),
    }.get(cell.task)
    if other is None or other[0] not in study.tables:
        return ""
    paper = study.tables[other[0]]["paper"].get(other[1], {})
    twin = paper.get(cell.critic, {}).get(cell.metric, {})
    if not twin or abs(twin["mean"] - cell.paper["mean"]) <= cell.spread:
        return ""
    return (
        f"The paper has two numbers for this cell, {cell.paper['mean']:g} and {twin['mean']:g} "
        "(main table and radius sweep)."
    )


def _chance(cell: Comparison) -> str:
    """A difference that seeds alone can make, by the two standard errors."""
    ours, paper = cell.ours.get("std"), cell.paper.get("std")
    if not ours or not paper:
        return ""
    error = math.hypot(ours, paper) / math.sqrt(len(cell.ours["seeds"]))
    if abs(cell.difference) > 2.3 * error:  # Student's t at 95 % for two groups of five
        return ""
    return (
        f"Seeds alone can do this: the difference is {abs(cell.difference) / error:.1f} standard "
        "errors of two means over so few seeds."
    )


def _split_seeds(cell: Comparison) -> str:
    """Seeds that disagree in the paper and agree here, or the other way round."""
    ours, paper = cell.ours.get("std"), cell.paper.get("std")
    if ours is None or paper is None or max(ours, paper) < 0.1:
        return ""
    if paper > 3 * ours:
        return (
            f"The paper's seeds disagree (± {paper:g}), as when part of the runs fail and part do "
            "not; all of ours end on one side."
        )
    if ours > 3 * paper:
        return f"Our seeds disagree (± {ours:.2f}), as when part of the runs fail and part do not."
    return ""


def _settings(cell: Comparison, heading: str, study: ControlledResults) -> str:
    """The swept setting whose regret comes nearest to the paper's, and this cell there.

    One setting has to serve a critic's whole row, so it is always chosen by the regret.
    """
    if "@" in cell.task:
        return "The same unsaid settings as in the main table."
    papers = (table.get("paper", {}).get(cell.task, {}) for table in study.tables.values())
    target = next((row[cell.critic].get("regret") for row in papers if cell.critic in row), None)
    rows = [
        (abs(row[cell.critic]["regret"]["mean"] - target["mean"]), task, row[cell.critic])
        for name, swept in study.tables.items()
        if target and name.startswith("sweep-")
        for task, row in swept["rows"].items()
        if row.get(cell.critic, {}).get("regret", {}).get("mean") is not None
    ]
    if not rows:
        return ""
    _, task, row = min(rows, key=lambda entry: entry[:2])
    regret, value = row["regret"]["mean"], row[cell.metric]["mean"]
    there = f"regret {number(regret, 2)}"
    if cell.metric != "regret":
        there += f" and {heading.lower()} {number(value, 2)}"
    if abs(value - cell.paper["mean"]) <= max(cell.spread, 0.02):
        return f"A setting the paper does not state: {_words(task)} gives {there}."
    return (
        f"The swept setting nearest in regret, {_words(task)}, does not explain it ({there}): "
        "something else that the paper leaves unsaid, such as the network or its data, must differ."
    )


def _words(task: str) -> str:
    """``controlled@layer_norm=off,steps=3000`` as ``layer norm off, steps 3,000``."""
    words = []
    for part in task.partition("@")[2].split(","):
        name, _, value = part.partition("=")
        words.append(f"{name.replace('_', ' ')} {setting_text(setting_in(value))}")
    return ", ".join(words)
