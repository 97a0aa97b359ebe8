"""Who judged: how many labels, by which design, and what a cheap judge alone would have said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toptail.report.text import (
    Audit,
    count,
    join,
    one_line,
    percent,
    plural,
    ranked,
    signed,
    status_words,
    value_decimals,
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
