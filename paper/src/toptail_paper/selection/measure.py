"""What one column of scores does on the frozen pools, query by query, and as resampled means.

Everything is averaged over the pools of a query first (pools are nested in queries); resampling
then draws whole trajectories. All columns and judges of a task share one set of resamples, which
pairs every comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.stats import best_of_k, kendall_tau_b, normalized_regret, oracle, spearman
from toptail.stats.best_of_k import Floats
from toptail.stats.resample import Estimate
from toptail_paper.study.tables import StoredCell, cell, with_more
from toptail_paper.triples.bootstrap import LEVEL, TrajectoryBootstrap, seed_mean

Mask = NDArray[np.bool_]


def by_query(per_pool: Floats, queries: int) -> Floats:
    """Mean over the pools of each query, ``[queries]`` or ``[queries, c]``.

    ``per_pool`` is ``[queries * pools, ...]``. Pools without a number (NaN) are left out; a query
    without any is NaN.
    """
    stack = per_pool.reshape(queries, -1, *per_pool.shape[1:])
    known = ~np.isnan(stack)
    count = known.sum(axis=1)
    total = np.where(known, stack, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True, eq=False)
class PoolValues:
    """The pools of a task with one judge's values."""

    values: Floats
    """``[queries, pools, candidates]``: what the judge says; the mean over its members."""
    k: tuple[int, ...]
    """Candidate counts, the last one the pool's size."""

    @property
    def flat(self) -> Floats:
        """``[queries * pools, candidates]``."""
        return self.values.reshape(-1, self.values.shape[-1])

    @property
    def best(self) -> Floats:
        """1 for the best candidates of each pool, 0 for others, as `flat`."""
        return np.asarray(self.flat == self.flat.max(axis=1, keepdims=True), np.float64)

    @property
    def oracle(self) -> Floats:
        """Value of the best of K, ``[queries, n_k]``."""
        return by_query(oracle(self.flat, self.k), len(self.values))

    @property
    def random(self) -> Floats:
        """Value of a random candidate, ``[queries]``."""
        return np.asarray(self.values.mean(axis=(1, 2)))


def value_levels(flat: Floats) -> NDArray[np.int64]:
    """How many different values a pool's candidates have, ``[pools]``."""
    in_order = np.sort(flat, axis=1)
    return np.asarray(1 + (np.diff(in_order, axis=1) > 0).sum(axis=1))


def tau_b_ceiling(flat: Floats) -> Floats:
    r"""tau_b with the values of a score that has no ties and is in their order, ``[pools]``.

    .. math:: \sqrt{(n_0 - n_v) / n_0}

    with n_0 pairs of candidates, of which n_v are tied in value; NaN where all are.
    """
    pools, size = flat.shape
    in_order = np.sort(flat, axis=1)
    # The number of a candidate's level, then how many candidates each level of each pool has.
    level = np.cumsum(np.diff(in_order, axis=1, prepend=in_order[:, :1]) > 0, axis=1)
    count = np.bincount((level + size * np.arange(pools)[:, None]).ravel(), minlength=pools * size)
    tied = (count * (count - 1) / 2).reshape(pools, size).sum(axis=1)
    untied = 1 - tied / (size * (size - 1) / 2)
    return np.where(untied > 0, np.sqrt(untied), np.nan)


@dataclass(frozen=True, eq=False)
class Judged:
    """One column of scores under one judge, query by query."""

    tau_b: Floats
    """Within-pool Kendall tau_b with the value, ``[queries]``; NaN where undefined."""
    value: Floats
    """Value of the best of K by score, ``[queries, n_k]``."""
    oracle: Floats
    """Value of the best of K by value, ``[queries, n_k]``."""
    random: Floats
    """Value of a random candidate, ``[queries]``."""
    pool_regret: Floats
    """Each pool's regret over its own headroom at the largest K, mean over the query's pools,
    ``[queries]``; NaN where all candidates are worth the same."""
    best_pick: Floats
    """Chance that the pick at the largest K is a best candidate of its pool, ``[queries]``."""

    @classmethod
    def of(cls, scores: Floats, pools: PoolValues) -> Judged:
        """Measure ``scores [queries, pools, candidates]``."""
        flat, queries = scores.reshape(pools.flat.shape), len(scores)
        value = best_of_k(flat, pools.flat, pools.k)
        top, mean = pools.flat.max(axis=1), pools.flat.mean(axis=1)
        return cls(
            tau_b=by_query(kendall_tau_b(flat, pools.flat), queries),
            value=by_query(value, queries),
            oracle=pools.oracle,
            random=pools.random,
            pool_regret=by_query(normalized_regret(value[:, -1], top, mean), queries),
            best_pick=by_query(best_of_k(flat, pools.best, pools.k[-1:])[:, 0], queries),
        )

    @classmethod
    def of_random(cls, pools: PoolValues) -> Judged:
        """A random pick, in expectation: the mean candidate at every K, and no order."""
        top, mean = pools.flat.max(axis=1), pools.flat.mean(axis=1)
        regret = normalized_regret(mean, top, mean)
        return cls(
            tau_b=by_query(np.where(np.isnan(regret), np.nan, 0.0), len(pools.values)),
            value=np.repeat(pools.random[:, None], len(pools.k), axis=1),
            oracle=pools.oracle,
            random=pools.random,
            pool_regret=by_query(regret, len(pools.values)),
            best_pick=by_query(pools.best.mean(axis=1), len(pools.values)),
        )


@dataclass(frozen=True, eq=False)
class Picked:
    """What one column of scores picks at the largest K, whatever it is worth."""

    score: Floats
    """The selected score of each pool, ``[queries, pools]``."""
    off_support: Floats
    """Chance that the best of K is off support, ``[queries, n_k]``."""
    base_rate: Floats
    """Share of the pool's candidates off support, ``[queries]``."""
    support_correlation: Floats
    """Within-pool Spearman of the score with nearness to the data's actions, ``[queries]``."""

    @classmethod
    def of(cls, scores: Floats, on_support: Mask, distance: Floats, k: Sequence[int]) -> Picked:
        """Measure ``scores [queries, pools, candidates]`` with the support labels."""
        queries, size = len(scores), scores.shape[-1]
        flat = scores.reshape(-1, size)
        off = (~on_support).reshape(flat.shape).astype(np.float64)
        near = -distance.reshape(flat.shape)
        return cls(
            score=scores.max(axis=-1),
            off_support=by_query(best_of_k(flat, off, k), queries),
            base_rate=by_query(off.mean(axis=1), queries),
            support_correlation=by_query(spearman(flat, near), queries),
        )


@dataclass(frozen=True, eq=False)
class Resampled:
    """Means over queries with their shared resamples of trajectories."""

    bootstrap: TrajectoryBootstrap

    def mean(self, column: Floats, keep: Mask | None = None) -> Estimate:
        """Mean over the queries of ``column [queries]`` that have a number."""
        known = ~np.isnan(column)
        kept = known if keep is None else known & keep
        return self.bootstrap.mean(np.where(known, column, 0.0), kept)

    def regret(self, judged: Judged, keep: Mask | None = None, at: int = -1) -> Estimate:
        r"""Mean regret over mean headroom at one K: 0 is the oracle, 1 is random.

        .. math:: \frac{\overline{V^\star} - \overline{V}}{\overline{V^\star} - \overline{V_1}}

        with means over queries; NaN where there is no headroom.
        """
        top = self.mean(judged.oracle[:, at], keep)
        regret = top - self.mean(judged.value[:, at], keep)
        return regret / (top - self.mean(judged.random, keep))

    def cell(
        self, by_seed: Mapping[int, Estimate], *, replicates: bool = True, **more: Any
    ) -> StoredCell:
        """A table's cell: every seed, their mean, and the interval of the mean over queries.

        With the bootstrap replicates of the mean, unless they are not asked for.
        """
        mean = seed_mean(list(by_seed.values()))
        low, high = mean.interval(LEVEL)
        points = {seed: float(estimate.point) for seed, estimate in by_seed.items()}
        kept = {"draws": mean.draws} if replicates else {}
        return with_more(cell(points, (float(low), float(high))), **kept, **more)
