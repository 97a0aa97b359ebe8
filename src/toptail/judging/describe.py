"""What an audit says about who judged: how many labels, which design, and a cheap judge alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from toptail.audit.per_query import Judgement
from toptail.audit.settings import Settings
from toptail.pools import ScoredPools

_NO_SHARE: Final = "There is no captured share, since the headroom is only known within bounds."


def judging_content(
    judged: Judgement,
    pools: ScoredPools,
    found: Mapping[str, Any],
    settings: Settings,
    alone: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The part ``judging`` of ``audit.json``; empty where every candidate has its value.

    ``found`` is the audit so far, ``alone`` the one by the cheap judge.
    """
    if judged.exact and alone is None:
        return {}
    part: dict[str, Any] = {
        **labels_content(judged, pools),
        "how": how_judged(judged, settings),
        "cheap": None,
    }
    if alone is not None:
        part["cheap"] = {
            "name": settings.cheap,
            "scorers": {
                name: _beside(entry, found["scorers"][name])
                for name, entry in alone["scorers"].items()
            },
        }
    return {"judging": part}


def labels_content(judged: Judgement, pools: ScoredPools) -> dict[str, Any]:
    """How much was judged."""
    labels, whole = int(judged.seen.size), pools.queries
    if judged.between is not None:
        missing = judged.between[0] != judged.between[1]
        whole = int((np.add.reduceat(missing, pools.offsets[:-1]) == 0).sum())
    pairs = None
    if judged.sampled is not None:
        whole = int((~np.isnan(judged.sampled.whole[pools.offsets[:-1]])).sum())
        pairs = judged.sampled.pairs
    return {
        "labels": labels if pairs is None else int(pairs.sum()) // 2,
        "candidates": pools.rows,
        "whole_queries": whole,
        "pairs": pairs is not None,
    }


def how_judged(judged: Judgement, settings: Settings) -> str:
    """Where the headroom and the ends come from, in a sentence."""
    ranged = settings.value_range is not None
    ends = "the declared range" if ranged else "the range of the judged values"
    if judged.between is not None:
        return (
            f"Unjudged candidates may be worth anything in {ends}: a status is given only where "
            f"the worst and the best case agree. {_NO_SHARE}"
        )
    if judged.sampled is None:
        return "Every candidate was judged."
    if judged.sampled.pairs is not None:
        return (
            "Pairs were judged: a candidate's value is its chance to beat a random other one of "
            "its query. The headroom is bounded: at least the gain of the best selector, chosen on "
            f"other queries; at most certain victory. {_NO_SHARE}"
        )
    if not judged.sampled.oracle_unknown:
        return (
            "Curves are weighted by the chances of the design, and the headroom is that of the "
            "queries judged whole; both are right on average, and their noise is in the intervals."
        )
    most = "the declared range" if ranged else "not known, so that no scorer can be called unsafe"
    return (
        "Curves are weighted by the chances of the design. It does not say of enough queries that "
        "they were judged whole, so the headroom is bounded: at least the gain of the best "
        f"selector, chosen on other queries; at most {most}. An unseen cluster may lose {ends}. "
        f"{_NO_SHARE}"
    )


def _beside(alone: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """One scorer: what the cheap judge alone would have claimed, and how far off it is."""
    claimed, real = (np.asarray(entry["deciles_within"], float) for entry in (alone, found))
    return {
        "status": alone["verdict"]["status"],
        "gain": {end: alone["gain"][end][-1] for end in ("value", "low", "high")},
        "value": alone["value"],
        "too_high_by_decile": claimed - real,
    }
