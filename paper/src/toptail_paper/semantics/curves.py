"""``curves.json``: what the figures of the semantics study are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toptail.audit.record import jsonable
from toptail.audit.triples.bootstrap import LEVEL, seed_mean
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.jobs import Estimates
from toptail_paper.semantics.measure import MeasuredTask, distance_edges

N_NEAR = 200
"""Neighbourhood size of the support figure, the paper's middle one, where it was measured."""


def all_curves(measured: Sequence[MeasuredTask], config: SemanticsConfig) -> dict[str, Any]:
    """Every curve of every scorer of every navigation task; what was not measured is left out."""
    n_near = N_NEAR if N_NEAR in config.n_near else sorted(config.n_near)[len(config.n_near) // 2]
    tasks = {
        task.task.key: {
            scorer: _scorer_curves(task, scorer, n_near) | {"profile_edges": distance_edges(config)}
            for scorer in task.task.triples.scorers
        }
        for task in measured
        if task.task.navigation
    }
    content: dict[str, Any] = jsonable(
        {
            "label": ["fig:calibration", "fig:good-rankers", "fig:ogbench-curse"],
            "k": list(config.k),
            "n_near": n_near,
            "tasks": tasks,
        }
    )
    return content


def curve(by_seed: Estimates) -> dict[str, Any]:
    """Mean, spread (ddof 1), every seed, and the interval of the mean over seeds, each a list."""
    points = np.array([estimate.point for estimate in by_seed.values()])
    low, high = seed_mean(list(by_seed.values())).interval(LEVEL)
    return {
        "mean": points.mean(axis=0),
        "std": points.std(axis=0, ddof=1) if len(points) > 1 else None,
        "seeds": {seed: estimate.point for seed, estimate in by_seed.items()},
        "low": low,
        "high": high,
    }


def _scorer_curves(task: MeasuredTask, scorer: str, n_near: int) -> dict[str, Any]:
    names = {
        "deciles": "deciles",
        "profile": "profile",
        "value": "value",
        "excess_off_support": f"excess_off/{n_near}/row",
    }
    found = {name: task.seeds(scorer, source) for name, source in names.items()}
    entry: dict[str, Any] = {name: curve(seeds) for name, seeds in found.items() if seeds}
    # Every scorer searches the same pools, so that any of its seeds knows oracle and random.
    for name in ("oracle", "random"):
        entry[name] = next(iter(task.seeds(scorer, name).values())).point
    entry["random"] = entry["random"][0]
    return entry
