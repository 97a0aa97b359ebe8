"""Which K an audit looks at: the family behind the verdict, and what is shown beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from toptail.stats.best_of_k import Ints


@dataclass(frozen=True)
class Family:
    """The K of one audit."""

    shown: tuple[int, ...]
    """All measured K, ascending, from 1 to k_max."""
    family: tuple[int, ...]
    """Those that decide the verdict: 1, 2, 4, ... and k_max."""

    @classmethod
    def up_to(cls, k_max: int, more: Iterable[int] = ()) -> Family:
        """The fixed family up to ``k_max``, and more to show."""
        family = {1 << power for power in range(k_max.bit_length())} | {k_max}
        return cls(tuple(sorted(family | {int(k) for k in more})), tuple(sorted(family)))

    @property
    def k_max(self) -> int:
        """The largest K, which every pool allows."""
        return self.family[-1]

    @cached_property
    def members(self) -> Ints:
        """Where the family's K are among the shown."""
        return np.searchsorted(self.shown, self.family).astype(np.int64)

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The family's steps K1 < K2, ordered by K2."""
        return tuple(sorted(combinations(self.family, 2), key=lambda step: step[::-1]))

    @cached_property
    def first(self) -> Ints:
        """Where each change starts among the shown: the family's steps, then 1 to each K."""
        starts = [self.shown.index(a) for a, _ in self.steps] + [0] * len(self.shown)
        return np.array(starts, dtype=np.int64)

    @cached_property
    def second(self) -> Ints:
        """Where each change ends among the shown."""
        ends = [self.shown.index(b) for _, b in self.steps] + list(range(len(self.shown)))
        return np.array(ends, dtype=np.int64)
