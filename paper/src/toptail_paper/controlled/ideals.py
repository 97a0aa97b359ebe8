"""The ideal critics on the study's pools, and where the critics' regret comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.audit.triples.bootstrap import TrajectoryBootstrap, seed_mean
from toptail.audit.triples.search import pooled_search_error
from toptail.lab.critics.registry import MAIN, ideal_of
from toptail.lab.judges.ideals_controlled import log_likelihood
from toptail.lab.tasks.controlled import ControlledWorld, exact_value
from toptail.stats import (
    SearchError,
    best_of_k,
    oracle,
    paired_win_rate,
    percentile_interval,
    search_error,
)
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.evaluate import NEGATIVES, Floats, Pools
from toptail_paper.controlled.picks import PICK_METRICS, bootstrap_means
from toptail_paper.controlled.plan import Plan
from toptail_paper.study.search_error import POOLED, POOLED_CANDIDATES, POOLED_RESAMPLES
from toptail_paper.study.tables import StoredCell, cell

IDEAL: Final[Mapping[str, str | None]] = {
    **{name: ideal_of(name) for name in MAIN},
    "f_cos": "log_ratio",
    "q_td": "q_star",
}
"""Row of a table -> its ideal; q_td + alpha f_cos is fitted to nothing, and has none."""

UNTRAINED: Final = 0
"""The seed under which a critic stands that nobody trained."""


def ideal_rows(plan: Plan, world: ControlledWorld) -> dict[str, dict[str, StoredCell]]:
    """The rows of the ideal critics in a table of picks."""
    pools = plan.pools(world)
    return {
        name: _pick_cells(scores, pools, plan.config) | _retrieval(name, world, pools)
        for name, scores in plan.ideals(world).items()
    }


def _pick_cells(scores: Floats, pools: Pools, config: StudyConfig) -> dict[str, StoredCell]:
    """What is picked at the largest K, with intervals over queries."""
    top = (config.pool,)
    length = np.linalg.norm(pools.actions, axis=-1)
    columns = np.stack([pools.value, ~pools.support, length]).astype(np.float64)
    value, off, norm = best_of_k(scores, columns, top)[..., 0]
    best = oracle(pools.value, top)[:, 0]
    per_query = np.stack([best - value, off, norm], axis=1)
    low, high = percentile_interval(bootstrap_means(per_query, config))
    cells = {
        metric: cell({UNTRAINED: float(per_query[:, i].mean())}, (float(low[i]), float(high[i])))
        for i, metric in enumerate(PICK_METRICS)
    }
    others = {"value": value.mean(), "oracle": best.mean(), "random_value": pools.value.mean()}
    return cells | {name: cell({UNTRAINED: float(x)}) for name, x in others.items()}


def _retrieval(name: str, world: ControlledWorld, pools: Pools) -> dict[str, StoredCell]:
    """How often a held-out pair's own goal scores above a random one."""
    states, actions, goals = (x[:, None] for x in pools.heldout[:3])
    shifted = [np.roll(goals, shift, axis=0) for shift in range(NEGATIVES + 1)]
    # Of one pair, log-ratios differ as likelihoods do, which are known on the rim, too.
    score = log_likelihood if name == "log_ratio" else exact_value
    scores = score(world, states, actions, np.concatenate(shifted, axis=1))
    wins = paired_win_rate(scores[:, :1], scores[:, 1:]).mean()
    return {"retrieval_auc": cell({UNTRAINED: float(wins)})}


def search_error_rows(plan: Plan) -> dict[str, dict[str, StoredCell]]:
    """The terms of the regret of every scalar that has an ideal, and of the ideals themselves."""
    world = plan.config.world
    ideals = plan.ideals(world)
    rows = {
        name: _terms({u.seed: u.scores()[readout] for u in units}, ideals[ideal], plan)
        for name, units, readout in plan.deployments()
        if (ideal := IDEAL.get(name)) in ideals
    }
    return rows | {name: _terms({UNTRAINED: own}, own, plan) for name, own in ideals.items()}


def _terms(by_seed: Mapping[int, NDArray[Any]], ideal: Floats, plan: Plan) -> dict[str, StoredCell]:
    """The cells of one row: the terms at fixed queries, and pooled."""
    pools, config = plan.pools(), plan.config
    fixed = {
        seed: np.stack(search_error(x, ideal, pools.value, pools.support, (config.pool,)), 1)[
            ..., 0
        ]
        for seed, x in by_seed.items()
    }
    draws = bootstrap_means(np.mean(list(fixed.values()), axis=0), config)
    cells = _cells("", {seed: x.mean(axis=0) for seed, x in fixed.items()}, draws)
    bootstrap = _pooled_bootstrap(config)
    own, value, support = (_first(x) for x in (ideal, pools.value, pools.support))
    pooled = {
        seed: pooled_search_error(_first(x), own, value, support, config.pool, bootstrap)[0]
        for seed, x in by_seed.items()
    }
    points = {seed: estimate.point for seed, estimate in pooled.items()}
    return cells | _cells(POOLED, points, seed_mean(list(pooled.values())).draws)


def _cells(start: str, by_seed: Mapping[int, Floats], draws: Floats) -> dict[str, StoredCell]:
    low, high = percentile_interval(draws)
    return {
        f"{start}{term}": cell(
            {seed: float(x[i]) for seed, x in by_seed.items()}, (float(low[i]), float(high[i]))
        )
        for i, term in enumerate(SearchError._fields)
    }


def _first(column: NDArray[Any]) -> NDArray[Any]:
    return column[:, :POOLED_CANDIDATES].reshape(-1)


def _pooled_bootstrap(config: StudyConfig) -> TrajectoryBootstrap:
    """Resamples of queries with their pooled candidates; the same ones on every call."""
    rng = np.random.default_rng([config.pool_seed, 3])
    kept = min(POOLED_CANDIDATES, config.pool)
    count = min(config.resamples, POOLED_RESAMPLES)
    return TrajectoryBootstrap(np.repeat(np.arange(config.queries), kept), rng, count)
