"""Local-support preference: whether search at one (s, g) pulls the pick off the data's support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import TrajectoryBootstrap, check_counts
from toptail.errors import InputError
from toptail.stats import best_of_k


@dataclass(frozen=True)
class SupportPreference:
    """How often best-of-K picks off support, against the pool's base rate."""

    k: tuple[int, ...]
    """Candidate counts."""
    rate: Estimate
    """Chance that the pick is off support, mean over queries ``[K]``."""
    base: Estimate
    """Share of candidates off support, mean over queries, ``[1]``."""

    @property
    def excess(self) -> Estimate:
        """Rate less base rate ``[K]``: 0 is no preference, positive an off-support one."""
        return self.rate - self.base


def support_preference(
    scores: ArrayLike, on_support: ArrayLike, k: Sequence[int], bootstrap: TrajectoryBootstrap
) -> SupportPreference:
    r"""Excess rate at which the best of K by score is off local support.

    .. math:: e(K) = \operatorname{mean}_q \big(P_q(\text{pick of } K \text{ is off support})
              - \tfrac{1}{n} \#\{\text{off support}\}\big)

    exactly (no pools are drawn). It measures preference, not value: neither direction is
    good by itself, and 0 means that support does not move the pick.

    ``scores`` are ``[queries, n]``, n candidates at one (s, g) each; a NaN makes the result NaN.
    ``on_support`` are booleans of that shape: is the candidate an action of a state near s?
    """
    s = np.asarray(scores, dtype=np.float64)
    on = np.asarray(on_support)
    if s.ndim != 2 or on.shape != s.shape or on.dtype != bool or s.shape[0] != bootstrap.code.size:
        raise InputError(
            f"Scores {s.shape} and support labels {on.shape} ({on.dtype}) must be numbers and "
            f"booleans of one shape [queries, candidates], for {bootstrap.code.size} queries."
        )
    check_counts(k, s.shape[1], "size of a pool")
    off = 1.0 - on
    rate = bootstrap.mean(best_of_k(s, off, k))
    return SupportPreference(tuple(k), rate, bootstrap.mean(off.mean(axis=1, keepdims=True)))
