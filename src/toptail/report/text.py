"""Formats numbers and short sentences, for the page, Markdown, LaTeX and the terminal alike.

Nothing here computes a statistic: the numbers are those of ``audit.json``. Text is plain Unicode
and not escaped: each output format escapes it in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toptail.audit.settings import NOT_MEANT as NOT_MEANT
from toptail.audit.verdict import STATUSES, reach, stored_verdict

Audit = Mapping[str, Any]

MISSING: Final = "not available"
MISSING_SHORT: Final = "n/a"  # the same, in the cells of a table

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


def threshold(x: float) -> str:
    """Format a threshold as it was tested: with two decimals, or as many as it has.

    >>> threshold(0.1), threshold(0.025)
    ('0.10', '0.025')
    """
    return number(x, max(2, len(f"{x:.12f}".rstrip("0").partition(".")[2])))


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


def gains(scorer: Mapping[str, Any]) -> list[float | None]:
    """V(K) - V(1) at each K, in units of the value."""
    first, *_ = scorer["value"]
    return [None if first is None or v is None else v - first for v in scorer["value"]]


def peak(scorer: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """The K at which the curve is highest, and its value there."""
    return scorer["verdict"]["k_best"], scorer["peak_value"]


def headline(verdict: Mapping[str, Any], k_max: int) -> str:
    """The verdict in a few words."""
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
    """Format a confidence level."""
    return MISSING if level is None else f"{100 * level:g} %"


def question(audit: Audit) -> str:
    """The question that the audit answers."""
    if audit["kind"] == "picks":
        return "Which selector picks better?"
    if len(audit["scorers"]) == 1:
        return "Is this score safe to maximize?"
    return "Are these scores safe to maximize?"


def data_sentences(audit: Audit) -> list[str]:
    """Sentences about the data: queries, candidates, judge, K, clusters, replicates."""
    if audit["kind"] == "picks":
        return [_picks_data(audit)]
    pool = audit["pool_size"]
    sizes = f"{pool['min']} to {pool['max']} in a pool, median {number(pool['median'], 0)}"
    if pool["min"] == pool["max"]:
        sizes = f"{pool['min']} in each pool"
    queries = plural(audit["queries"], "query", "queries")
    if audit.get("pools", audit["queries"]) != audit["queries"]:
        queries = f"{plural(audit['pools'], 'pool')} of {queries}"
    sentences = [
        f"{queries}, {plural(audit['candidates'], 'candidate')} ({sizes}), "
        f"judged by “{one_line(audit['value'])}”. K = {join(audit['k'])}."
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


def _picks_data(audit: Audit) -> str:
    where = plural(audit["queries"], "query", "queries")
    if audit["clusters"] != audit["queries"]:
        where += f" in {plural(audit['clusters'], 'cluster')}"
    selectors = plural(len(audit["selectors"]), "selector")
    return f"{selectors} compared on {where}, by the values of what each one picked."


def ends_sentence(audit: Audit) -> str:
    """The values of a random candidate and of the best one: every choice lies between them."""
    decimals = value_decimals(audit)
    return (
        f"Value of a random candidate {number(audit['random'], decimals)}; best possible at "
        f"K = {audit['k'][-1]}: {number(audit['oracle'][-1], decimals)}."
    )


def scope_sentence(audit: Audit) -> str:
    """The largest K that was measured."""
    return f"Nothing is extrapolated past K = {audit['k'][-1]}, the largest K measured."


def short(name: object, width: int) -> str:
    """Shorten a name for a figure; both ends stay, because columns usually differ there."""
    text = one_line(name)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[-(width - 1 - head) :]}"


def last(values: Sequence[Any] | None) -> Any:
    """The entry at the largest K, or null."""
    return values[-1] if values else None
