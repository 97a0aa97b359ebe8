"""Selectors without a closed form: their weights depend on which candidates are at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

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
        return of_groups(below)
    low = np.maximum(-np.sort(-below, axis=1), -2.0 * n * beta)  # lower than any lambda
    count = np.arange(1, n + 1)
    limit = (np.cumsum(low, axis=1) - n * beta) / count
    last = n - 1 - np.argmax((low > limit)[:, ::-1], axis=1)
    over = np.maximum(below - limit[np.arange(m), last][:, None], 0.0)
    return np.asarray(over / over.sum(axis=1, keepdims=True))


def of_groups(scores: Floats) -> Floats:
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
class Soft(SetSelector):
    """One of K with chances that grow as exp(beta score) (Verdun et al., 2025)."""

    kind: ClassVar[str] = "soft"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What the chances grow with."""
    beta: float
    """Inverse temperature, over units of the score: 0 is random, infinity the best of K."""

    def of_all(self, pool: Pool) -> Floats:
        """The chances."""
        return mean_of([soft_weights(key, self.beta) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Chi2(SetSelector):
    r"""Inference-time pessimism: chances that grow as :math:`[score - \lambda]_+ / \beta`.

    The policy of chi-squared regularization with regard to the candidates at hand (Huang et
    al., 2025, "Is best-of-N the best of them?"), by its weights in place of rejection.
    """

    kind: ClassVar[str] = "chi2"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What the chances grow with."""
    beta: float
    """Strength, in units of the score: 0 is the best of K, infinity random."""

    def of_all(self, pool: Pool) -> Floats:
        """The chances."""
        return mean_of([chi2_weights(key, self.beta) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class RankEnsemble(SetSelector):
    """The best of K by several scores, joined as ranks among the K."""

    kind: ClassVar[str] = "ranks"
    complexity: ClassVar[int] = 1
    score: ScoreRule
    """How they are joined."""

    @property
    def called(self) -> str:
        """How the scores are joined."""
        return self.score.how

    @property
    def family(self) -> str:
        """With the scale."""
        return f"{self.called}({self.score.name}, ranks)"

    def of_all(self, pool: Pool) -> Floats:
        """All on the highest, ties shared."""
        return of_groups(self.score.keys(pool)[0])


@dataclass(frozen=True, kw_only=True)
class TopBy(SetSelector):
    """The best by one score within the top m of K by another column."""

    kind: ClassVar[str] = "top"
    complexity: ClassVar[int] = 4
    score: ScoreRule
    """What decides in the end."""
    by: str
    """What decides who is in the top."""
    top: int
    """How many there are in it."""

    def of_all(self, pool: Pool) -> Floats:
        """All on the best of the top, which a tie at its end makes larger."""
        by = pool.columns[self.by]
        return mean_of([top_weights(key, by, self.top) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Majority(SetSelector):
    """Any candidate with the most frequent answer of K."""

    kind: ClassVar[str] = "majority"
    votes: ClassVar[bool] = True
    complexity: ClassVar[int] = 2

    def of_all(self, pool: Pool) -> Floats:
        """Shared by all that give a winning answer."""
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return winners(pool.answer, counts)


@dataclass(frozen=True, kw_only=True)
class WeightedVote(SetSelector):
    """Any candidate with the answer whose candidates' scores add up to most."""

    kind: ClassVar[str] = "weighted_vote"
    votes: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What votes count."""
    beta: float | None = None
    """A vote counts exp(beta score); None: the score itself, which must not be negative."""

    def of_all(self, pool: Pool) -> Floats:
        """Shared by all that give the winning answer."""
        assert pool.answer is not None
        answer = pool.answer
        return mean_of(
            [winners(answer, votes_for(answer, self._counted(k))) for k in self.score.keys(pool)]
        )

    def _counted(self, key: Floats) -> Floats:
        if self.beta is None:
            if (key < 0).any():
                raise InputError(
                    f"A weighted vote adds up scores, and '{self.score.name}' has negative ones; "
                    "give beta, by which votes count exp(beta score)."
                )
            return key
        return soft_weights(key, self.beta)


@dataclass(frozen=True, kw_only=True)
class BestInMajority(SetSelector):
    """The best by a score among those with the most frequent answer of K."""

    kind: ClassVar[str] = "best_in_majority"
    votes: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What decides among them."""

    def of_all(self, pool: Pool) -> Floats:
        """The best of each winning answer, each with the same chance."""
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return mean_of([winners(pool.answer, counts, by=key) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Own(SetSelector):
    """A user's selector: a function of the columns of one pool."""

    kind: ClassVar[str] = "function"
    complexity: ClassVar[int] = 4
    name: str
    """What it is called."""
    reads: tuple[str, ...]
    """The columns that it is given."""
    function: WeightFunction
    """Column -> numbers ``[K]`` in, weights ``[K]`` out."""

    @property
    def called(self) -> str:
        """The function's name."""
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it is given."""
        return self.reads

    @property
    def parameters(self) -> dict[str, Any]:
        """What is needed to find it again; the function itself is the user's."""
        return {"function": self.name, "reads": list(self.reads)}

    def of_all(self, pool: Pool) -> Floats:
        """What the function says, pool by pool, checked."""
        m, n = pool.shape
        result = np.empty((m, n))
        for at in range(m):
            seen = {name: column[at] for name, column in pool.columns.items()}
            weights = np.asarray(self.function(seen), dtype=np.float64)
            if weights.shape != (n,) or not (weights >= 0).all() or weights.sum() > 1 + 1e-9:
                raise InputError(
                    f"The selector '{self.name}' must return {n} weights of at least 0 that sum "
                    "to 1 (or to less, where it abstains) for a pool of that size."
                )
            result[at] = weights
        return result


def mean_of(parts: list[Floats]) -> Floats:
    """Each decides with the same chance."""
    return np.asarray(sum(parts) / len(parts))
