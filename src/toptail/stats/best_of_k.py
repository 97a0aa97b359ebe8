r"""Exact best-of-K: what the top-scored of K candidates is worth, without drawing pools.

Drawing K of a pool's N candidates without replacement and keeping the one with the
highest score picks rank j (1 = lowest score) with probability

.. math:: w_j(K) = \binom{j-1}{K-1} \Big/ \binom{N}{K} = q_j(K) - q_{j-1}(K),
          \qquad q_j(K) = \binom{j}{K} \Big/ \binom{N}{K}.

Every curve here is an expectation under these weights. Tied scores share their weight
evenly (the pick among them is uniform), so row order never decides. :class:`KGrid` says at
which K an audit looks, and :func:`steady_product` multiplies with the same bits for any
number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

SERIAL: Final = 1 << 18
"""Multiplications of a product that OpenBLAS, which comes with NumPy, makes with one thread."""
GROUP: Final = 8
"""Rows that are multiplied together, at least."""


def steady_product(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """``left [m, n] @ right [n, k]``, in pieces that BLAS does not share out among threads.

    How a product is shared out among threads decides its last bits. Callers use the other cores by
    computing several products at once.

    Examples
    --------
    >>> steady_product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    (m, n), k = left.shape, right.shape[1]
    if m == 1 or k == 1:  # a vector is shared out much sooner
        wide = np.repeat(left, 2, axis=0) if m == 1 else left
        return steady_product(wide, np.repeat(right, 2, axis=1) if k == 1 else right)[:m, :k]
    depth = max(1, min(n, SERIAL // (GROUP * max(k, 1))))
    rows = max(GROUP, SERIAL // (depth * max(k, 1)))
    result = np.zeros((m, k))
    for start in range(0, m, rows):
        at = slice(max(0, min(start, m - rows)), start + rows)  # never a single row
        result[at] = left[at, :depth] @ right[:depth]
        for first in range(depth, n, depth):
            result[at] += left[at, first : first + depth] @ right[first : first + depth]
    return result


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


PER_OCTAVE: Final = 8
"""K of a fine grid between K and 2K; so it has every K up to twice as many."""
_SMALL: Final = 0.05
"""Pools below this quantile of sizes are left out unless a smallest size is declared."""


def smallest_pool(sizes: Ints, min_pool: int | None) -> int:
    """The size below which pools are left out, so that a few small pools do not cap K for all.

    It is ``min_pool`` or, by default, the 5 % quantile of ``sizes``.
    """
    return int(np.quantile(sizes, _SMALL, method="lower") if min_pool is None else min_pool)


@dataclass(frozen=True)
class KGrid:
    """The K of one audit: those that decide its verdicts, and those that it shows."""

    shown: tuple[int, ...]
    """The K of curves and tables, ascending: 1, 2, 4, ..., k_max and those asked for."""
    deciding: tuple[int, ...]
    """The K whose steps decide the verdict, from 1 to k_max."""

    @classmethod
    def up_to(cls, k_max: int, more: Iterable[int] = ()) -> KGrid:
        """The powers of two and ``k_max``, and more to show."""
        deciding = {1 << power for power in range(k_max.bit_length())} | {k_max}
        return cls(tuple(sorted(deciding | {int(k) for k in more})), tuple(sorted(deciding)))

    @classmethod
    def fine(cls, k_max: int, more: Iterable[int] = ()) -> KGrid:
        """Every K up to 16, then eight for each doubling; it shows what `up_to` does.

        >>> KGrid.fine(24).deciding[-6:]
        (15, 16, 18, 20, 22, 24)
        """
        k, deciding = 1, []
        while k < k_max:
            deciding.append(k)
            k += max(1, (1 << k.bit_length() - 1) // PER_OCTAVE)
        return cls(cls.up_to(k_max, more).shown, (*deciding, k_max))

    def doublings(self) -> KGrid:
        """The grid that shows the same K and decides by powers of two, where steps are costly."""
        return KGrid.up_to(self.k_max, self.shown)

    @property
    def k_max(self) -> int:
        """The largest K, which every pool allows."""
        return self.deciding[-1]

    @property
    def any_two(self) -> str:
        """The phrase "any two K", which says where the grid leaves out some K."""
        if len(self.deciding) == self.k_max:
            return f"any two K up to {self.k_max}"
        which = f"{', '.join(map(str, self.deciding[:-1]))} and {self.k_max}"
        if self.deciding == KGrid.fine(self.k_max).deciding:
            every = 2 * PER_OCTAVE
            which = f"every K up to {every}, then {PER_OCTAVE} for each doubling up to {self.k_max}"
        return f"any two of the K looked at ({which})"

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """Every K at which V(K) is needed, ascending."""
        return tuple(sorted({*self.shown, *self.deciding}))

    @cached_property
    def deciding_at(self) -> Ints:
        """Positions of the deciding K among the measured."""
        return np.searchsorted(self.measured, self.deciding).astype(np.int64)

    @cached_property
    def shown_at(self) -> Ints:
        """Positions of the shown K among the measured."""
        return np.searchsorted(self.measured, self.shown).astype(np.int64)

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The steps K1 < K2 between deciding K, ordered by K2."""
        return tuple(sorted(combinations(self.deciding, 2), key=lambda step: step[::-1]))

    @cached_property
    def first(self) -> Ints:
        """Where each change starts among the measured K: the steps, then 1 to each shown K."""
        starts = np.array([a for a, _ in self.steps] + [1] * len(self.shown))
        return np.searchsorted(self.measured, starts).astype(np.int64)

    @cached_property
    def second(self) -> Ints:
        """Where each change ends among the measured K."""
        ends = np.array([b for _, b in self.steps] + list(self.shown))
        return np.searchsorted(self.measured, ends).astype(np.int64)
