r"""Resampling of whole trajectories, shared by every diagnostic of one set of triples.

One resample draws as many trajectories as there are, with replacement, and takes every
triple of a trajectory as often as the trajectory was drawn. All diagnostics of one
:class:`TrajectoryBootstrap` see the same resamples, which pairs every comparison: the
difference of two estimates has the interval of a paired difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.io.json_files import jsonable
from toptail.stats import cluster_sums
from toptail.stats.best_of_k import Floats, Ints, steady_product
from toptail.stats.resample import Estimate
from toptail_paper.triples.scored import ScoredTriples

RESAMPLES = 1_000
LEVEL = 0.95


class TrajectoryBootstrap:
    """How often each trajectory was drawn, in each resample.

    ``trajectory [n]`` are labels of any kind, one for each triple (or each query).
    """

    def __init__(
        self, trajectory: ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> None:
        self.trajectory = np.asarray(trajectory)
        """The labels given, ``[n]``."""
        labels, code = np.unique(self.trajectory, return_inverse=True)
        self.clusters = labels.size
        """Number of trajectories C."""
        self.code: Ints = code.astype(np.int64)
        """Trajectory of each triple as a number 0..C-1, ``[n]``."""
        share = np.full(self.clusters, 1.0 / self.clusters)
        self.times: Ints = rng.multinomial(self.clusters, share, size=resamples)
        """How often each trajectory was drawn, ``[resamples, C]``."""

    def column(self, triples: ScoredTriples, family: str, name: str) -> Floats:
        """A stored column of the very triples that these resamples were made for."""
        if not np.array_equal(self.trajectory, triples.trajectory):
            raise InputError(
                f"{triples.source}: the resamples were made for other triples; make a "
                "TrajectoryBootstrap of the trajectories of these."
            )
        return triples.column(family, name)

    def rows(self, resample: int) -> Ints:
        """The triples of one resample, each as often as its trajectory was drawn."""
        return np.repeat(np.arange(self.code.size), self.times[resample][self.code])

    def each(
        self, statistic: Callable[[Ints], ArrayLike], keep: NDArray[np.bool_] | None = None
    ) -> Estimate:
        """Compute any statistic of triples again on every resample.

        ``statistic`` maps the numbers of triples (with repetitions) to an array of a fixed
        shape; where ``keep [n]`` is given it only sees those triples. A resample that holds
        none of them is NaN.
        """
        kept = np.ones(self.code.size, dtype=bool) if keep is None else keep
        point = np.asarray(statistic(np.flatnonzero(kept)), dtype=np.float64)
        if self.clusters < 2:
            return _unknown(point)
        draws = np.full((len(self.times), *point.shape), np.nan)
        for resample in range(len(draws)):
            rows = self.rows(resample)
            rows = rows[kept[rows]]
            if rows.size:
                draws[resample] = statistic(rows)
        return Estimate(point, draws)

    def totals(self, columns: Floats) -> Estimate:
        """Sums over triples of ``columns [n]`` or ``[n, c]``."""
        sums = cluster_sums(columns.reshape(self.code.size, -1), self.code)
        point = sums.sum(axis=0).reshape(columns.shape[1:])
        if self.clusters < 2:
            return _unknown(point)
        draws = steady_product(self.times.astype(np.float64), sums)
        return Estimate(point, draws.reshape(-1, *columns.shape[1:]))

    def mean(self, column: Floats, keep: NDArray[np.bool_] | None = None) -> Estimate:
        """Mean over triples of ``column [n]`` or ``[n, c]``, of those to ``keep [n]`` if given."""
        kept = np.ones(self.code.size, dtype=bool) if keep is None else keep
        over = kept.reshape(-1, *([1] * (column.ndim - 1)))
        return self.totals(np.where(over, column, 0.0)) / self.totals(
            np.broadcast_to(over, column.shape).astype(np.float64)
        )

    def pairs(self, form: Floats) -> Estimate:
        r"""Sum over ordered pairs of triples, from the sums of pairs of trajectories.

        A sum :math:`\sum_{i,j} h(i, j)` over the triples of a resample is
        :math:`\sum_{c,c'} t_c t_{c'} H_{cc'}`, with t how often each trajectory was drawn
        and :math:`H_{cc'}` (``form [C, C]``) the sum over the pairs of triples of c and c'.
        """
        point = np.asarray(form.sum())
        if self.clusters < 2:
            return _unknown(point)
        times = self.times.astype(np.float64)
        return Estimate(point, np.einsum("rc,rc->r", steady_product(times, form), times))


def _unknown(point: Floats) -> Estimate:
    """A statistic of one trajectory: nothing is known about how it varies."""
    return Estimate(point, np.full((1, *point.shape), np.nan))


def check_counts(k: Sequence[int], largest: int, what: str) -> None:
    """Refuse K that are not between 1 and the largest, which is ``what``."""
    if len(k) == 0 or min(k) < 1 or max(k) > largest:
        raise InputError(
            f"K must be whole numbers between 1 and {largest}, the {what}, not {list(k)}."
        )


def seed_mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over training seeds of one diagnostic; all must share their resamples."""
    points = np.mean([e.point for e in estimates], axis=0)
    return Estimate(np.asarray(points), np.mean([e.draws for e in estimates], axis=0))


def summary(estimate: Estimate, level: float = LEVEL) -> dict[str, Any]:
    """``value``, ``low`` and ``high`` as plain numbers or lists; None where not computable."""
    low, high = estimate.interval(level)
    entry: dict[str, Any] = jsonable({"value": estimate.point, "low": low, "high": high})
    return entry
