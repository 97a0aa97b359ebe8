"""Selectors with a closed form: they look at places in an order of the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toptail.select.base import RankSelector, Selector
from toptail.select.pool import Order, Pool, passed_first, place_weights, poisson_counts
from toptail.stats.best_of_k import Floats, selection_weights


@dataclass(frozen=True, kw_only=True)
class RandomPick(Selector):
    """Any candidate: what every selector is at K = 1.

    Which one is picked depends on the seeds and on the place and size of the pool among those
    given, not on what the columns hold.
    """

    kind: ClassVar[str] = "random"
    complexity: ClassVar[int] = 0
    exact: ClassVar[bool] = True
    seed: int = 0
    """Its own seed, beside the one that :meth:`pick` takes."""

    def cost(self, k: int) -> float:
        """One."""
        del k
        return 1.0

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """The same weight for all."""
        del k, rng
        return np.full(pool.shape, 1.0 / pool.shape[1])


@dataclass(frozen=True, kw_only=True)
class Best(RankSelector):
    """The best of K by a score, or by several joined to one."""

    kind: ClassVar[str] = "best"
    complexity: ClassVar[int] = 1

    @property
    def called(self) -> str:
        """``best``, or how the scores are joined."""
        return self.kind if self.score.how == "member" else self.score.how

    def by_rank(self, n: int, k: int) -> Floats:
        """The audit's weights."""
        return place_weights(n, k, 1)


@dataclass(frozen=True, kw_only=True)
class RankPick(RankSelector):
    """The r-th best of K; the last of fewer than r."""

    kind: ClassVar[str] = "rank"
    complexity: ClassVar[int] = 2
    rank: int = 2
    """1 is the best."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the place."""
        return place_weights(n, k, min(self.rank, k))


@dataclass(frozen=True, kw_only=True)
class Trim(RankSelector):
    """The best of what is left without the top share of K: scores too good to be true."""

    kind: ClassVar[str] = "trim"
    complexity: ClassVar[int] = 2
    share: float = 0.1
    """How much of the top is dropped, rounded down to whole candidates."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the place below those dropped."""
        return place_weights(n, k, 1 + int(self.share * k + 1e-9))


@dataclass(frozen=True, kw_only=True)
class PoissonBest(RankSelector):
    """The best of 1 + Poisson(mean - 1) candidates, at most K (Khalaf et al., 2025)."""

    kind: ClassVar[str] = "poisson"
    complexity: ClassVar[int] = 2
    mean: float = 4.0
    """How many candidates are looked at on average, where K is no limit."""

    def cost(self, k: int) -> float:
        """The expected number."""
        return float(poisson_counts(self.mean, k) @ np.arange(1, k + 1))

    def by_rank(self, n: int, k: int) -> Floats:
        """A mixture of the best of each number."""
        counts = poisson_counts(self.mean, k)
        used = np.flatnonzero(counts > 1e-18)
        return np.asarray(counts[used] @ selection_weights(n, (used + 1).tolist()))


@dataclass(frozen=True, kw_only=True)
class Filtered(RankSelector):
    """The best of those whose filter is high enough; where there is none, the highest filter."""

    kind: ClassVar[str] = "filter"
    complexity: ClassVar[int] = 3
    by: str
    """The column that must be high enough."""
    least: float
    """How high."""

    @property
    def sorting(self) -> tuple[Any, ...]:
        """Each threshold orders otherwise."""
        return (self.score, self.by, self.least)

    def orders(self, pool: Pool) -> list[Order]:
        """Those that passed above the others."""
        column = pool.columns[self.by]
        passed = column >= self.least
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        by = pool.order(self.by)
        return [passed_first(by, order, passed, [column, key]) for order, key in pairs]

    def by_rank(self, n: int, k: int) -> Floats:
        """The best in that order."""
        return place_weights(n, k, 1)


@dataclass(frozen=True, kw_only=True)
class Threshold(RankSelector):
    """The best of K if its score is high enough, else nothing: value against coverage."""

    kind: ClassVar[str] = "threshold"
    abstains: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    least: float
    """The lowest score that is taken."""

    def by_rank(self, n: int, k: int) -> Floats:
        """The best, whether it is taken or not."""
        return place_weights(n, k, 1)

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights without those of scores that are too low."""
        del rng
        weights = place_weights(pool.shape[1], k, 1)
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        found = [np.where(key >= self.least, order.spread(weights), 0.0) for order, key in pairs]
        return np.asarray(sum(found) / len(found))
