"""Every selector: first those with a closed form, then those whose subsets are drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from toptail.errors import InputError
from toptail.select.base import (
    Order,
    Pool,
    RankSelector,
    ScoreRule,
    Selector,
    SetSelector,
    place_weights,
)
from toptail.stats.best_of_k import Floats, Ints, selection_weights

# ---------------------------------------------- closed forms: they pick by places in an order


@dataclass(frozen=True, kw_only=True)
class RandomPick(Selector, kind="random", complexity=0, exact=True):
    """Any candidate: what every selector is at K = 1.

    Which one is picked depends on the seeds, and on the position and size of the pool in the
    data, not on the columns.
    """

    seed: int = 0
    """Its own seed, beside the one that :meth:`pick` takes."""

    def cost(self, k: int) -> float:
        del k
        return 1.0

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
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
        return place_weights(n, k, min(self.rank, k))


@dataclass(frozen=True, kw_only=True)
class Trim(RankSelector, kind="trim", complexity=2):
    """The best below the top share of K, which is dropped as too good to be true."""

    share: float = 0.1
    """How much of the top is dropped, rounded down to whole candidates."""

    def by_rank(self, n: int, k: int) -> Floats:
        return place_weights(n, k, 1 + int(self.share * k + 1e-9))


@dataclass(frozen=True, kw_only=True)
class PoissonBest(RankSelector, kind="poisson", complexity=2):
    """The best of 1 + Poisson(mean - 1) candidates, at most K (Khalaf et al., 2025)."""

    mean: float = 4.0
    """How many candidates are looked at on average, where K is no limit."""

    def cost(self, k: int) -> float:
        return float(poisson_counts(self.mean, k) @ np.arange(1, k + 1))

    def by_rank(self, n: int, k: int) -> Floats:
        counts = poisson_counts(self.mean, k)
        used = np.flatnonzero(counts > 1e-18)
        return np.asarray(counts[used] @ selection_weights(n, (used + 1).tolist()))


@dataclass(frozen=True, kw_only=True)
class Filtered(RankSelector, kind="filter", complexity=3):
    """The best candidate whose filter is at least ``least``.

    In a pool where no candidate passes, the one with the highest filter.
    """

    by: str
    """The column to filter by."""
    least: float
    """The lowest entry that passes."""

    @property
    def sorting(self) -> tuple[Any, ...]:
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
        del rng
        weights = place_weights(pool.shape[1], k, 1)
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        found = [np.where(key >= self.least, order.spread(weights), 0.0) for order, key in pairs]
        return np.asarray(sum(found) / len(found))


def poisson_counts(mean: float, k: int) -> Floats:
    """Probability that 1 + Poisson(mean - 1) candidates are looked at, at most k ``[k]``."""
    more = np.arange(k)
    rate = mean - 1.0
    log = more * np.log(rate) - rate - gammaln(more + 1) if rate > 0 else np.where(more, -np.inf, 0)
    share = np.exp(log)
    share[-1] = max(0.0, 1.0 - share[:-1].sum())
    return share


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


# --------------------------------------- drawn: weights depend on which candidates are at hand


WeightFunction = Callable[[Mapping[str, Floats]], Any]
"""A user's selector: column -> numbers of one pool ``[K]`` in, weights ``[K]`` out."""


@dataclass(frozen=True, kw_only=True)
class ScoreSelector(SetSelector):
    """A selector whose weights depend on one score, or on several of which any may decide."""

    score: ScoreRule
    """The score, or the scores that each decide with the same chance."""

    @abstractmethod
    def of_key(self, key: Floats, pool: Pool) -> Floats:
        """Weights ``[m, n]`` where this score ``[m, n]`` decides."""

    def of_all(self, pool: Pool) -> Floats:
        parts = [self.of_key(key, pool) for key in self.score.keys(pool)]
        return np.asarray(sum(parts) / len(parts))


@dataclass(frozen=True, kw_only=True)
class Soft(ScoreSelector, kind="soft", complexity=3):
    """One of K with chances that grow as exp(beta score) (Verdun et al., 2025)."""

    beta: float
    """Inverse temperature, over units of the score: 0 is random, infinity the best of K."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        del pool
        return soft_weights(key, self.beta)


@dataclass(frozen=True, kw_only=True)
class Chi2(ScoreSelector, kind="chi2", complexity=3):
    r"""Inference-time pessimism: chances that grow as :math:`[score - \lambda]_+ / \beta`.

    The policy of chi-squared regularization with regard to the candidates at hand (Huang et
    al., 2025, "Is best-of-N the best of them?"), by its weights in place of rejection.
    """

    beta: float
    """Strength, in units of the score: 0 is the best of K, infinity random."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        del pool
        return chi2_weights(key, self.beta)


@dataclass(frozen=True, kw_only=True)
class RankEnsemble(ScoreSelector, kind="ranks", complexity=1):
    """The best of K by several scores, joined as ranks among the K."""

    @property
    def called(self) -> str:
        return self.score.how

    @property
    def family(self) -> str:
        return f"{self.called}({self.score.name}, ranks)"

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        del pool
        return best_weights(key)


@dataclass(frozen=True, kw_only=True)
class ReciprocalRanks(SetSelector, kind="rrf", complexity=2):
    """The highest sum of 1 / (constant + rank) over several scores, rank 1 being the best.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): a candidate near the top of one
    score counts for more than one in the middle of all. Tied candidates share their mean rank.
    """

    score: ScoreRule
    """The scores that are joined."""
    constant: float = 60.0
    """How little the first ranks differ from the next ones."""

    def of_all(self, pool: Pool) -> Floats:
        places = np.stack([pool.order(name).places() for name in self.score.members])
        parts = 1.0 / (self.constant + pool.shape[1] + 1 - places)
        parts.sort(axis=0)  # which score says what must not decide a tie by rounding
        return best_weights(parts.sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class TopBy(ScoreSelector, kind="top", complexity=4):
    """The best by one score within the top m of K by another column."""

    by: str
    """The column that decides which candidates are in the top."""
    top: int
    """The size of the top, which a tie at its end makes larger."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        return top_weights(key, pool.columns[self.by], self.top)


@dataclass(frozen=True, kw_only=True)
class Majority(SetSelector, kind="majority", complexity=2, votes=True):
    """Any candidate with the most frequent answer of K."""

    def of_all(self, pool: Pool) -> Floats:
        assert pool.answer is not None
        return winners(pool.answer, votes_for(pool.answer, np.ones(pool.shape)))


@dataclass(frozen=True, kw_only=True)
class WeightedVote(ScoreSelector, kind="weighted_vote", complexity=3, votes=True):
    """Any candidate with the answer whose candidates' scores add up to most."""

    beta: float | None = None
    """A vote counts exp(beta score); None: the score itself, which must not be negative."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        assert pool.answer is not None
        if self.beta is not None:
            key = soft_weights(key, self.beta)
        elif (key < 0).any():
            raise InputError(
                f"A weighted vote adds up scores, and '{self.score.name}' has negative ones; "
                "give beta, by which votes count exp(beta score)."
            )
        return winners(pool.answer, votes_for(pool.answer, key))


@dataclass(frozen=True, kw_only=True)
class BestInMajority(ScoreSelector, kind="best_in_majority", complexity=3, votes=True):
    """The best by a score among those with the most frequent answer of K."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return winners(pool.answer, counts, by=key)


@dataclass(frozen=True, kw_only=True)
class FunctionSelector(SetSelector, kind="function", complexity=4):
    """A user's selector: a function of the columns of one pool."""

    name: str
    """Its name in files and reports."""
    reads: tuple[str, ...]
    """The columns that the function gets."""
    function: WeightFunction
    """Column -> numbers ``[K]`` in, weights ``[K]`` out."""

    @property
    def called(self) -> str:
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.reads

    @property
    def parameters(self) -> dict[str, Any]:
        """What is needed to find it again; the function itself is the user's."""
        return {"function": self.name, "reads": list(self.reads)}

    def of_all(self, pool: Pool) -> Floats:
        m, n = pool.shape
        result = np.empty((m, n))
        for at in range(m):
            columns = {name: column[at] for name, column in pool.columns.items()}
            weights = np.asarray(self.function(columns), dtype=np.float64)
            if weights.shape != (n,) or not (weights >= 0).all() or weights.sum() > 1 + 1e-9:
                raise InputError(
                    f"The selector '{self.name}' must return {n} weights of at least 0 that sum "
                    "to 1 (or to less, where it abstains) for a pool of that size."
                )
            result[at] = weights
        return result


def soft_weights(scores: Floats, beta: float) -> Floats:
    """Shares of exp(beta score) ``[m, n]``; a score of -inf has none, unless all are."""
    top = scores.max(axis=1, keepdims=True)
    lowest = ~np.isfinite(top)
    with np.errstate(invalid="ignore", over="ignore"):
        raised = beta * (scores - np.where(lowest, 0.0, top))
    if beta == 0:
        raised = np.where(np.isneginf(scores), -np.inf, 0.0)
    chances = np.where(lowest, 1.0, np.exp(raised))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def chi2_weights(scores: Floats, beta: float) -> Floats:
    r"""Shares :math:`[s_i - \lambda]_+ / (n \beta)` with the lambda at which they sum to 1.

    With the scores in descending order lambda is the mean of the first j less n beta / j, for the
    largest j whose score is above it. Only differences of scores count.
    """
    m, n = scores.shape
    top = scores.max(axis=1, keepdims=True)
    lowest = ~np.isfinite(top)
    below = np.where(lowest, 0.0, scores - np.where(lowest, 0.0, top))  # at most 0
    if beta == 0:
        return best_weights(below)
    low = np.maximum(-np.sort(-below, axis=1), -2.0 * n * beta)  # lower than any lambda
    count = np.arange(1, n + 1)
    limit = (np.cumsum(low, axis=1) - n * beta) / count
    last = n - 1 - np.argmax((low > limit)[:, ::-1], axis=1)
    over = np.maximum(below - limit[np.arange(m), last][:, None], 0.0)
    return np.asarray(over / over.sum(axis=1, keepdims=True))


def best_weights(scores: Floats) -> Floats:
    """All on the highest score ``[m, n]``, ties shared."""
    top = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def top_weights(scores: Floats, by: Floats, top: int) -> Floats:
    """All on the best score of those that are no lower than the ``top``-th by another column."""
    place = min(top, scores.shape[1]) - 1
    edge = -np.partition(-by, place, axis=1)[:, place : place + 1]
    inside = by >= edge
    best = np.where(inside, scores, -np.inf).max(axis=1, keepdims=True)
    found = inside & (scores == best)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def votes_for(answer: Ints, counted: Floats) -> Floats:
    """Votes for each candidate's own answer ``[m, n]``: the sum over all that give it."""
    m, width = answer.shape[0], int(answer.max()) + 1
    cell = answer + np.arange(m)[:, None] * width
    return np.asarray(np.bincount(cell.reshape(-1), counted.reshape(-1), m * width)[cell])


def winners(answer: Ints, votes: Floats, by: Floats | None = None) -> Floats:
    """Shares of the candidates with the most votes ``[m, n]``.

    Answers with equally many votes have the same chance; within one the candidates share it, or
    those with the best ``by`` do.
    """
    most = votes.max(axis=1, keepdims=True)
    won = votes >= most - 1e-9 * np.abs(most)
    if by is not None:
        lowest = np.where(won, by, -np.inf)
        best = _best_of_answer(answer, lowest)
        won &= by == best
    size = votes_for(answer, won.astype(np.float64))
    share = np.where(won, 1.0 / np.maximum(size, 1.0), 0.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _best_of_answer(answer: Ints, scores: Floats) -> Floats:
    """The highest score among the candidates with the same answer ``[m, n]``."""
    m, n = answer.shape
    width = int(answer.max()) + 1
    cell = (answer + np.arange(m)[:, None] * width).reshape(-1)
    best = np.full(m * width, -np.inf)
    np.maximum.at(best, cell, scores.reshape(-1))
    return np.asarray(best[cell].reshape(m, n))
