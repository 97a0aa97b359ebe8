"""What an audit says about who judged: how many labels, which design, and a cheap judge alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from toptail.audit.per_query import Judgement
from toptail.audit.settings import Settings
from toptail.pools import ScoredPools


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
    if judged.sampled is None and alone is None:
        return {}
    labels, whole = pools.rows, pools.queries
    if judged.sampled is not None:
        labels = int(judged.sampled.judged.sum())
        whole = int((~np.isnan(judged.sampled.whole[pools.offsets[:-1]])).sum())
    part: dict[str, Any] = {
        "labels": labels,
        "candidates": pools.rows,
        "whole_queries": whole,
        "query_centres": "own" in pools.design and judged.sampled is not None,
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


def _beside(alone: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """One scorer: what the cheap judge alone would have claimed, and how far off it is."""
    claimed, real = (np.asarray(entry["deciles_within"], float) for entry in (alone, found))
    return {
        "status": alone["verdict"]["status"],
        "gain": {end: alone["gain"][end][-1] for end in ("value", "low", "high")},
        "value": alone["value"],
        "too_high_by_decile": claimed - real,
    }
