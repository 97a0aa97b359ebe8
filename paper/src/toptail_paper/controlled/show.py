"""Tables of the controlled study's page that are not stored tables, and special cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.critics.registry import MAIN
from toptail.report.page import Sheet
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, k_word, number
from toptail_paper.controlled.results import ControlledResults, critic_name
from toptail_paper.study.compare import Comparison, with_spread

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
    """The largest of the seeds."""
    return Cell(number(max(cell["seeds"].values()), 4))


def norm_sheets(study: ControlledResults) -> list[Sheet]:
    """Embedding norms of random candidates and of picks."""
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
    """One row for each claim of the theory."""
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
