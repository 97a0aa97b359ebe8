"""Means over queries with bootstrap resamples that all statistics of an audit share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.resample import (
    bootstrap_sums,
    cluster_sums,
    merged,
    percentile_interval,
    weighted_sums,
)

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
        """Percentile interval of each entry."""
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
        """Sum over queries."""
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
        """Mean over queries."""
        return self.ratio(name, "")

    def mean_defined(self, name: str) -> Estimate:
        """Mean over the queries where the column is defined."""
        return self.ratio(name, f"{name} defined")
