"""The clipped Gaussian proposal of the controlled study."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clipped_gaussian(
    queries: int, candidates: int, dim: int, scale: float, box: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw i.i.d. N(0, scale^2 I) candidates and clip each coordinate to [-box, box].

    Returns
    -------
    Actions [queries, candidates, dim]. The draws do not look at the query: they are the
    i.i.d. candidates that best-of-K theory assumes.
    """
    return np.clip(rng.normal(0.0, scale, (queries, candidates, dim)), -box, box)
