"""The audit of pools: from scores and values to curves, diagnostics and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from toptail.audit.groups import groups
from toptail.audit.measure import measure
from toptail.audit.per_query import Judgement
from toptail.audit.population import population
from toptail.audit.record import jsonable, record_of
from toptail.audit.settings import Rule, Settings
from toptail.audit.shared_length import shared_length
from toptail.errors import InputError, option
from toptail.judging.describe import judging_content
from toptail.judging.partial import between, filled, preferred, sampled
from toptail.judging.values import StreamedJudgement
from toptail.pools import ScoredPools
from toptail.pools.columns import listed
from toptail.pools.stream import StreamedPools
from toptail.progress import Tick
from toptail.stats.k_grid import Family

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

    Plain lists, numbers and strings, with None for what is not computable. Under ``scorers``
    each scorer's curve, intervals, diagnostics and ``verdict``. ``values``, ``replicates``,
    ``command`` and ``tick`` are as :func:`toptail.audit` takes them.

    Examples
    --------
    >>> from toptail.pools import ScoredPools
    >>> pools = ScoredPools.from_arrays({"good": [[1, 2], [3, 4]]}, [[0.0, 1.0], [0.0, 1.0]])
    >>> pools_content(pools, Settings(resamples=100))["scorers"]["good"]["value"]
    [0.5, 1.0]
    """
    rule, replicates = settings.rule, listed(replicates)
    judged, value_name = judgement(pools, values, replicates, settings)
    pools, judged, dropped = judged_queries(pools, judged)
    check_values(pools, judged, settings)
    alone = cheap_alone(pools, settings)
    judged, power = judged.rescaled()
    if settings.value_range is not None:
        low, high = np.ldexp(settings.value_range, -power).tolist()
        settings = replace(settings, value_range=(low, high))
    chosen = population(pools, judged, settings)
    pools, judged = chosen.pools, chosen.judged
    family = Family.fine(chosen.k_max, _more(pools, settings, chosen.k_max))
    if judged.bounded:  # each step has a worst case of its own
        family = family.doublings()
    rng = np.random.default_rng(settings.seed)
    found = measure(pools, judged, family, settings, rng, tick)
    left_out = {"single": chosen.single, "small": chosen.small, "no_headroom": 0}
    if settings.unit == "query":
        left_out["no_headroom"] = found.no_headroom
    result = found.content | {
        "format": FORMAT,
        "kind": "pools",
        "family": list(family.family),
        "k_max": family.k_max,
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
            *(*dropped, *chosen.warnings, *found.warnings),
            *shared_length(pools, judged, rule.level),
        ],
        "thresholds": {**vars(rule), "resamples": settings.resamples},
        "record": record_of(pools, settings.seed, command or "toptail.audit(...)"),
    }
    result |= judging_content(judged, pools, result, settings, alone)
    result |= groups(pools, judged, family, settings, result["warnings"])
    clean: dict[str, Any] = jsonable(result)
    return _unscaled(clean, power) if power else clean


def cheap_alone(pools: ScoredPools, settings: Settings) -> dict[str, Any] | None:
    """What an audit by the cheap judge alone would claim; None without one."""
    if settings.cheap is None:
        return None
    return pools_content(pools, replace(settings, cheap=None, unjudged=None), values=settings.cheap)


def judged_queries(
    pools: ScoredPools, judged: Judgement
) -> tuple[ScoredPools, Judgement, list[str]]:
    """The queries that were judged, where that was all or nothing and all had the same chance.

    They are a sample of queries like any other, in which every candidate has its value.
    """
    if judged.sampled is None or not judged.sampled.queries_alike(pools.design):
        return pools, judged, []
    full = judged.sampled.judged[pools.offsets[:-1]]
    told = (
        f"{int(full.sum()):,} of {pools.queries:,} queries were judged, each whole and with the "
        "same chance: the audit is that of those queries."
    )
    value = judged.sampled.value[np.repeat(full, pools.sizes)]
    return pools.select(full), Judgement(value), [told]


def check_values(pools: ScoredPools, judged: Judgement, settings: Settings) -> None:
    """Raise an :class:`InputError` where the values cannot be used as the settings ask."""
    largest = judged.largest
    if largest > 1e100:
        raise InputError(
            f"{pools.source}: values as large as {largest:g} cannot be averaged; rescale them."
        )
    if settings.unit == "query" and judged.replicates is not None:
        raise InputError(
            f"{option('unit', settings.unit)} cannot be used with {option('replicates')}: a single "
            "query's headroom is too noisy to divide by."
        )
    if settings.unit == "query" and not judged.exact:
        raise InputError(
            f"{option('unit', settings.unit)} needs every candidate's value: a query's own "
            "headroom is not known from some of them."
        )
    if settings.value_range is not None:
        outside = judged.outside(*settings.value_range)
        if outside.size:
            raise InputError(
                f"{pools.source}: the value {outside[0]:g} lies outside "
                f"{option('value_range', settings.value_range)}."
            )


def judgement(
    pools: ScoredPools,
    values: str | None,
    replicates: Sequence[str] | None,
    settings: Settings | None = None,
) -> tuple[Judgement, str]:
    """The values to judge by, of one column or of replicates, and their name.

    What to make of missing ones is for the settings to say; without settings there may be none.
    """
    if values and replicates:
        raise InputError(f"Give either {option('values')} or {option('replicates')}, not both.")
    if values is not None and not isinstance(values, str):
        raise InputError(
            f"{option('values', values)} must name the one column to judge by; independent "
            f"replicates of one judge go to {option('replicates')}."
        )
    for name in (*([values] if values else []), *(replicates or ())):
        if name not in pools.values:
            raise InputError(
                f"{pools.source}: there is no value column '{name}'; "
                f"the value columns are {', '.join(pools.values)}."
            )
    if replicates:
        if len(set(replicates)) < 2:
            given = option("replicates", replicates)
            raise InputError(f"{given} must name at least two different value columns.")
        if isinstance(pools, StreamedPools):
            return StreamedJudgement.of(pools, replicates), " + ".join(replicates)
        stack = np.stack([pools.values[name] for name in replicates])
        if np.isnan(stack).any():
            raise InputError(
                f"{pools.source}: {option('replicates', replicates)} must be there for every "
                f"candidate; some are missing."
            )
        return Judgement(stack.mean(axis=0), stack), " + ".join(replicates)
    cheap = None if settings is None else settings.cheap
    others = [name for name in pools.values if name != cheap]
    if values is None and len(others) > 1:
        names = ", ".join(others)
        raise InputError(
            f"{pools.source}: there are several value columns ({names}); choose one with "
            f"{option('values')}, or name independent replicates of one judge with "
            f"{option('replicates')}."
        )
    name = values or next(iter(others), cheap) or ""
    if isinstance(pools, StreamedPools):
        return StreamedJudgement.of(pools, [name]), name
    return partly_judged(pools, name, settings or Settings()), name


def partly_judged(pools: ScoredPools, name: str, settings: Settings) -> Judgement:
    """The judgement of one column, as the settings say where values are missing."""
    value, cheap = pools.values[name], None
    if settings.cheap is not None:
        if settings.cheap == name or settings.cheap not in pools.values:
            raise InputError(
                f"{pools.source}: {option('cheap', settings.cheap)} must name a value column "
                f"beside '{name}'."
            )
        cheap = pools.values[settings.cheap]
        if np.isnan(cheap).any():
            raise InputError(
                f"{pools.source}: the cheap judge '{settings.cheap}' must judge every candidate; "
                "some of its values are missing."
            )
    if "pairs" in pools.design:
        return Judgement(value, sampled=preferred(pools, settings.seed))
    if not np.isnan(value).any():
        return Judgement(value)
    if settings.unjudged is not None and settings.unjudged != "bounds":
        return Judgement(filled(pools, value, name, settings.unjudged))
    if settings.unjudged == "bounds":
        low, high = between(pools, value, name, settings.value_range)
        return Judgement((low + high) / 2, between=(low, high))
    found, known = sampled(pools, value, name, cheap, settings.seed)
    return Judgement(found, sampled=known)


def _more(pools: ScoredPools, settings: Settings, k_max: int) -> list[int]:
    """The K to show beside the family."""
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
    """What the numbers mean where the judge is known to be noisy, or where there are several."""
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


_IN_VALUE_UNITS: Final = {
    *("random", "oracle", "oracle_low", "oracle_high", "headroom", "value_range", "difference"),
    *("value", "low", "high", "band_low", "band_high", "regret", "gain_per_doubling", "mean"),
    *("deciles", "deciles_low", "deciles_high", "deciles_within", "peak_value"),
}
"""Keys of numbers in units of the value, unless they lie under one of the next."""
_IN_OTHER_UNITS: Final = {
    *("gain", "tau_b", "auc_within", "group_tests", "steps", "off_support", "thresholds"),
}


def _unscaled(content: Any, power: int, *, inside: bool = False) -> Any:
    """The content with numbers in units of the value multiplied by a power of two."""
    if isinstance(content, dict):
        if content.get("threshold") is not None and content.get("name") != "headroom":
            return content  # a check in units of the headroom
        return {
            key: item
            if key in _IN_OTHER_UNITS
            else _unscaled(item, power, inside=key in _IN_VALUE_UNITS or (inside and key != "name"))
            for key, item in content.items()
        }
    if isinstance(content, list):
        return [_unscaled(item, power, inside=inside) for item in content]
    return math.ldexp(content, power) if inside and isinstance(content, float) else content
