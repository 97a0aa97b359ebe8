r"""Which candidates to judge: chances that make contrasts vary least, and draws that can grow.

With independent draws of chances p the variance of :math:`\sum_i c_i z_i` is
:math:`\sum_i c_i^2 \sigma_i^2 (1 - p_i)/p_i`, where :math:`\sigma_i` is how far predictions are
off. Summed over contrasts and for a given number of labels it is least for p in proportion to
:math:`\sigma_i \sqrt{\sum c_i^2}` (Neyman, 1934).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from toptail.stats.best_of_k import Floats, Ints, selection_weights, tie_starts


def contrast_sizes(scores: Floats, k: tuple[int, ...], first: Ints, second: Ints) -> Floats:
    """Sum of squared weights of the changes V(k[second]) - V(k[first]), by candidate ``[m, n]``.

    Tied scores share their weights evenly.
    """
    weights = selection_weights(scores.shape[1], k)
    change = (weights[second] - weights[first]).T
    order = np.argsort(scores, axis=1)
    starts = tie_starts(np.take_along_axis(scores, order, axis=1))
    result = np.empty(scores.shape)
    if starts is None:
        np.put_along_axis(result, order, (change**2).sum(axis=1)[None], axis=1)
        return result
    flat = np.tile(change, (len(scores), 1))
    counts = np.diff(starts, append=flat.shape[0])
    means = np.add.reduceat(flat, starts, axis=0) / counts[:, None]
    sizes = np.repeat((means**2).sum(axis=1), counts).reshape(scores.shape)
    np.put_along_axis(result, order, sizes, axis=1)
    return result


def chances(size: Floats, labels: float, least: float) -> Floats:
    """Chances in proportion to ``size``, between ``least`` times their mean and 1.

    They add up to ``labels``, where 0 < labels <= size.size.
    """
    low = least * labels / size.size
    root = np.maximum(size, 1e-12 * size.max()) if size.max() > 0 else np.ones(size.size)
    root = root / root.mean()
    small, large = 0.0, max(1.0, 1.0 / root.min())
    for _ in range(60):  # bisection: the sum grows with the scale
        scale = (small + large) / 2
        if np.clip(scale * root, low, 1.0).sum() < labels:
            small = scale
        else:
            large = scale
    return np.asarray(np.clip(small * root, low, 1.0))


def expected_largest(n: int) -> float:
    """Expected largest of ``n`` standard normal numbers.

    >>> round(expected_largest(2), 4)
    0.5642
    """
    rank = (np.arange(20_000) + 0.5) / 20_000
    return float(ndtri(rank ** (1.0 / n)).mean())
