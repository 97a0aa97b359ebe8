"""The audit in plain text, for the terminal: one line for each scorer, more where asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toptail.report.group_tables import worse_in_groups
from toptail.report.judging import judging_sentences
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    data_sentences,
    join,
    number,
    one_line,
    p_value,
    ranked,
    scope_sentence,
    short,
    signed,
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
        lines += [*_pools(audit, verbose), *worse_in_groups(audit)]
        lines += [*judging_sentences(audit), *_columns(audit)]
        lines.append(scope_sentence(audit))
    notes = audit["notes"] or ([_NOISE] if verbose else [])  # picks have a note of their own
    lines += [f"warning: {one_line(sentence)}" for sentence in audit["warnings"]]
    return [*lines, *(f"note: {one_line(sentence)}" for sentence in notes)]


def _pools(audit: Audit, verbose: bool) -> list[str]:
    decimals, k_max = value_decimals(audit), audit["k"][-1]
    names = ranked(audit)
    width = max((len(short(name, _WIDTH)) for name in names), default=0)
    lines = [
        f"Value of a random candidate {number(audit['random'], decimals)}; best possible at "
        f"K = {k_max}: {number(audit['oracle'][-1], decimals)}. Gains at K = {k_max}, and the "
        "share of the possible gain that is captured:",
        "",
    ]
    for name in names:
        scorer = audit["scorers"][name]
        status = f"{scorer['verdict']['status']:<12}"
        lines.append(f"{status}  {short(name, _WIDTH):<{width}}  {_line(scorer, decimals)}")
        if verbose:
            lines += [f"    {text}" for text in _details(audit, name, decimals)]
    return [*lines, ""]


def _line(scorer: Mapping[str, Any], decimals: int) -> str:
    """What a scorer gains, what share of the headroom that is, and which K its verdict names."""
    value = scorer["value"]
    known = value[0] is not None and value[-1] is not None
    gain = signed(value[-1] - value[0] if known else None, decimals, MISSING_SHORT)
    share = with_interval(*(scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")))
    return f"gain {gain}, captured {share}{_k_words(scorer['verdict'])}"


def _k_words(verdict: Mapping[str, Any]) -> str:
    match verdict["status"]:
        case "safe" if verdict["k_safe_max"] is not None:
            return f", safe up to K = {verdict['k_safe_max']}"
        case "unsafe" if verdict["k_harm"] is not None:
            return f", hurts from K = {verdict['k_harm']}"
        case "inconclusive" if verdict["queries_needed"] is not None:
            return f", about {verdict['queries_needed']:,} queries would decide"
        case _:
            return "" if verdict["k_best"] is None else f", best K = {verdict['k_best']}"


def _details(audit: Audit, name: str, decimals: int) -> Iterable[str]:
    """What ``--verbose`` adds about a scorer."""
    scorer = audit["scorers"][name]
    verdict = scorer["verdict"]
    yield one_line(verdict["reason"])
    if unseen := verdict.get("unseen"):
        yield one_line(unseen)
    yield f"{signed(scorer['gain_per_doubling'], decimals)} in value per doubling of K"
    if audit.get("groups"):
        parts = ", ".join(
            f"{one_line(group)} {part['scorers'][name]['verdict']['status']}"
            for group, part in audit["groups"].items()
        )
        yield f"By {one_line(audit.get('group_column') or 'group')}: {parts}"


def _columns(audit: Audit) -> Iterable[str]:
    """Columns that were left out, and scores that say nothing."""
    if skipped := audit.get("skipped_columns"):
        names = join(f"{one_line(each['name'])} ({one_line(each['why'])})" for each in skipped)
        yield f"Left out, as not looking like scores: {names}; name one as a score to audit it."
    if constant := audit.get("constant_scores"):
        verb = "gives" if len(constant) == 1 else "give"
        names = join(map(one_line, constant))
        yield f"{names} {verb} all candidates of a query the same score and cannot choose."


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
