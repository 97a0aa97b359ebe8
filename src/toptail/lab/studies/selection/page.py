"""The selection study of one task as one self-contained page, from its stored results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toptail.lab.studies.controlled.results import MAIN
from toptail.lab.studies.page import (
    Picture,
    claim_entry,
    claim_tally,
    page_style,
    template,
    write_page,
)
from toptail.lab.studies.selection.figures import drawings
from toptail.lab.studies.selection.results import (
    SelectionResults,
    judge_name,
    read_selection_results,
)
from toptail.lab.studies.selection.show import (
    circular_words,
    deployment_tables,
    group_tables,
    main_table,
    pick_table,
    square_table,
    verdict_table,
)
from toptail.lab.studies.selection.show_judges import judge_table
from toptail.lab.studies.semantics.results import scorer_name
from toptail.report.text import bracket, join, number, plural, signed


def write_selection_report(folder: str | Path) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` into a task's folder.

    Returns
    -------
    The path of ``report.html``.
    """
    path = Path(folder)
    study = read_selection_results(path)
    return write_page(path, drawings(study), partial(render_selection, study))


def render_selection(study: SelectionResults, pictures: Sequence[Picture]) -> str:
    """Render the page."""
    tables = [verdict_table(study), *group_tables(study), pick_table(study)]
    return template("selection.html").render(
        css=page_style(),
        task=study.task,
        hash=study.declared.get("hash", ""),
        summary=summary(study),
        declared=declared_rows(study.declared),
        judges=judge_table(study),
        main=main_table(study),
        tables=[table for table in tables if table is not None],
        square=square_table(study),
        deployment=deployment_tables(study),
        pictures={picture.drawing.name: picture for picture in pictures},
        claims=[claim_entry(entry) for entry in study.claims],
        tally=claim_tally(study.claims),
        method=method_rows(study),
    )


def summary(study: SelectionResults) -> list[str]:
    """Say what came out, in sentences that hold numbers."""
    lines = [_order_sentence(study, judge) for judge in study.judges]
    lines += [_gain_sentence(study), circular_words(study)]
    return [line for line in lines if line]


def _order_sentence(study: SelectionResults, judge: str) -> str:
    rows = study.rows("fixed-query")
    tau, regret = (f"{study.prefix(judge)}{m}_{study.size}" for m in ("tau_b", "nregret"))
    parts = [
        f"{scorer_name(name)} {number(rows[name][tau]['mean'])}"
        f"{'†' if rows[name][tau].get('circular') else ''} "
        f"({number(rows[name][regret]['mean'])})"
        for name in MAIN
        if tau in rows.get(name, {})
    ]
    return (
        f"{judge_name(judge)}: within-pool τ_b and, in brackets, normalized regret of the best of "
        f"{study.size}: {'; '.join(parts)}."
        if parts
        else ""
    )


def _gain_sentence(study: SelectionResults) -> str:
    rows = study.rows("fixed-query")
    cells = {n: cell for n in MAIN if (cell := rows.get(n, {}).get("rollout_delta")) is not None}
    parts = [
        f"{scorer_name(n)} {signed(c['mean'], 4)} {bracket(c['low'], c['high'], 4)}"
        for n, c in cells.items()
    ]
    if not parts:
        return ""
    return f"Simulator: one pick's gain over a random candidate, with interval: {'; '.join(parts)}."


def declared_rows(declared: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The declaration as a reader quotes it."""
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
            f"{pools['count']} of {pools['size']} candidates per query, {pools['sampler']} "
            f"sampling, behaviour model of seed {pools['policy_seed']}",
        ),
        ("Local support", support["threshold"]),
        ("Sizes K", join(declared["k"])),
        ("Training seeds", join(declared["seeds"])),
        ("Hash", declared["hash"]),
    ]


def method_rows(study: SelectionResults) -> list[tuple[str, str]]:
    """How it was computed, and the record of the run."""
    record = study.record
    audit = next(iter(study.audits.values()), {})
    pools, clusters = audit.get("queries"), audit.get("clusters")
    rows = [
        ("Command", record.get("command")),
        (
            "Data",
            f"{plural(pools, 'pool')} of {study.size} candidates from "
            f"{plural(clusters, 'trajectory', 'trajectories')}"
            if pools
            else None,
        ),
        ("Best-of-K", "exact expectation over all subsets of each pool; ties shared evenly"),
        (
            "Intervals",
            "95 %; whole trajectories resampled, the same resamples for all critics and judges; "
            "pools are averaged within their query first",
        ),
        ("Code", record.get("commit")),
        ("Versions", ", ".join(f"{k} {v}" for k, v in record.get("versions", {}).items())),
    ]
    return [(label, text) for label, text in rows if text]
