"""The audit of each group of queries, and tests of differences between groups."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import fdtrc

from toptail.audit.measure import Measured, measure
from toptail.audit.sample import Estimate
from toptail.audit.settings import Settings
from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.pools.columns import codes
from toptail.stats import bootstrap_p, holm
from toptail.stats.k_grid import KGrid

_MOST_GROUPS = 50
_MOST_TESTED = 12
"""With more groups, pairs of groups are not tested."""


def groups(
    pools: ScoredPools,
    judged: Judgement,
    grid: KGrid,
    settings: Settings,
    warnings: list[str],
) -> dict[str, Any]:
    """The groups' parts of ``audit.json``; empty without groups.

    Every group is resampled on its own, so that the draws of two groups are independent.
    """
    if pools.group is None:
        return {}
    code, labels = codes(pools.source, "group", pools.group)
    if len(labels) > _MOST_GROUPS:
        warnings.append(
            f"The group column has {len(labels)} different labels; groups are reported for at most "
            f"{_MOST_GROUPS}."
        )
        return {}
    parts: dict[str, Measured] = {}
    for at, label in enumerate(labels.to_pylist()):
        member = code == at
        values = judged.of_queries(member, pools.sizes)
        rng = np.random.default_rng([settings.seed, at])
        ks = grid.doublings() if values.bounded else grid
        parts[str(label)] = measure(pools.select(member), values, ks, settings, rng)
        parts[str(label)].content.pop("comparisons")
    if len(parts) > _MOST_TESTED:
        warnings.append(
            f"The {len(parts)} groups are tested together, not in pairs: pairs are compared for at "
            f"most {_MOST_TESTED} groups."
        )
    return {
        "groups": {label: part.content for label, part in parts.items()},
        "group_column": pools.called.get("group", "group"),
        "group_tests": _pairs(parts, settings) if len(parts) <= _MOST_TESTED else [],
        "group_heterogeneity": {
            name: _heterogeneity(
                [(part.gains[name], part.content["clusters"]) for part in parts.values()]
            )
            for name in pools.scorers
        },
    }


def _pairs(parts: dict[str, Measured], settings: Settings) -> list[dict[str, Any]]:
    """Differences of the gain at k_max between every two groups, with Holm's correction."""
    rows: list[dict[str, Any]] = []
    for name in next(iter(parts.values())).gains:
        found: list[dict[str, Any]] = []
        for a, b in combinations(parts, 2):
            difference = parts[a].gains[name] - parts[b].gains[name]
            low, high = difference.interval(settings.rule.level)
            found.append(
                {"scorer": name, "groups": [a, b], "difference": difference.point}
                | {"low": low, "high": high, "p": float(bootstrap_p(difference.draws))}
            )
        for row, adjusted in zip(found, holm([row["p"] for row in found]), strict=True):
            row["p_holm"] = adjusted
        rows += found
    return rows


def _heterogeneity(gains: list[tuple[Estimate, int]]) -> float | None:
    """P-value of Welch's test that all groups have the same gain; None where no group varies."""
    usable = [(gain, n) for gain, n in gains if n > 1 and np.isfinite(gain.draws).all()]
    if len(usable) < 2:
        return None
    mean = np.array([float(gain.point) for gain, _ in usable])
    n = np.array([clusters for _, clusters in usable], dtype=np.float64)
    # Weighted sums vary by 1/(n + 1) of the spread, an unbiased variance by 1/(n - 1).
    variance = np.array([gain.draws.var() for gain, _ in usable]) * (n + 1) / (n - 1)
    if not (variance > 0).any():
        return None
    weight = 1.0 / np.maximum(variance, 1e-9 * variance.max())  # a gain that does not vary is known
    share, groups = weight / weight.sum(), len(usable)
    among = float((weight * (mean - (share * mean).sum()) ** 2).sum()) / (groups - 1)
    lack = float(((1.0 - share) ** 2 / (n - 1)).sum())
    ratio = among / (1.0 + 2.0 * (groups - 2) / (groups**2 - 1) * lack)
    return float(fdtrc(groups - 1, (groups**2 - 1) / (3.0 * lack), ratio))
