"""The temperature study's table: what the cosine critic's temperature decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toptail.stats.resample import Estimate
from toptail_paper.semantics.config import SWEEP, SemanticsConfig
from toptail_paper.semantics.load import TaskScores
from toptail_paper.semantics.measure import (
    ColumnJob,
    Estimates,
    MeasureEach,
    by_seed,
    measure_each,
    resampling,
)
from toptail_paper.semantics.specs import TABLES, TemperatureSetting
from toptail_paper.study.tables import Rows, StoredCell, estimate_cell
from toptail_paper.triples.bootstrap import LEVEL
from toptail_paper.triples.retrieval import recall, retrieval_auc
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.value_order import calibration, calibration_gap, ordering

COLLAPSED = 1e-3
"""A critic whose scores have a smaller standard deviation than this tells nothing apart."""

CHOSEN_LOSS = "binary_nce"
"""The loss whose temperature is chosen: the one the reported critics are trained with."""

AS_GOOD = 0.005
"""Retrieval AUC within this of the best does not decide between temperatures."""


def temperature_table(
    sweeps: Sequence[TaskScores], config: SemanticsConfig, each: MeasureEach = measure_each
) -> dict[str, Any] | None:
    """``tables/temperature.json``; None without a sweep."""
    if not sweeps:
        return None
    pairs = [(sweep, column) for sweep in sweeps for column in sweep.made_from]
    jobs = [ColumnJob(sweep, column, config, _measure, SWEEP) for sweep, column in pairs]
    results = iter(each(jobs, "temperature study"))
    rows: Rows = {
        sweep.key: _rows(sweep.triples, {column: next(results) for column in sweep.made_from})
        for sweep in sweeps
    }
    notes = [
        "score_mean and score_std: over all goals that were scored, true ones and others.",
        f"collapsed: share of seeds whose score_std is below {COLLAPSED:g} or whose 95 % interval "
        "of AUC holds 0.5.",
        f"chosen: the fixed temperature with the highest AUC under {CHOSEN_LOSS}, mean over seeds "
        "and tasks. These seeds and triples are not the reported ones, and tau had no say.",
        "tau_ranges: how far tau moves over the sweep, over the settings in which no seed "
        f"collapsed, and over those whose AUC is within {AS_GOOD:g} of the best one's.",
    ]
    return TABLES["temperature"].table(
        "Cosine critic over temperature and contrastive loss",
        rows,
        notes,
        chosen=_chosen(rows),
        as_good_within=AS_GOOD,
        tau_ranges={task: _ranges(row) for task, row in rows.items()},
    )


def _rows(
    triples: ScoredTriples, measured: Mapping[str, Estimates]
) -> dict[str, dict[str, StoredCell]]:
    """``binary_nce@0.05`` -> metric -> cell, losses and temperatures in order."""
    scorers = triples.scorers
    metrics = ("tau", "auc", "recall_1", "gap", "score_mean", "score_std")
    rows = {}
    for setting in sorted(scorers, key=_place):
        found = {metric: by_seed(scorers[setting], measured, metric) for metric in metrics}
        cells = {metric: estimate_cell(seeds) for metric, seeds in found.items()}
        cells["collapsed"] = estimate_cell(_collapsed(found["score_std"], found["auc"]))
        rows["@".join(setting.rsplit("-", 1))] = cells
    return rows


def _place(setting: str) -> tuple[str, float]:
    """By loss, fixed temperatures in order, the learned one last."""
    loss, temperature = TemperatureSetting.of(setting)
    return loss, np.inf if temperature is None else temperature


def _measure(task: TaskScores, column: str, config: SemanticsConfig) -> Estimates:
    t = task.triples
    bootstrap = resampling(t, config)
    scored = np.column_stack([t.column("scores", column), t.column("negatives", column)])
    # Around the mean, so that the square of a large mean does not drown a small spread.
    middle = scored.mean()
    mean = bootstrap.mean((scored - middle).mean(axis=1))
    square = bootstrap.mean(((scored - middle) ** 2).mean(axis=1))
    return {
        "tau": ordering(t, column, bootstrap),
        "auc": retrieval_auc(t, column, bootstrap),
        "recall_1": recall(t, column, 1, bootstrap),
        "gap": calibration_gap(calibration(t, column, bootstrap)),
        "score_mean": Estimate(mean.point + middle, mean.draws + middle),
        "score_std": Estimate(_root(square.point, mean.point), _root(square.draws, mean.draws)),
    }


def _root(square: Any, mean: Any) -> Any:
    return np.sqrt(np.maximum(square - mean**2, 0.0))


def _collapsed(spread: Estimates, auc: Estimates) -> Estimates:
    """1 for each seed that collapsed, else 0; a rule about a critic, so without resamples."""
    found = {}
    for seed, estimate in spread.items():
        low, high = auc[seed].interval(LEVEL)
        flat = estimate.point < COLLAPSED or low <= 0.5 <= high
        found[seed] = Estimate(np.asarray(float(flat)), np.full(1, float(flat)))
    return found


def _chosen(rows: Rows) -> float | None:
    """The fixed temperature that retrieves best under `CHOSEN_LOSS`, over all tasks."""
    auc: dict[float, list[float]] = {}
    for row in rows.values():
        for setting, cells in row.items():
            loss, temperature = TemperatureSetting.of(setting)
            if loss == CHOSEN_LOSS and temperature is not None:
                mean = cells["auc"]["mean"]
                auc.setdefault(temperature, []).append(np.nan if mean is None else mean)
    means = {t: float(np.mean(found)) for t, found in auc.items() if len(found) == len(rows)}
    known = {t: mean for t, mean in means.items() if np.isfinite(mean)}
    return max(known, key=lambda t: known[t]) if known else None


def _ranges(row: Mapping[str, Mapping[str, StoredCell]]) -> dict[str, Any]:
    """The range of tau: over all settings, those without collapse, those that retrieve best."""
    tau, auc = _means(row, "tau"), _means(row, "auc")
    known = {setting: mean for setting, mean in tau.items() if setting in auc}
    if not known:
        return {"all": None, "sound": None, "as_good": None}
    best = max(auc[setting] for setting in known)
    good = {setting: mean for setting, mean in known.items() if auc[setting] >= best - AS_GOOD}
    sound = {s: mean for s, mean in known.items() if not row[s]["collapsed"]["mean"]}
    return {"all": _range(known), "sound": _range(sound), "as_good": _range(good)}


def _means(row: Mapping[str, Mapping[str, StoredCell]], metric: str) -> dict[str, float]:
    found = {setting: cells[metric]["mean"] for setting, cells in row.items()}
    return {setting: mean for setting, mean in found.items() if mean is not None}


def _range(tau: Mapping[str, float]) -> dict[str, Any] | None:
    if not tau:
        return None
    low, high = min(tau, key=lambda s: tau[s]), max(tau, key=lambda s: tau[s])
    return {
        "lowest": tau[low],
        "lowest_at": low,
        "highest": tau[high],
        "highest_at": high,
        "range": tau[high] - tau[low],
        "settings": len(tau),
    }
