"""The arguments of an audit or a choice that say how candidates got their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toptail.errors import InputError, option


@dataclass(frozen=True, kw_only=True)
class HowJudged:
    """How candidates got their values, where not each has one exact value in the table."""

    replicates: Sequence[str] | None = None
    """Two or more value columns that are independent replicates of one noisy judge: their mean is
    the value, and the oracle is chosen on one half and valued on the other."""
    p_judged: str | None = None
    """The column of chances with which candidates were chosen for judging, by default ``p_judged``.
    With it values may be missing: curves are right on average."""
    cheap: str | None = None
    """The value column of a cheap judge of every candidate, where ``values`` has those of some."""
    unjudged: float | Literal["bounds"] | None = None
    """What a candidate without a value counts as, or ``bounds`` for the worst and the best case."""
    plan: Any = None
    """A plan of :func:`toptail.plan`, its table or its file."""
    answers: Any = None
    """The judged values of that plan: a table with ``query``, ``candidate`` and ``value``. By
    default the plan's own column ``value``."""
    pairs: Any = None
    """Instead of values: a table of judged pairs with ``query``, ``a``, ``b``, ``wins`` and
    ``p_judged``. A candidate's value is its chance to beat a random other one of its query."""
    value_range: tuple[float, float] | None = None
    """The lowest and the highest value that a candidate can have, if there are such. Then fewer
    than 40 queries can be enough, and harm beyond any candidate seen is counted."""

    def __post_init__(self) -> None:
        if self.pairs is not None:  # chances to win
            object.__setattr__(self, "value_range", (0.0, 1.0))

    @property
    def elsewhere(self) -> bool:
        """Whether values come from another table: answers to a plan, or judged pairs."""
        return self.plan is not None or self.pairs is not None

    @property
    def missing_values(self) -> bool:
        """Whether values may be missing in the table itself."""
        return self.elsewhere or self.unjudged is not None

    def columns(self, values: str | None) -> str | Sequence[str] | None:
        """The value columns that the table itself must have; None: those that are found by name.

        ``values`` is the value column that the caller names. Arguments that exclude each other
        raise an :class:`InputError`.
        """
        if self.plan is None and self.answers is not None:
            raise InputError(f"{option('answers')} are those to a plan; give {option('plan')} too.")
        if self.pairs is not None:
            for name, given in {
                "values": values,
                "plan": self.plan,
                "unjudged": self.unjudged,
            }.items():
                if given is not None:
                    raise InputError(f"{option(name)} says nothing beside {option('pairs')}.")
        if self.cheap is not None:
            return [self.cheap] if self.elsewhere else [values or "value", self.cheap]
        return None if self.plan is not None else self.replicates or values
