"""Products of matrices with the same bits for any number of threads."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

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
