"""How a scorer stands against an older table: the status, its numbers, and the words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from toptail.audit.paired import Ends
from toptail.audit.settings import exact_percent

Standing = Literal["better", "not worse", "worse", "inconclusive"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)

FEW: Final = 10
"""With fewer shared clusters the reason says that they are few."""


@dataclass(frozen=True)
class Against:
    """A scorer of the new table against one of the old, in units of the old table's headroom."""

    status: Standing
    """``better``, ``not worse``, ``worse`` or ``inconclusive``."""
    difference: float
    """Value of the pick, new less old."""
    low: float | None
    """Lower end, one-sided; None where there is none."""
    high: float | None
    """Upper end, one-sided; None where there is none."""
    k: int
    """The K that is compared."""
    old: str
    """The scorer's name in the old table."""
    queries_needed: int | None
    """About how many queries would decide an ``inconclusive`` one; None where unknown."""
    reason: str
    """The status in a sentence, with the numbers that decided it."""


@dataclass(frozen=True)
class Baseline:
    """How the scorers of a table stand against those of an older one."""

    source: str
    """Where the old table came from."""
    sha256: str | None
    """Content hash of its file."""
    shared_queries: int
    """At how many queries the tables are compared."""
    left_out: int
    """How many more have the same label, and fewer than K candidates in one of the tables."""
    only_new: int
    """Queries that only the new table has."""
    only_old: int
    """Queries that only the old table has."""
    clusters: int
    """How many clusters the compared queries lie in."""
    margin: float
    """A loss of at most this share of the headroom counts as no loss."""
    scorers: Mapping[str, Against]
    """Scorer of the new table -> how it stands."""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Baseline:
        """The part ``baseline`` of a stored audit."""

        def known(owner: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
            return {field.name: stored[field.name] for field in fields(owner)}

        scorers = {name: Against(**known(Against, one)) for name, one in entry["scorers"].items()}
        return cls(**(known(cls, entry) | {"scorers": scorers}))


@dataclass(frozen=True)
class Terms:
    """Where two tables are compared."""

    k: int
    """The K of the comparison."""
    queries: int
    """At how many queries."""
    clusters: int
    """In how many clusters."""
    margin: float
    """The loss that counts as none."""


def compared(ends: Ends, old: str, at: Terms) -> Against:
    """The status that the ends give."""
    status: Standing = "inconclusive"
    if ends.low > -at.margin:
        status = "better" if ends.low > 0 else "not worse"
    elif ends.high < -at.margin:
        status = "worse"
    needed = _needed(ends, at) if status == "inconclusive" else None
    reason = _reason(status, ends, at, needed)
    return Against(status, *ends, at.k, old, needed, reason)


def _needed(ends: Ends, at: Terms) -> int | None:
    """About how many would decide it, if the estimate stays and widths shrink as 1/sqrt(n)."""
    distance = ends.value + at.margin
    half = ends.value - ends.low if distance > 0 else ends.high - ends.value
    if not half < 1e3 * abs(distance):
        return None
    return math.ceil(at.queries * (half / distance) ** 2)


def _reason(status: Standing, ends: Ends, at: Terms, needed: int | None) -> str:
    loss = f"a loss of more than {exact_percent(at.margin)}"
    more = f"; about {needed:,} queries would decide it" if needed else ""
    said = {
        "better": "a gain is established",
        "not worse": f"{loss} is ruled out",
        "worse": f"{loss} is established",
        "inconclusive": f"{loss} is neither ruled out nor established{more}",
    }[status]
    value, low, high = (_percent(x) for x in ends)
    what = "queries" if at.clusters == at.queries else "clusters of queries"
    few = f" These are few: {at.clusters} {what}." if at.clusters < FEW else ""
    return (
        f"At K = {at.k} the pick's value changed by {value} ({low} to {high}) of the old headroom: "
        f"{said}.{few}"
    )


def _percent(x: float) -> str:
    return f"{x:+.1%}".replace("-", "−") if math.isfinite(x) else "unknown"
