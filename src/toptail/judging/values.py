"""The values that an audit judges by, and the part ``judging`` of ``audit.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, Ints


@dataclass(frozen=True, eq=False)
class Judgement:
    """The values of all candidates, and what is known of how they were judged.

    In this class every candidate was judged. `StreamedJudgement` is the same for a table that is
    read in parts; `toptail.judging.partial` has the classes for tables that were judged in part.
    """

    value: Floats
    """``[rows]``: the judged value, or the mean of its replicates."""
    replicates: Floats | None = None
    """``[r, rows]``: independent replicates of a noisy judge."""

    exact: ClassVar[bool] = True
    """Whether ``value`` holds each candidate's own value. Without that only sums over candidates
    can be estimated, and no rank correlation."""

    @property
    def bounded(self) -> bool:
        """Whether the headroom is only known to lie between two ends."""
        return False

    @property
    def labels(self) -> Floats:
        """Every value that a judge gave."""
        return self.value if self.replicates is None else self.replicates

    @property
    def largest(self) -> float:
        """The largest size of a value."""
        return float(np.abs(self.value).max())

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1, with both present."""
        value = self.value if self.exact else self.labels
        return bool(value.size and np.isin(value, (0.0, 1.0)).all() and value.min() < value.max())

    def outside(self, low: float, high: float) -> Floats:
        """The values that a judge gave below ``low`` or above ``high``."""
        every = self.labels
        return np.asarray(every[(every < low) | (every > high)])

    def at(self, pools: ScoredPools, part: slice) -> Judgement:
        """The values of consecutive queries."""
        rows = slice(int(pools.offsets[part.start]), int(pools.offsets[part.stop]))
        parts = self.replicates
        return Judgement(self.value[rows], None if parts is None else parts[:, rows])

    def of_queries(self, keep: NDArray[np.bool_], sizes: Ints, /) -> Judgement:
        """The judgement of the queries to ``keep [queries]``; ``sizes`` are those of all pools."""
        rows = np.repeat(keep, sizes)
        columns = ((name, column) for name, column in vars(self).items() if column is not None)
        return replace(self, **{name: column[..., rows] for name, column in columns})

    def labels_content(self, pools: ScoredPools) -> dict[str, int | bool]:
        """How many candidates were judged, as ``audit.json`` stores it."""
        return {
            "labels": int(self.labels.size),
            "candidates": pools.rows,
            "whole_queries": pools.queries,
            "pairs": False,
        }

    def how(self, _ranged: bool, /) -> str:
        """Where the headroom and its ends come from; with ``ranged`` a range is declared."""
        return "Every candidate was judged."


@dataclass(frozen=True, eq=False)
class StreamedJudgement(Judgement):
    """The values of a table that is read some queries at a time.

    Only the smallest and the largest value of each query stay in memory; ``value`` is empty.
    """

    columns: tuple[str, ...] = field(kw_only=True)
    """The value column, or those of replicates."""
    low: Floats = field(kw_only=True)
    """The smallest value of each query ``[queries]``."""
    high: Floats = field(kw_only=True)
    """The largest value of each query ``[queries]``."""
    zero_or_one: NDArray[np.bool_] = field(kw_only=True)
    """Whether a query has no other values than 0 and 1 ``[queries]``."""

    @classmethod
    def of(cls, pools: ScoredPools, columns: Sequence[str]) -> StreamedJudgement:
        """Read the values once."""
        several = len(columns) > 1
        low, high = np.empty(pools.queries), np.empty(pools.queries)
        binary = np.empty(pools.queries, dtype=bool)
        result = cls(
            np.empty(0),
            np.empty((len(columns), 0)) if several else None,
            columns=tuple(columns),
            low=low,
            high=high,
            zero_or_one=binary,
        )

        def ends(at: slice) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            value, starts = result.at(pools, at).value, offsets_at(pools, at)[:-1]
            known = np.isin(value, (0.0, 1.0))
            return (
                np.minimum.reduceat(value, starts),
                np.maximum.reduceat(value, starts),
                np.logical_and.reduceat(known, starts),
            )

        for at, part in pools.over(ends):
            low[at], high[at], binary[at] = part
        return result

    @property
    def largest(self) -> float:
        """The largest size of a value."""
        return float(max(abs(self.low.min()), abs(self.high.max())))

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1, with both present."""
        return bool(self.zero_or_one.all() and self.low.min() < self.high.max())

    def outside(self, low: float, high: float) -> Floats:
        """The smallest and the largest values of queries that lie beyond these ends."""
        return np.concatenate([self.low[self.low < low], self.high[self.high > high]])

    def at(self, pools: ScoredPools, part: slice) -> Judgement:
        """The values of consecutive queries, read from the table."""
        columns = list(pools.values_at(part, self.columns).values())
        if len(columns) == 1:
            return Judgement(columns[0])
        stack = np.stack(columns)
        return Judgement(stack.mean(axis=0), stack)

    def of_queries(self, keep: NDArray[np.bool_], _sizes: Ints, /) -> Judgement:
        """The judgement of the queries to ``keep [queries]``."""
        names = ("low", "high", "zero_or_one")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def offsets_at(pools: ScoredPools, at: slice) -> Ints:
    """Where the pools of consecutive queries start, counted from the first of them."""
    return np.asarray(pools.offsets[at.start : at.stop + 1] - pools.offsets[at.start])


def judging_content(
    judged: Judgement,
    pools: ScoredPools,
    scorers: Mapping[str, Any],
    *,
    ranged: bool,
    cheap: str | None,
    alone: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The part ``judging``; empty where every candidate has its value and no judge is cheap.

    ``scorers`` are those of the audit, ``ranged`` says whether a range of values is declared, and
    ``alone`` is the audit by the ``cheap`` judge alone.
    """
    if judged.exact and alone is None:
        return {}
    part: dict[str, Any] = {
        **judged.labels_content(pools),
        "how": judged.how(ranged),
        "cheap": None,
    }
    if alone is not None:
        entries = alone["scorers"].items()
        beside = {name: _cheap_entry(entry, scorers[name]) for name, entry in entries}
        part["cheap"] = {"name": cheap, "scorers": beside}
    return {"judging": part}


def _cheap_entry(alone: Mapping[str, Any], scorer: Mapping[str, Any]) -> dict[str, Any]:
    """What the cheap judge alone would have claimed of one scorer, and how far off it is."""
    claimed, real = (np.asarray(entry["deciles_within"], float) for entry in (alone, scorer))
    return {
        "status": alone["verdict"]["status"],
        "gain": {end: alone["gain"][end][-1] for end in ("value", "low", "high")},
        "value": alone["value"],
        "too_high_by_decile": claimed - real,
    }
