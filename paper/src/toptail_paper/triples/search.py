r"""What search by a score picks: best-of-K across queries, and the pull off the data's support.

Pools of triples of different (s, g) show whether scores can be compared across queries, not
whether actions are ordered within one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toptail.errors import InputError
from toptail.stats import best_of_k, normalized_regret, oracle, selection_weights
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.rank import dense_ranks
from toptail.stats.resample import Estimate
from toptail_paper.triples.bootstrap import TrajectoryBootstrap, check_counts
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.search_error import search_error

SATURATED = 0.9
"""Cosines above this count as saturated."""


@dataclass(frozen=True)
class PooledSelection:
    """Exact best-of-K over one pool of triples, each ``[K]``."""

    k: tuple[int, ...]
    value: Estimate
    """Expected value V(K) of the triple with the highest score; larger is better."""
    oracle: Estimate
    """Expected highest value of K triples."""
    random: Estimate
    """Expected value of a random triple: the pool's mean, the same for every K."""

    @property
    def regret(self) -> Estimate:
        """Oracle less selected value; lower is better, 0 is the oracle."""
        return self.oracle - self.value

    @property
    def normalized(self) -> Estimate:
        """(oracle - value)/(oracle - random): 0 is the oracle, 1 random, above 1 is worse.

        NaN where there is no headroom, as at K = 1.
        """
        return Estimate(
            normalized_regret(self.value.point, self.oracle.point, self.random.point),
            normalized_regret(self.value.draws, self.oracle.draws, self.random.draws),
        )


def cross_query(
    triples: ScoredTriples,
    column: str,
    k: Sequence[int],
    bootstrap: TrajectoryBootstrap,
    judge: str | None = None,
) -> PooledSelection:
    """:func:`pooled_selection` of the triples by a deployed score.

    The value is the return-to-go γ^d, or that of another ``judge`` among ``triples.values``.
    """
    value = triples.value if judge is None else bootstrap.column(triples, "values", judge)
    return pooled_selection(bootstrap.column(triples, "scores", column), value, k, bootstrap)


def pooled_selection(
    scores: ArrayLike, values: ArrayLike, k: Sequence[int], bootstrap: TrajectoryBootstrap
) -> PooledSelection:
    r"""Expected value of the best of K random candidates of one pool, by score and by value.

    .. math:: V(K) = \sum_j \frac{\binom{j-1}{K-1}}{\binom{n}{K}}\, v_{(j)}

    with :math:`v_{(j)}` the value of the candidate whose score has rank j; ties share their
    weight. Nothing is sampled (see :mod:`toptail.stats.best_of_k`).

    ``scores`` and ``values`` are ``[n]``, candidates of all queries together; larger is better
    for both. A resample with fewer than K candidates makes the interval at K NaN.
    """
    s, v = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    n = bootstrap.code.size
    if s.shape != (n,) or v.shape != (n,) or not np.isfinite([s, v]).all():
        raise InputError(
            f"Scores {s.shape} and values {v.shape} must be finite numbers, one for each of the "
            f"{n} triples that the resamples were made for."
        )
    check_counts(k, n, "number of triples")
    return PooledSelection(tuple(k), *_split(bootstrap.each(_Pool(s, v, k).curves)))


def within_quartiles(
    triples: ScoredTriples, column: str, k: Sequence[int], bootstrap: TrajectoryBootstrap
) -> PooledSelection:
    """:func:`cross_query` with pools of one quartile of γ^d, averaged over the four.

    Quartiles are cut at the quartiles of all triples' γ^d; equal distances stay together, so
    that the four pools may differ in size; each counts a quarter. Cuts stay the same in
    every resample. Regret that is left does not come from mixing near and far goals.
    """
    s, v = bootstrap.column(triples, "scores", column), triples.value
    quartile = np.searchsorted(np.quantile(v, [0.25, 0.5, 0.75]), v, side="left")
    smallest = int(np.bincount(quartile, minlength=4).min())
    check_counts(
        k, smallest, f"number of triples of {triples.source} in the smallest quartile of γ^d"
    )
    pool = _Pool(s, v, k)

    def curves(rows: Ints) -> Floats:
        parts = [pool.curves(rows[quartile[rows] == q]) for q in range(4)]
        return np.asarray(np.mean(parts, axis=0))

    return PooledSelection(tuple(k), *_split(bootstrap.each(curves)))


@dataclass(frozen=True)
class Saturation:
    """Where search over pooled triples ends up on the score's own scale, each ``[K]``."""

    median: Estimate
    """Median score of the pick."""
    share: Estimate
    """Chance that the pick's score is above the threshold; lower leaves more to tell apart."""


def saturation(
    triples: ScoredTriples,
    column: str,
    k: Sequence[int],
    bootstrap: TrajectoryBootstrap,
    threshold: float = SATURATED,
) -> Saturation:
    r"""Median selected score, and share of selected scores above ``threshold``, exactly.

    The pick's score is at most that of rank j with probability
    :math:`\binom{j}{K}/\binom{n}{K}`; the median is the lowest score where this reaches one
    half.
    """
    s = bootstrap.column(triples, "scores", column)
    check_counts(k, s.size, "number of triples")

    def both(rows: Ints) -> Floats:
        mine = np.sort(s[rows])
        result = np.full((2, len(k)), np.nan)
        fits = [i for i, count in enumerate(k) if count <= mine.size]
        weights = selection_weights(mine.size, [k[i] for i in fits])
        # Rounding of a sum must not push the median one rank up.
        at = (np.cumsum(weights, axis=1) < 0.5 - 1e-12).sum(axis=1)
        result[0, fits] = mine[at]
        result[1, fits] = weights @ (mine > threshold)
        return result

    return Saturation(*_split(bootstrap.each(both)))


class _Pool:
    """Best-of-K of subsets of the candidates, which are ranked once for all resamples."""

    def __init__(self, scores: Floats, values: Floats, k: Sequence[int]) -> None:
        self._values, self._k = values, k
        self._rank, self._value_rank = (dense_ranks(x[None])[0][0] for x in (scores, values))

    def curves(self, rows: Ints) -> Floats:
        """Chosen by score, chosen by value, and random ``[3, K]``; NaN where K is too large."""
        result = np.full((3, len(self._k)), np.nan)
        fits = [i for i, count in enumerate(self._k) if count <= rows.size]
        if rows.size == 0:
            return result
        weights = selection_weights(rows.size, [self._k[i] for i in fits])
        below = np.cumsum(weights, axis=1)  # the pick is among the j lowest, j = 1..n
        values = self._values[rows]
        for curve, rank in zip(result, (self._rank, self._value_rank), strict=False):
            curve[fits] = _expected(rank[rows], values, below)
        result[2] = values.mean()
        return result


def _expected(rank: Ints, values: Floats, below: Floats) -> Floats:
    """:func:`toptail.stats.best_of_k` of one pool from ranks: each tie group by its chance."""
    counts, sums = np.bincount(rank), np.bincount(rank, values)
    held = counts > 0
    chance = np.diff(below[:, np.cumsum(counts[held]) - 1], axis=1, prepend=0.0)
    return np.asarray(chance @ (sums[held] / counts[held]))


def _split(estimate: Estimate) -> list[Estimate]:
    """The entries along the first axis, as estimates of their own."""
    return [Estimate(point, estimate.draws[:, i]) for i, point in enumerate(estimate.point)]


@dataclass(frozen=True)
class SupportPreference:
    """How often best-of-K picks off support, against the pool's base rate."""

    k: tuple[int, ...]
    rate: Estimate
    """Chance that the pick is off support, mean over queries ``[K]``."""
    base: Estimate
    """Share of candidates off support, mean over queries, ``[1]``."""

    @property
    def excess(self) -> Estimate:
        """Rate less base rate ``[K]``: 0 is no preference, positive an off-support one."""
        return self.rate - self.base


def support_preference(
    scores: ArrayLike, on_support: ArrayLike, k: Sequence[int], bootstrap: TrajectoryBootstrap
) -> SupportPreference:
    r"""Excess rate at which the best of K by score is off local support.

    .. math:: e(K) = \operatorname{mean}_q \big(P_q(\text{pick of } K \text{ is off support})
              - \tfrac{1}{n} \#\{\text{off support}\}\big)

    exactly (no pools are drawn). It measures preference, not value: neither direction is
    good by itself, and 0 means that support does not move the pick.

    ``scores`` are ``[queries, n]``, n candidates at one (s, g) each; a NaN makes the result NaN.
    ``on_support`` are booleans of that shape: is the candidate an action of a state near s?
    """
    s = np.asarray(scores, dtype=np.float64)
    on = np.asarray(on_support)
    if s.ndim != 2 or on.shape != s.shape or on.dtype != bool or s.shape[0] != bootstrap.code.size:
        raise InputError(
            f"Scores {s.shape} and support labels {on.shape} ({on.dtype}) must be numbers and "
            f"booleans of one shape [queries, candidates], for {bootstrap.code.size} queries."
        )
    check_counts(k, s.shape[1], "size of a pool")
    off = 1.0 - on
    rate = bootstrap.mean(best_of_k(s, off, k))
    return SupportPreference(tuple(k), rate, bootstrap.mean(off.mean(axis=1, keepdims=True)))


def pooled_search_error(
    critic: ArrayLike,
    ideal: ArrayLike,
    values: ArrayLike,
    support: ArrayLike,
    k: int,
    bootstrap: TrajectoryBootstrap,
) -> tuple[Estimate, Estimate]:
    """:func:`search_error` of the best of K of candidates of all queries together.

    All are ``[n]``, as the labels of ``bootstrap`` are. Returns the terms, in the order of
    `SearchError`, and the headroom: the best of K by value, less a random candidate.
    """
    columns = [np.asarray(x) for x in (critic, ideal, values, support)]

    def terms(rows: Ints) -> Floats:
        f, own, value, on = (x[rows][None] for x in columns)
        split = [term[0, 0] for term in search_error(f, own, value, on, (k,))]
        return np.array([*split, oracle(value, (k,))[0, 0] - value.mean()])

    both = bootstrap.each(terms)
    return both[:-1], both[-1]
