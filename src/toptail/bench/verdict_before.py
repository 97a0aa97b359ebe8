"""The rule that decided before: one band around all steps, for the other side of the benchmark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from toptail.audit.settings import Rule
from toptail.stats.best_of_k import Floats


def status_before(
    change: Floats, draws: Floats, headroom: Floats, clusters: int, scale: float, rule: Rule
) -> NDArray[np.str_]:
    """Statuses of many tables by one simultaneous max-|t| band over the steps.

    ``change [tables, steps]`` are mean changes, ``draws [tables, steps, resamples]`` those of a
    bootstrap of clusters, ``headroom [tables]`` the mean headroom. Steps are all pairs of K,
    ordered by the larger one: the gain is the first of those that end at the largest.
    """
    spread = draws.std(axis=-1)
    varies = spread > 1e-10 * scale
    deviation = np.abs(draws - change[..., None]) / np.where(varies, spread, 1.0)[..., None]
    deviation[~varies] = 0.0
    normal = np.quantile(deviation.max(axis=1), rule.level, axis=-1)
    c = stdtrit(clusters - 1, ndtr(normal))[:, None]
    se = np.where(varies, spread * np.sqrt(clusters / (clusters - 1)), 0.0)
    change = np.where(~varies & (np.abs(change) <= 1e-10 * scale), 0.0, change)
    unit = np.where(headroom > 1e-12 * scale, headroom, np.nan)[:, None]
    low, high = (change - c * se) / unit, (change + c * se) / unit
    gain = change.shape[1] - _last(change.shape[1])
    return np.select(
        [(high < -rule.delta).any(axis=1), ~(low >= -rule.rho).all(axis=1), low[:, gain] > 0],
        ["unsafe", "inconclusive", "safe"],
        "no gain",
    )


def _last(steps: int) -> int:
    """How many of all steps between m values of K, m(m - 1)/2, end at the largest: m - 1."""
    return int((1 + np.sqrt(1 + 8 * steps)) / 2) - 1
