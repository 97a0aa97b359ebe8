"""What the verdicts rest on and cannot exclude, in a few sentences: said below the leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toptail.report.judging import judging_sentences
from toptail.report.text import Audit, join, number, one_line, plural

UNITS: Final = {
    "pooled": "the headroom pooled over queries",
    "query": "each query's own headroom",
}
"""What a gain is divided by, by the name of the unit."""


def basis_sentences(audit: Audit) -> list[str]:
    """Unit, pools left out, columns not audited, and what no verdict can exclude."""
    if audit["kind"] == "picks":
        return []
    parts = (
        judging_sentences(audit),
        _unit(audit),
        _left_out(audit),
        _columns(audit),
        _unseen(audit),
    )
    return [sentence for part in parts for sentence in part]


def unseen(audit: Audit, name: str) -> str:
    """What this scorer's verdict cannot exclude; empty where an audit does not say it."""
    sentence = audit["scorers"][name]["verdict"].get("unseen")
    return one_line(sentence) if sentence else ""


def shared_unseen(audit: Audit) -> str:
    """The same for all scorers; empty where they differ."""
    found = {unseen(audit, name) for name in audit["scorers"]}
    return found.pop() if len(found) == 1 else ""


def _unseen(audit: Audit) -> Iterable[str]:
    if sentence := shared_unseen(audit):
        yield sentence


def _unit(audit: Audit) -> Iterable[str]:
    if (unit := audit.get("unit")) not in UNITS:
        return
    text = f"Captured shares, δ and ρ are shares of {UNITS[unit]}"
    if value_range := audit.get("value_range"):
        text += "; values are declared to lie between {:g} and {:g}".format(*value_range)
    yield f"{text}."
    if other := audit.get("other_unit"):
        yield _other_unit(audit, UNITS["query" if unit == "pooled" else "pooled"], other)


def _other_unit(audit: Audit, unit: str, other: dict[str, str]) -> str:
    """What the verdicts would be in the other unit, where queries' headroom is very unequal."""
    scorers = audit["scorers"].items()
    changed = sum(
        other.get(n, s["verdict"]["status"]) != s["verdict"]["status"] for n, s in scorers
    )
    spread = number(audit.get("headroom_spread"), 0, "more than 10")
    says = f"changes {changed} of {len(other)} verdicts" if changed else "gives the same verdicts"
    return f"Headroom differs {spread}-fold between queries: measuring in {unit} {says}."


def _left_out(audit: Audit) -> Iterable[str]:
    counts = audit.get("left_out") or {}
    why = {
        "single": "with a single candidate",
        "small": f"with fewer than {audit.get('min_pool')} candidates",
        "no_headroom": "without headroom",
    }
    parts = [f"{plural(counts[kind], 'pool')} {why[kind]}" for kind in why if counts.get(kind)]
    if parts:
        yield f"Left out: {join(parts)}."


def _columns(audit: Audit) -> Iterable[str]:
    if skipped := audit.get("skipped_columns"):
        names = join(f"“{one_line(each['name'])}” ({one_line(each['why'])})" for each in skipped)
        yield f"Not audited, because they look like no scores: {names}."
    if constant := audit.get("constant_scores"):
        names = join(f"“{one_line(name)}”" for name in constant)
        verb = "gives" if len(constant) == 1 else "give"
        yield f"{names} {verb} every candidate the same score."
