"""Weights that depend on which candidates there are: chances, regularization, votes."""

from __future__ import annotations

import numpy as np

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
