"""The verdicts of a check: one step by the audit of pools, every step by the audit of picks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toptail.audit import Rule
from toptail.audit.verdict import LEAST_CLUSTERS
from toptail.lab.check.closed_loop import BASELINE
from toptail.report.text import join, number, with_interval

CLOSED_LOOP_RULE: Final = (
    "Followed at every step: unsafe if an episode is established to be worth less with some K than "
    "with K = 1 (p corrected for all K and groups), safe if it is established to be worth more "
    "with the largest K and less with none, no gain if with every K a loss of success of more than "
    f"{Rule.rho:g} is ruled out, inconclusive otherwise and with fewer than {LEAST_CLUSTERS} "
    "trajectories."
)
_WORST: Final = ("unsafe", "inconclusive", "no gain", "safe")

QUESTIONS: Final = {"one_step": "one step", "closed_loop": "followed at every step"}
"""What is asked about a critic, as ``check.json`` and as people call it."""

Entry = dict[str, Any]


def one_step(audit: Mapping[str, Any], scorer: str, doubts: Sequence[str] = ()) -> Entry:
    """What the audit of a scorer's pools says: status, reason, captured share, groups.

    Where there are doubts about the judge, it decides nothing.
    """
    entry = _part(audit, scorer, doubts)
    groups = audit.get("groups", {})
    return {**entry, "groups": {n: _part(part, scorer, doubts) for n, part in groups.items()}}


def _part(audit: Mapping[str, Any], scorer: str, doubts: Sequence[str]) -> Entry:
    found = audit["scorers"][scorer]
    verdict = found["verdict"]
    captured = {end: found[f"captured{end}"][-1] for end in ("", "_low", "_high")}
    return {
        "status": "inconclusive" if doubts else verdict["status"],
        "reason": " ".join(doubts) or verdict["reason"],
        "k_max": audit["k"][-1],
        "queries": audit.get("queries"),
        "captured": captured[""],
        "captured_low": captured["_low"],
        "captured_high": captured["_high"],
        "decided": bool(verdict["checks"]) and not doubts,
    }


def closed_loop(picks: Mapping[str, Any], *, success: bool) -> Entry:
    """What the episodes of a scorer say: status, reason, worth of every K, groups."""
    whole = _followed(picks, picks["thresholds"]["level"], success)
    level, groups = picks["thresholds"]["level"], picks.get("groups", {})
    return {**whole, "groups": {n: _followed(part, level, success) for n, part in groups.items()}}


def _followed(part: Mapping[str, Any], level: float, success: bool) -> Entry:
    against = [row for row in part["comparisons"] if row["b"] == BASELINE]
    worth = {
        name: {end: found[end] for end in ("mean", "low", "high")}
        for name, found in part["selectors"].items()
    }
    status, row = _decided(against, part["clusters"], level, success)
    few = part["clusters"] < LEAST_CLUSTERS
    return {
        "status": status,
        "reason": _few(part["clusters"]) if few else _reason(row, worth, success),
        "episodes": part["queries"],
        "trajectories": part["clusters"],
        "worth": worth,
        "comparisons": against,
        "decided": not few,
    }


def _decided(rows: list[Entry], clusters: int, level: float, success: bool) -> tuple[str, Entry]:
    """The status, and the comparison that decided it."""
    last = max(rows, key=lambda row: _k(row["a"]))
    worst = min(rows, key=lambda row: row["difference"])
    if clusters < LEAST_CLUSTERS:
        return "inconclusive", last
    established = [row for row in rows if row["p_holm"] <= 1 - level]
    if any(row["difference"] < 0 for row in established):
        return "unsafe", min(established, key=lambda row: row["difference"])
    if last["low"] > 0 and last in established:
        return "safe", last
    if success and all(row["low"] > -Rule.rho for row in rows):
        return "no gain", worst
    return "inconclusive", worst


def _k(selector: str) -> int:
    return int(selector.rpartition(" ")[2])


def _few(clusters: int) -> str:
    return f"{clusters} trajectories are too few: at least {LEAST_CLUSTERS} are needed"


def _reason(row: Entry, worth: Mapping[str, Entry], success: bool) -> str:
    """From what to what, at the K that decided."""
    before, after = worth[BASELINE]["mean"], worth[row["a"]]["mean"]
    if success:
        change = f"success {100 * before:.0f} % → {100 * after:.0f} %"
    else:
        change = f"return {number(before)} → {number(after)}"
    interval = with_interval(row["difference"], row["low"], row["high"])
    return f"{change} from K = 1 to {row['a']}, difference {interval}"


def overall(*entries: Entry | None) -> str:
    """The worst of some statuses; what was not done is inconclusive, an unsafe group unsafe."""
    found = [entry["status"] if entry else "inconclusive" for entry in entries]
    found += ["unsafe" for entry in entries if entry and _unsafe_groups(entry)]
    return min(found, key=_WORST.index)


def _unsafe_groups(entry: Entry) -> list[str]:
    return [name for name, part in entry["groups"].items() if part["status"] == "unsafe"]


def headline(scorer: str, parts: Iterable[Mapping[str, Any]]) -> str:
    """One line about a scorer: what it is for one step, and what when it is followed."""
    return f"{scorer}: " + "; ".join(_source_words(part) for part in parts) + "."


def _source_words(part: Mapping[str, Any]) -> str:
    one, many = part["one_step"], part["closed_loop"]
    step = one["status"] if one else "not judged"
    way = many["status"] if many else "not done"
    return f"{part['pools']} candidates: one step {step}, followed at every step {way}"


def warnings(scorer: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where a verdict says less than it seems to: about one step, or about all groups together."""
    return [*_about_one_step(scorer, parts), *_about_groups(scorer, parts)]


def _about_groups(scorer: str, parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Groups that are unsafe although all queries together are not."""
    return [
        f"For {scorer} with {part['pools']} candidates, {words}, “{entry['status']}” is about all "
        f"queries together: unsafe at {join(_unsafe_groups(entry))} goals."
        for part in parts
        for kind, words in QUESTIONS.items()
        if (entry := part[kind]) and entry["status"] != "unsafe" and _unsafe_groups(entry)
    ]


def _about_one_step(scorer: str, parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where "safe" is about one step and the closed loop says otherwise."""
    return [
        f"For {scorer} with {part['pools']} candidates, “{part['one_step']['status']}” is about "
        f"one step: followed at every step it is {part['closed_loop']['status']} "
        f"({part['closed_loop']['reason']})."
        for part in parts
        if part["one_step"]
        and part["closed_loop"]
        and part["one_step"]["status"] in ("safe", "no gain")
        and part["closed_loop"]["status"] not in ("safe", "no gain")
    ]


def failures(content: Mapping[str, Any], fail_on: set[str]) -> list[str]:
    """Why a check fails: each verdict, of all queries and of each group, that has such a status.

    What could not be decided at all is no pass.
    """
    if not fail_on:
        return []
    found = []
    for scorer, entry in content["scorers"].items():
        for part in entry["parts"]:
            for kind, words in QUESTIONS.items():
                at = f"{scorer}, {part['pools']} candidates, {words}"
                found += _failures(at, part[kind], fail_on)
    return found


def _failures(at: str, entry: Entry | None, fail_on: set[str]) -> list[str]:
    if entry is None:
        return [f"{at}: could not be decided"]
    named = [("", entry), *((f", {name}", part) for name, part in entry["groups"].items())]
    return [
        f"{at}{name}: {part['status']}"
        for name, part in named
        if part["status"] in fail_on or not (part["decided"] or name)
    ]
