"""The audit in plain text, for the terminal: one line for each scorer, more with ``--verbose``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toptail.report.sentences import column_sentences, exceptions, judging_sentences
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    data_sentences,
    ends_sentence,
    gains,
    number,
    one_line,
    p_value,
    peak,
    ranked,
    scope_sentence,
    short,
    signed,
    status_words,
    value_decimals,
    with_interval,
)

_WIDTH: Final = 32  # of a name; a longer one keeps both ends
_NOISE: Final = (
    "If the judged value is itself noisy, a single judge biases the oracle upward (it is credited "
    "with lucky noise), and the captured share downward; judge candidates at least twice and name "
    "the columns as replicates to remove this."
)


def summary_lines(audit: Audit, *, verbose: bool = False) -> list[str]:
    """Plain-text summary: verdicts first, then what to look at before trusting them."""
    lines = [*data_sentences(audit), ""]
    if audit["kind"] == "picks":
        lines += _picks(audit)
    else:
        lines += _pools(audit, verbose)
        lines += [*judging_sentences(audit), *column_sentences(audit), scope_sentence(audit)]
    notes = audit["notes"] or ([_NOISE] if verbose else [])  # picks have a note of their own
    lines += [f"warning: {one_line(sentence)}" for sentence in audit["warnings"]]
    return [*lines, *(f"note: {one_line(sentence)}" for sentence in notes)]


def _pools(audit: Audit, verbose: bool) -> list[str]:
    names = ranked(audit)
    width = max((len(short(name, _WIDTH)) for name in names), default=0)
    lines = [
        f"{ends_sentence(audit)} Gain at K = {audit['k'][-1]} over a random candidate, the share "
        "of the possible gain that is captured, and the peak of the curve:",
        "",
    ]
    for name in names:
        status = audit["scorers"][name]["verdict"]["status"]
        words = scorer_words(audit, name).removeprefix(status)
        lines.append(f"{status:<12}  {short(name, _WIDTH):<{width}} {words}")
        if verbose:
            lines += [f"    {text}" for text in _details(audit, name)]
    return [*lines, ""]


def scorer_words(audit: Audit, name: str) -> str:
    """A scorer's verdict with its K and candidates, its numbers, and where it does not hold."""
    scorer, decimals = audit["scorers"][name], value_decimals(audit)
    verdict = scorer["verdict"]
    share = with_interval(*(scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")))
    words = f"{status_words(verdict, audit['k'][-1])}: gain "
    words += f"{signed(gains(scorer)[-1], decimals, MISSING_SHORT)} in value, captured {share}"
    k, value = peak(scorer)
    if k is not None:
        words += f", peak {'' if value is None else number(value, decimals) + ' '}at K = {k}"
    if verdict["status"] == "inconclusive" and verdict["queries_needed"] is not None:
        words += f", about {verdict['queries_needed']:,} queries would decide"
    but = exceptions(audit, name)
    return f"{words}; but {but}" if but else words


def _details(audit: Audit, name: str) -> Iterable[str]:
    """What ``--verbose`` adds about a scorer."""
    scorer = audit["scorers"][name]
    verdict = scorer["verdict"]
    yield one_line(verdict["reason"])
    if verdict["unseen"]:
        yield one_line(verdict["unseen"])
    yield f"{signed(scorer['gain_per_doubling'], value_decimals(audit))} in value per doubling of K"
    if audit.get("groups"):
        parts = ", ".join(
            f"{one_line(group)} {part['scorers'][name]['verdict']['status']}"
            for group, part in audit["groups"].items()
        )
        column = one_line(audit.get("group_column") or "group")
        yield f"By {column}, up to best of {audit['k'][-1]}: {parts}"


def _picks(audit: Audit) -> list[str]:
    decimals = value_decimals(audit)
    means = [
        f"{one_line(name)}: {with_interval(s['mean'], s['low'], s['high'], decimals)}"
        for name, s in audit["selectors"].items()
    ]
    lines = [*means, "", *_differences(audit["comparisons"], decimals)]
    for group, part in (audit.get("groups") or {}).items():
        head = f"{one_line(audit['group_column'])} {one_line(group)} ({part['queries']:,} queries)"
        lines += ["", f"{head}:", *_differences(part["comparisons"], decimals)]
    return lines


def _differences(comparisons: Iterable[Mapping[str, Any]], decimals: int) -> list[str]:
    return [
        f"{one_line(c['a'])} − {one_line(c['b'])}: "
        f"{with_interval(c['difference'], c['low'], c['high'], decimals)}, "
        f"Holm p {p_value(c['p_holm'])}, "
        f"smallest detectable effect {number(c['detectable'], decimals)}"
        for c in comparisons
    ]
