r"""Score deciles: what a candidate of the d-th tenth of the scores is worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from toptail.stats.best_of_k import Floats, Ints, average_ties, tie_starts
from toptail.stats.products import steady_product


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


def pooled_bins(scores: Floats, bins: int = 10) -> tuple[Ints, Floats]:
    """Which bin of the pooled scores each candidate falls into, without sorting them all.

    Returns ``category [n]`` and ``share [categories, bins]``: candidate i belongs to bin
    b with weight ``share[category[i], b]``, summing to 1 over b. A candidate is inside
    one bin unless its score is tied across a bin edge; a tied group is split evenly. The
    two together give exactly :func:`decile_means` of all scores, and let sums per query
    be taken bin by bin.
    """
    edges = np.unique(np.partition(scores, at := edge_ranks(scores.size, bins))[at])
    category = categories(scores, edges)
    counts = np.bincount(category, minlength=2 * edges.size + 1)
    return category, category_shares(counts, bins)


def edge_ranks(n: int, bins: int = 10) -> Ints:
    """Which of ``n`` scores in ascending order, counted from 0, stand on the edges of bins."""
    return np.unique(np.minimum((np.arange(1, bins) * n) // bins, n - 1))


def categories(scores: Floats, edges: Floats) -> Ints:
    """2i for scores strictly between the sorted edges i-1 and i, 2i+1 for those at edge i."""
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
