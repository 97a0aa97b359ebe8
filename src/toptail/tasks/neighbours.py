r"""Exact nearest neighbours among the rows of a data set, by the method that suits its dimension.

A k-d tree visits few rows in two dimensions and almost all of them in thirty; a product of
matrices visits all of them, fast. Both only find candidates here: the distances that decide are
computed from differences in float64, and ties go to the lower row, so that both give the same
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from toptail.errors import InputError
from toptail.tasks.trajectories import IntArray

TREE_DIMENSIONS = 8
"""Largest dimension that is searched with a tree unless a method is named."""
# Distances of about this many pairs are held at once (128 MiB).
_BLOCK = 1 << 24

Method = Literal["tree", "product"]
Points = NDArray[np.float64]


def nearest_rows(
    points: NDArray[Any],
    anchors: IntArray,
    count: int,
    trajectory: IntArray | None = None,
    method: Method | None = None,
) -> IntArray:
    r"""Rows nearest to each anchor row in Euclidean distance, the anchor itself left out.

    Parameters
    ----------
    points
        ``[rows, ...]``: observations of all rows; further axes are flattened.
    anchors
        ``[m]``: rows to find the neighbours of.
    count
        How many neighbours each.
    trajectory
        ``[rows]``: where given, all rows of the anchor's trajectory are left out, too.
    method
        ``tree`` or ``product``; by default a tree up to :data:`TREE_DIMENSIONS` dimensions.

    Returns
    -------
    IntArray
        ``[m, count]``, nearest first; among equal distances the lower row comes first.
    """
    x = points.reshape(len(points), -1).astype(np.float64)
    group = np.arange(len(x)) if trajectory is None else trajectory
    _check(x, anchors, count, group)
    if method is None:
        method = "tree" if x.shape[1] <= TREE_DIMENSIONS else "product"
    search = _tree if method == "tree" else _product
    result = np.empty((len(anchors), count), dtype=np.int64)
    for at, candidates in enumerate(search(x, anchors, count, group)):
        distance = ((x[candidates] - x[anchors[at]]) ** 2).sum(axis=1)
        result[at] = candidates[np.lexsort((candidates, distance))[:count]]
    return result


def _tree(x: Points, anchors: IntArray, count: int, group: IntArray) -> Iterator[IntArray]:
    """Candidates of each anchor in turn: all allowed rows in a ball that holds enough of them."""
    tree = cKDTree(x)
    left_out = _group_sizes(group)[anchors]
    for anchor, own in zip(anchors, left_out, strict=True):
        # Among the nearest count + own rows, at most own are the anchor's and left out.
        radius = float(np.asarray(tree.query(x[anchor], k=[count + int(own)])[0])[0])
        ball = np.array(tree.query_ball_point(x[anchor], radius * (1 + 1e-9)), dtype=np.int64)
        yield ball[group[ball] != group[anchor]]


def _product(x: Points, anchors: IntArray, count: int, group: IntArray) -> Iterator[IntArray]:
    """The same by |x|² - 2 x·y + |y|², for blocks of anchors against all rows."""
    x = x - x.mean(axis=0)  # shorter vectors, less rounding in the differences of squares
    squares = (x**2).sum(axis=1)
    # Twice the bound on the rounding of a product of this length: once for each side compared.
    slack = 8 * (x.shape[1] + 4) * np.finfo(np.float64).eps * squares.max()
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(anchors), step):
        block = anchors[start : start + step]
        distance = x[block] @ (-2.0 * x.T)
        distance += squares
        distance += squares[block, None]
        for row, anchor in zip(distance, block, strict=True):
            row[group == group[anchor]] = np.inf
            edge = np.partition(row, count - 1)[count - 1]
            yield np.flatnonzero(row <= edge + slack)


def _group_sizes(group: IntArray) -> IntArray:
    """How many rows each row's group has, ``[rows]``."""
    _, code, sizes = np.unique(group, return_inverse=True, return_counts=True)
    return np.asarray(sizes[code], dtype=np.int64)


def _check(x: Points, anchors: IntArray, count: int, group: IntArray) -> None:
    if not np.isfinite(x).all():
        row = int(np.argmin(np.isfinite(x).all(axis=1)))
        raise InputError(f"Row {row} of the observations is not finite: it has no neighbours.")
    if len(anchors) and not 0 <= anchors.min() <= anchors.max() < len(x):
        raise InputError(f"Anchors must be rows 0..{len(x) - 1}, not up to {anchors.max()}.")
    allowed = len(x) - _group_sizes(group)[anchors]
    if count < 1 or (len(anchors) and allowed.min() < count):
        least = int(allowed.min()) if len(anchors) else len(x)
        raise InputError(
            f"Cannot find {count} neighbours: expected a number between 1 and {least}, the rows "
            "that are not left out."
        )
