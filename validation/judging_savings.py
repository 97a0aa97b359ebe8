"""How many labels a table takes: all, at random, planned, and planned with a cheap judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.judging.design import LEAST_WHOLE, Contrasts, assumptions_from, drawn_within
from toptail.judging.values import judged_pools
from toptail.pools import ScoredPools
from toptail.progress import Tick, no_tick
from validation.judging import Way, asked, at_random, planned, whole_queries
from validation.table import Row

TIMES: Final = (1.25, 1.5, 2.0, 3.0)
"""Half-widths that labels are counted for, over that with every label."""
_SEED = 18
_RESAMPLES = 400


def half_width(pools: ScoredPools, cheap: str | None, seed: int) -> float:
    """Median over scorers of the half-width of the captured share at k_max."""
    judged = judged_pools(pools, "value", cheap=cheap, seed=seed)
    settings = Settings(resamples=_RESAMPLES, seed=seed)
    scorers = pools_content(judged, settings)["scorers"].values()
    ends = [[scorer[f"captured_{end}"][-1] for end in ("low", "high")] for scorer in scorers]
    low, high = np.array(ends, dtype=np.float64).T
    return float(np.median((high - low) / 2))


@dataclass(frozen=True)
class Saving:
    """How many labels one way takes."""

    way: str
    """How candidates are chosen."""
    labels: list[float]
    """Labels that were used, mean over seeds."""
    half_width: list[float]
    """Half-width with so many, mean over seeds."""

    def needed(self, target: float) -> float:
        """Labels for a half-width, between those tried by powers; NaN beyond them."""
        known = np.isfinite(self.half_width)  # not where too few queries were judged whole
        order = np.argsort(np.array(self.half_width)[known])
        width, labels = (np.log(np.array(x)[known][order]) for x in (self.half_width, self.labels))
        inside = width[0] <= np.log(target) <= width[-1]
        return float(np.exp(np.interp(np.log(target), width, labels))) if inside else float("nan")


def planned_by_cheap(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with the values that a plan asks for which knows a cheap judge."""
    about = Contrasts.of(pools)
    guess = assumptions_from(about, None, pools.values["cheap"], None)
    return asked(pools, *drawn_within(about, labels, guess, int(rng.integers(1 << 31))))


@dataclass(frozen=True)
class Savings:
    """What a table takes, every way."""

    candidates: int
    """How many there are."""
    half_width: float
    """Half-width of the captured share with every label."""
    ways: list[Saving]
    """The ways of choosing."""


def savings(
    pools: ScoredPools,
    labels: list[int],
    cheap: str | None = None,
    *,
    seeds: int = 3,
    tick: Tick = no_tick,
) -> Savings:
    """What each way takes; ``pools`` have every value."""
    ways: list[tuple[str, Way, str | None]] = [
        ("whole queries", whole_queries, None),
        ("at random", at_random, None),
        ("planned", planned, None),
    ]
    if cheap is not None:
        ways.append(("planned, cheap judge", planned_by_cheap, cheap))
    result = []
    for name, way, judge in ways:
        used, width = [], []
        for count in labels:
            found = []
            for seed in range(seeds):
                table = way(pools, count, np.random.default_rng([_SEED, seed]))
                judged = int((~np.isnan(table.values["value"])).sum())
                found.append((judged, half_width(table, judge, seed)))
            used.append(float(np.mean([each[0] for each in found])))
            width.append(float(np.mean([each[1] for each in found])))
            tick(f"{name}, {count:,} labels", len(used) / len(labels))
        result.append(Saving(name, used, width))
    return Savings(pools.rows, half_width(pools, None, 0), result)


def table_savings(pools: ScoredPools, seeds: int = 3, tick: Tick = no_tick) -> Savings:
    """What a table takes in which every value is there.

    The cheap judge is the column 'cheap', or else the mean of all scores, each standardized.
    """
    value = next(iter(pools.values.values()))
    cheap = pools.values.get("cheap")
    if cheap is None:
        spread = {name: column.std() or 1.0 for name, column in pools.scores.items()}
        parts = [(c - c.mean()) / spread[name] for name, c in pools.scores.items()]
        cheap = np.mean(parts, axis=0)
    pools = replace(pools, values={"value": value, "cheap": cheap}, support=None, group=None)
    least = max(0.08 * pools.rows, 1.3 * LEAST_WHOLE * float(pools.sizes.mean()))
    tried = np.geomspace(least, 0.7 * pools.rows, 5).astype(int).tolist()
    return savings(pools, tried, "cheap", seeds=seeds, tick=tick)


def bench_savings(pools: ScoredPools) -> Iterator[Row]:
    """Rows for one table: labels for the same half-width."""
    found = table_savings(pools)
    full = found.half_width
    yield Row(pools.source, f"{pools.rows:,} candidates", f"half-width with every label {full:.3f}")
    for each in found.ways:
        pairs = zip(each.labels, each.half_width, strict=True)
        shares = (f"{times:g}×: {each.needed(times * full):,.0f}" for times in TIMES)
        yield Row(
            each.way,
            "labels for a half-width of " + ", ".join(shares),
            ", ".join(f"{labels:,.0f} → {width:.3f}" for labels, width in pairs),
        )
