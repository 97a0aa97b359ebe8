r"""The reference ensemble: independently seeded value functions that judge by their mean.

It is admitted as a judge only if it can tell candidates apart and its members agree. Both are
measured on the pools before any audited critic is scored:

resolvability
    With the member's value v_mi of candidate i and c_mi = v_mi - mean_i v_mi, a pool is resolved
    if std_i(mean_m c_mi) > sqrt(mean_i var_m c_mi): the spread that the members share exceeds the
    spread between them. The variance over members is the unbiased one (ddof 1), the standard
    deviation over candidates that of the pool itself (ddof 0). Members that are pure noise of
    variance s^2 have a shared spread of only s / sqrt(members) against s, so that almost none of
    their pools is resolved.
agreement
    Spearman's correlation of two members within a pool, averaged over all pairs of members.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.stats import bootstrap_sums, cluster_sums, percentile_interval, spearman
from toptail.stats.best_of_k import Floats

REFERENCE_CRITIC = "tdq"
"""The critic whose independently seeded runs judge others."""

RESAMPLES = 1_000
LEVEL = 0.95


def ensemble_value(members: NDArray[np.floating[Any]]) -> Floats:
    """The judge's value: the mean over members ``[members, ...]``, in float64."""
    return np.asarray(members.mean(axis=0, dtype=np.float64))


def resolved(members: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Whether each pool is resolved: ``[members, ..., candidates]`` in, ``[...]`` out."""
    if len(members) < 2:
        raise InputError("An ensemble that judges needs at least two members, and this has one.")
    values = members.astype(np.float64)
    centered = values - values.mean(axis=-1, keepdims=True)
    shared = centered.mean(axis=0).std(axis=-1)
    between = np.sqrt(centered.var(axis=0, ddof=1).mean(axis=-1))
    return np.asarray(shared > between)


def agreement(members: NDArray[np.floating[Any]]) -> Floats:
    """Mean pairwise Spearman of each pool: ``[members, ..., candidates]`` in, ``[...]`` out.

    NaN where a member gives all candidates of a pool the same value.
    """
    flat = members.reshape(len(members), -1, members.shape[-1])
    pairs = [spearman(flat[a], flat[b]) for a, b in combinations(range(len(flat)), 2)]
    return np.asarray(np.mean(pairs, axis=0)).reshape(members.shape[1:-1])


def admission(
    members: NDArray[np.floating[Any]],
    group: NDArray[np.str_],
    trajectory: NDArray[np.int64],
    *,
    prespecified_group: str,
    resolvability: float,
    spearman: float,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Decide whether the ensemble may judge.

    Parameters
    ----------
    members
        ``[members, queries, pools, candidates]``: without the logged action.
    group, trajectory
        ``[queries]``: distance group, and the trajectory that intervals cluster by.
    prespecified_group
        The group whose resolvability decides.
    resolvability, spearman
        The declared thresholds; the point estimates must reach them.
    rng
        For the resamples of whole trajectories.

    Returns
    -------
    ``admitted``; ``resolvability`` (the check), ``agreement`` (the check), and ``by_group``:
    group to its ``resolvability`` and ``agreement``. A check has ``value``, ``low``, ``high``
    (95 %), ``threshold``, ``status`` (pass, fail or inconclusive) and ``advice``.
    """
    if prespecified_group not in group:
        raise InputError(
            f"No query is in the prespecified group '{prespecified_group}'; the groups are "
            f"{', '.join(sorted(set(group.tolist())))}."
        )
    per_query = np.stack([_over_pools(resolved(members)), _over_pools(agreement(members))])
    clusters = np.unique(trajectory, return_inverse=True)[1].astype(np.int64)
    groups = {str(name): group == name for name in dict.fromkeys(group.tolist())}
    masks = [*groups.values(), np.ones(len(group), dtype=bool)]
    numbers = _means(per_query, masks, clusters, rng, resamples)
    by_group = {
        name: {"resolvability": numbers[0][i], "agreement": numbers[1][i]}
        for i, name in enumerate(groups)
    }
    resolves = _check(
        by_group[prespecified_group]["resolvability"],
        resolvability,
        f"the members differ too much to tell candidates of the {prespecified_group} group "
        "apart: train them longer, or rely on another judge",
    )
    agrees = _check(
        numbers[1][-1],
        spearman,
        "the members rank candidates differently: train them longer, or rely on another judge",
    )
    return {
        "admitted": resolves["status"] == agrees["status"] == "pass",
        "members": len(members),
        "prespecified_group": prespecified_group,
        "resolvability": resolves,
        "agreement": agrees,
        "by_group": by_group,
        "overall_resolvability": numbers[0][-1],
    }


def _over_pools(per_pool: NDArray[Any]) -> Floats:
    """Mean over each query's pools, without NaN, ``[queries]``; NaN if all are."""
    values = per_pool.astype(np.float64)
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)


def _means(
    columns: Floats,
    masks: list[NDArray[np.bool_]],
    clusters: NDArray[np.int64],
    rng: np.random.Generator,
    resamples: int,
) -> list[list[dict[str, float | None]]]:
    """Mean and interval of each column ``[c, queries]`` on each mask ``[queries]``: [c][mask].

    One set of resampled trajectories serves all of them.
    """
    keep = np.array([[mask & ~np.isnan(column) for mask in masks] for column in columns])
    sums = np.where(keep, np.nan_to_num(columns)[:, None], 0.0)
    table = np.concatenate([sums, keep.astype(np.float64)]).reshape(-1, columns.shape[1]).T
    by_cluster = cluster_sums(table, clusters)
    draws = bootstrap_sums(by_cluster, rng, resamples)
    shape = (2, *keep.shape[:2])
    point, drawn = by_cluster.sum(axis=0).reshape(shape), draws.reshape(-1, *shape)
    mean = _ratio(point[0], point[1])
    enough = len(by_cluster) > 1
    low, high = percentile_interval(_ratio(drawn[:, 0], drawn[:, 1]), LEVEL)
    return [
        [
            {
                "value": _number(mean[c, m]),
                "low": _number(low[c, m]) if enough else None,
                "high": _number(high[c, m]) if enough else None,
            }
            for m in range(len(masks))
        ]
        for c in range(len(columns))
    ]


def _ratio(total: Floats, count: Floats) -> Floats:
    return np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan)


def _number(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def _check(estimate: dict[str, float | None], threshold: float, otherwise: str) -> dict[str, Any]:
    value = estimate["value"]
    if value is None:
        status, advice = "inconclusive", "no pool has a number: " + otherwise
    elif value >= threshold:
        status, advice = "pass", "this condition for judging is met"
    else:
        status, advice = "fail", otherwise
    return {**estimate, "threshold": threshold, "status": status, "advice": advice}
