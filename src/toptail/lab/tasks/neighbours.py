"""Exact nearest neighbours among the rows of a data set, by a method that fits its dimension.

A k-d tree visits few rows in two dimensions and almost all of them in thirty; a matrix product
visits all of them, fast. Both only find candidates: the deciding distances are computed from
differences in float64, with ties to the lower row, so that both methods give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from toptail.errors import InputError
from toptail.lab.tasks.trajectories import IntArray

TREE_DIMENSIONS = 8
"""Largest dimension that is searched with a tree unless a method is named."""
# Distances of about this many pairs are held at once (512 MiB). Every block reads all rows once,
# which takes most of the time where they are millions.
_BLOCK = 1 << 26

Method = Literal["tree", "product"]
Points = NDArray[np.float64]


def nearest_rows(
    points: NDArray[Any],
    anchors: IntArray,
    count: int,
    trajectory: IntArray | None = None,
    method: Method | None = None,
) -> IntArray:
    """Rows nearest to each anchor row in Euclidean distance, without the anchor itself.

    Parameters
    ----------
    points
        ``[rows, ...]``: observations of all rows; further axes are flattened.
    anchors
        ``[m]``: rows to find the neighbours of.
    count
        How many neighbours each.
    trajectory
        ``[rows]``: if given, all rows of the anchor's trajectory are excluded, too.
    method
        ``tree`` or ``product``; by default a tree up to :data:`TREE_DIMENSIONS` dimensions.

    Returns
    -------
    IntArray
        ``[m, count]``, nearest first; among equal distances the lower row comes first.
    """
    x = _vectors(points)
    group = np.arange(len(x)) if trajectory is None else trajectory
    _check(x, anchors, count, group)
    return _nearest(x, x[anchors], count, method, (group, group[anchors]))


def nearest_to_points(
    points: NDArray[Any], targets: NDArray[Any], count: int, method: Method | None = None
) -> IntArray:
    """Rows nearest to any points ``[m, ...]``, which need not be rows.

    As :func:`nearest_rows`, but no row is excluded.
    """
    x, at = _vectors(points), _vectors(targets)
    if x.shape[1] != at.shape[1]:
        raise InputError(
            f"The rows have {x.shape[1]} columns and the points {at.shape[1]}: expected points of "
            "the same space."
        )
    _check_finite(x, "observations")
    _check_finite(at, "points")
    if not 1 <= count <= len(x):
        raise InputError(
            f"Cannot find {count} neighbours: expected a number between 1 and {len(x)}, the rows."
        )
    return _nearest(x, at, count, method, None)


Groups = tuple[IntArray, IntArray]
"""The group of each row and of each target: rows of the target's group are excluded."""


def _nearest(
    x: Points, at: Points, count: int, method: Method | None, groups: Groups | None
) -> IntArray:
    """Find candidates, then decide among them by exact distance and row."""
    if method is None:
        method = "tree" if x.shape[1] <= TREE_DIMENSIONS else "product"
    search = _tree if method == "tree" else _product
    result = np.empty((len(at), count), dtype=np.int64)
    for i, candidates in enumerate(search(x, at, count, groups)):
        distance = ((x[candidates] - at[i]) ** 2).sum(axis=1)
        result[i] = candidates[np.lexsort((candidates, distance))[:count]]
    return result


def _tree(x: Points, at: Points, count: int, groups: Groups | None) -> Iterator[IntArray]:
    """Candidates of each target in turn: all allowed rows in a ball that holds enough of them."""
    tree = cKDTree(x)
    left_out = np.zeros(len(at), dtype=np.int64) if groups is None else _left_out(groups)
    for i, (target, own) in enumerate(zip(at, left_out, strict=True)):
        # Among the nearest count + own rows, at most own are left out.
        radius = float(np.asarray(tree.query(target, k=[count + int(own)])[0])[0])
        ball = np.array(tree.query_ball_point(target, radius * (1 + 1e-9)), dtype=np.int64)
        yield ball if groups is None else ball[groups[0][ball] != groups[1][i]]


def _product(x: Points, at: Points, count: int, groups: Groups | None) -> Iterator[IntArray]:
    """Candidates by |x|² - 2 x·y + |y|², for blocks of targets against all rows."""
    centre = x.mean(axis=0)  # shorter vectors, less rounding in the differences of squares
    x, at = x - centre, at - centre
    squares, own = (x**2).sum(axis=1), (at**2).sum(axis=1)
    # Twice the bound on the rounding of a product of this length: once for each side compared.
    largest = max(squares.max(initial=0.0), own.max(initial=0.0))
    slack = 8 * (x.shape[1] + 4) * np.finfo(np.float64).eps * largest
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        distance = (-2.0 * at[block]) @ x.T
        distance += squares
        distance += own[block, None]
        for i, row in enumerate(distance, start):
            if groups is not None:
                row[groups[0] == groups[1][i]] = np.inf
            edge = np.partition(row, count - 1)[count - 1]
            yield np.flatnonzero(row <= edge + slack)


def _vectors(points: NDArray[Any]) -> Points:
    return points.reshape(len(points), prod(points.shape[1:])).astype(np.float64)


def _left_out(groups: Groups) -> IntArray:
    """How many rows are left out for each target, ``[m]``."""
    labels, sizes = np.unique(groups[0], return_counts=True)
    return np.asarray(sizes[np.searchsorted(labels, groups[1])], dtype=np.int64)


def _check(x: Points, anchors: IntArray, count: int, group: IntArray) -> None:
    _check_finite(x, "observations")
    if len(anchors) and not 0 <= anchors.min() <= anchors.max() < len(x):
        raise InputError(f"Anchors must be rows 0..{len(x) - 1}, not up to {anchors.max()}.")
    allowed = len(x) - _left_out((group, group[anchors]))
    if count < 1 or (len(anchors) and allowed.min() < count):
        least = int(allowed.min()) if len(anchors) else len(x)
        raise InputError(
            f"Cannot find {count} neighbours: expected a number between 1 and {least}, the rows "
            "that are not left out."
        )


def _check_finite(x: Points, what: str) -> None:
    if not np.isfinite(x).all():
        row = int(np.argmin(np.isfinite(x).all(axis=1)))
        raise InputError(f"Row {row} of the {what} is not finite: it has no neighbours.")
