"""The values of pools that are read some queries at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from toptail.audit.per_query import Judgement, offsets_at
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, Ints


@dataclass(frozen=True, eq=False)
class StreamedJudgement(Judgement):
    """A judgement that knows of each query its smallest and its largest value alone."""

    columns: tuple[str, ...] = field(kw_only=True)
    """The value column, or those of replicates."""
    low: Floats = field(kw_only=True)
    """The smallest value of each query ``[queries]``, before they are scaled."""
    high: Floats = field(kw_only=True)
    """The largest."""
    zero_or_one: NDArray[np.bool_] = field(kw_only=True)
    """Whether a query has no other values than 0 and 1 ``[queries]``."""
    power: int = 0
    """Values are divided by two to this power."""

    @classmethod
    def of(cls, pools: ScoredPools, columns: Sequence[str]) -> StreamedJudgement:
        """One pass over the values."""
        several = len(columns) > 1
        low, high = np.empty(pools.queries), np.empty(pools.queries)
        binary = np.empty(pools.queries, dtype=bool)
        made = cls(
            np.empty(0),
            np.empty((len(columns), 0)) if several else None,
            columns=tuple(columns),
            low=low,
            high=high,
            zero_or_one=binary,
        )

        def ends(at: slice) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            value, starts = made.at(pools, at).value, offsets_at(pools, at)[:-1]
            known = np.isin(value, (0.0, 1.0))
            return (
                np.minimum.reduceat(value, starts),
                np.maximum.reduceat(value, starts),
                np.logical_and.reduceat(known, starts),
            )

        for at, part in pools.over(ends):
            low[at], high[at], binary[at] = part
        return made

    @property
    def largest(self) -> float:
        """The largest size of a value."""
        return float(np.ldexp(max(abs(self.low.min()), abs(self.high.max())), -self.power))

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1, with both present."""
        return bool(self.zero_or_one.all() and self.low.min() < self.high.max())

    def outside(self, low: float, high: float) -> Floats:
        """The smallest and the largest value of queries, where they lie beyond these ends."""
        return np.concatenate([self.low[self.low < low], self.high[self.high > high]])

    def rescaled(self) -> tuple[Judgement, int]:
        """The judgement over a power of two, and which, where its squares would underflow."""
        _, power = Judgement(np.array([self.largest])).rescaled()
        return (replace(self, power=power), power) if power else (self, 0)

    def at(self, pools: ScoredPools, part: slice) -> Judgement:
        """The values of consecutive queries."""
        found = list(pools.values_at(part, self.columns).values())
        if self.power:
            found = [np.ldexp(column, -self.power) for column in found]
        if len(found) == 1:
            return Judgement(found[0])
        stack = np.stack(found)
        return Judgement(stack.mean(axis=0), stack)

    def of_queries(self, keep: NDArray[np.bool_], _sizes: Ints) -> Judgement:
        """The judgement of the candidates of some queries."""
        return replace(
            self, low=self.low[keep], high=self.high[keep], zero_or_one=self.zero_or_one[keep]
        )
