"""How an audit is computed: the thresholds of the verdict, which K, and the resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toptail.errors import InputError, check_not_negative, check_share, check_whole, option


@dataclass(frozen=True)
class Rule:
    """Thresholds of the verdict; all in units of the headroom at the largest K."""

    delta: float = 0.02
    """A fall is established when its upper end lies below -delta."""
    rho: float = 0.10
    """A harm above rho must be ruled out before a scorer is called safe."""
    level: float = 0.95
    """Simultaneous confidence over all steps K1 < K2."""

    def __post_init__(self) -> None:
        check_not_negative("delta", self.delta)
        check_not_negative("rho", self.rho)
        check_share("level", self.level)
        for name in ("delta", "rho"):
            if getattr(self, name) > 1:
                raise InputError(
                    f"{option(name, getattr(self, name))} must be at most 1: it is a share of the "
                    "headroom."
                )


@dataclass(frozen=True)
class Settings:
    """How an audit of pools is computed; what cannot be used is refused when they are made."""

    rule: Rule = Rule()
    """Thresholds of the verdict."""
    k: Sequence[int] | None = None
    """Candidate counts to measure; by default powers of two up to the smallest pool."""
    seed: int = 0
    """Seed of the bootstrap."""
    resamples: int = 10_000
    """Bootstrap resamples of whole queries (or clusters), shared by all scorers."""
    pools_per_query: int = 1
    """How many pools side by side, each under a label of its own, belong to one query. They are
    not independent: they must lie in one cluster."""

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)
        check_whole("resamples", self.resamples, 1)
        if self.k is not None:
            counts = () if isinstance(self.k, str) or not np.iterable(self.k) else tuple(self.k)
            if not counts:
                raise InputError(f"{option('k', self.k)} must list whole numbers, as in 1, 2, 4.")
            for count in counts:
                check_whole("k", count, 1)
            object.__setattr__(self, "k", counts)

    def counts(self, smallest: int) -> list[int]:
        """The K to measure where the smallest pool is of this size; 1 is always among them."""
        if self.k is None:
            return [1 << power for power in range(smallest.bit_length())]
        return sorted({1, *(int(count) for count in self.k)})
