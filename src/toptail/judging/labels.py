"""Where values come from: a column of the table, the answers to a plan, or judged pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from toptail.errors import InputError, option
from toptail.io.tables import plain
from toptail.judging.plan import table_of, with_answers
from toptail.pools.answers import row_of_id
from toptail.pools.columns import first, listed, numbers
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Ints

PREFERENCE = "preference"
"""The name of the value column that is made from judged pairs."""


def with_preferences(pools: ScoredPools, pairs: pa.Table, where: str) -> ScoredPools:
    r"""The pools with a value column: each candidate's chance to beat a random other one.

    ``pairs`` has the columns ``query``, ``a``, ``b`` (two candidates), ``wins`` (1 where a beats b,
    0 where b beats a, 0.5 for a tie) and ``p_judged``, the chance with which the pair was chosen;
    without that column the pairs of a query are taken to be drawn from all of its pairs at random.
    Repeated judgements of a pair are averaged.

    With :math:`x_{ij}` whether i beats j, the value :math:`\sum_j x_{ij}/(n - 1)` is a sum over
    pairs, so :math:`1/2 + \sum_j R_{ij} (x_{ij} - 1/2)/(p_{ij} (n - 1))` is unbiased, where
    :math:`R_{ij}` is 1 if the pair was judged.
    """
    for name in ("query", "a", "b", "wins"):
        if name not in pairs.column_names:
            raise InputError(
                f"{where}: there is no column '{name}'; pairs have query, a, b, wins and p_judged "
                f"(columns: {', '.join(pairs.column_names)})."
            )
    a, b = (_rows(pools, pairs, side, where) for side in ("a", "b"))
    wins = numbers(where, "wins", plain(pairs["wins"]))
    bad = (wins < 0) | (wins > 1) | (a == b)
    if bad.any():
        raise InputError(
            f"{where}: row {first(bad)} must compare two different candidates, with 'wins' between "
            "0 (b is better) and 1 (a is better)."
        )
    # Each pair once, the earlier candidate first, with the mean of its judgements.
    low, high = np.minimum(a, b), np.maximum(a, b)
    wins = np.where(a < b, wins, 1.0 - wins)
    _, at, back, times = np.unique(
        low * pools.rows + high, return_index=True, return_inverse=True, return_counts=True
    )
    low, high, wins = low[at], high[at], np.bincount(back, wins) / times
    query = np.searchsorted(pools.offsets, low, side="right") - 1
    size = pools.sizes[query].astype(np.float64)
    if "p_judged" in pairs.column_names:
        chance = numbers(where, "p_judged", plain(pairs["p_judged"]))[at]
        if ((chance <= 0) | (chance > 1)).any():
            raise InputError(f"{where}: 'p_judged' must lie above 0 and be at most 1.")
    else:
        drawn = np.bincount(query, minlength=pools.queries)[query]
        chance = drawn / (size * (size - 1) / 2)
    moved = (wins - 0.5) / (chance * (size - 1))
    won, lost = (np.bincount(side, moved, pools.rows) for side in (low, high))
    value = np.asarray(0.5 + won - lost, dtype=np.float64)
    seen = np.bincount(np.concatenate([low, high]), minlength=pools.rows).astype(np.float64)
    kept = {name: column for name, column in pools.values.items() if not np.isnan(column).any()}
    return replace(pools, values={PREFERENCE: value} | kept, design={"pairs": seen})


def _rows(pools: ScoredPools, pairs: pa.Table, side: str, where: str) -> Ints:
    ids = pa.table({"query": pairs["query"], "candidate": pairs[side]})
    return row_of_id(pools, ids, where)


@dataclass(frozen=True)
class Judges:
    """The arguments of an audit or a choice that say who judged what."""

    values: str | None = None
    """The value column to judge by."""
    replicates: Sequence[str] | None = None
    """Value columns that are independent replicates of one noisy judge, in place of ``values``."""
    cheap: str | None = None
    """The value column of a cheap judge, which judged every candidate."""
    unjudged: float | Literal["bounds"] | None = None
    """What a candidate without a value counts as, or ``bounds`` for the worst and the best case."""
    plan: Any = None
    """A plan of :func:`toptail.plan`."""
    answers: Any = None
    """A table of its answers; by default the plan's own table."""
    pairs: Any = None
    """A table of judged pairs, in place of values."""

    def __post_init__(self) -> None:
        if self.plan is None and self.answers is not None:
            raise InputError(f"{option('answers')} are those to a plan; give {option('plan')} too.")
        if self.pairs is not None:
            for name in ("values", "plan", "unjudged"):
                if getattr(self, name) is not None:
                    raise InputError(f"{option(name)} says nothing beside {option('pairs')}.")

    @property
    def partly(self) -> bool:
        """Whether values may be missing in the table."""
        return any(source is not None for source in (self.unjudged, self.plan, self.pairs))

    @property
    def columns(self) -> str | Sequence[str] | None:
        """The value columns that the table itself must have; None: those that are found by name."""
        elsewhere = self.plan is not None or self.pairs is not None
        if self.cheap is not None:
            return [self.cheap] if elsewhere else [self.values or "value", self.cheap]
        return None if self.plan is not None else listed(self.replicates) or self.values

    def joined(self, pools: ScoredPools) -> tuple[ScoredPools, str | None]:
        """The pools with values from a plan or from pairs, and the value column to judge by."""
        if self.plan is not None:
            value = self.values or "value"
            return with_answers(pools, self.plan, self.answers, value), value
        if self.pairs is not None:
            where = str(self.pairs) if isinstance(self.pairs, (str, PathLike)) else "pairs"
            return with_preferences(pools, table_of(self.pairs, "pairs"), where), PREFERENCE
        return pools, self.values
