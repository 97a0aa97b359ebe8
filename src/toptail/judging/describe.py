"""The part ``judging`` of ``audit.json``: who judged how much, and a cheap judge alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from toptail.judging.values import Judgement
from toptail.pools import ScoredPools


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
