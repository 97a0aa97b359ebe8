"""The audit of pools: from scores and values to curves, diagnostics and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toptail.audit.measure import Tick, measure
from toptail.audit.per_query import Judgement
from toptail.audit.record import jsonable, versions
from toptail.audit.verdict import Rule
from toptail.errors import InputError
from toptail.pools import ScoredPools
from toptail.pools.columns import codes

FORMAT = "toptail-audit-1"
_MOST_GROUPS = 50


def audit(
    pools: ScoredPools,
    *,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    k: Sequence[int] | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    delta: float = Rule.delta,
    rho: float = Rule.rho,
    level: float = Rule.level,
    group_column: str = "group",
    cluster_column: str = "cluster",
    pools_per_query: int = 1,
    command: str | None = None,
    tick: Tick | None = None,
) -> dict[str, Any]:
    """Tell whether each scorer of ``pools`` is safe to maximize.

    Parameters
    ----------
    pools
        Queries with candidates, scores and judged values.
    values
        The value column to judge by, where there are several.
    replicates
        Two or more value columns that are independent replicates of one noisy judge: their
        mean is the value, and the oracle is chosen on one half and valued on the other.
    k
        Candidate counts to measure (1 is always added); by default powers of two up to the
        smallest pool of at least two candidates.
    seed
        Seed of the bootstrap; the same seed gives the same result to the last bit.
    resamples
        Bootstrap resamples of whole queries (or clusters), shared by all scorers.
    delta, rho, level
        Thresholds of the verdict; see :class:`toptail.audit.verdict.Rule`.
    group_column
        What the groups of ``pools`` are called in the report.
    cluster_column
        What the clusters of ``pools`` are called in the report.
    pools_per_query
        How many pools side by side, each under a label of its own, belong to one query. They
        are not independent: they must lie in one cluster.
    command
        The command to record as what made this result.
    tick
        Called with a stage's name and its finished share, for progress bars.

    Returns
    -------
    The content of ``audit.json``: plain lists, numbers and strings, with None for what is
    not computable. Under ``scorers`` each scorer's curve, intervals, diagnostics and
    ``verdict``.

    Raises
    ------
    InputError
        If the columns or K asked for do not fit the pools.

    Examples
    --------
    >>> from toptail.pools import ScoredPools
    >>> pools = ScoredPools.from_arrays({"good": [[1, 2], [3, 4]]}, [[0.0, 1.0], [0.0, 1.0]])
    >>> audit(pools, resamples=100)["scorers"]["good"]["value"]
    [0.5, 1.0]
    """
    rule = Rule(delta, rho, level)
    judged, value_name = _judgement(pools, values, replicates)
    _check_scale(pools, judged)
    warnings = []
    single = pools.sizes == 1
    if single.any():
        if single.all():
            raise InputError(
                f"{pools.source}: every pool has one candidate, so there is nothing to select from."
            )
        warnings.append(
            f"{int(single.sum()):,} of {pools.queries:,} pools have one candidate; "
            "they cannot be searched and are left out."
        )
        if pools_per_query > 1:
            raise InputError(
                f"{pools.source}: {int(single.sum()):,} pools have one candidate: with several "
                "pools per query every pool needs at least two."
            )
        judged = judged.select(np.repeat(~single, pools.sizes))
        pools = pools.select(~single)
    counts = _counts(pools, k)
    result, extra = measure(pools, judged, counts, seed, resamples, rule, pools_per_query, tick)
    result |= {
        "format": FORMAT,
        "kind": "pools",
        "value": value_name,
        "binary": judged.binary,
        "cluster_column": None if pools.cluster is None else cluster_column,
        "replicates": list(replicates) if replicates else None,
        "single_candidate_pools": int(single.sum()),
        "notes": _notes(replicates),
        "warnings": warnings + extra,
        "thresholds": {"delta": delta, "rho": rho, "level": level, "resamples": resamples},
        "record": {
            "command": command or "toptail.audit(...)",
            "versions": versions(),
            "seed": seed,
            "source": pools.source,
            "sha256": pools.sha256,
        },
    }
    groups = _groups(
        pools, judged, counts, seed, resamples, rule, pools_per_query, result["warnings"]
    )
    if groups is not None:
        result |= {"groups": groups, "group_column": group_column}
    clean: dict[str, Any] = jsonable(result)
    return clean


def _judgement(
    pools: ScoredPools, values: str | None, replicates: Sequence[str] | None
) -> tuple[Judgement, str]:
    for name in (*([values] if values else []), *(replicates or ())):
        if name not in pools.values:
            raise InputError(
                f"{pools.source}: there is no value column '{name}'; "
                f"the value columns are {', '.join(pools.values)}."
            )
    if replicates:
        if values:
            raise InputError("Give either one value column or replicates, not both.")
        if len(set(replicates)) < 2:
            raise InputError("Replicates need at least two different value columns.")
        stack = np.stack([pools.values[name] for name in replicates])
        return Judgement(stack.mean(axis=0), stack), " + ".join(replicates)
    if values is None and len(pools.values) > 1:
        names = ", ".join(pools.values)
        raise InputError(
            f"{pools.source}: there are several value columns ({names}); choose one with --values, "
            "or name independent replicates of one judge with --replicates."
        )
    name = values or next(iter(pools.values))
    return Judgement(pools.values[name]), name


def _check_scale(pools: ScoredPools, judged: Judgement) -> None:
    largest = float(np.abs(judged.value).max())
    if largest > 1e100:
        raise InputError(
            f"{pools.source}: values as large as {largest:g} cannot be averaged; rescale them."
        )


def _counts(pools: ScoredPools, k: Sequence[int] | None) -> list[int]:
    smallest = int(pools.sizes.min())
    if k is None:
        return [1 << power for power in range(smallest.bit_length())]
    if not k or min(k) < 1:
        raise InputError(f"K must be whole numbers of at least 1, not {list(k)}.")
    largest = max(k)
    if largest > smallest:
        at = int(np.flatnonzero(pools.sizes < largest)[0])
        raise InputError(
            f"{pools.source}: K = {largest} is larger than the pool of query "
            f"'{pools.query[at]}', which has {int(pools.sizes[at])} candidates; "
            f"the largest K that every pool allows is {smallest}."
        )
    return sorted({1, *k})


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
    pools: ScoredPools,
    judged: Judgement,
    k: list[int],
    seed: int,
    resamples: int,
    rule: Rule,
    pools_per_query: int,
    warnings: list[str],
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
        kept = None if judged.replicates is None else judged.replicates[:, rows]
        part, _ = measure(
            pools.select(member),
            Judgement(judged.value[rows], kept),
            k,
            seed,
            resamples,
            rule,
            pools_per_query,
            None,
        )
        part.pop("comparisons")
        result[str(label)] = part
    return result
