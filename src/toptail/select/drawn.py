"""Selectors without a closed form: their weights depend on which candidates are at hand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toptail.errors import InputError
from toptail.select.base import SetSelector
from toptail.select.pool import Pool, ScoreRule
from toptail.stats.best_of_k import Floats, Ints


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
        """The mean over the scores that may decide."""
        parts = [self.of_key(key, pool) for key in self.score.keys(pool)]
        return np.asarray(sum(parts) / len(parts))


@dataclass(frozen=True, kw_only=True)
class Soft(ScoreSelector, kind="soft", complexity=3):
    """One of K with chances that grow as exp(beta score) (Verdun et al., 2025)."""

    beta: float
    """Inverse temperature, over units of the score: 0 is random, infinity the best of K."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        """Shares of exp(beta score)."""
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
        """Shares of the regularized policy."""
        del pool
        return chi2_weights(key, self.beta)


@dataclass(frozen=True, kw_only=True)
class RankEnsemble(ScoreSelector, kind="ranks", complexity=1):
    """The best of K by several scores, joined as ranks among the K."""

    @property
    def called(self) -> str:
        """How the scores are joined."""
        return self.score.how

    @property
    def family(self) -> str:
        """How the scores are joined, with the scale."""
        return f"{self.called}({self.score.name}, ranks)"

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        """All on the highest, ties shared."""
        del pool
        return best_weights(key)


@dataclass(frozen=True, kw_only=True)
class TopBy(ScoreSelector, kind="top", complexity=4):
    """The best by one score within the top m of K by another column."""

    by: str
    """The column that decides which candidates are in the top."""
    top: int
    """The size of the top, which a tie at its end makes larger."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        """All on the best of the top."""
        return top_weights(key, pool.columns[self.by], self.top)


@dataclass(frozen=True, kw_only=True)
class Majority(SetSelector, kind="majority", complexity=2, votes=True):
    """Any candidate with the most frequent answer of K."""

    def of_all(self, pool: Pool) -> Floats:
        """Shared by all that give a winning answer."""
        assert pool.answer is not None
        return winners(pool.answer, votes_for(pool.answer, np.ones(pool.shape)))


@dataclass(frozen=True, kw_only=True)
class WeightedVote(ScoreSelector, kind="weighted_vote", complexity=3, votes=True):
    """Any candidate with the answer whose candidates' scores add up to most."""

    beta: float | None = None
    """A vote counts exp(beta score); None: the score itself, which must not be negative."""

    def of_key(self, key: Floats, pool: Pool) -> Floats:
        """Shared by all that give the winning answer."""
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
        """The best of each winning answer, each with the same chance."""
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return winners(pool.answer, counts, by=key)


@dataclass(frozen=True, kw_only=True)
class Own(SetSelector, kind="function", complexity=4):
    """A user's selector: a function of the columns of one pool."""

    name: str
    """Its name in files and reports."""
    reads: tuple[str, ...]
    """The columns that the function gets."""
    function: WeightFunction
    """Column -> numbers ``[K]`` in, weights ``[K]`` out."""

    @property
    def called(self) -> str:
        """The function's name."""
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the function gets."""
        return self.reads

    @property
    def parameters(self) -> dict[str, Any]:
        """What is needed to find it again; the function itself is the user's."""
        return {"function": self.name, "reads": list(self.reads)}

    def of_all(self, pool: Pool) -> Floats:
        """What the function returns, pool by pool, checked."""
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
