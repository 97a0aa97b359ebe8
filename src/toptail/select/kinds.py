"""Every kind of selector by its name, and stored ones read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from toptail.errors import InputError
from toptail.select.base import FORMAT, Selector
from toptail.select.drawn import (
    BestInMajority,
    Chi2,
    Majority,
    Own,
    RankEnsemble,
    Soft,
    TopBy,
    WeightedVote,
)
from toptail.select.exact import (
    Best,
    Filtered,
    PoissonBest,
    RandomPick,
    RankPick,
    Threshold,
    Trim,
)
from toptail.select.pool import ScoreRule

KINDS: Final[Mapping[str, type[Selector]]] = {
    each.kind: each
    for each in (
        *(RandomPick, Best, RankPick, Trim, PoissonBest, Filtered, Threshold, Soft, Chi2, TopBy),
        *(Majority, WeightedVote, BestInMajority),
    )
}
"""Selectors by the names of their kinds; ensembles are called by how they join scores."""
JOINED: Final = ("mean", "min", "pessimistic")


def selector_of(content: Any, where: str, function: Any = None) -> Selector:
    """The selector whose :meth:`Selector.to_dict` this is."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{where}: not a selector that 'toptail choose' stored.")
    name, k = content.get("selector"), content.get("k")
    given = dict(content.get("parameters") or {})
    try:
        if "function" in given:
            return _own(where, given, int(k), function)  # type: ignore[arg-type]
        if "score" in given:
            given["score"] = ScoreRule.of(given["score"])
        ranks = name in JOINED and given["score"].scale == "rank"
        kind: Any = RankEnsemble if ranks else Best if name in JOINED else KINDS[str(name)]
        known = {field.name for field in fields(kind)}
        if set(given) - known:
            raise KeyError(sorted(set(given) - known)[0])
        found: Selector = kind(k=int(k), **given)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: the stored selector is broken ({error}).") from None
    return found


def _own(where: str, given: dict[str, Any], k: int, function: Any) -> Own:
    if not callable(function):
        raise InputError(
            f"{where}: the stored selector is the function '{given['function']}', which files do "
            "not hold; give it, as in Selector.load(path, function=...)."
        )
    return Own(k=k, name=given["function"], reads=tuple(given["reads"]), function=function)
