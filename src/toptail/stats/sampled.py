r"""Sums over candidates of which only some were judged, by a design that is known.

What an audit averages is :math:`\sum_i c_i y_i` with weights c that are known before anything is
judged. Where candidate i was chosen for judging (:math:`R_i = 1`) with chance :math:`p_i > 0`,

.. math:: z_i = f_i + R_i (y_i - f_i) / p_i

has the mean :math:`y_i`, whatever :math:`f_i` is, as long as it does not look at :math:`R_i`.
So every such sum is unbiased with z in the place of y (Horvitz and Thompson, 1952; with f the
difference estimator), and the better f predicts, the less it varies. Here f is estimated from
other clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toptail.stats.best_of_k import Floats, Ints, steady_product

Flags = NDArray[np.bool_]


def difference_values(value: Floats, chance: Floats, predicted: Floats) -> Floats:
    """The difference estimator ``z [rows]``: f + (y - f) / p where judged, else the prediction f.

    ``value`` (y) and ``chance`` (p) are NaN where a candidate was not judged.

    Examples
    --------
    >>> difference_values(np.array([3.0, np.nan]), np.array([0.5, np.nan]), np.array([1.0, 1.0]))
    array([5., 1.])
    """
    judged = ~np.isnan(value)
    result = predicted.copy()
    result[judged] += (value[judged] - predicted[judged]) / chance[judged]
    return result


def cross_fitted(value: Floats, chance: Floats, features: Floats, fold: Ints) -> Floats:
    """Predictions of every row from the judged rows of other folds ``[rows]``.

    Least squares on ``features [rows, f]`` and a constant, weighted by what a row's error adds to
    the variance of a sum of z, (1 - p)/p for every row and so (1 - p)/p^2 for a judged one. Each
    slope is shrunk by max(0, 1 - se^2/slope^2): one that cannot be told from 0 costs nothing.
    0 where no other fold has a judged row.
    """
    judged = ~np.isnan(value)
    predicted = np.zeros(value.size)
    for part in np.unique(fold):
        train, mine = judged & (fold != part), fold == part
        if train.any():
            y, p = value[train], chance[train]
            weight = (1.0 - p) / p**2
            centre, mean, slope = _line(
                y, weight if weight.any() else np.ones(y.size), features[train]
            )
            predicted[mine] = mean + _along(features[mine] - centre, slope)
    return predicted


def _line(y: Floats, weight: Floats, x: Floats) -> tuple[Floats, float, Floats]:
    """Weighted means of x and y, and the shrunken slopes."""
    share = weight / weight.sum()
    centre, mean = _along(x.T, share), float(_along(y[None], share)[0])
    if not x.shape[1]:
        return centre, mean, np.empty(0)
    x, y = x - centre, y - mean
    inverse = np.linalg.pinv(steady_product((x * share[:, None]).T, x), rcond=1e-10, hermitian=True)
    slope = inverse @ _along(x.T, share * y)
    missed = share * (y - _along(x, slope))
    spread = np.diag(inverse @ steady_product((x * missed[:, None] ** 2).T, x) @ inverse)
    square = np.where(slope == 0, 1.0, slope**2)
    return centre, mean, slope * np.maximum(0.0, 1.0 - spread / square)


def _along(matrix: Floats, vector: Floats) -> Floats:
    return steady_product(matrix, vector[:, None])[:, 0]


def query_centres(missed: Floats, own: Flags, query: Ints, fold: Ints) -> Floats:
    """Mean prediction error of a query, estimated from its other judged candidates ``[rows]``.

    The mean of ``missed`` over the other rows of the query that were chosen by draws of their
    ``own``, shrunk towards 0 as rows and queries of other folds vary. It does not look at a
    row's own draw, so that z stays unbiased where these draws are independent.
    """
    known = np.where(own, missed, 0.0)
    queries = int(query.max()) + 1
    total, count = (np.bincount(query, part, queries) for part in (known, own.astype(np.float64)))
    result = np.zeros(missed.size)
    for part in np.unique(fold):
        mine = fold == part
        ratio = _within_over_between(missed[own & ~mine], query[own & ~mine])
        if np.isfinite(ratio):
            others = count[query[mine]] - own[mine]
            result[mine] = (total[query[mine]] - known[mine]) / np.maximum(others + ratio, 1e-300)
            result[mine] = np.where(others > 0, result[mine], 0.0)
    return result


def _within_over_between(x: Floats, query: Ints) -> float:
    """Variance inside queries over that of their means; inf where queries do not differ."""
    if not x.size:
        return np.inf
    _, at, count = np.unique(query, return_inverse=True, return_counts=True)
    groups, rows = count.size, x.size
    if groups < 2 or rows == groups:
        return np.inf
    means = np.bincount(at, x) / count
    within = float(((x - means[at]) ** 2).sum()) / (rows - groups)
    between = float((count * (means - x.mean()) ** 2).sum()) / (groups - 1)
    size = (rows - float((count**2).sum()) / rows) / (groups - 1)
    real = (between - within) / size
    return within / real if real > 0 else np.inf
