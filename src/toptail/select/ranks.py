r"""Orders of candidates, and what a place among K drawn ones means for a place among all n.

The r-th best of K candidates, drawn without replacement out of n, is the i-th best of all with
probability

.. math:: \binom{i-1}{r-1} \binom{n-i}{K-r} \Big/ \binom{n}{K}.

A selector that looks at nothing but places is therefore linear in the score-sorted values, for
every K at once.
"""

from __future__ import annotations

from dataclasses import dataclass

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
