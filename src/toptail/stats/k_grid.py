"""Which K an audit looks at: the family behind the verdict, and what is shown beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from toptail.stats.best_of_k import Ints

PER_OCTAVE: Final = 8
"""K of a fine family between K and 2K; so it has every K up to twice as many."""


@dataclass(frozen=True)
class Family:
    """The K of one audit."""

    shown: tuple[int, ...]
    """The K of curves and tables, ascending: 1, 2, 4, ..., k_max and those asked for."""
    family: tuple[int, ...]
    """Those that decide the verdict, from 1 to k_max."""

    @classmethod
    def up_to(cls, k_max: int, more: Iterable[int] = ()) -> Family:
        """The powers of two and ``k_max``, and more to show."""
        family = {1 << power for power in range(k_max.bit_length())} | {k_max}
        return cls(tuple(sorted(family | {int(k) for k in more})), tuple(sorted(family)))

    @classmethod
    def fine(cls, k_max: int, more: Iterable[int] = ()) -> Family:
        """Every K up to 16, then eight to the octave, and ``k_max``; it shows what `up_to` does.

        >>> Family.fine(24).family[-6:]
        (15, 16, 18, 20, 22, 24)
        """
        k, family = 1, []
        while k < k_max:
            family.append(k)
            k += max(1, (1 << k.bit_length() - 1) // PER_OCTAVE)
        return cls(cls.up_to(k_max, more).shown, (*family, k_max))

    def doublings(self) -> Family:
        """The same K shown, of which the powers of two decide: where every step is costly."""
        return Family.up_to(self.k_max, self.shown)

    @property
    def k_max(self) -> int:
        """The largest K, which every pool allows."""
        return self.family[-1]

    @property
    def any_two(self) -> str:
        """Any two of its K, in words that say where some were left out."""
        if len(self.family) == self.k_max:
            return f"any two K up to {self.k_max}"
        which = f"{', '.join(map(str, self.family[:-1]))} and {self.k_max}"
        if self.family == Family.fine(self.k_max).family:
            every = 2 * PER_OCTAVE
            which = f"every K up to {every}, then {PER_OCTAVE} to the octave up to {self.k_max}"
        return f"any two of the K looked at ({which})"

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """Every K at which V(K) is needed, ascending."""
        return tuple(sorted({*self.shown, *self.family}))

    @cached_property
    def members(self) -> Ints:
        """Where the family's K are among the measured."""
        return np.searchsorted(self.measured, self.family).astype(np.int64)

    @cached_property
    def shown_at(self) -> Ints:
        """Where the shown K are among the measured."""
        return np.searchsorted(self.measured, self.shown).astype(np.int64)

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The family's steps K1 < K2, ordered by K2."""
        return tuple(sorted(combinations(self.family, 2), key=lambda step: step[::-1]))

    @cached_property
    def first(self) -> Ints:
        """Where each change starts among the measured: the family's steps, then 1 to each shown."""
        starts = np.array([a for a, _ in self.steps] + [1] * len(self.shown))
        return np.searchsorted(self.measured, starts).astype(np.int64)

    @cached_property
    def second(self) -> Ints:
        """Where each change ends among the measured."""
        ends = np.array([b for _, b in self.steps] + list(self.shown))
        return np.searchsorted(self.measured, ends).astype(np.int64)
