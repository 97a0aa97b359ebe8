"""What an audit measures on pools: curves, diagnostics, verdicts, and paired comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from toptail.audit.per_query import Judgement, ScoreColumn, oracle_per_query, score_columns
from toptail.audit.sample import Estimate, Sample
from toptail.audit.settings import Rule, Settings
from toptail.audit.verdict import judge
from toptail.audit.views import Summary
from toptail.errors import InputError
from toptail.pools import ScoredPools
from toptail.pools.columns import codes, split_seed
from toptail.progress import Tick
from toptail.stats import bootstrap_p, divergence_bound, holm, max_t_band
from toptail.stats.best_of_k import Floats

_HISTOGRAM = np.linspace(-1.0, 1.0, 21)


@dataclass(frozen=True, eq=False)
class _Reading:
    """What every number of one audit is read from."""

    sample: Sample
    """Per-query numbers and their resamples."""
    k: list[int]
    """The measured K, ascending, starting with 1."""
    queries: int
    """How many queries the pools belong to."""
    scale: float
    """Size of the values, for telling rounding from variation."""
    rule: Rule
    """Thresholds of the verdict."""


def measure(
    pools: ScoredPools,
    judged: Judgement,
    k: list[int],
    settings: Settings,
    tick: Tick | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Everything that depends on the data: curves, diagnostics, verdicts, comparisons."""

    def stage(name: str) -> Callable[[float], None] | None:
        return None if tick is None else lambda share: tick(name, share)

    rule, queries = settings.rule, _queries(pools, settings.pools_per_query)
    columns = score_columns(pools, judged, k, stage("scoring pools"))
    cluster = None if pools.cluster is None else codes(pools.source, "cluster", pools.cluster)[0]
    sample = Sample(pools.queries, cluster)
    sample.add("oracle", oracle_per_query(pools, judged, k))
    for name, column in columns.items():
        _register(sample, f"{name}/", column)
    for name, members in pools.scorers.items():
        if None not in members:
            _register(sample, f"{name}//", _seed_mean([columns[c] for c in members.values()]))
    rng = np.random.default_rng(settings.seed)
    sample.resample(rng, settings.resamples, stage("resampling queries"))

    reading = _Reading(sample, k, queries, float(np.abs(judged.value).max()), rule)
    scorers, curves, warnings = {}, {}, []
    for name, members in pools.scorers.items():
        seeded = None not in members
        prefix = f"{name}//" if seeded else f"{name}/"
        scorers[name], curves[name] = _scorer(
            reading, prefix, [columns[c] for c in members.values()]
        )
        if seeded:
            scorers[name]["seeds"] = {
                split_seed(column)[1]: _curve(reading, f"{column}/", short=True)[0]
                for column in members.values()
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
        "pool_size": {"min": sizes.min(), "median": np.median(sizes), "max": sizes.max()},
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
    sample.add_defined(prefix + "tau", column.tau_b)
    sample.add(prefix + "within", column.deciles_within)
    sample.add(prefix + "decile sum", column.decile_sums)
    sample.add(prefix + "decile count", column.decile_counts)
    if column.off_support is not None:
        sample.add(prefix + "off", column.off_support)
    if column.auc_within is not None and column.auc_influence is not None:
        sample.add_defined(prefix + "auc", column.auc_within)
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
    reading: _Reading, prefix: str, *, short: bool = False
) -> tuple[dict[str, Any], Estimate]:
    """V(K) with its verdict; ``short`` leaves out bands and shares (for single seeds)."""
    sample, k, scale, rule = reading.sample, reading.k, reading.scale, reading.rule
    curve, top = sample.mean(prefix + "value"), sample.mean("oracle")
    headroom = top - curve[0:1]
    verdict = judge(
        k,
        curve.point,
        curve.draws,
        headroom.point,
        clusters=sample.clusters,
        queries=reading.queries,
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
    reading: _Reading, prefix: str, parts: list[ScoreColumn]
) -> tuple[dict[str, Any], Estimate]:
    """One scorer's entry of ``audit.json`` (``parts``: its seeds)."""
    entry, curve = _curve(reading, prefix)
    sample, rule = reading.sample, reading.rule
    tau = sample.mean_defined(prefix + "tau")
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
        within_auc = sample.mean_defined(prefix + "auc")
        undefined = sum(np.isnan(p.auc_within).sum() for p in parts if p.auc_within is not None)
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


def _number(estimate: Estimate, level: float) -> Summary:
    low, high = estimate.interval(level)
    return {"mean": float(estimate.point[0]), "low": float(low[0]), "high": float(high[0])}


def _comparisons(curves: dict[str, Estimate], k: list[int], level: float) -> list[dict[str, Any]]:
    """Paired differences of every pair of scorers at the largest K."""
    pairs = list(combinations(curves, 2))
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
