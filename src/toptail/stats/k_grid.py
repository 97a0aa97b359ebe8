"""The K grid: at which candidate counts K an audit measures the value of the pick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from toptail.stats.best_of_k import Ints

PER_OCTAVE: Final = 8
"""K of a fine grid between K and 2K; so it has every K up to twice as many."""
_SMALL: Final = 0.05
"""Pools below this quantile of sizes are left out unless a smallest size is declared."""


def smallest_pool(sizes: Ints, min_pool: int | None) -> int:
    """The size below which pools are left out, so that a few small pools do not cap K for all.

    It is ``min_pool`` or, by default, the 5 % quantile of ``sizes``.
    """
    return int(np.quantile(sizes, _SMALL, method="lower") if min_pool is None else min_pool)


@dataclass(frozen=True)
class KGrid:
    """The K of one audit: those that decide its verdicts, and those that it shows."""

    shown: tuple[int, ...]
    """The K of curves and tables, ascending: 1, 2, 4, ..., k_max and those asked for."""
    deciding: tuple[int, ...]
    """The K whose steps decide the verdict, from 1 to k_max."""

    @classmethod
    def up_to(cls, k_max: int, more: Iterable[int] = ()) -> KGrid:
        """The powers of two and ``k_max``, and more to show."""
        deciding = {1 << power for power in range(k_max.bit_length())} | {k_max}
        return cls(tuple(sorted(deciding | {int(k) for k in more})), tuple(sorted(deciding)))

    @classmethod
    def fine(cls, k_max: int, more: Iterable[int] = ()) -> KGrid:
        """Every K up to 16, then eight to the octave, and ``k_max``; it shows what `up_to` does.

        >>> KGrid.fine(24).deciding[-6:]
        (15, 16, 18, 20, 22, 24)
        """
        k, deciding = 1, []
        while k < k_max:
            deciding.append(k)
            k += max(1, (1 << k.bit_length() - 1) // PER_OCTAVE)
        return cls(cls.up_to(k_max, more).shown, (*deciding, k_max))

    def doublings(self) -> KGrid:
        """The grid that shows the same K and decides by powers of two, where steps are costly."""
        return KGrid.up_to(self.k_max, self.shown)

    @property
    def k_max(self) -> int:
        """The largest K, which every pool allows."""
        return self.deciding[-1]

    @property
    def any_two(self) -> str:
        """The phrase "any two K", which says where the grid leaves out some K."""
        if len(self.deciding) == self.k_max:
            return f"any two K up to {self.k_max}"
        which = f"{', '.join(map(str, self.deciding[:-1]))} and {self.k_max}"
        if self.deciding == KGrid.fine(self.k_max).deciding:
            every = 2 * PER_OCTAVE
            which = f"every K up to {every}, then {PER_OCTAVE} to the octave up to {self.k_max}"
        return f"any two of the K looked at ({which})"

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """Every K at which V(K) is needed, ascending."""
        return tuple(sorted({*self.shown, *self.deciding}))

    @cached_property
    def deciding_at(self) -> Ints:
        """Positions of the deciding K among the measured."""
        return np.searchsorted(self.measured, self.deciding).astype(np.int64)

    @cached_property
    def shown_at(self) -> Ints:
        """Positions of the shown K among the measured."""
        return np.searchsorted(self.measured, self.shown).astype(np.int64)

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The steps K1 < K2 between deciding K, ordered by K2."""
        return tuple(sorted(combinations(self.deciding, 2), key=lambda step: step[::-1]))

    @cached_property
    def first(self) -> Ints:
        """Where each change starts among the measured K: the steps, then 1 to each shown K."""
        starts = np.array([a for a, _ in self.steps] + [1] * len(self.shown))
        return np.searchsorted(self.measured, starts).astype(np.int64)

    @cached_property
    def second(self) -> Ints:
        """Where each change ends among the measured K."""
        ends = np.array([b for _, b in self.steps] + list(self.shown))
        return np.searchsorted(self.measured, ends).astype(np.int64)
