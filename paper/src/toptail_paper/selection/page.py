"""The words of the selection study's page, from one task's stored results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.critics.registry import MAIN
from toptail.lab.judges.point import EXACT
from toptail.report.text import bracket, join, number, plural, signed
from toptail_paper.selection.results import (
    SelectionResults,
    closed_loop,
    closed_loop_ks,
    judge_name,
)
from toptail_paper.selection.show import circular_words, excluded_words
from toptail_paper.study.naming import IDEALS, critic_of, scorer_name
from toptail_paper.study.page import Texts, recorded
from toptail_paper.study.results import scale_rows

_LEAD: Final = (
    "Frozen states and goals; for each, pools of candidate actions {source}. Every critic scores "
    "the same candidates and picks its highest. Judges that were trained apart from the critics, "
    "or not at all, say what the pick is worth."
)

_DECIDING: Final = (
    "Decided from the stored tables by the criterion in each entry. Where several judges "
    "valued every candidate, a statement must hold under each of them to be “seen”; "
    "“depends” means that it holds in part of the cases. Intervals are 95 %."
)


def texts(study: SelectionResults) -> Texts:
    return Texts(
        title=f"Action selection on {study.task}",
        brand="fixed-query action selection",
        heading=f"Which action does it pick, and what is it worth? {study.task}",
        lead=_LEAD.format(source=_brought(study.candidates) or "from a behaviour model"),
        summary=summary(study),
        method=_method(study),
        deciding=_DECIDING,
    )


def summary(study: SelectionResults) -> list[str]:
    lines = [excluded_words(study)]
    for judge in study.judges:
        lines += [_order_sentence(study, judge), _worse_sentence(study, judge)]
    lines += [
        _best_sentence(study),
        _gain_sentence(study),
        _followed_sentence(study),
        circular_words(study),
    ]
    return [line for line in lines if line]


def _summarized(study: SelectionResults) -> list[str]:
    """The scorers of the summary: the paper's critics and the user's own."""
    own = [name for name in study.scorers if critic_of(name) is None and name not in IDEALS]
    return [*MAIN, *own]


def _order_sentence(study: SelectionResults, judge: str) -> str:
    rows = study.of_task("fixed-query")
    tau, regret = (study.metric(name, judge) for name in ("tau_b", "nregret"))
    parts = [
        f"{scorer_name(name)} {number(rows[name][tau]['mean'])}"
        f"{'†' if rows[name][tau].get('circular') else ''} "
        f"({number(rows[name][regret]['mean'])})"
        for name in _summarized(study)
        if tau in rows.get(name, {})
    ]
    return (
        f"{judge_name(judge)}: within-pool τ_b and, in brackets, normalized regret of the best of "
        f"{study.size}: {'; '.join(parts)}."
        if parts
        else ""
    )


def _best_sentence(study: SelectionResults) -> str:
    """How often picks are best ones, by the exact value or else by the first judge."""
    judge = EXACT if EXACT in study.judges else study.judges[0]
    rows, metric = study.of_task("fixed-query"), study.metric("best_pick", judge)
    parts = [
        f"{number(100 * rows[name][metric]['mean'], 0)} % ({scorer_name(name)})"
        for name in _summarized(study)
        if metric in rows.get(name, {})
    ]
    if not parts:
        return ""
    return f"{judge_name(judge)}: the pick is a best one of its pool in {', '.join(parts)}."


def _worse_sentence(study: SelectionResults, judge: str) -> str:
    """Name the scorers that order candidates worse than at random in a distance group."""
    rows = study.of_task("fixed-query")
    keys = {group: study.metric("tau_b", judge, group) for group in study.groups}
    verdicts = study.audits.get(judge, {}).get("scorers", {})
    parts = []
    for name in study.scorers:
        cells = {group: rows[name][key] for group, key in keys.items() if key in rows[name]}
        worse = [
            f"{group} goals (τ_b {signed(cell['mean'])} {bracket(cell['low'], cell['high'])})"
            for group, cell in cells.items()
            if cell.get("high") is not None and cell["high"] < 0
        ]
        if worse:
            status = verdicts.get(name, {}).get("verdict", {}).get("status")
            overall = f", {status} over all queries" if status else ""
            parts.append(f"{scorer_name(name)} at {join(worse)}{overall}")
    if not parts:
        return ""
    return f"{judge_name(judge)}: worse than a random order: {'; '.join(parts)}."


def _followed_sentence(study: SelectionResults) -> str:
    """Say where following a score at every step contradicts a verdict about one step.

    Success at the largest K lies below that at the smallest, interval below interval.
    """
    safe = {
        name
        for audit in study.audits.values()
        for name, scorer in audit.get("scorers", {}).items()
        if scorer["verdict"]["status"] == "safe"
    }
    parts = []
    for name, row in study.of_task("deployment").items():
        loop = {k: row[closed_loop(k)] for k in closed_loop_ks(row)}
        if name in safe and loop and loop[max(loop)]["high"] < loop[min(loop)]["low"]:
            first, last = (number(100 * loop[k]["mean"], 0) for k in (min(loop), max(loop)))
            parts.append(
                f"{scorer_name(name)} reaches {last} % of the goals with the best of {max(loop)} "
                f"and {first} % with K = {min(loop)}"
            )
    if not parts:
        return ""
    return f"“Safe” is about one step. Followed at every step, {'; '.join(parts)}."


def _gain_sentence(study: SelectionResults) -> str:
    rows = study.of_task("fixed-query")
    named = {n: rows.get(n, {}).get("rollout_delta") for n in _summarized(study)}
    cells = {n: cell for n, cell in named.items() if cell is not None}
    parts = [
        f"{scorer_name(n)} {signed(c['mean'], 4)} {bracket(c['low'], c['high'], 4)}"
        for n, c in cells.items()
    ]
    if not parts:
        return ""
    return f"Simulator: one pick's gain over a random candidate, with interval: {'; '.join(parts)}."


def declared_rows(
    declared: Mapping[str, Any], candidates: Mapping[str, Any] | None = None
) -> list[tuple[str, str]]:
    """The declaration as a reader quotes it, with where the ``candidates`` really came from."""
    if not declared:
        return []
    pools, rollouts, support = (declared[name] for name in ("pools", "rollouts", "support"))
    reference = declared["reference"]
    groups = ", ".join(
        f"{g} {low} to {high} steps" for g, (low, high) in declared["groups"].items()
    )
    return [
        ("Task", declared["task"]),
        ("Queries", f"{groups}; hash {declared['query_sha256']}"),
        (
            "Reference ensemble",
            f"GCIQL, seeds {join(reference['seeds'])}; admitted if at least "
            f"{number(100 * declared['resolvability'], 0)} % of the pools of the group "
            f"‘{declared['prespecified_group']}’ are resolved and the members' mean pairwise "
            f"within-pool Spearman is at least {declared['spearman']:g}",
        ),
        (
            "Rollouts",
            f"{rollouts['per_group']} queries per group to begin with, {rollouts['repeats']} "
            f"repeats, horizon {rollouts['horizon']}, γ = {rollouts['gamma']:g}; against the mean "
            f"of {max(rollouts['randoms'], rollouts['candidates'])} random candidates; admitted "
            f"if every selector's half-width is below e_min = {declared['e_min']:g}",
        ),
        ("Inclusion", declared["inclusion"]),
        (
            "Pools",
            f"{pools['count']} of {pools['size']} candidates per query, "
            + (
                _brought(candidates)
                or f"{pools['sampler']} sampling, behaviour model of seed {pools['policy_seed']}"
            ),
        ),
        ("Local support", support["threshold"]),
        ("Sizes K", join(declared["k"])),
        ("Training seeds", join(declared["seeds"])),
        ("Hash", declared["hash"]),
    ]


def _brought(candidates: Mapping[str, Any] | None) -> str:
    """The user's file of candidates in words; empty if a behaviour model drew them."""
    if not candidates or "file" not in candidates:
        return ""
    return f"brought in the file {candidates['file']} (SHA-256 {candidates['sha256'][:12]}…)"


def _method(study: SelectionResults) -> list[tuple[str, str | None]]:
    record = study.record
    audit = next(iter(study.audits.values()), {})
    pools, clusters = audit.get("queries"), audit.get("clusters")
    return [
        ("Command", record.get("command")),
        (
            "Data",
            f"{plural(pools, 'pool')} of {study.size} candidates from "
            f"{plural(clusters, 'trajectory', 'trajectories')}"
            if pools
            else None,
        ),
        *scale_rows(study.scale),
        ("Best-of-K", "exact expectation over all subsets of each pool; ties shared evenly"),
        (
            "Intervals",
            "95 %; whole trajectories resampled, the same resamples for all critics and judges; "
            "pools are averaged within their query first",
        ),
        *recorded(record),
    ]
