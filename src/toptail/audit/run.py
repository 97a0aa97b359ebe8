"""The audit of pools: from scores and values to curves, diagnostics and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toptail.audit.groups import groups
from toptail.audit.measure import measure
from toptail.audit.population import population
from toptail.audit.record import jsonable, record_of
from toptail.audit.settings import Rule, Settings
from toptail.audit.shared_length import shared_length
from toptail.errors import InputError
from toptail.judging.partial import only_whole_queries
from toptail.judging.values import Judgement, judging_content
from toptail.pools import ScoredPools
from toptail.pools.columns import listed
from toptail.progress import Tick
from toptail.stats.k_grid import KGrid

FORMAT = "toptail-audit-2"


def pools_content(
    pools: ScoredPools,
    settings: Settings,
    *,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    command: str | None = None,
    tick: Tick | None = None,
) -> dict[str, Any]:
    """The content of ``audit.json``: whether each scorer of ``pools`` is safe to maximize.

    Plain lists, numbers and strings, with None for what is not computable. ``scorers`` has each
    scorer's curve, intervals, diagnostics and ``verdict``. ``values`` and ``replicates`` are those
    of :func:`toptail.audit`; ``command`` is recorded, and ``tick`` is called with the progress.

    Examples
    --------
    >>> from toptail.pools import ScoredPools
    >>> pools = ScoredPools.from_arrays({"good": [[1, 2], [3, 4]]}, [[0.0, 1.0], [0.0, 1.0]])
    >>> pools_content(pools, Settings(resamples=100))["scorers"]["good"]["value"]
    [0.5, 1.0]
    """
    replicates = listed(replicates)
    judged, value_name = settings.judgement(pools, values, replicates)
    pools, judged, notes = only_whole_queries(pools, judged)
    settings.check_values(pools.source, judged)
    alone = _by_cheap_judge(pools, settings)
    chosen = population(pools, judged, settings)
    pools, judged = chosen.pools, chosen.judged
    grid = KGrid.fine(chosen.k_max, _more(pools, settings, chosen.k_max))
    if judged.bounded:  # each step has a worst case of its own
        grid = grid.doublings()
    rng = np.random.default_rng(settings.seed)
    found = measure(pools, judged, grid, settings, rng, tick)
    left_out = {"single": chosen.single, "small": chosen.small, "no_headroom": 0}
    if settings.unit == "query":
        left_out["no_headroom"] = found.no_headroom
    result = found.content | {
        "format": FORMAT,
        "kind": "pools",
        "family": list(grid.deciding),
        "k_max": grid.k_max,
        "unit": settings.unit,
        "min_pool": chosen.min_pool,
        "left_out": left_out,
        "populations": chosen.compared,
        "headroom_spread": found.headroom_spread,
        "other_unit": found.other_unit,
        "value_range": settings.value_range,
        "skipped_columns": [{"name": name, "why": why} for name, why in pools.skipped.items()],
        "constant_scores": pools.constant_scorers,
        "value": value_name,
        "binary": judged.binary,
        "cluster_column": None if pools.cluster is None else pools.called.get("cluster", "cluster"),
        "replicates": replicates,
        "single_candidate_pools": chosen.single,
        "notes": _notes(judged, len(pools.values) > 1, settings.rule),
        "warnings": [
            *(*notes, *chosen.warnings, *found.warnings),
            *shared_length(pools, judged, settings.rule.level),
        ],
        "thresholds": {**vars(settings.rule), "resamples": settings.resamples},
        "record": record_of(pools, settings.seed, command or "toptail.audit(...)"),
    }
    ranged = settings.value_range is not None
    result |= judging_content(
        judged, pools, result["scorers"], ranged=ranged, cheap=settings.cheap, alone=alone
    )
    result |= groups(pools, judged, grid, settings, result["warnings"])
    clean: dict[str, Any] = jsonable(result)
    return clean


def _by_cheap_judge(pools: ScoredPools, settings: Settings) -> dict[str, Any] | None:
    """The audit by the cheap judge alone; None without one."""
    if settings.cheap is None:
        return None
    return pools_content(pools, replace(settings, cheap=None, unjudged=None), values=settings.cheap)


def _more(pools: ScoredPools, settings: Settings, k_max: int) -> list[int]:
    more = sorted(int(count) for count in settings.k or ())
    if more and more[-1] > k_max:
        at = int(np.flatnonzero(pools.sizes < more[-1])[0])
        raise InputError(
            f"{pools.source}: K = {more[-1]} is larger than the pool of query "
            f"'{pools.query[at]}', which has {int(pools.sizes[at])} candidates; "
            f"the largest K that every pool allows is {k_max}."
        )
    return more


def _notes(judged: Judgement, several: bool, rule: Rule) -> list[str]:
    """How to read the headroom where the judge is noisy, or may be."""
    margins = f"The margins δ = {rule.delta:g} and ρ = {rule.rho:g} are shares of the"
    if judged.replicates is not None:
        return [
            "The oracle is chosen on one half of the replicates and valued on the other, both "
            f"ways round: it errs downward, never upward. {margins} headroom corrected in this way."
        ]
    if not several:
        return []
    return [
        "If the judged value is itself noisy, a single judge biases the oracle upward (it is "
        "credited with lucky noise), and the captured share downward; judge candidates at "
        f"least twice and name the columns with --replicates to remove this. {margins} judged "
        "headroom."
    ]
