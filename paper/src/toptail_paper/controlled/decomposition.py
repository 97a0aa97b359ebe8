"""The support decomposition: how much regret goes away when one channel is closed.

Each counterfactual selects from the same pools with a changed score (or from a part of the
pool). Its regret is measured against the same oracle of the whole pool, and its share is

    share = 1 - regret under the counterfactual / regret of the deployed scalar:

1 if closing the channel removes all regret, 0 if it changes nothing, negative if it hurts. For
``norm_only``, which keeps the norm and drops everything else, a share near 0 says that the norm
alone selects as badly as the deployed scalar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toptail.stats import best_of_k, percentile_interval
from toptail_paper.controlled.cells import Trained
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.evaluate import Floats, Pools, Scores
from toptail_paper.controlled.picks import bootstrap_means
from toptail_paper.study.tables import StoredCell, cell

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
    """All cells of one critic's row."""
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
