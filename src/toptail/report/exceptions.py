"""Where a verdict does not hold: groups of queries, and the other unit, that say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toptail.report.basis import UNITS
from toptail.report.cells import captured_at_end
from toptail.report.text import Audit, join, one_line, ranked, status_words, with_interval

_WORST_FIRST: Final = ("unsafe", "no gain", "inconclusive", "safe")
_GROUPS: Final = 3
"""So many groups of one status are named; more are counted."""
_SCORERS: Final = 3
"""Of more scorers with exceptions the first is named, and the others are counted."""


def exceptions(audit: Audit, name: str) -> str:
    """Where this scorer's status is another one, the worst first; empty where it is nowhere.

    Groups that are worse than a random candidate are named, too, whatever their status.
    """
    return join([*_groups(audit, name), *_unit(audit, name)])


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


def _unit(audit: Audit, name: str) -> Iterable[str]:
    overall = audit["scorers"][name]["verdict"]["status"]
    other = (audit.get("other_unit") or {}).get(name, overall)
    if other != overall:
        unit = UNITS["query" if audit["unit"] == "pooled" else "pooled"]
        yield f"{_status({'status': other}, audit['k'][-1])} measured in {unit}"


def _status(verdict: Mapping[str, Any], k_max: int) -> str:
    """The status, with a K of its own where it has one."""
    own = verdict["status"] == "safe" or verdict.get("k_harm") is not None
    return status_words(verdict, k_max, "") if own else verdict["status"]
