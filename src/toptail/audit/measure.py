"""Curves, diagnostics, verdicts and paired comparisons of the scorers of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from toptail.audit.headroom import (
    Headroom,
    headroom_of,
)
from toptail.audit.per_query import ScoreColumn, score_columns
from toptail.audit.settings import Settings, Unit
from toptail.audit.verdict import Scope, Status, Summary, Verdict, judge
from toptail.errors import InputError
from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.pools.columns import codes, split_seed
from toptail.progress import Tick
from toptail.stats import bootstrap_p, divergence_bound, holm, max_t_band
from toptail.stats.best_of_k import Floats, KGrid
from toptail.stats.resample import Estimate, Sample

_HISTOGRAM = np.linspace(-1.0, 1.0, 21)
_WIDE = 10.0
"""Where the queries' headroom spreads wider than this, verdicts in both units are given."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The numbers of a table, or of one group of its queries."""

    content: dict[str, Any]
    """Their part of ``audit.json``."""
    warnings: list[str]
    """Reasons to doubt them."""
    gains: dict[str, Estimate]
    """Scorer -> its gain at k_max, with draws."""
    headroom_spread: float | None
    """How many times the 90 % quantile of the queries' headroom is its 10 % quantile."""
    no_headroom: int
    """Queries where the best candidate is worth no more than a random one."""
    other_unit: dict[str, Status] | None
    """Scorer -> status in the other unit; None where the headroom does not spread so wide."""


@dataclass(frozen=True, eq=False)
class _Reading:
    """The resamples, the headroom and the question from which all numbers are computed."""

    sample: Sample
    headroom: Headroom
    scope: Scope

    def verdict(self, prefix: str) -> Verdict:
        curve = self.sample.mean(prefix + "value").point[self.scope.grid.deciding_at]
        steps = self.headroom.steps(self.sample, prefix)
        return judge(self.scope, curve, self.headroom.mean(self.sample, prefix), steps)


def measure(
    pools: ScoredPools,
    judged: Judgement,
    grid: KGrid,
    settings: Settings,
    rng: np.random.Generator,
    tick: Tick | None = None,
) -> Measured:
    """Everything that depends on the data: curves, diagnostics, verdicts, comparisons."""

    def stage(name: str) -> Callable[[float], None] | None:
        return None if tick is None else lambda share: tick(name, share)

    rule, queries = settings.rule, _queries(pools, settings.pools_per_query)
    columns = score_columns(pools, judged, grid, stage("scoring pools"))
    cluster = None if pools.cluster is None else codes(pools.source, "cluster", pools.cluster)[0]
    pooled = headroom_of(pools, judged, grid, columns, cluster, settings.value_range)
    headrooms = _units(pooled, judged, settings.unit)
    sample = Sample(pools.queries, cluster)
    _add_columns(sample, pools, columns, pooled, headrooms)
    sample.weigh(rng, settings.resamples, stage("resampling queries"))

    ranged = settings.value_range is not None
    readings = [
        _Reading(
            sample,
            headroom,
            Scope(grid, unit, rule, queries, judged.largest, ranged and unit == "pooled"),
        )
        for unit, headroom in headrooms.items()
    ]
    reading, *other = readings
    scorers, curves, gains, warnings = {}, {}, {}, []
    for name, members in pools.scorers.items():
        prefix = _prefix(name, members)
        scorers[name], curves[name] = _scorer(
            reading, prefix, [columns[c] for c in members.values()]
        )
        gains[name] = reading.headroom.gain_at_k_max(sample, prefix)
        if None not in members:
            scorers[name]["seeds"] = {
                split_seed(column)[1]: {
                    "value": sample.mean(f"{column}/value").point[grid.shown_at],
                    "verdict": reading.verdict(f"{column}/"),
                }
                for column in members.values()
            }
        high = scorers[name]["tau_b"]["high"]
        if high is not None and high < 0:
            warnings.append(
                f"'{name}' is negatively correlated with the value (tau_b at most {high:.2g}): "
                "is its sign reversed? Larger scores must mean better candidates."
            )
    top = sample.mean("oracle")
    low, high = top.interval(rule.level)
    random = next(iter(curves.values())).point[0]
    sizes = pools.sizes
    content = {
        "k": list(grid.shown),
        "random": random,
        "oracle": top.point,
        "oracle_low": low,
        "oracle_high": high,
        "headroom": top.point - random,
        "kl_bound": divergence_bound(grid.shown),
        "queries": queries,
        "pools": pools.queries,
        "clusters": sample.clusters,
        "candidates": pools.rows,
        "pool_size": {"min": sizes.min(), "median": np.median(sizes), "max": sizes.max()},
        "scorers": scorers,
        "comparisons": _comparisons(curves, grid.k_max, rule.level),
    }
    others = {
        name: reading.verdict(_prefix(name, members)).status
        for reading in other
        for name, members in pools.scorers.items()
    }
    return Measured(content, warnings, gains, pooled.spread, pooled.without, others or None)


def _prefix(name: str, members: Mapping[int | None, str]) -> str:
    """The prefix of a scorer's columns in the sample: of its only seed, or of the seeds' mean."""
    return f"{name}/" if None in members else f"{name}//"


def _units(pooled: Headroom, judged: Judgement, unit: Unit) -> dict[Unit, Headroom]:
    """The headroom in the unit of the audit, and in the other unit where they may disagree."""
    wide = judged.exact and judged.replicates is None and (pooled.spread or 0.0) > _WIDE
    units: list[Unit] = ["pooled", "query"] if unit == "pooled" else ["query", "pooled"]
    return {
        each: pooled if each == "pooled" else pooled.of_each_query()
        for each in (units if wide else units[:1])
    }


def _add_columns(
    sample: Sample,
    pools: ScoredPools,
    columns: dict[str, ScoreColumn],
    pooled: Headroom,
    headrooms: Mapping[Unit, Headroom],
) -> None:
    """Register all per-query numbers of score columns, and of scorers with several seeds."""
    sample.add("oracle", pooled.oracle)
    for headroom in headrooms.values():
        headroom.add_to(sample)

    def register(prefix: str, column: ScoreColumn, members: Sequence[str]) -> None:
        _register(sample, prefix, column)
        for headroom in headrooms.values():
            headroom.add_scorer(sample, prefix, column, members)

    for name, column in columns.items():
        register(f"{name}/", column, [name])
    for name, members in pools.scorers.items():
        if None not in members:
            parts = list(members.values())
            register(f"{name}//", _seed_mean([columns[c] for c in parts]), parts)


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
    if len(parts) == 1:
        return parts[0]

    def mean(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else sum(arrays) / len(arrays)

    return ScoreColumn(**{name: mean(name) for name in parts[0].__dict__})


def _curve(reading: _Reading, prefix: str) -> tuple[dict[str, Any], Estimate]:
    sample, headroom, scope = reading.sample, reading.headroom, reading.scope
    level, tail = scope.rule.level, scope.rule.tail
    whole, top = sample.mean(prefix + "value"), sample.mean("oracle")
    curve = whole[scope.grid.shown_at]
    low, high = curve.interval(level)
    band = max_t_band(curve.point, curve.draws, sample.clusters, level, scope.scale)
    gain, captured = (
        shares(sample, prefix, tail) for shares in (headroom.gains, headroom.captured)
    )
    usable = (top - curve[0:1]).point > 1e-12 * scope.scale
    for end, numbers in captured.items():
        numbers[~usable] = np.nan
        numbers[-1] = gain[end][-1]  # at k_max they are one number
    return {
        "value": curve.point,
        "low": low,
        "high": high,
        "band_low": band.low,
        "band_high": band.high,
        "gain": gain,
        "regret": top.point - curve.point,
        "nregret": 1.0 - captured["value"],
        "captured": captured["value"],
        "captured_low": captured["low"],
        "captured_high": captured["high"],
        "gain_per_doubling": (curve.point[-1] - curve.point[0]) / np.log2(scope.grid.k_max),
        "peak_value": whole.point[scope.grid.deciding_at].max(),
        "verdict": reading.verdict(prefix),
    }, curve


def _scorer(
    reading: _Reading, prefix: str, parts: list[ScoreColumn]
) -> tuple[dict[str, Any], Estimate]:
    """One scorer's entry of ``audit.json``; ``parts`` are its seeds."""
    entry, curve = _curve(reading, prefix)
    sample, rule = reading.sample, reading.scope.rule
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
    scale = max(1.0, float(np.abs(scores).max(where=np.isfinite(scores), initial=0.0)))
    return np.asarray((scores / scale).mean(axis=0) * scale)


def _number(estimate: Estimate, level: float) -> Summary:
    low, high = estimate.interval(level)
    return {"mean": float(estimate.point[0]), "low": float(low[0]), "high": float(high[0])}


def _comparisons(curves: dict[str, Estimate], k_max: int, level: float) -> list[dict[str, Any]]:
    pairs = list(combinations(curves, 2))
    differences = [curves[a][-1] - curves[b][-1] for a, b in pairs]
    p = np.array([float(bootstrap_p(d.draws)) for d in differences])
    rows = []
    for (a, b), d, raw, adjusted in zip(pairs, differences, p, holm(p), strict=True):
        low, high = d.interval(level)
        rows.append(
            {"a": a, "b": b, "k": k_max, "difference": d.point, "low": low, "high": high}
            | {"p": raw, "p_holm": adjusted}
        )
    return rows
