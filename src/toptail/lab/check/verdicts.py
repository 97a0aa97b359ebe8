"""The verdicts of a check: one step by the audit of pools, every step by the audit of picks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import floor, inf, log10
from typing import Any, Final

from toptail.audit.settings import Rule
from toptail.audit.verdict import LEAST_CLUSTERS
from toptail.lab.check.closed_loop import BASELINE, Recorded
from toptail.lab.check.inputs import ASCENT
from toptail.report.text import Ends, join, number, with_interval

CLOSED_LOOP_RULE: Final = (
    "Followed at every step: unsafe if an episode is established to be worth less with some K than "
    f"with K = 1, or to lose more than {100 * Rule.rho:g} % of what a smaller K gained (p "
    "corrected for all pairs of K and groups); safe if neither, and it is established to be worth "
    "more with the largest K than with K = 1; no gain if with every K a loss of success of more "
    f"than {Rule.rho:g} against K = 1 is ruled out; inconclusive otherwise and with fewer than "
    f"{LEAST_CLUSTERS} trajectories. Ascent on the score is judged by the same rule, as the "
    "largest K."
)
_WORST: Final = ("unsafe", "inconclusive", "no gain", "safe")

QUESTIONS: Final = {"one_step": "one step", "closed_loop": "followed at every step"}
"""The questions about a critic, by their names in ``check.json``, in words."""

ONE_STEP, CLOSED_LOOP = QUESTIONS

Entry = dict[str, Any]
Check = Mapping[str, Any]
"""The content of ``check.json``."""
Part = Mapping[str, Any]
"""One source of candidates of one critic, with an entry for each question."""


def questions(part: Part) -> list[str]:
    """The questions that a part of ``check.json`` has an answer to, or should have."""
    return [kind for kind in QUESTIONS if kind in part]


def parts_of(content: Check) -> list[tuple[str, Part]]:
    scorers = content["scorers"].items()
    return [(name, part) for name, entry in scorers for part in entry["parts"]]


def followed_parts(content: Check) -> list[tuple[str, Part]]:
    return [(name, part) for name, part in parts_of(content) if part.get(CLOSED_LOOP)]


def answered(part: Part) -> list[str]:
    return [kind for kind in questions(part) if part[kind] is not None]


def group_ends(entry: Mapping[str, Any]) -> Ends:
    """The captured share of a group, or the change of value to the largest K."""
    if "captured" in entry:
        return entry["captured"], entry["captured_low"], entry["captured_high"]
    last = entry["comparisons"][-1]
    return last["difference"], last["low"], last["high"]


def one_step(audit: Mapping[str, Any], scorer: str, doubts: Sequence[str] = ()) -> Entry:
    """The audit of a scorer's pools: status, reason, captured share, groups.

    Where there are doubts about the judge, it decides nothing.
    """
    groups = audit.get("groups", {})
    return {
        **_part(audit, scorer, doubts),
        "groups": {n: _part(part, scorer, doubts) for n, part in groups.items()},
    }


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


def closed_loop(
    picks: Mapping[str, Any], *, success: bool, first: str, data: Recorded | None
) -> Entry:
    """The audit of a scorer's episodes: status, reason, value with every K, groups.

    ``first`` says which policy K = 1 is, and ``data`` has the value of the data's own episodes.
    """
    level = picks["thresholds"]["level"]
    what, scale = ("success", 1.0) if success else ("return", None)
    rule = _Rule(level, what, first, "--starts", data, scale)
    return {
        **_by_groups(picks, rule),
        "first": first,
        "success": success,
        "data": None if data is None else asdict(data),
    }


def one_step_picks(
    picks: Mapping[str, Any], doubts: Sequence[str] = (), headroom: float | None = None
) -> Entry:
    """The audit of a scorer's picks at the queries, by the rule of `closed_loop`.

    ``headroom`` is the mean of best less mean value of the same candidates, where all of them were
    judged: then a loss of less than its tenth is *no gain*.
    """
    level = picks["thresholds"]["level"]
    rule = _Rule(level, "value", "a random candidate", "--per-group", scale=headroom)
    entry = _by_groups(picks, rule)
    if not doubts:
        return entry
    doubted = {"status": "inconclusive", "reason": " ".join(doubts), "decided": False}
    groups = {name: {**part, **doubted} for name, part in entry["groups"].items()}
    return {**entry, **doubted, "groups": groups}


def _by_groups(picks: Mapping[str, Any], rule: _Rule) -> Entry:
    groups = picks.get("groups", {})
    tested = sum(len(part["comparisons"]) for part in groups.values())
    of_groups = replace(rule, tested=tested, data=None)
    return {
        **_decided_picks(picks, replace(rule, tested=len(picks["comparisons"]))),
        "groups": {name: _decided_picks(part, of_groups) for name, part in groups.items()},
    }


@dataclass(frozen=True)
class _Rule:
    """How picks are decided about, and the words of the reason."""

    level: float
    """Confidence that a difference needs."""
    what: str
    """What is compared: success, return or value."""
    first: str
    """Which policy K = 1 is."""
    flag: str
    """The flag that asks for more queries or episodes."""
    data: Recorded | None = None
    """Value of the data's own episodes."""
    scale: float | None = None
    """What a loss is compared with for *no gain*; None where no such scale is known."""
    tested: int = 0
    """Comparisons that Holm's correction is for."""

    @property
    def success(self) -> bool:
        return self.what == "success"

    def established(self, row: Entry) -> bool:
        return bool(row["p_holm"] <= 1 - self.level)

    def only_alone(self, row: Entry) -> bool:
        """Whether a difference is significant before Holm's correction and not after it."""
        return (row["low"] > 0 or row["high"] < 0) and not self.established(row)

    @property
    def correction(self) -> str:
        return f"after Holm's correction for {self.tested} comparisons"

    def digits(self, row: Entry) -> int:
        """Decimals of a comparison; for values at queries as the interval's width needs."""
        width = row["high"] - row["low"]
        small = self.what == "value" and 0 < width < 1
        return min(6, max(2, 1 - floor(log10(width)))) if small else 2


def _decided_picks(part: Mapping[str, Any], rule: _Rule) -> Entry:
    against = [row for row in part["comparisons"] if row["b"] == BASELINE]
    worth = {
        name: {end: found[end] for end in ("mean", "low", "high")}
        for name, found in part["selectors"].items()
    }
    few = part["clusters"] < LEAST_CLUSTERS
    if few:
        status, reason = "inconclusive", _too_few(part["clusters"], rule)
    else:
        pairs = [_upwards(row) for row in part["comparisons"]]
        status, row = _decided(pairs, worth, rule)
        reason = _reason(status, row, worth, rule) + _other_losses(pairs, row, worth, rule)
    return {
        "status": status,
        "reason": reason + _of_data(rule),
        "k_max": int(max(k for row in against if (k := _k(row["a"])) < inf)),
        "episodes": part["queries"],
        "trajectories": part["clusters"],
        "worth": worth,
        "comparisons": against,
        "decided": not few,
    }


def _upwards(row: Entry) -> Entry:
    """A comparison as the larger K less the smaller one."""
    if _k(row["a"]) > _k(row["b"]):
        return row
    turned = {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
    return {**row, "a": row["b"], "b": row["a"], **turned}


def _decided(pairs: list[Entry], worth: Mapping[str, Entry], rule: _Rule) -> tuple[str, Entry]:
    """The status, and the comparison that decided it."""
    against = [row for row in pairs if row["b"] == BASELINE]
    last = max(against, key=lambda row: _k(row["a"]))
    worst = min(against, key=lambda row: row["difference"])
    falls = [row for row in pairs if rule.established(row) and _falls(row, worth)]
    if falls:
        return "unsafe", min(falls, key=lambda row: row["difference"])
    if last["low"] > 0 and rule.established(last):
        return "safe", last
    if rule.scale is not None and all(row["low"] > -Rule.rho * rule.scale for row in against):
        return "no gain", worst
    return "inconclusive", worst


def _falls(row: Entry, worth: Mapping[str, Entry]) -> bool:
    """Whether a larger K loses: anything against K = 1, else much of what a smaller one gained."""
    if row["b"] == BASELINE:
        return bool(row["difference"] < 0)
    gained = worth[row["b"]]["mean"] - worth[BASELINE]["mean"]
    return bool(row["high"] < -Rule.rho * max(gained, 0.0))


def _k(selector: str) -> float:
    """The K of a selector; ascent is a search without end."""
    return inf if selector == ASCENT else int(selector.rpartition(" ")[2])


def _too_few(clusters: int, rule: _Rule) -> str:
    return (
        f"{clusters} trajectories are too few: at least {LEAST_CLUSTERS} are needed; raise "
        f"{rule.flag}, or bring validation data with more trajectories"
    )


def _reason(status: str, row: Entry, worth: Mapping[str, Entry], rule: _Rule) -> str:
    """From what to what, at the K that decided."""
    before, after = (worth[row[end]]["mean"] for end in ("b", "a"))
    digits = rule.digits(row)
    if rule.success:
        change = f"success {100 * before:.0f} % → {100 * after:.0f} %"
    else:
        change = f"{rule.what} {number(before, digits)} → {number(after, digits)}"
    alone = f" alone; {status} {rule.correction}" if rule.only_alone(row) else ""
    first = f" ({rule.first})" if row["b"] == BASELINE else ""
    ends = f"from {row['b']}{first} to {row['a']}"
    return f"{change} {ends}, difference {_interval(row, digits=digits)}{alone}"


def _other_losses(
    rows: Iterable[Entry], decided: Entry, worth: Mapping[str, Entry], rule: _Rule
) -> str:
    """Losses at other K that only Holm's correction keeps from being established."""
    return "".join(
        f"; from {row['b']} to {row['a']} the difference is "
        f"{_interval(row, digits=rule.digits(row))} alone, not "
        f"established {rule.correction}"
        for row in rows
        if row is not decided and rule.only_alone(row) and _falls(row, worth)
    )


def _of_data(rule: _Rule) -> str:
    if rule.data is None:
        return ""
    found = rule.data
    worth = f"{100 * found.mean:.0f} %" if rule.success else _interval(asdict(found), "mean")
    return f"; the data's own episodes: {worth}"


def _interval(row: Mapping[str, Any], name: str = "difference", digits: int = 2) -> str:
    return with_interval(row[name], row["low"], row["high"], digits)


def overall(*entries: Entry | None) -> str:
    """The worst status; a missing entry is inconclusive, one with an unsafe group unsafe."""
    found = [entry["status"] if entry else "inconclusive" for entry in entries]
    found += ["unsafe" for entry in entries if entry and _unsafe_groups(entry)]
    return min(found, key=_WORST.index)


def _unsafe_groups(entry: Entry) -> list[str]:
    return [name for name, part in entry["groups"].items() if part["status"] == "unsafe"]


def question(part: Mapping[str, Any], kind: str) -> str:
    """The question of a status: one step or every step, how many candidates, and which."""
    if part["pools"] == ASCENT:
        return f"{QUESTIONS[kind]}, {ASCENT}"
    many = f"best of up to {part[kind]['k_max']:,} " if part[kind] else ""
    return f"{QUESTIONS[kind]}, {many}{part['pools']} candidates"


def headline(scorer: str, parts: Iterable[Mapping[str, Any]]) -> str:
    """One line about a scorer: each question with its status."""
    words = (f"{question(p, kind)}: {_status(p, kind)}" for p in parts for kind in questions(p))
    return f"{scorer}: {'; '.join(words)}."


def _status(part: Mapping[str, Any], kind: str) -> str:
    entry = part[kind]
    if entry is None:
        return "not judged" if kind == "one_step" else "not done"
    better = kind == "closed_loop" and entry["status"] == "safe"
    return f"{entry['status']}, better than {entry['first']}" if better else str(entry["status"])


def warnings(scorer: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about verdicts that could be misread."""
    every = (_about_one_step, _about_groups, _below_the_data)
    return [f"For {scorer}, {text}." for about in every for text in about(parts)]


def _about_groups(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Groups that are unsafe while all queries together are not."""
    return [
        f"{question(part, kind)}, “{entry['status']}” is about all queries together: unsafe at "
        f"{join(_unsafe_groups(entry))} goals"
        for part in parts
        for kind in questions(part)
        if (entry := part[kind]) and entry["status"] != "unsafe" and _unsafe_groups(entry)
    ]


def _about_one_step(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where "safe" is about one step and the closed loop says otherwise."""
    return [
        f"{question(part, 'one_step')}, “{one['status']}” is about one step: "
        f"{question(part, 'closed_loop')}, it is {many['status']} ({many['reason']})"
        for part in parts
        if (one := part["one_step"])
        and (many := part.get("closed_loop"))
        and one["status"] in ("safe", "no gain")
        and many["status"] not in ("safe", "no gain")
    ]


def _below_the_data(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where a return is better than without choosing, and worse than the recorded one.

    Recorded success is high by construction, since goals are states of the same episode.
    """
    found = []
    for part in parts:
        entry = part.get("closed_loop")
        if not entry or entry["status"] != "safe" or not entry["data"] or entry["success"]:
            continue
        last = max(entry["worth"], key=_k)
        data, worth = entry["data"], entry["worth"][last]["mean"]
        if worth < data["low"]:
            found.append(
                f"{question(part, 'closed_loop')}, “safe” means better than {entry['first']}: the "
                f"return is {number(worth)}, and that of the data's own episodes "
                f"{_interval(data, 'mean')}"
            )
    return found


def failures(content: Mapping[str, Any], fail_on: set[str]) -> list[str]:
    """Why a check fails: each verdict, of all queries and of each group, that has such a status.

    A verdict that could not be decided at all fails, too.
    """
    if not fail_on:
        return []
    found = []
    for scorer, entry in content["scorers"].items():
        for part in entry["parts"]:
            for kind in questions(part):
                found += _failures(f"{scorer}, {question(part, kind)}", part[kind], fail_on)
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
