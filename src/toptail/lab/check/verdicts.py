"""The verdicts of a check: one step by the audit of pools, every step by the audit of picks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from toptail.audit.settings import Rule
from toptail.audit.verdict import LEAST_CLUSTERS
from toptail.lab.check.closed_loop import BASELINE, Recorded
from toptail.report.text import join, number, with_interval

CLOSED_LOOP_RULE: Final = (
    "Followed at every step: unsafe if an episode is established to be worth less with some K than "
    f"with K = 1, or to lose more than {100 * Rule.rho:g} % of what a smaller K gained (p "
    "corrected for all pairs of K and groups); safe if neither, and it is established to be worth "
    "more with the largest K than with K = 1; no gain if with every K a loss of success of more "
    f"than {Rule.rho:g} against K = 1 is ruled out; inconclusive otherwise and with fewer than "
    f"{LEAST_CLUSTERS} trajectories."
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


def closed_loop(
    picks: Mapping[str, Any], *, success: bool, first: str, data: Recorded | None
) -> Entry:
    """What the episodes of a scorer say: status, reason, worth of every K, groups.

    ``first`` says what K = 1 is, and ``data`` has what the data's own episodes are worth.
    """
    level = picks["thresholds"]["level"]
    told = _Told(level, "success" if success else "return", first, "--starts", data)
    return {
        **_by_groups(picks, told),
        "first": first,
        "success": success,
        "data": None if data is None else asdict(data),
    }


def one_step_picks(picks: Mapping[str, Any]) -> Entry:
    """What the picks of a scorer say where these alone were judged: as `closed_loop`."""
    level = picks["thresholds"]["level"]
    return _by_groups(picks, _Told(level, "value", "a random candidate", "--per-group"))


def _by_groups(picks: Mapping[str, Any], told: _Told) -> Entry:
    groups = picks.get("groups", {})
    tested = sum(len(part["comparisons"]) for part in groups.values())
    apart = replace(told, tested=tested, data=None)
    return {
        **_followed(picks, replace(told, tested=len(picks["comparisons"]))),
        "groups": {name: _followed(part, apart) for name, part in groups.items()},
    }


@dataclass(frozen=True)
class _Told:
    """What the reason of a closed loop's verdict tells beside its numbers."""

    level: float
    """Confidence that a difference needs."""
    what: str
    """What is compared: success, return or value."""
    first: str
    """What K = 1 is."""
    flag: str
    """What makes more of it."""
    data: Recorded | None = None
    """What the data's own episodes are worth."""
    tested: int = 0
    """Comparisons that Holm's correction is for."""

    @property
    def success(self) -> bool:
        return self.what == "success"

    def established(self, row: Entry) -> bool:
        return bool(row["p_holm"] <= 1 - self.level)

    def only_alone(self, row: Entry) -> bool:
        """Whether a difference is none of chance by itself, and may be one among the others."""
        return (row["low"] > 0 or row["high"] < 0) and not self.established(row)

    @property
    def correction(self) -> str:
        return f"after Holm's correction for {self.tested} comparisons"


def _followed(part: Mapping[str, Any], told: _Told) -> Entry:
    against = [row for row in part["comparisons"] if row["b"] == BASELINE]
    worth = {
        name: {end: found[end] for end in ("mean", "low", "high")}
        for name, found in part["selectors"].items()
    }
    few = part["clusters"] < LEAST_CLUSTERS
    if few:
        status, reason = "inconclusive", _few(part["clusters"], told)
    else:
        pairs = [_upwards(row) for row in part["comparisons"]]
        status, row = _decided(pairs, worth, told)
        reason = _reason(status, row, worth, told) + _beside(pairs, row, worth, told)
    return {
        "status": status,
        "reason": reason + _data(told),
        "k_max": max(_k(row["a"]) for row in against),
        "episodes": part["queries"],
        "trajectories": part["clusters"],
        "worth": worth,
        "comparisons": against,
        "decided": not few,
    }


def _upwards(row: Entry) -> Entry:
    """A comparison as what the larger K has more than the smaller one."""
    if _k(row["a"]) > _k(row["b"]):
        return row
    turned = {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
    return {**row, "a": row["b"], "b": row["a"], **turned}


def _decided(pairs: list[Entry], worth: Mapping[str, Entry], told: _Told) -> tuple[str, Entry]:
    """The status, and the comparison that decided it."""
    against = [row for row in pairs if row["b"] == BASELINE]
    last = max(against, key=lambda row: _k(row["a"]))
    worst = min(against, key=lambda row: row["difference"])
    falls = [row for row in pairs if told.established(row) and _falls(row, worth)]
    if falls:
        return "unsafe", min(falls, key=lambda row: row["difference"])
    if last["low"] > 0 and told.established(last):
        return "safe", last
    if told.success and all(row["low"] > -Rule.rho for row in against):
        return "no gain", worst
    return "inconclusive", worst


def _falls(row: Entry, worth: Mapping[str, Entry]) -> bool:
    """Whether a larger K loses: anything against K = 1, else much of what a smaller one gained."""
    if row["b"] == BASELINE:
        return bool(row["difference"] < 0)
    gained = worth[row["b"]]["mean"] - worth[BASELINE]["mean"]
    return bool(row["high"] < -Rule.rho * max(gained, 0.0))


def _k(selector: str) -> int:
    return int(selector.rpartition(" ")[2])


def _few(clusters: int, told: _Told) -> str:
    return (
        f"{clusters} trajectories are too few: at least {LEAST_CLUSTERS} are needed; raise "
        f"{told.flag}, or bring validation data with more trajectories"
    )


def _reason(status: str, row: Entry, worth: Mapping[str, Entry], told: _Told) -> str:
    """From what to what, at the K that decided."""
    before, after = (worth[row[end]]["mean"] for end in ("b", "a"))
    if told.success:
        change = f"success {100 * before:.0f} % → {100 * after:.0f} %"
    else:
        change = f"{told.what} {number(before)} → {number(after)}"
    alone = f" alone; {status} {told.correction}" if told.only_alone(row) else ""
    first = f" ({told.first})" if row["b"] == BASELINE else ""
    ends = f"from {row['b']}{first} to {row['a']}"
    return f"{change} {ends}, difference {_interval(row)}{alone}"


def _beside(rows: Iterable[Entry], decided: Entry, worth: Mapping[str, Entry], told: _Told) -> str:
    """Losses at other K that only Holm's correction keeps from being established."""
    return "".join(
        f"; from {row['b']} to {row['a']} the difference is {_interval(row)} alone, not "
        f"established {told.correction}"
        for row in rows
        if row is not decided and told.only_alone(row) and _falls(row, worth)
    )


def _data(told: _Told) -> str:
    """What the data's own episodes are worth."""
    if told.data is None:
        return ""
    found = told.data
    worth = f"{100 * found.mean:.0f} %" if told.success else _interval(asdict(found), "mean")
    return f"; the data's own episodes: {worth}"


def _interval(row: Mapping[str, Any], name: str = "difference") -> str:
    return with_interval(row[name], row["low"], row["high"])


def overall(*entries: Entry | None) -> str:
    """The worst of some statuses; what was not done is inconclusive, an unsafe group unsafe."""
    found = [entry["status"] if entry else "inconclusive" for entry in entries]
    found += ["unsafe" for entry in entries if entry and _unsafe_groups(entry)]
    return min(found, key=_WORST.index)


def _unsafe_groups(entry: Entry) -> list[str]:
    return [name for name, part in entry["groups"].items() if part["status"] == "unsafe"]


def asked(part: Mapping[str, Any], kind: str) -> str:
    """What a status is about: the question, how many candidates, and which."""
    many = f"best of up to {part[kind]['k_max']:,} " if part[kind] else ""
    return f"{QUESTIONS[kind]}, {many}{part['pools']} candidates"


def headline(scorer: str, parts: Iterable[Mapping[str, Any]]) -> str:
    """One line about a scorer: what it is for one step, and what when it is followed."""
    words = (f"{asked(part, kind)}: {_status(part, kind)}" for part in parts for kind in QUESTIONS)
    return f"{scorer}: {'; '.join(words)}."


def _status(part: Mapping[str, Any], kind: str) -> str:
    entry = part[kind]
    if entry is None:
        return "not judged" if kind == "one_step" else "not done"
    better = kind == "closed_loop" and entry["status"] == "safe"
    return f"{entry['status']}, better than {entry['first']}" if better else str(entry["status"])


def warnings(scorer: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where a verdict says less than it seems to: see the functions that it calls."""
    every = (_about_one_step, _about_groups, _below_the_data)
    return [f"For {scorer}, {text}." for about in every for text in about(parts)]


def _about_groups(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Groups that are unsafe although all queries together are not."""
    return [
        f"{asked(part, kind)}, “{entry['status']}” is about all queries together: unsafe at "
        f"{join(_unsafe_groups(entry))} goals"
        for part in parts
        for kind in QUESTIONS
        if (entry := part[kind]) and entry["status"] != "unsafe" and _unsafe_groups(entry)
    ]


def _about_one_step(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where "safe" is about one step and the closed loop says otherwise."""
    return [
        f"{asked(part, 'one_step')}, “{one['status']}” is about one step: "
        f"{asked(part, 'closed_loop')}, it is {many['status']} ({many['reason']})"
        for part in parts
        if (one := part["one_step"])
        and (many := part["closed_loop"])
        and one["status"] in ("safe", "no gain")
        and many["status"] not in ("safe", "no gain")
    ]


def _below_the_data(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where a return is better than without choosing, and worse than what was recorded.

    Recorded success is high by construction, since goals are states of the same episode.
    """
    found = []
    for part in parts:
        entry = part["closed_loop"]
        if not entry or entry["status"] != "safe" or not entry["data"] or entry["success"]:
            continue
        data, worth = entry["data"], entry["worth"][f"K = {entry['k_max']}"]["mean"]
        if worth < data["low"]:
            found.append(
                f"{asked(part, 'closed_loop')}, “safe” means better than {entry['first']}: the "
                f"return is {number(worth)}, and that of the data's own episodes "
                f"{_interval(data, 'mean')}"
            )
    return found


def failures(content: Mapping[str, Any], fail_on: set[str]) -> list[str]:
    """Why a check fails: each verdict, of all queries and of each group, that has such a status.

    What could not be decided at all is no pass.
    """
    if not fail_on:
        return []
    found = []
    for scorer, entry in content["scorers"].items():
        for part in entry["parts"]:
            for kind in QUESTIONS:
                found += _failures(f"{scorer}, {asked(part, kind)}", part[kind], fail_on)
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
