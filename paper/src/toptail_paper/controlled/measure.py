"""The cells and curves of what is picked: regret, off-support rate and norm of the pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.registry import MAIN
from toptail.stats import best_of_k, bootstrap_sums, oracle, paired_win_rate, percentile_interval
from toptail_paper.controlled.cells import Trained
from toptail_paper.controlled.config import CONTROL, StudyConfig
from toptail_paper.controlled.evaluate import (
    NEGATIVES,
    Floats,
    Pools,
    Scores,
    norm_readout,
    selection_curves,
)
from toptail_paper.controlled.ideals import log_likelihood
from toptail_paper.controlled.trainings import Trainings
from toptail_paper.controlled.world import ControlledWorld, exact_value
from toptail_paper.study.naming import ideal_of
from toptail_paper.study.search_error import POOLED, POOLED_CANDIDATES, POOLED_RESAMPLES
from toptail_paper.study.tables import StoredCell, cell
from toptail_paper.triples.bootstrap import TrajectoryBootstrap, seed_mean
from toptail_paper.triples.search import pooled_search_error
from toptail_paper.triples.search_error import SearchError, search_error

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
    info = {unit.seed: unit.result.info() for unit in units}
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
    by_seed = {unit.seed: unit.result.info()["curves"][readout] for unit in units}
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


Picks = NDArray[np.int64]
"""[m] index of the candidate that was picked from each pool."""


def _regret(value: Floats, pick: Picks) -> Floats:
    regret: Floats = value.max(axis=1) - value[np.arange(len(pick)), pick]
    return regret


def noise_cells(
    picks: Mapping[int, Picks], before: Mapping[int, Picks], pools: Pools
) -> dict[str, StoredCell]:
    """Compare picks [m] by seed with what was picked without noise.

    ``largest_shift`` is the largest change, over queries, that the Rice mean makes to the regret
    of the same pick.
    """
    exact = {seed: _regret(pools.value, pick) for seed, pick in picks.items()}
    noisy = {seed: _regret(pools.value_noisy, pick) for seed, pick in picks.items()}
    return {
        "regret": cell({s: float(x.mean()) for s, x in exact.items()}),
        "regret_noisy": cell({s: float(x.mean()) for s, x in noisy.items()}),
        "largest_shift": cell({s: float(np.abs(noisy[s] - exact[s]).max()) for s in picks}),
        "picks_changed": cell({s: float((picks[s] != before[s]).mean()) for s in picks}),
    }


def critic_picks(units: Sequence[Trained]) -> dict[int, Picks]:
    """Index of the deployed scalar's pick from each pool, by seed."""
    return {u.seed: u.scores()[u.cell.critic.deployed].argmax(axis=1) for u in units}


def noise_rows(
    critics: Mapping[str, Sequence[Trained]], noisy_tdq: Sequence[Trained], pools: Pools
) -> dict[str, dict[str, StoredCell]]:
    """The oracle, each critic of the noise-free world, and TD-Q trained on noisy rewards.

    The contrastive critics never see the reached state: with noise their data, and so their
    parameters and picks, are the same.
    """
    seeds = [unit.seed for unit in noisy_tdq]
    best, best_noisy = (v.argmax(axis=1) for v in (pools.value, pools.value_noisy))
    oracle = (dict.fromkeys(seeds, best_noisy), dict.fromkeys(seeds, best))
    rows = {"oracle": noise_cells(*oracle, pools)}
    for name, units in critics.items():
        picks = critic_picks(units)
        rows[name] = noise_cells(picks, picks, pools)
    rows["tdq_noisy_reward"] = noise_cells(
        critic_picks(noisy_tdq), critic_picks(critics[CONTROL]), pools
    )
    return rows


COUNTERFACTUALS: Mapping[str, str] = {
    "support_only": "the pool is restricted to the support",
    "cosine_readout": "the cosine of the same embeddings is maximized",
    "norm_cap": "||phi|| is capped at its 99th percentile over in-support candidates",
    "norm_cap_data": "||phi|| is capped at its 99th percentile over held-out data",
    "norm_only": "||phi|| alone is maximized",
}
"""What each counterfactual changes."""


def counterfactual_scores(
    scores: Mapping[str, Scores], deployed: str, support: NDArray[np.bool_]
) -> dict[str, Scores]:
    """The deployed score and its counterfactuals, each [m, n].

    A cap on ||phi|| does not change a cosine, so for a critic that deploys f_cos both caps leave
    the score as it is.
    """
    score = scores[deployed]
    capped = deployed == "f_raw"
    return {
        "deployed": score,
        "support_only": np.where(support, score, np.float32(-np.inf)),
        "cosine_readout": scores["f_cos"],
        "norm_cap": scores["capped"] if capped else score,
        "norm_cap_data": scores["capped_data"] if capped else score,
        "norm_only": scores["phi_norm"],
    }


def picks_of(score: Scores, pools: Pools) -> tuple[Floats, Floats]:
    """Regret and off-support indicator of the pick from whole pools: [m] each, ties averaged."""
    columns = np.stack([pools.value, ~pools.support]).astype(np.float64)
    value, off = best_of_k(score, columns, [score.shape[1]])[..., 0]
    return pools.value.max(axis=1) - value, off


def decompose(units: Sequence[Trained], config: StudyConfig, pools: Pools) -> dict[str, StoredCell]:
    regret: dict[str, dict[int, Floats]] = {}
    off: dict[str, dict[int, Floats]] = {}
    same: dict[str, dict[int, float]] = {}
    for unit in units:
        scores = unit.scores()
        changed = counterfactual_scores(scores, unit.cell.critic.deployed, pools.support)
        top = changed["deployed"].argmax(axis=1)
        for name, score in changed.items():
            r, o = picks_of(score, pools)
            regret.setdefault(name, {})[unit.seed] = r
            off.setdefault(name, {})[unit.seed] = o
            same.setdefault(name, {})[unit.seed] = float((score.argmax(axis=1) == top).mean())
    cells = _split(regret["deployed"], off["deployed"])
    shares = _shares(regret, config)
    for name in COUNTERFACTUALS:
        cells[f"regret/{name}"] = cell(_means(regret[name]))
        cells[f"off_support/{name}"] = cell(_means(off[name]))
        cells[f"same_pick/{name}"] = cell(same[name])
        cells[f"share/{name}"] = shares[name]
    return cells


def _means(by_seed: Mapping[int, Floats]) -> dict[int, float]:
    return {seed: float(x.mean()) for seed, x in by_seed.items()}


def _split(regret: Mapping[int, Floats], off: Mapping[int, Floats]) -> dict[str, StoredCell]:
    """Regret split into picks off and on support: contributions, and means of either kind."""
    outside = {seed: regret[seed] * off[seed] for seed in regret}
    inside = {seed: regret[seed] * (1.0 - off[seed]) for seed in regret}

    def per_pick(part: Floats, count: float) -> float:
        return float(part.sum() / count) if count > 0 else float("nan")

    return {
        "regret": cell(_means(regret)),
        "off_support": cell(_means(off)),
        "regret_off": cell(_means(outside)),
        "regret_on": cell(_means(inside)),
        "mean_regret_off": cell({s: per_pick(outside[s], off[s].sum()) for s in regret}),
        "mean_regret_on": cell({s: per_pick(inside[s], (1 - off[s]).sum()) for s in regret}),
    }


def _shares(
    regret: Mapping[str, Mapping[int, Floats]], config: StudyConfig
) -> dict[str, StoredCell]:
    """Share per seed, and the share of the seed-mean regrets with its paired interval."""

    def share(after: Floats, before: Floats) -> Floats:
        return 1.0 - after / np.where(before > 0.0, before, np.nan)

    names = ["deployed", *COUNTERFACTUALS]
    per_query = np.stack([np.mean(list(regret[n].values()), axis=0) for n in names], axis=1)
    means, draws = per_query.mean(axis=0), bootstrap_means(per_query, config)
    pooled = share(means, means[:1])
    low, high = percentile_interval(share(draws, draws[:, :1]))
    by_seed = {
        seed: share(of_seed := np.array([regret[n][seed].mean() for n in names]), of_seed[:1])
        for seed in regret["deployed"]
    }
    result = {}
    for i, name in enumerate(names):
        entry = cell({s: float(x[i]) for s, x in by_seed.items()}, (float(low[i]), float(high[i])))
        result[name] = entry | {"pooled": float(pooled[i])}
    return result


IDEAL: Final[Mapping[str, str | None]] = {
    **{name: ideal_of(name) for name in MAIN},
    "f_cos": "log_ratio",
    "q_td": "q_star",
}
"""Row of a table -> its ideal; q_td + alpha f_cos is fitted to nothing, and has none."""

UNTRAINED: Final = 0
"""The seed under which an ideal critic, which is not trained, stands in tables."""


def ideal_rows(runs: Trainings, world: ControlledWorld) -> dict[str, dict[str, StoredCell]]:
    pools = runs.pools(world)
    return {
        name: _pick_cells(scores, pools, runs.config) | _retrieval(name, world, pools)
        for name, scores in runs.ideals(world).items()
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


def search_error_rows(runs: Trainings) -> dict[str, dict[str, StoredCell]]:
    """The terms of the regret of every scalar that has an ideal, and of the ideals themselves."""
    world = runs.config.world
    ideals = runs.ideals(world)
    rows = {
        name: _terms({u.seed: u.scores()[readout] for u in units}, ideals[ideal], runs)
        for name, units, readout in runs.deployments()
        if (ideal := IDEAL.get(name)) in ideals
    }
    return rows | {name: _terms({UNTRAINED: own}, own, runs) for name, own in ideals.items()}


def _terms(
    by_seed: Mapping[int, NDArray[Any]], ideal: Floats, runs: Trainings
) -> dict[str, StoredCell]:
    """The cells of one row: the terms at fixed queries, and pooled."""
    pools, config = runs.pools(), runs.config
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
