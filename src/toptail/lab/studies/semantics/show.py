"""The tables of the semantics study: each measured cell with its interval, beside the paper's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toptail.lab.studies.controlled.compare import Comparison, comparisons
from toptail.lab.studies.semantics.results import in_order, is_control, scorer_name
from toptail.lab.studies.semantics.temperature_figure import setting_name
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, number


@dataclass(frozen=True)
class Layout:
    """How one stored table is shown."""

    title: str
    """A few words, the heading."""
    meaning: str
    """What the numbers say, for a reader who has not read the paper."""
    metrics: Mapping[str, str]
    """Metric → heading of its column, in order."""
    decimals: int = 3
    """Digits after the point."""


LAYOUTS: Final[Mapping[str, Layout]] = {
    "main": Layout(
        "Ordering",
        "Kendall τ_b between the deployed score and γ^d: 1 orders goals by how near they are, 0 "
        "says nothing about it.",
        {"tau": "τ_b"},
    ),
    "calibration-summary": Layout(
        "Calibration of the tail",
        "Mean γ^d of the tenth of the triples with the highest scores less that of the tenth with "
        "the lowest. Search looks at the top tenth only; near 0 it finds nothing better there.",
        {"gap": "Gap"},
        decimals=2,
    ),
    "retrieval": Layout(
        "Retrieval",
        "Is the true goal told from goals of other trajectories? Chance is 0.5 for the first two "
        "columns.",
        {
            "auc": "AUC",
            "hard_negative_auc": "Hard negatives",
            "recall_1": "Recall@1",
            "recall_5": "Recall@5",
            "same_trajectory": "Same trajectory",
            "nearer_goal": "Nearer goal higher",
        },
    ),
    "seen": Layout(
        "Seen and held-out trajectories",
        "The same questions about trajectories of the training split (seen) and of the validation "
        "split (held out). A critic that has learned its trajectories by heart tells their goals "
        "from all others without fault and no longer knows which of two is nearer (chance: 0.5).",
        {
            "auc_held_out": "AUC, held out",
            "auc_seen": "AUC, seen",
            "hard_negative_auc_held_out": "Hard negatives, held out",
            "hard_negative_auc_seen": "Hard negatives, seen",
            "nearer_goal_held_out": "Nearer goal higher, held out",
            "nearer_goal_seen": "Nearer goal higher, seen",
            "tau_held_out": "τ_b, held out",
            "tau_seen": "τ_b, seen",
        },
    ),
    "readout": Layout(
        "Training against readout",
        "Kendall τ_b with γ^d when one training's embeddings are read in different ways: does the "
        "training or the readout decide the ordering?",
        {"tau": "τ_b"},
    ),
    "bellman": Layout(
        "Bellman consistency along recorded paths",
        "δ = f(s, a, g) − r − γ f(s′, a′, g) in units of the score's spread: 0 is an exact "
        "return-to-go.",
        {"rmse": "RMSE(δ) / std(f)", "std": "std(δ) / std(f)"},
    ),
    "ogbench-curse": Layout(
        "Best-of-K over pooled triples",
        "γ^d that is lost by taking the best of K pooled triples by score; normalized: in units of "
        "what the best of K gains over a random one (0 is perfect, 1 is random).",
        {
            "regret": "Regret",
            "normalized": "Normalized",
            "value": "γ^d of the pick",
            "regret_quartiles": "Regret within quartiles",
            "centered_tau": "Centered τ_b",
            "query_std": "Spread within a query",
            "median_selected": "Median selected score",
            "share_above_0.9": "Selected scores above 0.9",
        },
    ),
    "robustness": Layout(
        "Local support, and other pools",
        "How much more often the pick at a fixed (s, g) lies off the local support than a random "
        "candidate does, for three definitions of “local”; and the regret of pooled triples, over "
        "all of them and within quartiles of γ^d.",
        {"regret_full": "γ^d regret", "regret_within_bucket": "… within quartiles of γ^d"},
    ),
    "value-oracle": Layout(
        "Against an independent value",
        "Normalized regret of the same pooled triples against γ^d, against a separately seeded "
        "value network, and, where it is known, against the shortest way. A critic of the same "
        "kind as that network is judged by its twin: such rows are marked circular.",
        {
            "nregret_gamma": "Against γ^d",
            "nregret_oracle": "Against the value",
            "nregret_geodesic": "Against the shortest way",
            "tau_geodesic": "τ_b with the shortest way",
            "spearman": "Spearman with γ^d",
            "spearman_oracle": "Spearman with the value",
        },
        decimals=2,
    ),
    "value-oracle-diffusion": Layout(
        "Against an independent value, candidates of a behaviour model",
        "Normalized regret against the independent value, of recorded actions and of actions of "
        "diffusion behaviour models.",
        {"nregret_oracle_data": "Data actions", "nregret_oracle_diffusion": "Diffusion actions"},
    ),
    "twohead": Layout(
        "Two heads",
        "One critic with a value head and a cosine head: τ_b with γ^d of the first, retrieval AUC "
        "of the second.",
        {"tau": "τ_b of q_td", "auc": "AUC of f_cos"},
    ),
    "temperature": Layout(
        "Temperature of the cosine critic",
        "What the paper leaves unsaid: the cosine critic at every temperature, under two losses.",
        {
            "tau": "τ_b",
            "auc": "AUC",
            "recall_1": "Recall@1",
            "gap": "Decile gap",
            "score_mean": "Mean score",
            "score_std": "Spread of scores",
            "collapsed": "Seeds collapsed",
        },
    ),
}
"""The tables in the order of the page."""

_EXCESS: Final = re.compile(r"excess_off_(\d+)(_trajectory)?")
"""Metrics of the support preference, one for each number of nearest states asked for."""


def headings(layout: Layout, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Metric → heading of every column that at least one row has a cell for."""
    present = list(dict.fromkeys(m for task in rows.values() for s in task.values() for m in s))
    found = {}
    for metric in present:
        if match := _EXCESS.fullmatch(metric):
            other = " of other trajectories" if match[2] else ""
            found[metric] = f"Excess off support, {match[1]} nearest{other}"
    return found | {m: text for m, text in layout.metrics.items() if m in present}


def show_apart(name: str, stored: Mapping[str, Any]) -> list[Table]:
    """A stored table as a reader wants it: the paper's critics and a user's, then the controls."""
    there = [s for task in stored["rows"].values() for s in task]
    controls = frozenset(s for s in there if is_control(s))
    if not controls or controls.issuperset(there):
        return [show(name, stored)]
    return [
        show(name, _without(stored, controls)),
        show(name, _without(stored, frozenset(there) - controls)),
    ]


def _without(stored: Mapping[str, Any], scorers: frozenset[str]) -> dict[str, Any]:
    """The stored table less some rows."""
    rows = {
        task: {s: cells for s, cells in row.items() if s not in scorers}
        for task, row in stored["rows"].items()
    }
    return {**stored, "rows": {task: row for task, row in rows.items() if row}}


def show(name: str, stored: Mapping[str, Any]) -> Table:
    """One stored table beside the paper's cells.

    A table with one metric has a column per task; one with several has a column per metric and a
    row per task and scorer. A triangle marks a cell that differs from the paper's.
    """
    layout, rows = LAYOUTS[name], stored["rows"]
    pairs = {(c.task, c.critic, c.metric): c for c in comparisons(stored)}
    metrics = headings(layout, rows)

    def cell(task: str, scorer: str, metric: str) -> Cell:
        ours = rows[task].get(scorer, {}).get(metric)
        return beside(ours, pairs.get((task, scorer, metric)), layout.decimals)

    scorers = in_order(s for task in rows.values() for s in task)
    if len(metrics) == 1:
        (metric,) = metrics
        columns = [Column("Critic", "name"), *(Column(task) for task in rows)]
        lines = [
            (_scorer_cell(name, stored, s), *(cell(task, s, metric) for task in rows))
            for s in scorers
        ]
    else:
        columns = [Column("Critic", "name"), *(Column(text) for text in metrics.values())]
        lines = [
            (_scorer_cell(name, stored, s), *(cell(task, s, m) for m in metrics))
            for task in rows
            for s in scorers
            if s in rows[task]
        ]
        if len(rows) > 1:
            columns.insert(0, Column("Task", "name"))
            tasks = [task for task in rows for s in scorers if s in rows[task]]
            lines = [(Cell(task), *line) for task, line in zip(tasks, lines, strict=True)]
    caption = layout.meaning
    if len(rows) == 1 and len(metrics) > 1:
        caption = f"{next(iter(rows))}. {caption}"
    label = stored["label"] or name
    return Table(label, layout.title, caption, tuple(columns), tuple(lines), stacked=True)


def notes(name: str, stored: Mapping[str, Any]) -> list[str]:
    """The stored table's notes, with the columns called as the reader sees them."""
    metrics = {
        "excess_off_N": "Excess off support, N nearest",
        "excess_off_N_trajectory": "… of other trajectories",
        "geodesic": "Against the shortest way",
        **LAYOUTS[name].metrics,
    }
    lines = []
    for note in stored.get("notes", ()):
        head, colon, rest = note.partition(":")
        lines.append(f"{metrics[head]}:{rest}" if colon and head in metrics else note)
    return lines + (_ends(stored) if name == "ogbench-curse" else [])


def _ends(stored: Mapping[str, Any]) -> list[str]:
    """What the best and a random triple have, which is the same for every critic of a task."""
    found = []
    for task, row in stored["rows"].items():
        cells = next((c for c in row.values() if {"oracle", "random"} <= set(c)), None)
        if cells is not None:
            best, random = (number(cells[m]["mean"], 3) for m in ("oracle", "random"))
            found.append(f"{task}: the best of K has a mean γ^d of {best}, a random one {random}.")
    return found


def beside(ours: Mapping[str, Any] | None, pair: Comparison | None, decimals: int) -> Cell:
    """A measured cell; below it, its interval and the paper's number."""
    if ours is None or ours.get("mean") is None:
        return Cell(MISSING_SHORT)
    text = with_spread(ours, decimals)
    lines = [bracket(ours.get("low"), ours.get("high"), decimals)]
    if pair is not None:
        if differs(pair, decimals):
            text = f"{'▲' if pair.difference > 0 else '▼'} {text}"
        lines.append(f"paper {with_spread(pair.paper, decimals)}")
    return Cell(text, "\n".join(line for line in lines if line), key=ours["mean"])


def differs(pair: Comparison, decimals: int = 3) -> bool:
    """Whether two cells are further apart than the larger spread over seeds and the rounding."""
    return abs(pair.difference) > max(pair.spread, 0.5 * 10.0**-decimals)


def with_spread(cell: Mapping[str, Any], decimals: int) -> str:
    """``0.309 ± 0.005``: mean and standard deviation over seeds."""
    mean, std = number(cell["mean"], decimals, MISSING_SHORT), cell.get("std")
    return mean if std is None else f"{mean} ± {number(std, decimals)}"


def _scorer_cell(table: str, stored: Mapping[str, Any], scorer: str) -> Cell:
    if table == "temperature":
        return Cell(setting_name(scorer))
    circular = scorer in stored.get("circular", ())
    return Cell(scorer_name(scorer), "circular" if circular else "")
