r"""Exact best-of-K: what the top-scored of K candidates is worth, without drawing pools.

Drawing K of a pool's N candidates without replacement and keeping the one with the
highest score picks rank j (1 = lowest score) with probability

.. math:: w_j(K) = \binom{j-1}{K-1} \Big/ \binom{N}{K} = q_j(K) - q_{j-1}(K),
          \qquad q_j(K) = \binom{j}{K} \Big/ \binom{N}{K}.

Every curve here is an expectation under these weights. Tied scores share their weight
evenly (the pick among them is uniform), so row order never decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.stats.products import steady_product

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def selection_weights(n: int, k: Sequence[int]) -> Floats:
    r"""Probability that the best of K out of ``n`` candidates has score rank j.

    The rank probabilities follow from :math:`q_n(K) = 1` and
    :math:`q_{j-1}(K) = q_j(K)\,(j-K)/j`, a product of factors below one: nothing
    overflows for any pool size ``n``, and each K in 1..n costs one pass. Returns
    ``[len(k), n]``; row i sums to 1, column j-1 belongs to rank j (the last column is the
    highest score).

    Examples
    --------
    >>> selection_weights(4, [1, 2, 4])
    array([[0.25      , 0.25      , 0.25      , 0.25      ],
           [0.        , 0.16666667, 0.33333333, 0.5       ],
           [0.        , 0.        , 0.        , 1.        ]])
    """
    weights = np.empty((len(k), n))
    rank = np.arange(n, 0, -1, dtype=np.float64)  # n, n-1, ..., 1
    for row, size in zip(weights, k, strict=True):
        if not 1 <= size <= n:
            raise ValueError(f"K = {size} is outside 1..{n}, the pool size")
        factors = np.maximum(rank - size, 0.0) / rank
        q = np.concatenate(([1.0], np.cumprod(factors[:-1])))  # q_n, q_{n-1}, ..., q_1
        row[:] = (q * (size / rank))[::-1]
    return weights


def tie_starts(ordered: NDArray[np.generic]) -> Ints | None:
    """Flat positions where a new group of equal entries starts, rows apart.

    ``ordered`` is ``[m, n]`` with sorted rows. Returns None when nothing is tied.
    """
    new = np.empty(ordered.shape, dtype=bool)
    new[:, 0] = True
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    starts = np.flatnonzero(new)
    return None if starts.size == ordered.size else starts


def average_ties(columns: Floats, starts: Ints | None) -> Floats:
    """Replace each entry of ``columns`` ``[m, n]`` by the mean of its tie group."""
    if starts is None:
        return columns
    flat = columns.reshape(-1)
    counts = np.diff(starts, append=flat.size)
    means = np.add.reduceat(flat, starts) / counts
    return np.repeat(means, counts).reshape(columns.shape)


def best_of_k(scores: ArrayLike, columns: ArrayLike, k: Sequence[int]) -> Floats:
    r"""Expected value of the best of K by score, per query.

    .. math:: V(K) = \sum_{\text{tie groups}} \frac{\binom{U}{K} - \binom{L}{K}}{\binom{N}{K}}
              \cdot \overline{v}_{\text{group}}

    with L candidates strictly below the group and U = L + its size. Any column can take
    the place of the value: the off-support indicator gives the off-support rate at K,
    the score itself the selected score.

    Parameters
    ----------
    scores
        ``[m, n]``: m queries with n candidates each; larger is better; finite.
    columns
        ``[m, n]`` or ``[c, m, n]``: what to average over the pick.
    k
        Candidate counts, each in 1..n.

    Returns
    -------
    ``[m, len(k)]`` or ``[c, m, len(k)]``; V(1) is the pool mean. Larger is better when
    the column is a value. A NaN score or column makes that query's result NaN.

    Examples
    --------
    >>> best_of_k([[1.0, 2.0, 3.0]], [[0.0, 0.0, 1.0]], [1, 2, 3]).round(3)
    array([[0.333, 0.667, 1.   ]])

    References
    ----------
    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", for pass@k,
    the special case of binary values scored by themselves.
    """
    s = np.asarray(scores, dtype=np.float64)
    c = np.asarray(columns, dtype=np.float64)
    if s.ndim != 2 or c.shape[-2:] != s.shape:
        raise ValueError(f"scores {s.shape} and columns {c.shape} do not match as [m, n]")
    order = np.argsort(s, axis=1)
    starts = tie_starts(np.take_along_axis(s, order, axis=1))
    weights = selection_weights(s.shape[1], k).T
    stack = c[None] if c.ndim == 2 else c
    ordered = (average_ties(np.take_along_axis(x, order, axis=1), starts) for x in stack)
    result = np.stack([steady_product(x, weights) for x in ordered])
    result[:, np.isnan(s).any(axis=1)] = np.nan
    return result[0] if c.ndim == 2 else result


def oracle(values: ArrayLike, k: Sequence[int]) -> Floats:
    """Best possible with K: :func:`best_of_k` with the value as its own score.

    ``values`` is ``[m, n]``; returns ``[m, len(k)]``, non-decreasing in K.
    """
    return best_of_k(values, values, k)


def split_oracle(values: ArrayLike, k: Sequence[int]) -> Floats:
    """Oracle of a noisy judge: chosen on one half of its replicates, valued on the other.

    Choosing and valuing on the same noisy numbers credits the oracle with lucky noise.
    Here the replicates are split into two halves; the candidate is chosen by the mean of
    one and valued by the mean of the other, both ways round. The result errs downward
    (the choice is noisy), never upward.

    ``values`` is ``[r, m, n]`` with r >= 2 independent replicates; returns ``[m, len(k)]``.
    """
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 3 or v.shape[0] < 2:
        raise ValueError("a split oracle needs at least two replicates, as [r, m, n]")
    first, second = v[0::2].mean(axis=0), v[1::2].mean(axis=0)
    return (best_of_k(first, second, k) + best_of_k(second, first, k)) / 2


def normalized_regret(value: ArrayLike, oracle: ArrayLike, random: ArrayLike) -> Floats:
    """Mean regret over mean headroom: 0 is the oracle, 1 is random, above 1 worse than random.

    (oracle - value) / (oracle - random), of means over queries. Lower is better. NaN
    where the headroom is not above 0 (as at K = 1): there is nothing to normalize by.
    """
    top = np.asarray(oracle, dtype=np.float64)
    headroom = top - np.asarray(random, dtype=np.float64)
    regret = top - np.asarray(value, dtype=np.float64)
    positive = headroom > rounding(top)
    return np.where(positive, regret / np.where(positive, headroom, 1.0), np.nan)


def rounding(scale: ArrayLike) -> Floats:
    """Differences at or below this are rounding of numbers of that size, not effects."""
    return 1e-12 * np.abs(np.asarray(scale, dtype=np.float64))


def divergence_bound(k: ArrayLike) -> Floats:
    """Upper bound in nats of KL(best-of-K policy || proposal): ln K - (K - 1)/K.

    Exact for a proposal without atoms and a score without ties, an upper bound
    otherwise (Beirami et al., 2024, "Theoretical guarantees on the best-of-n alignment
    policy").
    """
    count = np.asarray(k, dtype=np.float64)
    return np.asarray(np.log(count) - (count - 1.0) / count)
