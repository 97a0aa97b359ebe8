"""What checking a claim returns, and the two sums that several checks share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TheoryCheck:
    """What came of checking one claim."""

    claim: str
    """Short name of the claim."""
    where: str
    """The paper's label of the statement."""
    statement: str
    """The claim in one sentence."""
    holds: bool
    """Whether every part of the claim held in this run."""
    measured: float
    """The number that was measured."""
    bound: float
    """The number the claim compares it with."""
    details: Mapping[str, Any]
    """Everything else that decided it, as plain JSON values."""

    def as_json(self) -> dict[str, Any]:
        """Return the check as a dictionary of plain JSON values."""
        return asdict(self) | {"details": dict(self.details)}


def bilinear_scores(phi: FloatArray, psi: FloatArray) -> FloatArray:
    """phi(s, a)ᵀ psi(g) for all pairs: [n, d] and [m, d] to [n, m].

    The coordinates are added strictly from left to right, so that a further coordinate that is
    zero leaves every bit of the sum as it was. A BLAS product or `np.sum` groups the terms by
    their number and would not.
    """
    total = np.zeros((len(phi), len(psi)))
    for left, right in zip(phi.T, psi.T, strict=True):
        total += np.multiply.outer(left, right)
    return total


def binary_nce(logits: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Binary cross-entropy of logits against 0/1 labels, averaged (optionally with weights).

    ℓ(x, y) = log(1 + eˣ) − y·x. The sum is correctly rounded (`math.fsum`), so it does not
    depend on the order of its terms: equal losses come out equal to the last bit.
    """
    x, y = np.asarray(logits, dtype=float), np.asarray(labels, dtype=float)
    terms = np.logaddexp(0.0, x) - y * x
    w = np.ones_like(terms) if weights is None else np.asarray(weights, dtype=float)
    return math.fsum((w * terms).ravel()) / math.fsum(np.broadcast_to(w, terms.shape).ravel())
