"""Selectors with a closed form: they pick by places in an order of the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toptail.select.base import RankSelector, Selector
from toptail.select.pool import Order, Pool, passed_first, place_weights, poisson_counts
from toptail.stats.best_of_k import Floats, selection_weights


@dataclass(frozen=True, kw_only=True)
class RandomPick(Selector, kind="random", complexity=0, exact=True):
    """Any candidate: what every selector is at K = 1.

    Which one is picked depends on the seeds, and on the position and size of the pool in the
    data, not on the columns.
    """

    seed: int = 0
    """Its own seed, beside the one that :meth:`pick` takes."""

    def cost(self, k: int) -> float:
        """One candidate, whatever K is."""
        del k
        return 1.0

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """The same weight for all."""
        del k, rng
        return np.full(pool.shape, 1.0 / pool.shape[1])


@dataclass(frozen=True, kw_only=True)
class Best(RankSelector, kind="best", complexity=1):
    """The best of K by a score, or by several joined to one."""

    @property
    def called(self) -> str:
        """``best``, or how the scores are joined."""
        return self.kind if self.score.how == "member" else self.score.how


@dataclass(frozen=True, kw_only=True)
class RankPick(RankSelector, kind="rank", complexity=2):
    """The r-th best of K; the last of fewer than r."""

    rank: int = 2
    """1 is the best."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the r-th place."""
        return place_weights(n, k, min(self.rank, k))


@dataclass(frozen=True, kw_only=True)
class Trim(RankSelector, kind="trim", complexity=2):
    """The best below the top share of K, which is dropped as too good to be true."""

    share: float = 0.1
    """How much of the top is dropped, rounded down to whole candidates."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the first place below the dropped ones."""
        return place_weights(n, k, 1 + int(self.share * k + 1e-9))


@dataclass(frozen=True, kw_only=True)
class PoissonBest(RankSelector, kind="poisson", complexity=2):
    """The best of 1 + Poisson(mean - 1) candidates, at most K (Khalaf et al., 2025)."""

    mean: float = 4.0
    """How many candidates are looked at on average, where K is no limit."""

    def cost(self, k: int) -> float:
        """The expected number of candidates."""
        return float(poisson_counts(self.mean, k) @ np.arange(1, k + 1))

    def by_rank(self, n: int, k: int) -> Floats:
        """A mixture of the weights of best-of-j, over the number j of candidates."""
        counts = poisson_counts(self.mean, k)
        used = np.flatnonzero(counts > 1e-18)
        return np.asarray(counts[used] @ selection_weights(n, (used + 1).tolist()))


@dataclass(frozen=True, kw_only=True)
class Filtered(RankSelector, kind="filter", complexity=3):
    """The best of those whose filter is high enough; where there is none, the highest filter."""

    by: str
    """The column to filter by."""
    least: float
    """The lowest entry that passes."""

    @property
    def sorting(self) -> tuple[Any, ...]:
        """Each threshold gives another order."""
        return (self.score, self.by, self.least)

    def orders(self, pool: Pool) -> list[Order]:
        """Candidates that pass stand above the others."""
        column = pool.columns[self.by]
        passed = column >= self.least
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        by = pool.order(self.by)
        return [passed_first(by, order, passed, [column, key]) for order, key in pairs]


@dataclass(frozen=True, kw_only=True)
class Threshold(RankSelector, kind="threshold", complexity=3, abstains=True):
    """The best of K if its score is high enough, else nothing: value against coverage."""

    least: float
    """The lowest score that is taken."""

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights of the best, 0 where its score is too low."""
        del rng
        weights = place_weights(pool.shape[1], k, 1)
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        found = [np.where(key >= self.least, order.spread(weights), 0.0) for order, key in pairs]
        return np.asarray(sum(found) / len(found))
