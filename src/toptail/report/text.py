"""Numbers and sentences of an audit, in the same words on the page and in every other format.

Nothing here computes a statistic: the numbers are those of ``audit.json``. Text is plain Unicode;
each output format escapes it in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toptail.audit.settings import NOT_MEANT as NOT_MEANT
from toptail.audit.settings import exact_percent
from toptail.audit.verdict import STATUSES, reach, stored_verdict
from toptail.pools.scored import CANNOT_CHOOSE

Audit = Mapping[str, Any]

MISSING: Final = "not available"
MISSING_SHORT: Final = "n/a"  # the same, in the cells of a table

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

# An inconclusive scorer may become safe with more queries; the last two will hardly.
_RANKS: Final = ("safe", "inconclusive", "no gain", "unsafe")


def number(x: float | None, decimals: int = 2, missing: str = MISSING) -> str:
    """Format a number with fixed decimals; very large ones, and many decimals, as powers of ten."""
    if x is None:
        return missing
    if abs(x) >= 1e6 or decimals > 6:
        text = f"{x:.2e}"
    else:
        text = f"{x:.{decimals}f}"
        if float(text) == 0:
            text = text.removeprefix("-")  # no negative zero
    return text.replace("-", "−")


def signed(x: float | None, decimals: int = 2, missing: str = MISSING) -> str:
    """Format a difference, with its sign in front unless it rounds to zero."""
    text = number(x, decimals, missing)
    rounds_to_zero = not any(digit in text for digit in "123456789")
    return text if x is None or x <= 0 or rounds_to_zero else f"+{text}"


def bracket(low: float | None, high: float | None, decimals: int = 2) -> str:
    """Format an interval; empty if neither end is known."""
    if low is None and high is None:
        return ""
    return f"[{number(low, decimals, MISSING_SHORT)}, {number(high, decimals, MISSING_SHORT)}]"


def with_interval(x: float | None, low: float | None, high: float | None, decimals: int = 2) -> str:
    """Format a number and its interval as ``0.46 [0.38, 0.54]``."""
    interval = "" if x is None else bracket(low, high, decimals)
    return f"{number(x, decimals)} {interval}".rstrip()


def p_value(p: float | None) -> str:
    """Format a p-value; below 0.001 as a bound, since resampling does not resolve it further."""
    if p is None:
        return MISSING_SHORT
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(n: float | None) -> str:
    """Format a whole number with thousands separators."""
    return MISSING if n is None else f"{n:,.0f}"


def decimals_for(scale: float | None) -> int:
    """Number of decimals that shows a quantity of this size with three digits."""
    if scale is None or scale <= 0:
        return 3
    return max(0, 2 - math.floor(math.log10(scale)))


def value_decimals(audit: Audit) -> int:
    """Number of decimals for values: three digits of the headroom, or of the values without one."""
    if audit["kind"] == "picks":
        widths = [c["half_width"] for c in audit["comparisons"] if c["half_width"] is not None]
        return decimals_for(10 * max(widths) if widths else None)
    headroom = audit["headroom"][-1]
    return decimals_for(headroom if headroom else abs(audit["random"] or 0))


def one_line(name: object) -> str:
    """Make a text printable on one line: control characters and line breaks become spaces."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return " ".join(text.split()) or "(unnamed)"


def join(words: Iterable[object], last: str = "and") -> str:
    """Join words as a sentence does: ``a, b and c``."""
    texts = [str(word) for word in words]
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def plural(n: int | None, singular: str, several: str = "") -> str:
    """Count things: ``1 query``, ``2,500 queries``."""
    return f"{count(n)} {singular if n == 1 else several or singular + 's'}"


def queries_words(content: Mapping[str, Any]) -> str:
    queries = plural(content["queries"], "query", "queries")
    if content["clusters"] == content["queries"]:
        return queries
    return f"{queries} in {plural(content['clusters'], 'cluster')}"


def remark_lines(warnings: Iterable[str], notes: Iterable[str]) -> list[str]:
    return [
        *(f"warning: {one_line(sentence)}" for sentence in warnings),
        *(f"note: {one_line(sentence)}" for sentence in notes),
    ]


def ranked(audit: Audit) -> list[str]:
    """Names of the scorers, best status first, then the highest gain at the largest K."""

    def key(name: str) -> tuple[int, bool, float]:
        scorer = audit["scorers"][name]
        gain = last(scorer["gain"]["value"])
        return (_RANKS.index(scorer["verdict"]["status"]), gain is None, -(gain or 0.0))

    return sorted(audit["scorers"], key=key)


def status_words(verdict: Mapping[str, Any], k_max: int, *of: str) -> str:
    """The status with the K up to which, and the candidates of which, it holds."""
    return f"{verdict['status']} {reach(stored_verdict(verdict), k_max, *of)}"


def gain_at_end(scorer: Mapping[str, Any]) -> float | None:
    """V(K) - V(1) at the largest K, in units of the value."""
    first, end = scorer["value"][0], scorer["value"][-1]
    return None if first is None or end is None else end - first


def headline(verdict: Mapping[str, Any], k_max: int) -> str:
    match verdict["status"]:
        case "safe":
            return status_words(verdict, k_max).capitalize()
        case "no gain":
            return "Does no harm, but no gain is shown"
        case "unsafe" if verdict["k_harm"] is not None:
            return f"Search hurts from K = {verdict['k_harm']}"
        case "unsafe":
            return "Search hurts"
        case _:
            return "Not decided by these queries"


def k_word(k: int | None, missing: str = "none") -> str:
    """Format one of a verdict's K; null means that there is no such K."""
    return missing if k is None else str(k)


def tally(audit: Audit) -> list[tuple[str, int]]:
    """Count the scorers of each status that occurs, best status first."""
    found = [scorer["verdict"]["status"] for scorer in audit["scorers"].values()]
    return [(status, found.count(status)) for status in STATUSES if status in found]


def percent(level: float | None) -> str:
    return MISSING if level is None else f"{100 * level:g} %"


def question(audit: Audit) -> str:
    if audit["kind"] == "picks":
        return "Which selector picks better?"
    if len(audit["scorers"]) == 1:
        return "Is this score safe to maximize?"
    return "Are these scores safe to maximize?"


def data_sentences(audit: Audit) -> list[str]:
    """Sentences about the data: queries, candidates, judge, K, clusters, replicates."""
    if audit["kind"] == "picks":
        selectors, on = plural(len(audit["selectors"]), "selector"), queries_words(audit)
        return [f"{selectors} compared on {on}, by the values of what each one picked."]
    pool = audit["pool_size"]
    sizes = f"{pool['min']} to {pool['max']} in a pool, median {number(pool['median'], 0)}"
    end = ", the size of the smallest pool" if audit["k"][-1] == pool["min"] else ""
    if pool["min"] == pool["max"]:
        sizes, end = f"{pool['min']} in each pool", ""
    queries = plural(audit["queries"], "query", "queries")
    if audit.get("pools", audit["queries"]) != audit["queries"]:
        queries = f"{plural(audit['pools'], 'pool')} of {queries}"
    sentences = [
        f"{queries}, {plural(audit['candidates'], 'candidate')} ({sizes}), "
        f"judged by “{one_line(audit['value'])}”. K = {join(audit['k'])}{end}."
    ]
    if audit["cluster_column"] is not None:
        sentences.append(
            f"Queries are resampled in {plural(audit['clusters'], 'whole cluster')} "
            f"(column “{one_line(audit['cluster_column'])}”)."
        )
    if audit["replicates"]:
        names = join(f"“{one_line(name)}”" for name in audit["replicates"])
        sentences.append(
            f"{names} are replicates of one judge: the oracle is chosen on one half and valued "
            "on the other."
        )
    return sentences


def ends_sentence(audit: Audit) -> str:
    """The values of a random candidate and of the best one: every choice lies between them."""
    decimals = value_decimals(audit)
    return (
        f"Value of a random candidate {number(audit['random'], decimals)}{_middle(audit)}; best "
        "possible at "
        f"K = {audit['k'][-1]}: {number(audit['oracle'][-1], decimals)}."
    )


def _middle(audit: Audit) -> str:
    """What values count unjudged candidates as, where those are only known within bounds."""
    as_number = (audit.get("judging") or {}).get("unjudged_as")
    if as_number is None:
        return ""
    return f" (with unjudged ones at {as_number:g}, the middle of what they may be worth)"


def change_words(audit: Audit, name: str) -> str:
    """A scorer's value from a random candidate to the largest K: 0.35 → 0.40 of a possible 0.58."""
    decimals, end = value_decimals(audit), audit["scorers"][name]["value"][-1]
    first, then = (number(each, decimals) for each in (audit["random"], end))
    most = audit["oracle"][-1]
    return f"{first} → {then}" + (
        "" if most is None else f" of a possible {number(most, decimals)}"
    )


def change_sentence(audit: Audit) -> str:
    """What the scorers make of a random candidate's value; of many, the best and the worst."""
    names, notes = ranked(audit), {}
    if len(names) > _MOST_SCORERS:
        ends = {name: audit["scorers"][name]["value"][-1] for name in names}
        known = [name for name in names if ends[name] is not None] or names[:1]
        notes = {max(known, key=lambda name: ends[name]): f", the highest of {len(names)} scorers"}
        notes.setdefault(min(known, key=lambda name: ends[name]), ", the lowest")
        names = list(notes)
    words = "; ".join(
        f"{change_words(audit, name)} (“{one_line(name)}”{notes.get(name, '')})" for name in names
    )
    what = f"Value from a random candidate to the best of {audit['k'][-1]}"
    return f"{what}{_middle(audit)}: {words}."


def scope_sentence(audit: Audit) -> str:
    return f"Nothing is extrapolated past K = {audit['k'][-1]}, the largest K measured."


def short(name: object, width: int) -> str:
    """Shorten a name for a figure; both ends stay, because columns usually differ there."""
    text = one_line(name)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[-(width - 1 - head) :]}"


def last(values: Sequence[Any] | None) -> Any:
    return values[-1] if values else None


Ends = tuple[float | None, float | None, float | None]
"""A number and the ends of its interval."""


def captured_at_end(scorer: Mapping[str, Any]) -> Ends:
    """The captured share at the largest K, with the interval behind the verdict."""
    value, low, high = (last(scorer["gain"][end]) for end in ("value", "low", "high"))
    return value, low, high


# ------------------------------------------------------------------------ sentences about an audit


def judging_sentences(audit: Audit) -> list[str]:
    """How many candidates were judged and how; empty if every candidate has a value."""
    part = audit.get("judging")
    if not part:
        return []
    labels = f"{count(part['labels'])} of {plural(part['candidates'], 'candidate')} were judged; "
    whole = (
        plural(part["whole_queries"], "query", "queries") if part["whole_queries"] else "no query"
    )
    labels += f"in {whole} every one."
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
        yield f"{names} {verb} {CANNOT_CHOOSE}."


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


def share_words(share: float) -> str:
    return f"{exact_percent(share)} of the headroom"


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
        rows.append(("Harm established (δ)", share_words(thresholds["delta"])))
        rows.append(("Harm ruled out (ρ)", share_words(thresholds["rho"])))
    return one_line_rows(rows)


def status_lines(audit: Audit) -> list[tuple[str, str]]:
    """The meaning of each status, with the thresholds that were used."""
    if audit["kind"] == "picks":
        return []
    thresholds = audit["thresholds"]
    delta, rho = exact_percent(thresholds["delta"]), exact_percent(thresholds["rho"])
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
