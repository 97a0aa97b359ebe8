"""Sentences about an audit: how it was judged and computed, and where its verdicts do not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toptail.report.table import captured_at_end
from toptail.report.text import (
    Audit,
    count,
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

UNITS: Final = {
    "pooled": "the headroom pooled over queries",
    "query": "each query's own headroom",
}
"""What a gain is divided by, by the name of the unit."""
_WORST_FIRST: Final = ("unsafe", "no gain", "inconclusive", "safe")
_MOST_CHANGED: Final = 5
"""If a cheap judge alone changes more verdicts, they are counted, not named."""
_MOST_GROUPS: Final = 3
"""Of more groups with one status, the others are counted."""
_MOST_SCORERS: Final = 3
"""Of more scorers with exceptions, the first is named and the others are counted."""


def judging_sentences(audit: Audit) -> list[str]:
    """How many candidates were judged and how; empty if every candidate has a value."""
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
    names = [each for each in ranked(audit) if each in alone]
    changed = [
        f"“{one_line(each)}” {status_words(alone[each], audit['k'][-1], '')} instead of "
        f"{audit['scorers'][each]['verdict']['status']}"
        for each in names
        if alone[each]["status"] != audit["scorers"][each]["verdict"]["status"]
    ]
    says = f"would have called {join(changed)}" if changed else "would have given the same verdicts"
    if len(changed) > _MOST_CHANGED:
        says = f"would have given {len(changed)} of {len(names)} scorers another verdict"
    sentences = [f"The cheap judge {name} alone {says}."]
    off = {
        each: alone[each]["too_high_by_decile"][-1]
        for each in names
        if alone[each]["too_high_by_decile"][-1] is not None
    }
    if off:
        worst = max(off, key=lambda each: abs(off[each]))
        sentences.append(
            f"It is furthest off on what “{one_line(worst)}” scores highest: in the top tenth of a "
            f"query its values are off by {signed(off[worst], value_decimals(audit))}."
        )
    return sentences


def basis_sentences(audit: Audit) -> list[str]:
    """What verdicts rest on: judging, unit, what was left out, what they cannot exclude."""
    if audit["kind"] == "picks":
        return []
    shared = shared_unseen(audit)
    parts = (_unit(audit), _left_out(audit), column_sentences(audit), [shared] if shared else [])
    return [*judging_sentences(audit), *(sentence for part in parts for sentence in part)]


def unseen(audit: Audit, name: str) -> str:
    """What this scorer's verdict cannot exclude; empty if nothing is stored."""
    sentence = audit["scorers"][name]["verdict"]["unseen"]
    return one_line(sentence) if sentence else ""


def shared_unseen(audit: Audit) -> str:
    """What no verdict can exclude, if that is the same for all scorers; else empty."""
    sentences = {unseen(audit, name) for name in audit["scorers"]}
    return sentences.pop() if len(sentences) == 1 else ""


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


def column_sentences(audit: Audit) -> Iterable[str]:
    """Columns that were not taken as scores, and scores that cannot choose."""
    if skipped := audit["skipped_columns"]:
        names = join(f"“{one_line(each['name'])}” ({one_line(each['why'])})" for each in skipped)
        yield f"Left out, as not looking like scores: {names}; name one as a score to audit it."
    if constant := audit["constant_scores"]:
        names = join(f"“{one_line(name)}”" for name in constant)
        verb = "gives" if len(constant) == 1 else "give"
        yield f"{names} {verb} all candidates of a query the same score and cannot choose."


def exceptions(audit: Audit, name: str) -> str:
    """Groups and the other unit in which this scorer's status differs, worst first; or empty.

    Groups that are worse than a random candidate are named whatever their status.
    """
    return join([*_other_groups(audit, name), *_in_other_unit(audit, name)])


def exception_sentences(audit: Audit) -> list[str]:
    """One sentence for each scorer with exceptions; of many the first is named."""
    sentences = [
        f"“{one_line(name)}” is {status_words(audit['scorers'][name]['verdict'], audit['k'][-1])}; "
        f"but {exception}."
        for name in (ranked(audit) if audit["kind"] == "pools" else ())
        if (exception := exceptions(audit, name))
    ]
    if len(sentences) > _MOST_SCORERS:
        sentences[1:] = [f"{len(sentences) - 1} more verdicts have exceptions by group or unit."]
    return sentences


def _other_groups(audit: Audit, name: str) -> Iterable[str]:
    overall = audit["scorers"][name]["verdict"]["status"]
    by_status: dict[str, dict[str, list[str]]] = {status: {} for status in _WORST_FIRST}
    for group, record in (audit.get("groups") or {}).items():
        scorer = record["scorers"].get(name)
        if scorer is None:
            continue
        status = scorer["verdict"]["status"]
        numbers, worse = _numbers(scorer)
        if status != overall or (worse and overall != "unsafe"):
            words = _status(scorer["verdict"], record["k"][-1])
            by_status[status].setdefault(words, []).append(f"{one_line(group)} ({numbers})")
    column = one_line(audit.get("group_column") or "group")
    for words, groups in (each for status in by_status.values() for each in status.items()):
        more = len(groups) - _MOST_GROUPS
        named = [*groups[:_MOST_GROUPS], f"{more} more"] if more > 1 else groups
        yield f"{words} in {column} = {join(named)}"


def _numbers(scorer: Mapping[str, Any]) -> tuple[str, bool]:
    """The captured share of a group in words, and whether it or tau_b is worse than random."""
    share, order = captured_at_end(scorer), scorer["tau_b"] or {}
    tau = (order.get("mean"), order.get("low"), order.get("high"))
    below = [ends for ends in (share, tau) if ends[2] is not None and ends[2] < 0]
    words = [f"captured {with_interval(*share)}"]
    words += [f"τ_b {with_interval(*tau)}"] if tau in below else []
    words += ["worse than a random candidate"] if below else []
    return ", ".join(words), bool(below)


def _in_other_unit(audit: Audit, name: str) -> Iterable[str]:
    overall = audit["scorers"][name]["verdict"]["status"]
    other = (audit.get("other_unit") or {}).get(name, overall)
    if other != overall:
        unit = UNITS["query" if audit["unit"] == "pooled" else "pooled"]
        yield f"{_status({'status': other}, audit['k'][-1])} measured in {unit}"


def _status(verdict: Mapping[str, Any], k_max: int) -> str:
    """The status, with a K of its own where it has one."""
    own = verdict["status"] == "safe" or verdict.get("k_harm") is not None
    return status_words(verdict, k_max, "") if own else verdict["status"]


def recorded(record: Mapping[str, Any], level: float) -> list[tuple[str, Any]]:
    """The rows with which the method of an audit and of a choice begins, as label and text."""
    return [
        ("Command", record["command"]),
        ("Table", record["source"]),
        ("SHA-256 of the table", record["sha256"]),
        ("Seed", record["seed"]),
        (
            "Versions",
            ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        ),
        ("Confidence level", percent(level)),
    ]


def one_line_rows(rows: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """The rows with every text on one line; null is ``not recorded``."""
    return [(label, "not recorded" if text is None else one_line(text)) for label, text in rows]


def method_rows(audit: Audit) -> list[tuple[str, str]]:
    """How the audit was computed, as pairs of label and text."""
    thresholds = audit["thresholds"]
    rows = recorded(audit["record"], thresholds["level"])
    rows.append(("Bootstrap resamples", count(thresholds["resamples"])))
    if audit["kind"] == "picks":
        rows.append(("Power of the detectable effect", percent(thresholds["power"])))
    else:
        rows.append(("Harm established (δ)", f"{threshold(thresholds['delta'])} of the headroom"))
        rows.append(("Harm ruled out (ρ)", f"{threshold(thresholds['rho'])} of the headroom"))
    return one_line_rows(rows)


def status_lines(audit: Audit) -> list[tuple[str, str]]:
    """The meaning of each status, with the thresholds that were used."""
    if audit["kind"] == "picks":
        return []
    thresholds = audit["thresholds"]
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
