r"""Ranks: Kendall tau_b, Spearman, AUC, recall, score deciles, and order statistics of a stream.

Ties are decided openly.
"""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.stats.best_of_k import Floats, Ints, average_ties, steady_product, tie_starts

AnyInts = NDArray[np.int32] | NDArray[np.int64]

# Rows are worked through in blocks of about this many entries, so that temporaries stay in cache.
_BLOCK = 1 << 17


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> Floats:
    r"""Kendall's tau_b between matching rows of ``x`` and ``y``.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_x)(n_0 - n_y)}}, \qquad n_0 = n(n-1)/2

    with C concordant and D discordant pairs, :math:`n_x` and :math:`n_y` the pairs tied
    in x and in y. D is counted for all rows at once in O(n log n) (see
    :func:`count_inversions`). ``[m, n]`` or ``[n]`` in, ``[m]`` or 0-d out, in [-1, 1],
    larger = better agreement. NaN where x or y does not vary or holds a NaN: undefined, not
    zero.

    References
    ----------
    Kendall (1945), "The treatment of ties in ranking problems"; Knight (1966), "A
    computer method for calculating Kendall's tau with ungrouped data".

    Examples
    --------
    >>> float(kendall_tau_b([1.0, 2.0, 3.0, 3.0], [1.0, 3.0, 2.0, 4.0]).round(4))
    0.5477
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"x {a.shape} and y {b.shape} must both be [n] or [m, n]")
    if a.ndim == 1:
        return np.asarray(kendall_tau_b(a[None], b[None])[0])
    m, n = a.shape
    result = np.full(m, np.nan)
    if n < 2:
        return result
    rows = max(1, _BLOCK // n)
    for start in range(0, m, rows):
        block = slice(start, start + rows)
        result[block] = tau_b_of_ranks(*dense_ranks(a[block]), *dense_ranks(b[block]))
    result[np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)] = np.nan
    return result


def tau_b_of_ranks(x_rank: Ints, x_ties: Ints, y_rank: Ints, y_ties: Ints) -> Floats:
    """:func:`kendall_tau_b` from what :func:`dense_ranks` returned for x and for y."""
    m, n = x_rank.shape
    # One integer sort puts each row in order of x, then y; the low bits are then y's ranks.
    key = _pack(x_rank, y_rank, n)
    key.sort(axis=1)
    both = _pairs_in_ties(tie_starts(key), m, n)
    discordant = count_inversions(_low_bits(key, n))
    pairs = n * (n - 1) // 2
    numerator = pairs - x_ties - y_ties + both - 2 * discordant
    spread = (pairs - x_ties).astype(np.float64) * (pairs - y_ties)
    tau = numerator / np.sqrt(np.where(spread > 0, spread, np.nan))
    return np.asarray(np.clip(tau, -1.0, 1.0))


def _pack(high: AnyInts, low: AnyInts, n: int) -> AnyInts:
    """Both ranks (each below n) in one integer, the narrowest that holds them."""
    bits = int(n - 1).bit_length()
    if 2 * bits < 32:
        return (high.astype(np.int32) << bits) | low.astype(np.int32)
    return (high.astype(np.int64) << bits) | low.astype(np.int64)


def _low_bits(packed: AnyInts, n: int) -> AnyInts:
    return packed & ((1 << int(n - 1).bit_length()) - 1)


def dense_ranks(x: Floats, order: Ints | None = None) -> tuple[Ints, Ints]:
    """Ranks 0.. with ties equal, and the number of tied pairs, per row of ``[m, n]``.

    ``order`` is ``argsort(x, axis=1)`` where the caller already has it.
    """
    m, n = x.shape
    if order is None:
        order = np.argsort(x, axis=1)
    ordered = np.take_along_axis(x, order, axis=1)
    rank = np.empty((m, n), dtype=np.int64)
    step = np.zeros((m, n), dtype=np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=step[:, 1:])
    np.put_along_axis(rank, order, step, axis=1)
    return rank, _pairs_in_ties(tie_starts(ordered), m, n)


def _pairs_in_ties(starts: Ints | None, m: int, n: int) -> Ints:
    if starts is None:
        return np.zeros(m, dtype=np.int64)
    counts = np.diff(starts, append=m * n)
    pairs = counts * (counts - 1) // 2
    return np.bincount(starts // n, weights=pairs, minlength=m).astype(np.int64)


def count_inversions(ranks: AnyInts) -> Ints:
    """Pairs i < j with ``ranks[i] > ranks[j]``, per row of ``[m, n]`` integers in 0..n-1.

    Equal entries are never inverted: numbering them in the order they stand makes each
    row a permutation. A permutation of 0..2^b - 1 is then split by its highest bit:
    each low entry that stands behind high entries of its group contributes inversions,
    and both halves go on with one bit less. All rows and all groups of one bit are
    handled together: b passes over the data.
    """
    m, n = ranks.shape
    width = 1 << int(n - 1).bit_length()
    position = np.broadcast_to(np.arange(n), (m, n))
    packed = _pack(ranks, position, n)
    packed.sort(axis=1)
    order = _low_bits(packed, n)  # argsort of ranks, equal ones in the order they stand
    a = np.empty((m, width), dtype=np.int32)
    np.put_along_axis(a[:, :n], order, np.arange(n, dtype=np.int32)[None], axis=1)
    a[:, n:] = np.arange(n, width)  # padding: the largest, at the end, never inverted
    total = np.zeros(m, dtype=np.int64)
    row_start = np.arange(m, dtype=np.int64) * width
    half = width // 2
    while half:
        groups = width // (2 * half)
        is_low = (a & half) == 0
        low, high = (np.flatnonzero(z).reshape(m, groups, half) for z in (is_low, ~is_low))
        # Positions of the low entries in their groups, less the low entries before them.
        group_starts = 2 * half * half * (groups * (groups - 1) // 2)
        lows_before = groups * (half * (half - 1) // 2)
        total += low.sum(axis=(1, 2)) - row_start * (groups * half) - group_starts - lows_before
        a = a.reshape(-1)[np.concatenate([low, high], axis=2)].reshape(m, width)
        half //= 2
    return total


def spearman(x: ArrayLike, y: ArrayLike) -> Floats:
    """Spearman's rho between matching rows of ``x`` and ``y`` (average ranks for ties).

    ``[m, n]`` or ``[n]`` in, ``[m]`` or 0-d out, in [-1, 1]; NaN where a row does not
    vary or holds a NaN.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"x {a.shape} and y {b.shape} must both be [n] or [m, n]")
    if a.ndim == 1:
        return np.asarray(spearman(a[None], b[None])[0])
    p, q = (r - r.mean(axis=1, keepdims=True) for r in (average_ranks(a), average_ranks(b)))
    spread = np.sqrt((p**2).sum(axis=1) * (q**2).sum(axis=1))
    defined = (spread > 0) & ~np.isnan(a).any(axis=1) & ~np.isnan(b).any(axis=1)
    rho = (p * q).sum(axis=1) / np.where(spread > 0, spread, 1.0)
    return np.where(defined, np.clip(rho, -1.0, 1.0), np.nan)


def average_ranks(x: Floats) -> Floats:
    """Ranks 1..n per row of ``[m, n]``; tied entries get the mean of their ranks."""
    order = np.argsort(x, axis=1)
    starts = tie_starts(np.take_along_axis(x, order, axis=1))
    position = np.broadcast_to(np.arange(1.0, x.shape[1] + 1), x.shape)
    ranks = np.empty(x.shape)
    np.put_along_axis(ranks, order, average_ties(position, starts), axis=1)
    return ranks


def placements(scores: ArrayLike, positive: ArrayLike) -> Floats:
    r"""Share of the other class that each candidate beats; ties count half.

    For a positive: the share of negatives scored below it; for a negative: the share of
    positives scored above it. The mean over either class is the AUC, and their spread
    its sampling error (DeLong et al., 1988). ``[n]`` in, ``[n]`` out; NaN where the
    other class is empty.
    """
    s, pos = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    result = np.full(s.shape, np.nan)
    ranks = {True: np.sort(s[pos]), False: np.sort(s[~pos])}
    for label in (True, False):
        other = ranks[not label]
        if other.size:
            mine = s[pos == label]
            below = np.searchsorted(other, mine, "left") + np.searchsorted(other, mine, "right")
            share = below / (2 * other.size)
            result[pos == label] = share if label else 1.0 - share
    return np.where(np.isnan(s).any(), np.nan, result)


def auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Area under the ROC curve: P(positive scores above negative) + half P(tie).

    ``scores`` and the boolean ``positive`` are ``[n]``. In [0, 1], larger is better,
    0.5 is chance. NaN without both classes or with a NaN score.

    >>> auc([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    0.875
    """
    pos = np.asarray(positive, dtype=bool)
    if pos.all() or not pos.any():
        return float("nan")
    return float(placements(scores, pos)[pos].mean())


def row_auc(scores: ArrayLike, positive: ArrayLike) -> Floats:
    """:func:`auc` of each row of ``[m, n]``; NaN for rows of one class only."""
    s, pos = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    ranks = average_ranks(s)
    p = pos.sum(axis=1)
    q = pos.shape[1] - p
    wins = (ranks * pos).sum(axis=1) - p * (p + 1) / 2
    defined = (p > 0) & (q > 0) & ~np.isnan(s).any(axis=1)
    return np.where(defined, wins / np.maximum(p * q, 1), np.nan)


def recall_at_k(scores: ArrayLike, target: ArrayLike, k: int) -> Floats:
    """Chance that the target is among the k highest scores, ties in random order.

    ``scores`` is ``[m, n]``, ``target`` ``[m]`` holds the target's column; returns
    ``[m]`` in [0, 1], larger is better: clip((k - above)/tied, 0, 1) with ``above``
    scores strictly higher and ``tied`` equal to the target's (itself included).
    """
    s = np.asarray(scores, dtype=np.float64)
    own = np.take_along_axis(s, np.asarray(target, dtype=np.int64)[:, None], axis=1)
    above, tied = (s > own).sum(axis=1), (s == own).sum(axis=1)
    share = np.clip((k - above) / np.maximum(tied, 1), 0.0, 1.0)
    return np.where(np.isnan(s).any(axis=1), np.nan, share)


def paired_win_rate(positive: ArrayLike, negative: ArrayLike) -> Floats:
    """1 where the positive scores higher, 0 where lower, half where tied; elementwise."""
    p, q = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    wins = np.where(p > q, 1.0, np.where(p < q, 0.0, 0.5))
    return np.where(np.isnan(p) | np.isnan(q), np.nan, wins)


def bin_shares(n: int, bins: int = 10) -> Floats:
    """Overlap of rank j's slot [(j-1)/n, j/n] with each of ``bins`` equal bins, times ``bins``.

    ``[n, bins]``; each column sums to 1, so that ``ordered_values @ bin_shares(n)`` are
    bin means. With n a multiple of ``bins`` each rank falls into one bin; otherwise a
    rank on an edge is shared in proportion.
    """
    edges = np.arange(bins + 1) / bins
    left, right = np.arange(n)[:, None] / n, np.arange(1, n + 1)[:, None] / n
    overlap = np.minimum(right, edges[1:]) - np.maximum(left, edges[:-1])
    return np.asarray(np.clip(overlap, 0.0, None) * bins)


def decile_means(scores: ArrayLike, values: ArrayLike, bins: int = 10) -> Floats:
    """Mean value per score bin, lowest scores first; tied scores are split evenly.

    ``scores`` and ``values`` are ``[n]`` or ``[m, n]`` (bins formed inside each row);
    returns ``[bins]`` or ``[m, bins]``. A calibrated score rises from left to right.
    NaN where a score or value is NaN.

    >>> decile_means([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 1.0], bins=2)
    array([0., 1.])
    """
    s, v = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if s.ndim == 1:
        return np.asarray(decile_means(s[None], v[None], bins)[0])
    order = np.argsort(s, axis=1)
    starts = tie_starts(np.take_along_axis(s, order, axis=1))
    ordered = average_ties(np.take_along_axis(v, order, axis=1), starts)
    means: Floats = steady_product(ordered, bin_shares(s.shape[1], bins))
    means[np.isnan(s).any(axis=1)] = np.nan
    return means


def decile_gap(means: ArrayLike) -> Floats:
    """Top bin less bottom bin along the last axis: positive when high scores mean high value."""
    m = np.asarray(means, dtype=np.float64)
    return np.asarray(m[..., -1] - m[..., 0])


def edge_ranks(n: int, bins: int = 10) -> Ints:
    """Which of ``n`` scores in ascending order, counted from 0, stand on the edges of bins."""
    return np.unique(np.minimum((np.arange(1, bins) * n) // bins, n - 1))


def categories(scores: Floats, edges: Floats) -> Ints:
    """Number of each score's category: 2i between the sorted edges i-1 and i, 2i+1 at edge i."""
    category = np.searchsorted(edges, scores, "left") + np.searchsorted(edges, scores, "right")
    return category.astype(np.int64)


def category_shares(counts: Ints, bins: int = 10) -> Floats:
    """How much of each category lies in each bin ``[categories, bins]``, rows summing to 1."""
    n = int(counts.sum())
    upper = np.cumsum(counts) / n
    lower = upper - counts / n
    limits = np.arange(bins + 1) / bins
    overlap = np.minimum(upper[:, None], limits[1:]) - np.maximum(lower[:, None], limits[:-1])
    return np.asarray(np.clip(overlap, 0.0, None) * (n / np.maximum(counts, 1))[:, None])


_BITS: Final = 20
"""How many bits of a number one pass decides."""
_FEW: Final = 1 << 22
"""When at most so many numbers are left, they are stored and sorted in the next pass."""


class OrderStatistics:
    """The numbers at given ranks of a stream, exact, after at most five passes over it.

    Floats are ordered as their bits, read as whole numbers. A pass counts the numbers that share
    their highest bits with a wanted one; once those are few, the next pass stores and sorts them.
    Call :meth:`add` for every piece and :meth:`end` after the last one, until :attr:`found` is not
    None.

    Examples
    --------
    >>> middle = OrderStatistics(np.array([2]))
    >>> while middle.found is None:
    ...     for piece in ([5.0, -1.0], [3.0], [4.0, 0.0]):
    ...         middle.add(np.array(piece))
    ...     middle.end()
    >>> middle.found
    array([3.])
    """

    def __init__(self, ranks: Ints) -> None:
        self.found: Floats | None = None if ranks.size else np.empty(0)
        """The numbers ``[ranks]``, once they are known."""
        self._rank = ranks.astype(np.int64)
        self._known = 0
        self._prefix = np.zeros(ranks.size, dtype=np.uint64)
        self._open = np.zeros(1, dtype=np.uint64)
        self._counts = np.zeros((1, 1 << _BITS), dtype=np.int64)
        self._stored: list[NDArray[np.uint64]] | None = None

    def add(self, numbers: Floats) -> None:
        """Count or store one piece of the stream."""
        key = _keys(numbers)
        if self._known:
            head = key >> np.uint64(64 - self._known)
            at = np.searchsorted(self._open, head)
            at[at == self._open.size] = 0
            meant = self._open[at] == head
            key, at = key[meant], at[meant]
        else:
            at = np.zeros(key.size, dtype=np.int64)
        if self._stored is not None:
            self._stored.append(key)
            return
        width = self._counts.shape[1]
        digit = (key << np.uint64(self._known)) >> np.uint64(64 - _width(self._known))
        cell = at * width + digit.astype(np.int64)
        self._counts += np.bincount(cell, minlength=self._counts.size).reshape(-1, width)

    def blank(self) -> OrderStatistics:
        """An empty counter for other pieces of the same pass, for :meth:`merge`."""
        other = copy(self)
        other._counts = np.zeros_like(self._counts)
        other._stored = None if self._stored is None else []
        return other

    def merge(self, other: OrderStatistics) -> None:
        """Add the counts of a :meth:`blank` one."""
        if self._stored is not None and other._stored is not None:
            self._stored += other._stored
        else:
            self._counts += other._counts

    def end(self) -> None:
        if self._stored is not None:
            self._settle(np.sort(np.concatenate(self._stored)))
            return
        bits = _width(self._known)
        below = np.cumsum(self._counts, axis=1)
        group = np.searchsorted(self._open, self._prefix)
        digit = np.array(
            [np.searchsorted(below[g], r, "right") for g, r in zip(group, self._rank, strict=True)],
            dtype=np.int64,
        )
        inside = self._counts[group, digit]
        self._rank -= below[group, digit] - inside
        self._prefix = (self._prefix << np.uint64(bits)) | digit.astype(np.uint64)
        self._known += bits
        self._open, first = np.unique(self._prefix, return_index=True)
        if self._known == 64:
            self.found = _numbers(self._prefix)
        elif int(inside[first].sum()) <= _FEW:
            self._stored = []
        else:
            self._counts = np.zeros((self._open.size, 1 << _width(self._known)), dtype=np.int64)

    def _settle(self, key: NDArray[np.uint64]) -> None:
        head = key >> np.uint64(64 - self._known)
        self.found = _numbers(key[np.searchsorted(head, self._prefix) + self._rank])


def _width(known: int) -> int:
    return min(_BITS, 64 - known)


def _keys(numbers: Floats) -> NDArray[np.uint64]:
    """Whole numbers in the order of the floats."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    flip = np.where(bits >> np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1 << 63))
    return bits ^ flip


def _numbers(key: NDArray[np.uint64]) -> Floats:
    """The floats that :func:`_keys` came from."""
    flip = np.where(key >> np.uint64(63), np.uint64(1 << 63), np.uint64(0xFFFFFFFFFFFFFFFF))
    return (key ^ flip).view(np.float64)
