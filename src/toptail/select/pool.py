"""What a selector sees: pools of one size with their columns, and no values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from toptail.stats.best_of_k import Floats, Ints, average_ties, selection_weights, tie_starts


@dataclass(frozen=True, eq=False)
class Order:
    """Candidates of each pool from the lowest to the highest, ties known."""

    order: Ints
    """``[m, n]``: positions in ascending order."""
    starts: Ints | None
    """Where groups of ties start, as :func:`toptail.stats.best_of_k.tie_starts` has it."""

    def sorted(self, column: Floats) -> Floats:
        """A column in this order ``[m, n]``, each entry the mean of its tie group."""
        return average_ties(np.take_along_axis(column, self.order, axis=1), self.starts)

    def spread(self, by_rank: Floats) -> Floats:
        """Weights by rank ``[n]``, ascending, as weights of the candidates ``[m, n]``."""
        shared = average_ties(np.tile(by_rank, (self.order.shape[0], 1)), self.starts)
        result = np.empty(self.order.shape)
        np.put_along_axis(result, self.order, shared, axis=1)
        return result

    def places(self) -> Floats:
        """Rank of each candidate ``[m, n]``, ties at their middle: the rank scale."""
        return self.spread(np.arange(1.0, self.order.shape[1] + 1))


def ordered(scores: Floats) -> Order:
    """The order by a score ``[m, n]``."""
    order = np.argsort(scores, axis=1)
    return Order(order, tie_starts(np.take_along_axis(scores, order, axis=1)))


def passed_first(by: Order, score: Order, passed: NDArray[np.bool_], parts: list[Floats]) -> Order:
    """Candidates that passed ordered by the score, above all others, ordered by the filter.

    ``parts`` are the filter's and the score's columns ``[m, n]``.
    """
    m, n = passed.shape
    low = np.arange(n) < n - passed.sum(axis=1)[:, None]
    order = np.empty((m, n), dtype=np.int64)
    key = np.empty((m, n))
    for found, keep, at, column in (
        (by, ~passed, low, parts[0]),
        (score, passed, ~low, parts[1]),
    ):
        kept = np.take_along_axis(keep, found.order, axis=1)
        order[at] = found.order[kept]
        key[at] = np.take_along_axis(column, found.order, axis=1)[kept]
    new = np.ones((m, n), dtype=bool)
    new[:, 1:] = (key[:, 1:] != key[:, :-1]) | (low[:, 1:] != low[:, :-1])
    starts = np.flatnonzero(new)
    return Order(order, None if starts.size == order.size else starts)


def place_weights(n: int, k: int, place: int) -> Floats:
    """Probability that the ``place``-th best of K out of n has rank j ``[n]``, ascending.

    >>> place_weights(4, 2, 2).round(3)
    array([0.5  , 0.333, 0.167, 0.   ])
    """
    if place == 1:
        return np.asarray(selection_weights(n, [k])[0])  # the audit's own, to the last bit
    better = np.arange(n - 1, -1, -1.0)  # candidates above each rank
    below = n - 1 - better
    possible = (better >= place - 1) & (below >= k - place)
    better, below = np.where(possible, better, place - 1.0), np.where(possible, below, k - place)
    log = _choose(better, place - 1) + _choose(below, k - place) - _choose(np.array(float(n)), k)
    weights = np.where(possible, np.exp(log), 0.0)
    return np.asarray(weights / weights.sum())


def _choose(n: Floats, k: int) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def poisson_counts(mean: float, k: int) -> Floats:
    """Probability that 1 + Poisson(mean - 1) candidates are looked at, at most k ``[k]``."""
    more = np.arange(k)
    rate = mean - 1.0
    log = more * np.log(rate) - rate - gammaln(more + 1) if rate > 0 else np.where(more, -np.inf, 0)
    share = np.exp(log)
    share[-1] = max(0.0, 1.0 - share[:-1].sum())
    return share


How = Literal["member", "mean", "min", "pessimistic"]
Scale = Literal["raw", "standardized", "rank"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)


@dataclass(frozen=True, eq=False)
class Pool:
    """Pools of one size: m queries with n candidates each."""

    columns: Mapping[str, Floats]
    """Column -> its numbers ``[m, n]``: scores, filters, and ``support`` as 0 and 1."""
    answer: Ints | None = None
    """Which candidates give the same answer ``[m, n]``, numbered from 0."""
    _orders: dict[str, Order] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """How many pools, and how many candidates in each."""
        first: Any = next(iter(self.columns.values()), self.answer)
        return int(first.shape[0]), int(first.shape[1])

    def order(self, name: str) -> Order:
        """The order by a column, sorted once."""
        if name not in self._orders:
            self._orders[name] = ordered(self.columns[name])
        return self._orders[name]

    def at(self, index: Ints) -> Pool:
        """The candidates at ``index [m, k]`` of each pool."""
        take = partial(np.take_along_axis, indices=index, axis=1)
        answer = None if self.answer is None else take(self.answer)
        return Pool({name: take(column) for name, column in self.columns.items()}, answer)


@dataclass(frozen=True)
class ScoreRule:
    """One number for each candidate, from one score column or several."""

    name: str
    """The scorer, or a few words for several."""
    members: tuple[str, ...]
    """Its columns."""
    how: How = "member"
    """``member``: each column decides with the same chance. The others join them: their mean,
    their minimum, or their mean less ``penalty`` times their standard deviation."""
    penalty: float = 0.0
    """How much disagreement costs, where it does."""
    scale: Scale = "raw"
    """On which scale they are joined: as they are, in units of ``centers`` and ``spreads``, or as
    ranks among the candidates at hand."""
    centers: tuple[float, ...] = ()
    """What is subtracted from each member."""
    spreads: tuple[float, ...] = ()
    """What each member is divided by."""

    def keys(self, pool: Pool) -> list[Floats]:
        """Scores to maximize ``[m, n]``, of which one, drawn at random, decides."""
        if self.how == "member":
            return [pool.columns[name] for name in self.members]
        stack = np.stack([self._scaled(pool, at) for at in range(len(self.members))])
        stack.sort(axis=0)  # which member says what must not decide a tie by rounding
        if self.how == "min":
            return [stack.min(axis=0)]
        mean = stack.mean(axis=0)
        if self.how == "mean":
            return [mean]
        known = np.isfinite(stack).all(axis=0)
        spread = np.where(known, stack, 0.0).std(axis=0)
        return [np.where(known, mean - self.penalty * spread, -np.inf)]

    def orders(self, pool: Pool) -> list[Order]:
        """The orders by :meth:`keys`."""
        if self.how == "member":
            return [pool.order(name) for name in self.members]
        return [ordered(key) for key in self.keys(pool)]

    def _scaled(self, pool: Pool, at: int) -> Floats:
        name = self.members[at]
        if self.scale == "rank":
            return pool.order(name).places()
        column = pool.columns[name]
        if self.scale == "standardized":
            return (column - self.centers[at]) / self.spreads[at]
        return column

    def parameters(self) -> Any:
        """As JSON: the column where there is one, else everything that is not the default."""
        if self.how == "member" and self.members == (self.name,):
            return self.name
        entry: dict[str, Any] = {"name": self.name, "members": list(self.members), "how": self.how}
        if self.how != "member":
            entry["scale"] = self.scale
        if self.how == "pessimistic":
            entry["penalty"] = self.penalty
        if self.scale == "standardized":
            entry |= {"centers": list(self.centers), "spreads": list(self.spreads)}
        return entry

    @classmethod
    def of(cls, entry: Any) -> ScoreRule:
        """The rule whose :meth:`parameters` this is."""
        if isinstance(entry, str):
            return cls(entry, (entry,))
        lists = {key: tuple(x) for key, x in entry.items() if isinstance(x, list)}
        return cls(**{**entry, **lists})
