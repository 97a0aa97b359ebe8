r"""Uncertainty: clustered bootstrap, simultaneous bands, multiple comparisons.

What is resampled is whole clusters (queries, or the trajectories or documents they come
from). Statistics enter as sums per cluster, and a resampled mean is a ratio of
resampled sums; all scorers share the same resamples, which pairs every comparison.
:class:`Sample` does that for named columns of per-query numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from toptail.stats.best_of_k import GROUP, SERIAL, Floats, Ints, steady_product

_DRAWS_PER_BLOCK = 1 << 21
# A tile of weights and the clusters that it meets stay in the cache.
_TILE = 1 << 18
_TILE_ROWS = 256


def bootstrap_sums(
    sums: Floats,
    rng: np.random.Generator,
    resamples: int,
    tick: Callable[[float], None] | None = None,
) -> Floats:
    """Column sums over clusters drawn with replacement, as many as there are.

    ``sums [clusters, columns]`` are each cluster's own; returns ``[resamples, columns]``. The same
    state of ``rng`` gives the same result to the last bit. ``tick`` is called with the finished
    share, for progress bars.
    """
    clusters = sums.shape[0]
    result = np.empty((resamples, sums.shape[1]))
    block = max(1, _DRAWS_PER_BLOCK // clusters)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        draws = rng.integers(clusters, size=(rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        times = np.bincount(draws.reshape(-1), minlength=rows * clusters)
        result[start : start + rows] = steady_product(
            times.reshape(rows, clusters).astype(np.float64), sums
        )
        if tick is not None:
            tick((start + rows) / resamples)
    return result


def weighted_sums(
    sums: Floats,
    rng: np.random.Generator,
    resamples: int,
    tick: Callable[[float], None] | None = None,
) -> tuple[Floats, Floats]:
    """Column sums over clusters under Dirichlet(1, ..., 1) weights, and one more cluster's weight.

    The smooth form of :func:`bootstrap_sums` (Rubin, 1981, "The Bayesian bootstrap"): the weights
    of ``sums [clusters, columns]`` add up to the number of clusters. Returns the sums ``[resamples,
    columns]`` and, in the same units, what weight a cluster that was not seen would have
    ``[resamples]``.

    Works on tiles of weights that stay in the cache, on all cores; each block of resamples has
    a stream of its own, so that the result does not depend on how many cores there are.
    """
    clusters = sums.shape[0]
    result, unseen = np.empty((resamples, sums.shape[1])), np.empty(resamples)
    columns = sums.shape[1]
    rows = max(_TILE_ROWS, _TILE // clusters // GROUP * GROUP)
    depth = max(1, min(clusters, SERIAL // (GROUP * columns)))
    starts = range(0, resamples, rows)

    def block(start: int, stream: np.random.Generator) -> None:
        use = slice(start, min(start + rows, resamples))
        groups = -(-(use.stop - start) // GROUP)  # whole groups; what is too much is dropped
        extra, total = stream.standard_exponential((groups, GROUP)), np.zeros((groups, GROUP))
        added = np.zeros((groups, GROUP, columns))
        tile, product = np.empty((*added.shape[:2], depth)), np.empty_like(added)
        for first in range(0, clusters, depth):
            part = sums[first : first + depth]
            weights = tile[..., : len(part)]
            if len(part) < depth:
                weights = np.ascontiguousarray(weights)
            stream.standard_exponential(out=weights)
            total += weights.sum(axis=2)
            added += np.matmul(weights, part, out=product)
        scale = clusters / total
        result[use] = (added * scale[..., None]).reshape(-1, columns)[: use.stop - start]
        unseen[use] = (extra * scale).reshape(-1)[: use.stop - start]

    with ThreadPoolExecutor(available_threads()) as pool:
        work = pool.map(block, starts, rng.spawn(len(starts)))
        for done, _ in enumerate(work, start=1):
            if tick is not None:
                tick(done / len(starts))
    return result, unseen


def merged(sums: Floats, rng: np.random.Generator, groups: int) -> Floats:
    """Sums over random groups of clusters ``[groups, columns]``, as even in size as can be.

    The spread of groups is that of clusters: with n clusters and g groups, a variance that is read
    off groups errs by about sqrt(2/g), and weighing them costs g instead of n.
    """
    order = rng.permutation(sums.shape[0])
    starts = np.linspace(0, sums.shape[0], groups, endpoint=False).astype(np.int64)
    result: Floats = np.empty((groups, sums.shape[1]))
    for column in range(sums.shape[1]):  # not all columns in another order at once
        result[:, column] = np.add.reduceat(sums[order, column], starts)
    return result


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def percentile_interval(draws: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Central interval of the draws along the first axis; NaN columns stay NaN."""
    tail = (1.0 - level) / 2
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    return low, high


@dataclass(frozen=True, eq=False)
class Band:
    """A simultaneous band: all entries hold together with the stated probability."""

    low: Floats
    """Lower ends ``[s]``."""
    high: Floats
    """Upper ends ``[s]``."""
    critical: float
    """How many standard errors the ends lie from the estimates."""


def max_t_band(
    estimate: ArrayLike, draws: Floats, clusters: int, level: float = 0.95, scale: ArrayLike = 1.0
) -> Band:
    r"""Simultaneous band :math:`\hat\theta_i \pm c \cdot \mathrm{se}_i` over all entries i.

    c is the ``level`` quantile of :math:`\max_i |\theta^*_i - \hat\theta_i| /
    \mathrm{se}_i` over the resamples. Entries without variance (to rounding of ``scale``)
    are left out of the maximum and get a band of zero width. For few clusters the
    standard error is corrected by sqrt(C/(C-1)), and c is replaced by the Student-t
    quantile with C - 1 degrees of freedom at the same tail probability. With fewer than
    two clusters nothing is known: NaN.

    ``estimate [s]`` are the point estimates, ``draws [resamples, s]`` the resampled ones, and
    ``scale`` is the size of the numbers that they were computed from.

    References
    ----------
    Romano and Wolf (2005), "Exact and approximate stepdown methods for multiple
    hypothesis testing".
    """
    theta = np.asarray(estimate, dtype=np.float64)
    se, deviation = standardized(theta, draws, clusters, scale)
    c = critical_value(deviation.max(axis=1), clusters, level)
    return Band(theta - c * se, theta + c * se, c)


def standardized(
    estimate: Floats, draws: Floats, clusters: int, scale: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """Standard errors ``[s]`` and the draws' deviations in standard units ``[resamples, s]``.

    Entries without variance have se 0 and deviation 0. All NaN with fewer than two
    clusters or where anything is not finite.
    """
    if clusters < 2 or not (np.isfinite(estimate).all() and np.isfinite(draws).all()):
        return np.full(estimate.shape, np.nan), np.full(draws.shape, np.nan)
    spread = draws.std(axis=0)
    varies = spread > 1e-10 * np.abs(np.asarray(scale, dtype=np.float64))
    deviation = np.abs(draws - estimate)
    deviation /= np.where(varies, spread, 1.0)
    deviation[:, ~varies] = 0.0
    return np.where(varies, spread * np.sqrt(clusters / (clusters - 1)), 0.0), deviation


def critical_value(largest: Floats, clusters: int, level: float = 0.95) -> float:
    """Critical value c of a band from each resample's largest standardized deviation."""
    if clusters < 2:
        return float("nan")
    normal = np.quantile(largest, level)
    # Bootstrap deviations have normal tails; with few clusters the truth has Student's.
    return float(stdtrit(clusters - 1, ndtr(normal)))


def bootstrap_p(draws: Floats) -> Floats:
    """Two-sided p value of "no difference" from resampled differences, first axis.

    Twice the smaller share of resamples on one side of zero, with one added to counts so
    that p is never 0; draws at zero count for both sides. NaN columns stay NaN.
    """
    n = draws.shape[0]
    below, above = (draws <= 0).sum(axis=0), (draws >= 0).sum(axis=0)
    p = np.minimum(1.0, 2.0 * (np.minimum(below, above) + 1) / (n + 1))
    return np.where(np.isnan(draws).any(axis=0), np.nan, p)


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down correction: adjusted p values, in the order given.

    Adjusted p below alpha rejects with family-wise error alpha (Holm, 1979). NaN
    entries stay NaN and do not count as comparisons.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    raw = np.asarray(p, dtype=np.float64)
    adjusted = np.full(raw.shape, np.nan)
    known = np.flatnonzero(~np.isnan(raw))
    order = known[np.argsort(raw[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    return adjusted


def wilson(successes: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's score interval for a rate; NaN without trials (Wilson, 1927)."""
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    n = np.where(n > 0, n, np.nan)
    z = float(ndtri((1.0 + level) / 2))
    rate = x / n
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def cluster_sums(per_query: Floats, cluster: NDArray[np.int64] | None) -> Floats:
    """Sum rows ``[queries, columns]`` by cluster code (0..C-1); None: every query its own."""
    if cluster is None:
        return per_query
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    sums: Floats = np.add.reduceat(per_query[order], starts, axis=0)
    return sums


MANY: Final = 1 << 17
"""With more clusters than this, random groups of clusters are weighed instead of clusters."""
GROUPS: Final = 1 << 16
"""How many groups; a standard error from them is off by a quarter of a percent."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic and its resamples."""

    point: Floats
    """``[...]``, computed from all queries."""
    draws: Floats
    """``[resamples, ...]``."""

    def interval(self, level: float) -> tuple[Floats, Floats]:
        return percentile_interval(self.draws, level)

    def __sub__(self, other: Estimate) -> Estimate:
        """Paired difference: the resamples are shared."""
        return Estimate(self.point - other.point, self.draws - other.draws)

    def __truediv__(self, other: Estimate) -> Estimate:
        """Ratio of two means; NaN where the denominator is not above zero."""

        def ratio(a: Floats, b: Floats) -> Floats:
            positive = b > 0
            return np.where(positive, a / np.where(positive, b, 1.0), np.nan)

        return Estimate(ratio(self.point, other.point), ratio(self.draws, other.draws))

    def __getitem__(self, at: int | slice | Ints) -> Estimate:
        """Entries along the last axis."""
        return Estimate(np.asarray(self.point[..., at]), self.draws[..., at])


class Sample:
    """Named columns of per-query numbers, resampled together.

    Register columns with :meth:`add`, call :meth:`resample` or :meth:`weigh` once, then read
    :meth:`mean` (over queries) or :meth:`ratio` (of two columns' sums).
    """

    def __init__(self, queries: int, cluster: Ints | None) -> None:
        self._cluster = cluster
        self._columns: list[Floats] = []
        self._slices: dict[str, slice] = {}
        self._width = 0
        self.clusters = queries if cluster is None else int(cluster.max()) + 1
        self._point = np.empty(0)
        self._draws = np.empty((0, 0))
        self._sums = np.empty((0, 0))
        self.unseen = np.empty(0)
        """Weight of a cluster that is not in the sample, in each resample of :meth:`weigh`."""
        self.add("", np.ones(queries))

    def add(self, name: str, per_query: Floats) -> None:
        """Register ``[queries]`` or ``[queries, c]`` numbers under a name."""
        column = per_query.reshape(per_query.shape[0], -1)
        self._slices[name] = slice(self._width, self._width + column.shape[1])
        self._columns.append(column)
        self._width += column.shape[1]

    def add_defined(self, name: str, per_query: Floats) -> None:
        """Register ``[queries]`` numbers, NaN where undefined, for :meth:`mean_defined`."""
        defined = ~np.isnan(per_query)
        self.add(name, np.where(defined, per_query, 0.0))
        self.add(f"{name} defined", defined.astype(np.float64))

    def add_missed(self, name: str, missed: Floats, weight: Floats) -> None:
        """Say which part of a column is estimated from a random draw of queries.

        ``missed [queries, c]`` is that part, each query's over its chance to be drawn, and
        ``weight [queries]`` is one over that chance; both are 0 where a query was not drawn.
        Every resample then divides by its own sum of weights, as the estimate itself does.
        """
        self.add(f"{name} missed", missed)
        self.add(f"{name} weight", weight)

    def resample(
        self, rng: np.random.Generator, resamples: int, tick: Callable[[float], None] | None = None
    ) -> None:
        """Draw whole clusters with replacement; every column sees the same draws."""
        if self._add_up():
            self._draws = bootstrap_sums(self._sums, rng, resamples, tick)

    def weigh(
        self, rng: np.random.Generator, resamples: int, tick: Callable[[float], None] | None = None
    ) -> None:
        """Weigh whole clusters at random; every column sees the same weights.

        With more than `MANY` clusters, random groups of clusters are weighed, so that the cost
        does not grow with the number of clusters.
        """
        if self._add_up():
            sums = merged(self._sums, rng, GROUPS) if self.clusters > MANY else self._sums
            self._draws, self.unseen = weighted_sums(sums, rng, resamples, tick)

    def _add_up(self) -> bool:
        """Add up clusters; False for a single cluster, which shows no variation."""
        self._sums = cluster_sums(np.concatenate(self._columns, axis=1), self._cluster)
        self._columns.clear()
        self._point = self._sums.sum(axis=0)
        self._draws = np.full((1, self._width), np.nan)
        self.unseen = np.full(1, np.nan)
        return self.clusters > 1

    def sums(self, name: str) -> tuple[Floats, Floats]:
        """Each cluster's own sums ``[clusters, c]``, and the resampled ones ``[c, resamples]``."""
        return self._sums[:, self._slices[name]], self.total(name).draws.T

    def total(self, name: str) -> Estimate:
        at = self._slices[name]
        draws = self._draws[:, at]
        if f"{name} missed" in self._slices:
            draws = draws - self._draws[:, self._slices[f"{name} missed"]] + self.missed(name)
        return Estimate(self._point[at], draws)

    def missed(
        self, name: str, missed: Floats | float = 0.0, weight: Floats | float = 0.0
    ) -> Floats:
        """Resampled sums of the part from :meth:`add_missed` ``[resamples, c]``.

        ``missed`` and ``weight`` are those of a cluster that is not in the sample.
        """
        queries, part, weights = (
            self._draws[:, self._slices[column]]
            for column in ("", f"{name} missed", f"{name} weight")
        )
        unseen = self.unseen[:, None]
        return np.asarray(queries * (part + missed * unseen) / (weights + weight * unseen))

    def ratio(self, name: str, by: str) -> Estimate:
        """Sum of one column over the sum of another, entry by entry."""
        return self.total(name) / self.total(by)

    def mean(self, name: str) -> Estimate:
        return self.ratio(name, "")

    def mean_defined(self, name: str) -> Estimate:
        """Mean over the queries where the column is defined."""
        return self.ratio(name, f"{name} defined")
