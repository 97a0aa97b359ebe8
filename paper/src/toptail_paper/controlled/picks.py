"""The cells and curves of what is picked: regret, off-support rate and norm of the pick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toptail.stats import bootstrap_sums, oracle, percentile_interval
from toptail_paper.controlled.cells import Trained
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.evaluate import Floats, Pools, norm_readout, selection_curves
from toptail_paper.study.tables import StoredCell, cell

PICK_METRICS = ("regret", "off_support", "mean_norm")
"""The columns of the main table, each read at the largest K."""

BESIDE = ("selected_score", "value")
"""Other columns of the pick at the largest K."""

CURVES = ("selected_score", "value", "regret", "off_support", "mean_norm", "phi_norm")
"""Metrics that are stored for every K."""


def bootstrap_means(per_query: Floats, config: StudyConfig) -> Floats:
    """Resampled means [resamples, columns] of [m, columns]; the same resamples on every call."""
    rng = np.random.default_rng([config.pool_seed, 2])
    means: Floats = bootstrap_sums(per_query, rng, config.resamples) / per_query.shape[0]
    return means


def pick_cells(
    units: Sequence[Trained], readout: str, config: StudyConfig, pools: Pools
) -> dict[str, StoredCell]:
    """All metrics of one critic at the largest K, with intervals over queries for the paper's."""
    cells = plain_cells(units, readout)
    top = (config.pool,)
    per_query = np.zeros((config.queries, len(PICK_METRICS)))
    for unit in units:
        scores = unit.scores()
        length = scores[norm_readout(unit.cell.critic)]
        curves = selection_curves(scores[readout], length, pools, top)
        per_query += np.stack([curves[m][:, 0] for m in PICK_METRICS], axis=1) / len(units)
    low, high = percentile_interval(bootstrap_means(per_query, config))
    for i, metric in enumerate(PICK_METRICS):
        cells[metric] |= {"low": float(low[i]), "high": float(high[i])}
    best = float(oracle(pools.value, top).mean())
    cells["oracle"] = cell({unit.seed: best for unit in units})
    cells["random_value"] = cell({unit.seed: float(pools.value.mean()) for unit in units})
    return cells


def plain_cells(units: Sequence[Trained], readout: str) -> dict[str, StoredCell]:
    """The metrics that stand in the units themselves: the pick's, retrieval, training loss."""
    info = {unit.seed: unit.unit.info() for unit in units}
    curves = {seed: content["curves"][readout] for seed, content in info.items()}
    cells = {
        metric: cell({seed: c[metric][-1] for seed, c in curves.items()})
        for metric in (*PICK_METRICS, *BESIDE)
    }
    cells["retrieval_auc"] = cell({s: x["retrieval_auc"][readout] for s, x in info.items()})
    cells["loss"] = cell({s: x["training"]["loss"] for s, x in info.items()})
    return cells


def curve_entry(units: Sequence[Trained], readout: str) -> dict[str, Any]:
    """Every metric over K: mean, standard deviation over seeds, and each seed."""
    entry = {}
    by_seed = {unit.seed: unit.unit.info()["curves"][readout] for unit in units}
    for metric in CURVES:
        stack = np.array([curves[metric] for curves in by_seed.values()])
        entry[metric] = {
            "mean": stack.mean(axis=0).tolist(),
            "std": stack.std(axis=0, ddof=1).tolist() if len(stack) > 1 else None,
            "seeds": {str(seed): curves[metric] for seed, curves in by_seed.items()},
        }
    return entry


def in_support_norm(units: Sequence[Trained], pools: Pools) -> dict[str, float]:
    """Mean and 99th percentile of ||phi|| over the pools' in-support candidates, all seeds."""
    name = norm_readout(units[0].cell.critic)
    lengths = np.stack([unit.scores()[name][pools.support] for unit in units])
    return {
        "mean": float(lengths.mean(dtype=np.float64)),
        "p99": float(np.quantile(lengths, 0.99, axis=1).mean()),
    }
