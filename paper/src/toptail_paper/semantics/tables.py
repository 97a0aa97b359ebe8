"""From measured columns to ``tables/NAME.json``: which diagnostic stands in which table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toptail.lab.critics.registry import CRITICS, names, without_settings
from toptail.lab.judges.point import EXACT
from toptail.report.text import join
from toptail_paper.semantics.config import EXCLUSIONS, ORACLE, SemanticsConfig
from toptail_paper.semantics.measure import (
    CURSE,
    READOUT,
    Diagnostic,
    Estimates,
    MeasuredTask,
    at_top,
)
from toptail_paper.semantics.specs import LEARNED, TABLES
from toptail_paper.study.naming import is_circular, readout, scorer_name
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.tables import Rows, StoredCell, replicated_cell
from toptail_paper.triples.bootstrap import seed_mean

RETRIEVAL = ("auc", "hard_negative_auc", "recall_1", "recall_5", "same_trajectory", "nearer_goal")
"""The paper's columns of tab:retrieval, and two controls."""

READOUTS = {"norm": "phi_norm"}
"""Stored readouts that the table calls by another name."""

CURSE_BESIDE = (
    "regret_quartiles", "centered_tau", "query_std", "median_selected", "share_above_0.9"
)  # fmt: skip
"""Diagnostics of that table that are scalars."""

_EUCLIDEAN = (
    "γ to the Euclidean length of the shortest way through the maze from where the action leads, "
    "in units of 0.2; untrained, and not the task's value, as a step is longer on diagonals."
)
_WAYS = {
    EXACT: "exact: γ to the fewest steps into the goal's tolerance, the action's included.",
    EUCLIDEAN: f"euclidean: {_EUCLIDEAN}",
}
"""What the notes say of judges that know the ways of a maze."""


def all_tables(
    measured: Sequence[MeasuredTask], config: SemanticsConfig
) -> dict[str, dict[str, Any]]:
    """Every table that has at least one cell, by name."""
    tables = [
        _retrieval(measured, config),
        _main(measured, config),
        _calibration(measured, config),
        _readout(measured),
        _bellman(measured),
        _curse(measured, config),
        _robustness(measured, config),
        _value_oracle(measured, config),
        _diffusion(measured, config),
        _two_head(measured),
    ]
    return {content["label"].removeprefix("tab:"): content for content in tables if content["rows"]}


def _rows(measured: Iterable[MeasuredTask], metrics: Mapping[str, str] | Sequence[str]) -> Rows:
    """One row per scorer that has any of the metrics; metric -> diagnostic where they differ."""
    names = metrics if isinstance(metrics, Mapping) else {metric: metric for metric in metrics}
    rows: Rows = {}
    for task in measured:
        for scorer in task.task.triples.scorers:
            cells = _cells({metric: task.seeds(scorer, name) for metric, name in names.items()})
            if cells:
                rows.setdefault(task.task.key, {})[scorer] = cells
    return rows


def _cells(metrics: Mapping[str, Estimates]) -> dict[str, StoredCell]:
    return {metric: replicated_cell(seeds) for metric, seeds in metrics.items() if seeds}


def _main(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    caption = f"Kendall's tau_b of the deployed score with γ^d, {config.triples} triples"
    rows = _rows(measured, ("tau",))
    return TABLES["main"].table(caption, rows, trained_at=_trained_at(measured))


def _calibration(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    caption = f"Mean γ^d in the top less the bottom score decile, {config.triples} triples"
    return TABLES["calibration-summary"].table(caption, _rows(measured, ("gap",)))


def _retrieval(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    pool = config.negatives + 1
    caption = f"Retrieval: {config.triples} triples, pools of {pool} goals, ties half"
    notes = [
        "same_trajectory: which of two goals of one trajectory is called the goal is a coin toss, "
        "so that every score is at 0.5, a perfect one too: a control of the drawing.",
        "nearer_goal: how often the nearer of those two goals scores higher; 1 for an exact value.",
    ]
    rows = _rows(measured, RETRIEVAL)
    more: dict[str, Any] = {"trained_at": _trained_at(measured)}
    if free := _goal_free(measured):
        more["goal_free"] = free
        named = "; ".join(f"{join(map(scorer_name, who))} on {task}" for task, who in free.items())
        notes.append(
            f"auc: a score that gives every goal the same number is at 0.5 by construction, and "
            f"retrieval says nothing about it: {named}."
        )
    return TABLES["retrieval"].table(caption, rows, notes, **more)


def _goal_free(measured: Sequence[MeasuredTask]) -> dict[str, list[str]]:
    """Task -> the scorers that gave every goal of a state and action the same score."""
    found: dict[str, list[str]] = {}
    for task in measured:
        triples = task.task.triples
        for scorer, columns in triples.scorers.items():
            shown = [c for c in columns.values() if c in triples.negatives]
            alike = [
                np.array_equal(
                    np.broadcast_to(triples.scores[c][:, None], triples.negatives[c].shape),
                    triples.negatives[c],
                )
                for c in shown
            ]
            if alike and all(alike):
                found.setdefault(task.task.key, []).append(scorer)
    return found


def _trained_at(measured: Sequence[MeasuredTask]) -> dict[str, dict[str, list[float | str]]]:
    """Task -> scorer -> the temperatures of its seeds' trainings, of scorers that have one.

    A learned temperature is stored as ``"learned"``. Seeds of one training share one entry.
    """
    found: dict[str, dict[str, list[float | str]]] = {}
    for task in measured:
        for scorer, columns in task.task.triples.scorers.items():
            origins = [task.task.origins.get(column, {}) for column in columns.values()]
            trainings = [origin.get("critic_fields", {}) for origin in origins]
            used = {
                LEARNED if fields.get("learn_temperature") else float(fields["temperature"])
                for fields in trainings
                if fields.get("temperature") is not None
            }
            if used:
                found.setdefault(task.task.key, {})[scorer] = sorted(used, key=str)
    return found


def _readout(measured: Sequence[MeasuredTask]) -> dict[str, Any]:
    rows: Rows = {}
    for task in measured:
        for scorer, columns in task.task.triples.scorers.items():
            start = str(Diagnostic(READOUT, ""))
            there = {name for column in columns.values() for name in task.columns[column]}
            reads = sorted(name.removeprefix(start) for name in there if name.startswith(start))
            if not reads:
                continue
            row = rows.setdefault(task.task.key, {})
            own = readout(scorer)
            deployed = own.beside if own is not None and own.beside else "deployed"
            sources = [
                (deployed, "tau"),
                *((read, str(Diagnostic(READOUT, read))) for read in reads),
            ]
            for read, source in sources:
                critic = f"{scorer}_trained/{READOUTS.get(read, read)}"
                row[critic] = {"tau": replicated_cell(task.seeds(scorer, source))}
    notes = ["The deployed score of each training stands first; the others read the same network."]
    caption = "Training and readout: Kendall's tau_b with γ^d of each readout of each training"
    return TABLES["readout"].table(caption, rows, notes)


def _bellman(measured: Sequence[MeasuredTask]) -> dict[str, Any]:
    notes = [
        "rmse: RMSE(δ)/std(f), the paper's; it changes when a constant is added to the score.",
        "std: std(δ)/std(f), which does not.",
        "δ = f(s,a,g) − r − γ f(s',a',g) for d ≥ 2, with the critic's own reward r of a step: 0 "
        "for contrastive scores and 0/1 critics, −1 for −1/0 critics.",
    ]
    return TABLES["bellman"].table(
        "Normalized pathwise Bellman error", _rows(measured, ("rmse", "std")), notes
    )


def _curse(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    names = {metric: at_top(metric) for metric in CURSE}
    names |= {metric: metric for metric in CURSE_BESIDE}
    notes = [
        "Exact over all pools of K triples; nothing is sampled. Pools mix queries: this compares "
        "scores across queries, not actions within one.",
        "regret_quartiles: the same within quartiles of γ^d, mean of the four.",
        "centered_tau: tau_b with γ^d of the score less the mean score of "
        f"{config.behaviour_actions} behaviour-model actions at the same (s, g).",
        "query_std: standard deviation of the score over those actions, mean over triples, in the "
        "score's own units.",
        "share_above_0.9: chance that the picked score is above 0.9, for scores in [-1, 1].",
    ]
    caption = f"Best of K={max(config.k)} over pooled triples, judged by γ^d"
    return TABLES["ogbench-curse"].table(caption, _rows(measured, names), notes, k=max(config.k))


def _robustness(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    names = {}
    for without in EXCLUSIONS:
        for n_near in config.n_near:
            metric = f"excess_off_{n_near}" + ("_trajectory" if without == "trajectory" else "")
            names[metric] = at_top(Diagnostic("excess_off", n_near, without))
    names["regret_full"] = at_top("regret")
    names["regret_within_bucket"] = "regret_quartiles"
    notes = [
        f"excess_off_N: off-support rate of the pick over the base rate of a half; pools of "
        f"{config.support_pool} actions at {config.support_queries} queries, half from the N "
        "nearest states (the anchor's own row left out), half from random ones.",
        "excess_off_N_trajectory: the same with the anchor's whole trajectory left out.",
    ]
    caption = f"Candidate-pool construction, K={max(config.k)}"
    return TABLES["robustness"].table(caption, _rows(measured, names), notes, k=max(config.k))


def _value_oracle(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    judged = [task for task in measured if task.agreement]
    known = (ORACLE, EXACT, EUCLIDEAN)
    judges = [name for name in known if any((name, "") in t.agreement for t in judged)]
    names = {name: name for judge in judges for name in (f"nregret_{judge}", f"tau_{judge}")}
    rows = _rows(judged, {"nregret_gamma": at_top("normalized"), **names})
    for task in judged:
        if task.task.key in rows:
            rows[task.task.key] |= _judge_rows(task, config)
    caption = (
        f"Normalized regret at K={max(config.k)} against γ^d and against an independent TD-Q "
        f"(seed {config.oracle_seed}); 0 is the best, 1 random"
    )
    notes = ["spearman: rank correlation of γ^d and the independent value over the triples."]
    ways = [judge for judge in judges if judge != ORACLE]
    notes += [_WAYS[judge] for judge in ways]
    if ways:
        taus = " and ".join(f"tau_{judge}" for judge in (*ways, ORACLE))
        notes += [
            "spearman_oracle: rank correlation with the independent TD-Q.",
            f"{taus}: τ_b of the score with these values, as tab:main has it with γ^d.",
        ]
    return TABLES["value-oracle"].table(
        caption, rows, notes, circular=_circular(rows), k=max(config.k)
    )


def _judge_rows(task: MeasuredTask, config: SemanticsConfig) -> dict[str, dict[str, StoredCell]]:
    """What the judges say of γ^d, and of each other."""
    rows: dict[str, dict[str, StoredCell]] = {}
    for (judge, other), estimate in task.agreement.items():
        seed = str(config.oracle_seed) if ORACLE in (judge, other) else "none"
        metric = f"spearman_{other}" if other else "spearman"
        rows.setdefault(judge, {})[metric] = replicated_cell({seed: estimate})
    return rows


def _diffusion(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    rows: Rows = {}
    for task in measured:
        for scorer in task.task.triples.scorers:
            models = {
                str(seed): task.seeds(scorer, str(Diagnostic("diffusion", seed)))
                for seed in task.task.diffusion
            }
            means = {s: seed_mean(list(e.values())) for s, e in models.items() if e}
            if means:
                rows.setdefault(task.task.key, {})[scorer] = {
                    "nregret_oracle_data": replicated_cell(task.seeds(scorer, "nregret_oracle")),
                    "nregret_oracle_diffusion": replicated_cell(means),
                }
    gaps = {
        task.task.key: {str(seed): gap for seed, gap in task.task.loss_gaps.items()}
        for task in measured
        if task.task.key in rows
    }
    notes = [
        "nregret_oracle_data: recorded actions; its seeds are the critics'.",
        "nregret_oracle_diffusion: one action of a behaviour model at each (s, g); its seeds are "
        "the behaviour models', each the mean over the critic's seeds.",
    ]
    caption = (
        f"Normalized regret at K={max(config.k)} against the independent value: recorded actions "
        "and actions of diffusion behaviour models"
    )
    return TABLES["value-oracle-diffusion"].table(
        caption, rows, notes, circular=_circular(rows), loss_gaps=gaps, k=max(config.k)
    )


def _circular(rows: Rows) -> list[str]:
    """The scorers of a table whose regret against the value oracle is no independent evidence."""
    present = {scorer for row in rows.values() for scorer in row}
    ordered = [x for name in CRITICS for x in sorted(present) if without_settings(x) == name]
    return [name for name in ordered if is_circular(name)]


def _two_head(measured: Sequence[MeasuredTask]) -> dict[str, Any]:
    # Beside the critics with two heads stands what each of their heads is when it is alone.
    sources = {
        "tdq_ref": {"tau": ("tdq", "tau")},
        "cosine_ref": {"tau": ("cosine", "tau"), "auc": ("cosine", "auc")},
    }
    for heads in names("two_head"):
        own = {"tau": (heads, "tau"), "auc": (f"{heads}.f_cos", "auc")}
        sources[heads.removeprefix("two_head_")] = own
    rows: Rows = {}
    for task in measured:
        if not task.task.navigation or not task.task.triples.scorers.keys() & names("two_head"):
            continue
        for row, metrics in sources.items():
            cells = _cells({metric: task.seeds(*source) for metric, source in metrics.items()})
            if cells:
                rows.setdefault(task.task.key, {})[row] = cells
    notes = ["tau: of the TD head q_td; auc: of the cosine head f_cos of the same checkpoint."]
    return TABLES["twohead"].table("Two heads on one checkpoint", rows, notes)
