"""Where values come from: every candidate's, those of a plan, of pairs, or a cheap judge beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.pools.columns import listed
from toptail.pools.pairs import PREFERENCE, with_preferences
from toptail.results.planning import joined, table_of


@dataclass(frozen=True)
class Judges:
    """The arguments of an audit or a choice that say who judged what, as a person gives them."""

    values: str | None = None
    """The value column to judge by."""
    replicates: Sequence[str] | None = None
    """Or value columns that are replicates of one judge."""
    cheap: str | None = None
    """The value column of a cheap judge, who judged every candidate."""
    unjudged: float | Literal["bounds"] | None = None
    """What a candidate without a value counts as."""
    plan: Any = None
    """A plan of :func:`toptail.plan`."""
    answers: Any = None
    """What was answered to it."""
    pairs: Any = None
    """Judged pairs, in place of values."""

    def __post_init__(self) -> None:
        if self.plan is None and self.answers is not None:
            raise InputError(f"{option('answers')} are those to a plan; give {option('plan')} too.")
        if self.pairs is not None:
            for name in ("values", "plan", "unjudged"):
                if getattr(self, name) is not None:
                    raise InputError(f"{option(name)} says nothing beside {option('pairs')}.")

    @property
    def partly(self) -> bool:
        """Whether somebody says what to make of missing values."""
        return any(given is not None for given in (self.unjudged, self.plan, self.pairs))

    @property
    def columns(self) -> str | Sequence[str] | None:
        """The value columns that the table itself must have; None: those that it has."""
        elsewhere = self.plan is not None or self.pairs is not None
        if self.cheap is not None:
            return [self.cheap] if elsewhere else [self.values or "value", self.cheap]
        return None if self.plan is not None else listed(self.replicates) or self.values

    def joined(self, pools: ScoredPools) -> tuple[ScoredPools, str | None]:
        """The pools with what was judged elsewhere, and the value column to judge by."""
        if self.plan is not None:
            value = self.values or "value"
            return joined(pools, self.plan, self.answers, value), value
        if self.pairs is not None:
            where = str(self.pairs) if isinstance(self.pairs, (str, PathLike)) else "pairs"
            return with_preferences(pools, table_of(self.pairs, "pairs"), where), PREFERENCE
        return pools, self.values
