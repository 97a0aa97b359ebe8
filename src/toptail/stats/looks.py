"""Looking more than once: which part of the error each look may spend."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri


def level_at(level: float, at: int, of: int) -> float:
    r"""Confidence of intervals at look ``at`` of ``of``, so that all looks together err as one.

    One end may err with :math:`\alpha = (1 - level)/2`. Up to look j it has spent
    :math:`\alpha(t) = 2 - 2\Phi(z_{1 - \alpha/2}/\sqrt t)` of that, t = j/of (the spending function
    of Lan and DeMets, 1983, that is like O'Brien and Fleming's): little at first, most at the end.
    Each look errs with what it spends anew; these add up to alpha, whatever the looks have to do
    with each other.

    Examples
    --------
    >>> level_at(0.95, 1, 1)
    0.95
    >>> [round(1 - level_at(0.95, look, 3), 4) for look in (1, 2, 3)]
    [0.0002, 0.0119, 0.0379]
    """
    tail = (1.0 - level) / 2
    if of == 1:
        return level
    share = np.array([at - 1, at]) / of
    with np.errstate(divide="ignore"):
        spent = 2.0 - 2.0 * ndtr(ndtri(1.0 - tail / 2) / np.sqrt(share))
    return float(1.0 - 2.0 * (spent[1] - spent[0]))
