"""The audit of pools: from scores and values to curves, diagnostics and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toptail.audit.per_query import Judgement, ScoreColumn, oracle_per_query, score_columns
from toptail.audit.record import jsonable, versions
from toptail.audit.sample import Estimate, Sample
from toptail.audit.verdict import Rule, judge
from toptail.errors import InputError
from toptail.pools import ScoredPools
from toptail.pools.columns import codes
from toptail.stats import bootstrap_p, divergence_bound, holm, max_t_band
from toptail.stats.best_of_k import Floats

FORMAT = "toptail-audit-1"
_MOST_GROUPS = 50
_HISTOGRAM = np.linspace(-1.0, 1.0, 21)

Tick = Callable[[str, float], None]


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
    result, extra = _measure(pools, judged, counts, seed, resamples, rule, pools_per_query, tick)
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


def _measure(
    pools: ScoredPools,
    judged: Judgement,
    k: list[int],
    seed: int,
    resamples: int,
    rule: Rule,
    pools_per_query: int,
    tick: Tick | None,
) -> tuple[dict[str, Any], list[str]]:
    """Everything that depends on the data: curves, diagnostics, verdicts, comparisons."""

    def stage(name: str) -> Callable[[float], None] | None:
        return None if tick is None else lambda share: tick(name, share)

    queries = _queries(pools, pools_per_query)
    columns = score_columns(pools, judged, k, stage("scoring pools"))
    cluster = None if pools.cluster is None else codes(pools.source, "cluster", pools.cluster)[0]
    sample = Sample(pools.queries, cluster)
    sample.add("oracle", oracle_per_query(pools, judged, k))
    for name, column in columns.items():
        _register(sample, f"{name}/", column)
    for name, members in pools.scorers.items():
        if len(members) > 1 or None not in members:
            _register(sample, f"{name}//", _seed_mean([columns[c] for c in members.values()]))
    sample.resample(np.random.default_rng(seed), resamples, stage("resampling queries"))

    scale = float(np.abs(judged.value).max())
    scorers, curves, warnings = {}, {}, []
    for name, members in pools.scorers.items():
        seeded = None not in members
        prefix = f"{name}//" if seeded else f"{name}/"
        parts = [columns[c] for c in members.values()]
        scorers[name], curves[name] = _scorer(sample, prefix, parts, k, queries, scale, rule)
        if seeded:
            scorers[name]["seeds"] = {
                str(seed_name): _curve(sample, f"{column}/", k, queries, scale, rule, short=True)[0]
                for seed_name, column in members.items()
            }
        high = scorers[name]["tau_b"]["high"]
        if high is not None and high < 0:
            warnings.append(
                f"'{name}' is negatively correlated with the value (tau_b at most {high:.2f}): "
                "is its sign reversed? Larger scores must mean better candidates."
            )
    top = sample.mean("oracle")
    low, high = top.interval(rule.level)
    random = next(iter(curves.values())).point[0]
    sizes = pools.sizes
    result = {
        "k": k,
        "random": random,
        "oracle": top.point,
        "oracle_low": low,
        "oracle_high": high,
        "headroom": top.point - random,
        "kl_bound": divergence_bound(k),
        "queries": queries,
        "pools": pools.queries,
        "clusters": sample.clusters,
        "candidates": pools.rows,
        "pool_size": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "max": int(sizes.max()),
        },
        "scorers": scorers,
        "comparisons": _comparisons(curves, k, rule.level),
    }
    return result, warnings


def _queries(pools: ScoredPools, pools_per_query: int) -> int:
    """How many queries the pools belong to."""
    if pools_per_query == 1:
        return pools.queries
    whole = pools_per_query > 1 and pools.queries % pools_per_query == 0
    if whole and pools.cluster is not None:
        cluster = codes(pools.source, "cluster", pools.cluster)[0].reshape(-1, pools_per_query)
        if (cluster == cluster[:, :1]).all():
            return len(cluster)
    raise InputError(
        f"{pools.source}: the {pools.queries:,} pools are not {pools_per_query} of each query, "
        "side by side and in one cluster; give the query as the cluster where there is no larger "
        "one."
    )


def _register(sample: Sample, prefix: str, column: ScoreColumn) -> None:
    """Put one score column's per-query numbers into the sample."""
    sample.add(prefix + "value", column.value)
    defined = ~np.isnan(column.tau_b)
    sample.add(prefix + "tau", np.where(defined, column.tau_b, 0.0))
    sample.add(prefix + "tau defined", defined.astype(np.float64))
    sample.add(prefix + "within", column.deciles_within)
    sample.add(prefix + "decile sum", column.decile_sums)
    sample.add(prefix + "decile count", column.decile_counts)
    if column.off_support is not None:
        sample.add(prefix + "off", column.off_support)
    if column.auc_within is not None and column.auc_influence is not None:
        mixed = ~np.isnan(column.auc_within)
        sample.add(prefix + "auc", np.where(mixed, column.auc_within, 0.0))
        sample.add(prefix + "auc defined", mixed.astype(np.float64))
        sample.add(prefix + "auc influence", column.auc_influence)


def _seed_mean(parts: list[ScoreColumn]) -> ScoreColumn:
    """The mean over training seeds of every per-query number."""
    if len(parts) == 1:
        return parts[0]

    def mean(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else sum(arrays) / len(arrays)

    return ScoreColumn(**{name: mean(name) for name in parts[0].__dict__})


def _curve(
    sample: Sample,
    prefix: str,
    k: list[int],
    queries: int,
    scale: float,
    rule: Rule,
    *,
    short: bool = False,
) -> tuple[dict[str, Any], Estimate]:
    """V(K) with its verdict; ``short`` leaves out bands and shares (for single seeds)."""
    curve, top = sample.mean(prefix + "value"), sample.mean("oracle")
    headroom = top - curve[0:1]
    verdict = judge(
        k,
        curve.point,
        curve.draws,
        headroom.point,
        clusters=sample.clusters,
        queries=queries,
        scale=scale,
        rule=rule,
    )
    if short:
        return {"value": curve.point, "verdict": verdict}, curve
    low, high = curve.interval(rule.level)
    band = max_t_band(curve.point, curve.draws, sample.clusters, rule.level, scale)
    usable = headroom.point > 1e-12 * scale
    captured = (curve - curve[0:1]) / headroom
    captured_low, captured_high = captured.interval(rule.level)

    def shares(x: Floats) -> Floats:
        return np.where(usable, np.where(np.abs(x) > 1e-9, x, 0.0), np.nan)  # rounding is no share

    share = shares(captured.point)
    return {
        "value": curve.point,
        "low": low,
        "high": high,
        "band_low": band.low,
        "band_high": band.high,
        "regret": top.point - curve.point,
        "nregret": 1.0 - share,
        "captured": share,
        "captured_low": shares(captured_low),
        "captured_high": shares(captured_high),
        "gain_per_doubling": (curve.point[-1] - curve.point[0]) / np.log2(k[-1])
        if k[-1] > 1
        else np.nan,
        "verdict": verdict,
    }, curve


def _scorer(
    sample: Sample,
    prefix: str,
    parts: list[ScoreColumn],
    k: list[int],
    queries: int,
    scale: float,
    rule: Rule,
) -> tuple[dict[str, Any], Estimate]:
    """One scorer's entry of ``audit.json`` (``parts``: its seeds)."""
    entry, curve = _curve(sample, prefix, k, queries, scale, rule)
    tau = sample.ratio(prefix + "tau", prefix + "tau defined")
    every_tau = np.concatenate([part.tau_b for part in parts])
    known = every_tau[~np.isnan(every_tau)]
    pooled = sample.ratio(prefix + "decile sum", prefix + "decile count")
    within = sample.mean(prefix + "within")
    deciles_low, deciles_high = pooled.interval(rule.level)
    entry |= {
        "selected_score": _scaled_mean(np.concatenate([part.selected_score for part in parts])),
        "tau_b": {
            **_number(tau, rule.level),
            "undefined": int(every_tau.size - known.size),
            "histogram": {"edges": _HISTOGRAM, "counts": np.histogram(known, _HISTOGRAM)[0]},
        },
        "deciles": pooled.point,
        "deciles_low": deciles_low,
        "deciles_high": deciles_high,
        "decile_gap": _number(pooled[9:10] - pooled[0:1], rule.level),
        "deciles_within": within.point,
        "decile_gap_within": _number(within[9:10] - within[0:1], rule.level),
    }
    if parts[0].off_support is not None:
        off = sample.mean(prefix + "off")
        excess = off - off[0:1]
        low, high = excess.interval(rule.level)
        entry["off_support"] = {
            "rate": off.point,
            "excess": excess.point,
            "excess_low": low,
            "excess_high": high,
            "base_rate": off.point[0],
        }
    if parts[0].auc is not None:
        area = float(np.mean([part.auc for part in parts]))
        moved = sample.total(prefix + "auc influence")
        low, high = (area + end[0] for end in moved.interval(rule.level))
        within_auc = sample.ratio(prefix + "auc", prefix + "auc defined")
        undefined = sum(
            int(np.isnan(p.auc_within).sum()) for p in parts if p.auc_within is not None
        )
        entry |= {
            "auc": area,
            "auc_low": max(0.0, low),
            "auc_high": min(1.0, high),
            "auc_within": {**_number(within_auc, rule.level), "undefined": undefined},
        }
    return entry, curve


def _scaled_mean(scores: Floats) -> Floats:
    """Mean over rows that stays finite where the sum would not."""
    scale = max(1.0, float(np.abs(scores).max()))
    return np.asarray((scores / scale).mean(axis=0) * scale)


def _number(estimate: Estimate, level: float) -> dict[str, float]:
    low, high = estimate.interval(level)
    return {"mean": float(estimate.point[0]), "low": float(low[0]), "high": float(high[0])}


def _comparisons(curves: dict[str, Estimate], k: list[int], level: float) -> list[dict[str, Any]]:
    """Paired differences of every pair of scorers at the largest K."""
    names = list(curves)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    if not pairs:
        return []
    differences = [curves[a][-1] - curves[b][-1] for a, b in pairs]
    p = np.array([float(bootstrap_p(d.draws)) for d in differences])
    rows = []
    for (a, b), d, raw, adjusted in zip(pairs, differences, p, holm(p), strict=True):
        low, high = d.interval(level)
        rows.append(
            {"a": a, "b": b, "k": k[-1], "difference": d.point, "low": low, "high": high}
            | {"p": raw, "p_holm": adjusted}
        )
    return rows


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
        part, _ = _measure(
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
