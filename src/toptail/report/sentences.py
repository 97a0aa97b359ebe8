"""Who judged: how many labels, by which design, and what a cheap judge alone would have said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toptail.report.table import captured_at_end, has_gains
from toptail.report.text import (
    Audit,
    count,
    definitions,
    join,
    number,
    one_line,
    percent,
    plural,
    ranked,
    signed,
    status_words,
    threshold,
    value_decimals,
    with_interval,
)

_MOST = 5
"""A sentence that would name more scorers counts them."""


def judging_sentences(audit: Audit) -> list[str]:
    """What was judged and how it was counted; nothing where every candidate has its value."""
    part = audit.get("judging")
    if not part:
        return []
    labels = f"{count(part['labels'])} of {plural(part['candidates'], 'candidate')} were judged; "
    labels += f"of {plural(part['whole_queries'], 'query', 'queries')} every one."
    if part.get("pairs"):
        labels = f"{plural(part['labels'], 'pair')} of candidates were judged."
    sentences = [f"{labels} {one_line(part['how'])}"]
    if look := part.get("look"):
        sentences.append(
            f"Look {look['at']} of {look['of']}: intervals are wider, so that all looks together "
            f"err as one at {percent(look['level'])} would; judging may stop at any look that "
            "decides what was asked."
        )
    return sentences + (_cheap(audit, part["cheap"]) if part["cheap"] else [])


def _cheap(audit: Audit, cheap: Mapping[str, Any]) -> list[str]:
    name, alone = f"“{one_line(cheap['name'])}”", cheap["scorers"]
    known = [each for each in ranked(audit) if each in alone]
    changed = [
        f"“{one_line(each)}” {status_words(alone[each], audit['k'][-1], '')} instead of "
        f"{audit['scorers'][each]['verdict']['status']}"
        for each in known
        if alone[each]["status"] != audit["scorers"][each]["verdict"]["status"]
    ]
    says = f"would have called {join(changed)}" if changed else "would have given the same verdicts"
    if len(changed) > _MOST:
        says = f"would have given {len(changed)} of {len(known)} scorers another verdict"
    sentences = [f"The cheap judge {name} alone {says}."]
    off = {
        each: alone[each]["too_high_by_decile"][-1]
        for each in known
        if alone[each]["too_high_by_decile"][-1] is not None
    }
    if off:
        worst = max(off, key=lambda each: abs(off[each]))
        sentences.append(
            f"It is furthest off on what “{one_line(worst)}” scores highest: in the top tenth of a "
            f"query its values are off by {signed(off[worst], value_decimals(audit))}."
        )
    return sentences


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


_WORST_FIRST: Final = ("unsafe", "no gain", "inconclusive", "safe")
_GROUPS: Final = 3
"""So many groups of one status are named; more are counted."""
_SCORERS: Final = 3
"""Of more scorers with exceptions the first is named, and the others are counted."""


def exceptions(audit: Audit, name: str) -> str:
    """Where this scorer's status is another one, the worst first; empty where it is nowhere.

    Groups that are worse than a random candidate are named, too, whatever their status.
    """
    return join([*_groups(audit, name), *_unit_exceptions(audit, name)])


def exception_sentences(audit: Audit) -> list[str]:
    """One sentence for each scorer with exceptions; of many the first is named."""
    found = [
        f"“{one_line(name)}” is {status_words(audit['scorers'][name]['verdict'], audit['k'][-1])}; "
        f"but {said}."
        for name in (ranked(audit) if audit["kind"] == "pools" else ())
        if (said := exceptions(audit, name))
    ]
    if len(found) > _SCORERS:
        found[1:] = [f"{len(found) - 1} more verdicts have exceptions by group or unit."]
    return found


def _groups(audit: Audit, name: str) -> Iterable[str]:
    overall = audit["scorers"][name]["verdict"]["status"]
    found: dict[str, dict[str, list[str]]] = {status: {} for status in _WORST_FIRST}
    for group, record in (audit.get("groups") or {}).items():
        scorer = record["scorers"].get(name)
        if scorer is None:
            continue
        status = scorer["verdict"]["status"]
        numbers, worse = _numbers(scorer)
        if status != overall or (worse and overall != "unsafe"):
            words = _status(scorer["verdict"], record["k"][-1])
            found[status].setdefault(words, []).append(f"{one_line(group)} ({numbers})")
    column = one_line(audit.get("group_column") or "group")
    for words, groups in (each for status in found.values() for each in status.items()):
        more = len(groups) - _GROUPS
        named = [*groups[:_GROUPS], f"{more} more"] if more > 1 else groups
        yield f"{words} in {column} = {join(named)}"


def _numbers(scorer: Mapping[str, Any]) -> tuple[str, bool]:
    """The captured share in a group, and whether that or the order is worse than random."""
    share, order = captured_at_end(scorer), scorer["tau_b"] or {}
    tau = (order.get("mean"), order.get("low"), order.get("high"))
    below = [ends for ends in (share, tau) if ends[2] is not None and ends[2] < 0]
    words = [f"captured {with_interval(*share)}"]
    words += [f"τ_b {with_interval(*tau)}"] if tau in below else []
    words += ["worse than a random candidate"] if below else []
    return ", ".join(words), bool(below)


def _unit_exceptions(audit: Audit, name: str) -> Iterable[str]:
    overall = audit["scorers"][name]["verdict"]["status"]
    other = (audit.get("other_unit") or {}).get(name, overall)
    if other != overall:
        unit = UNITS["query" if audit["unit"] == "pooled" else "pooled"]
        yield f"{_status({'status': other}, audit['k'][-1])} measured in {unit}"


def _status(verdict: Mapping[str, Any], k_max: int) -> str:
    """The status, with a K of its own where it has one."""
    own = verdict["status"] == "safe" or verdict.get("k_harm") is not None
    return status_words(verdict, k_max, "") if own else verdict["status"]


def method_rows(audit: Audit) -> list[tuple[str, str]]:
    """How the audit was computed, as pairs of label and text."""
    record, thresholds = audit["record"], audit["thresholds"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    rows = [
        ("Command", record["command"]),
        ("Table", record["source"]),
        ("SHA-256 of the table", record["sha256"]),
        ("Seed", record["seed"]),
        ("Versions", versions),
        ("Confidence level", percent(thresholds["level"])),
        ("Bootstrap resamples", count(thresholds["resamples"])),
    ]
    if audit["kind"] == "picks":
        rows.append(("Power of the detectable effect", percent(thresholds["power"])))
    else:
        rows.append(("Harm established (δ)", f"{threshold(thresholds['delta'])} of the headroom"))
        rows.append(("Harm ruled out (ρ)", f"{threshold(thresholds['rho'])} of the headroom"))
    return [(label, "not recorded" if text is None else one_line(text)) for label, text in rows]


def status_lines(audit: Audit) -> list[tuple[str, str]]:
    """The meaning of each status, where the audit gives verdicts."""
    if audit["kind"] == "picks":
        return []
    # Audits without gains were judged by another rule, which its own words describe.
    return _meanings(audit["thresholds"]) if has_gains(audit) else definitions(audit["thresholds"])


def _meanings(thresholds: Mapping[str, Any]) -> list[tuple[str, str]]:
    delta, rho = threshold(thresholds["delta"]), threshold(thresholds["rho"])
    tail = percent((1 - thresholds["level"]) / 2)
    loss = f"a loss of more than ρ = {rho} of the headroom"
    return [
        (
            "safe",
            "the largest K gains over a random candidate, and no step from one K to a larger one "
            f"loses more than ρ = {rho} of the headroom: each by its lower one-sided {tail} end, "
            "in which a cluster that was not seen counts, ordered as badly as candidates allow.",
        ),
        (
            "no gain",
            f"{loss} is ruled out at every step, but a gain over a random candidate is not shown.",
        ),
        (
            "unsafe",
            f"some step from one K to a larger one is established to lose more than δ = {delta} of "
            "the headroom, by upper ends that hold for all steps at once.",
        ),
        (
            "inconclusive",
            f"{loss} is neither established nor ruled out, there are too few queries to tell, or "
            "there is nothing to gain (no headroom).",
        ),
    ]
