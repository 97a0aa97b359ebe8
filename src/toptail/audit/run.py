"""The audit of pools: from scores and values to curves, diagnostics and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toptail.audit.measure import measure
from toptail.audit.per_query import Judgement
from toptail.audit.record import jsonable, record_of
from toptail.audit.settings import Settings
from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.pools.columns import codes, listed
from toptail.progress import Tick

FORMAT = "toptail-audit-1"
_MOST_GROUPS = 50


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
    judged, value_name = _judgement(pools, values, replicates)
    largest = float(np.abs(judged.value).max())
    if largest > 1e100:
        raise InputError(
            f"{pools.source}: values as large as {largest:g} cannot be averaged; rescale them."
        )
    warnings = []
    single = pools.sizes == 1
    alone = int(single.sum())
    if alone:
        if single.all():
            raise InputError(
                f"{pools.source}: every pool has one candidate, so there is nothing to select from."
            )
        if settings.pools_per_query > 1:
            raise InputError(
                f"{pools.source}: {alone:,} pools have one candidate: with several "
                "pools per query every pool needs at least two."
            )
        warnings.append(
            f"{alone:,} of {pools.queries:,} pools have one candidate; "
            "they cannot be searched and are left out."
        )
        judged = judged.select(np.repeat(~single, pools.sizes))
        pools = pools.select(~single)
    k = _counts(pools, settings)
    result, extra = measure(pools, judged, k, settings, tick)
    result |= {
        "format": FORMAT,
        "kind": "pools",
        "value": value_name,
        "binary": judged.binary,
        "cluster_column": None if pools.cluster is None else pools.called.get("cluster", "cluster"),
        "replicates": replicates,
        "single_candidate_pools": alone,
        "skipped_columns": [{"name": name, "why": why} for name, why in pools.skipped.items()],
        "constant_scores": pools.constant_scorers,
        "notes": _notes(replicates),
        "warnings": warnings + extra,
        "thresholds": {**vars(rule), "resamples": settings.resamples},
        "record": record_of(pools, settings.seed, command or "toptail.audit(...)"),
    }
    groups = _groups(pools, judged, k, settings, result["warnings"])
    if groups is not None:
        result |= {"groups": groups, "group_column": pools.called.get("group", "group")}
    clean: dict[str, Any] = jsonable(result)
    return clean


def _judgement(
    pools: ScoredPools, values: str | None, replicates: Sequence[str] | None
) -> tuple[Judgement, str]:
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
        stack = np.stack([pools.values[name] for name in replicates])
        return Judgement(stack.mean(axis=0), stack), " + ".join(replicates)
    if values is None and len(pools.values) > 1:
        names = ", ".join(pools.values)
        raise InputError(
            f"{pools.source}: there are several value columns ({names}); choose one with "
            f"{option('values')}, or name independent replicates of one judge with "
            f"{option('replicates')}."
        )
    name = values or next(iter(pools.values))
    return Judgement(pools.values[name]), name


def _counts(pools: ScoredPools, settings: Settings) -> list[int]:
    smallest = int(pools.sizes.min())
    counts = settings.counts(smallest)
    if counts[-1] > smallest:
        at = int(np.flatnonzero(pools.sizes < counts[-1])[0])
        raise InputError(
            f"{pools.source}: K = {counts[-1]} is larger than the pool of query "
            f"'{pools.query[at]}', which has {int(pools.sizes[at])} candidates; "
            f"the largest K that every pool allows is {smallest}."
        )
    return counts


def _notes(replicates: Sequence[str] | None) -> list[str]:
    if replicates:
        return [
            "The oracle is chosen on one half of the replicates and valued on the other, both "
            "ways round: it errs downward, never upward."
        ]
    return [
        "If the judged value is itself noisy, a single judge biases the oracle upward (it is "
        "credited with lucky noise), and the captured share downward; judge candidates at "
        "least twice and name the columns with --replicates to remove this."
    ]


def _groups(
    pools: ScoredPools, judged: Judgement, k: list[int], settings: Settings, warnings: list[str]
) -> dict[str, Any] | None:
    """The same audit inside each group of queries, without the paired comparisons."""
    if pools.group is None:
        return None
    code, labels = codes(pools.source, "group", pools.group)
    if len(labels) > _MOST_GROUPS:
        warnings.append(
            f"The group column has {len(labels)} different labels; groups are reported for at most "
            f"{_MOST_GROUPS}."
        )
        return None
    result = {}
    for at, label in enumerate(labels.to_pylist()):
        member = code == at
        rows = np.repeat(member, pools.sizes)
        result[str(label)], _ = measure(pools.select(member), judged.select(rows), k, settings)
        result[str(label)].pop("comparisons")
    return result
