"""Tables judged in part: how often verdicts and intervals err, and how many labels that saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.audit import Rule, Settings, pools_content
from toptail.audit.plan import LEAST_WHOLE, Contrasts, Design, Guess, Questions, drawn_within
from toptail.bench.judging_cases import CANDIDATES, POPULATIONS, Mixture
from toptail.bench.table import Row
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats
from toptail.stats.looks import level_at

_SEED = 18
_QUERIES = 200
_LABELS = 640
"""A fifth of the candidates."""
_RESAMPLES = 400


def _with(pools: ScoredPools, design: dict[str, Floats], judged: Any) -> ScoredPools:
    value = pools.values["value"]
    values = dict(pools.values) | {"value": np.where(judged, value, np.nan)}
    blank = {name: np.where(judged, column, np.nan) for name, column in design.items()}
    return replace(pools, values=values, design=blank)


def planned(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with the values that a plan asks for."""
    about = Contrasts.of(pools)
    return _asked(pools, *drawn_within(about, labels, Guess(), int(rng.integers(1 << 31))))


def _asked(pools: ScoredPools, plan: Design, drawn: Questions) -> ScoredPools:
    design = {
        "p_judged": plan.p_judged,
        "p_whole": np.full(pools.rows, plan.p_whole),
        "own": drawn.own.astype(np.float64),
    }
    return _with(pools, design, drawn.judged)


def whole_queries(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with some queries judged, each with all its candidates."""
    count = max(5, round(labels / pools.rows * pools.queries))
    chosen = np.zeros(pools.queries, dtype=bool)
    chosen[rng.choice(pools.queries, count, replace=False)] = True
    rows = np.repeat(chosen, pools.sizes)
    return _with(pools, {"p_judged": np.full(pools.rows, count / pools.queries)}, rows)


def at_random(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with candidates judged at random, half of the labels in whole queries."""
    return _drawn(pools, labels, rng, np.ones(pools.rows))


def skewed(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The same with chances that differ forty-fold and have nothing to do with the scores."""
    return _drawn(pools, labels, rng, np.exp(rng.uniform(0.0, np.log(40.0), pools.rows)))


def against(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The same with chances that fall forty-fold from a query's lowest score to its highest."""
    score = pools.scores["score"].reshape(pools.queries, -1)
    place = score.argsort(axis=1).argsort(axis=1) / (score.shape[1] - 1)
    return _drawn(pools, labels, rng, np.exp(-np.log(40.0) * place.reshape(-1)))


def _drawn(pools: ScoredPools, labels: int, rng: np.random.Generator, size: Floats) -> ScoredPools:
    w = 0.5 * labels / pools.rows
    alone = np.clip(size / size.mean() * w / (1.0 - w), 0.0, 1.0)
    whole = np.repeat(rng.random(pools.queries) < w, pools.sizes)
    judged = whole | (rng.random(pools.rows) < alone)
    design = {"p_judged": w + (1.0 - w) * alone, "p_whole": np.full(pools.rows, w)}
    return _with(pools, design, judged)


def _cheap(pools: ScoredPools, kind: str, rng: np.random.Generator) -> ScoredPools:
    """The table with a cheap judge of some quality."""
    value, score = pools.values["value"], pools.scores["score"]
    noise = rng.normal(size=value.size)
    said = {"good": value + 0.5 * noise, "useless": noise, "perverse": 2.0 * score - value}[kind]
    return replace(pools, values=dict(pools.values) | {"cheap": said})


Way = Callable[[ScoredPools, int, np.random.Generator], ScoredPools]
WAYS: Final[tuple[tuple[str, Way, str | None], ...]] = (
    ("whole queries", whole_queries, None),
    ("at random", at_random, None),
    ("skewed at random", skewed, None),
    ("skewed against the score", against, None),
    ("planned", planned, None),
    ("planned, good cheap judge", planned, "good"),
    ("planned, useless cheap judge", planned, "useless"),
    ("planned, perverse cheap judge", planned, "perverse"),
)
"""How candidates are chosen, and what a cheap judge is worth beside."""


@dataclass(frozen=True)
class Outcome:
    """How one way did on one population."""

    wrong: float
    """Share of tables with the wrong verdict."""
    covered: float
    """Share of tables whose 95 % interval of the captured share holds the truth."""
    bias: float
    """Mean of the captured share less the truth."""
    half_width: float
    """Median half-width of the captured share."""


def outcome(
    population: Mixture, way: Way, cheap: str | None, repetitions: int, labels: int = _LABELS
) -> Outcome:
    """One way of judging, on many tables of one population."""
    said, ends = [], []
    for at in range(repetitions):
        rng = np.random.default_rng([_SEED, at])
        table = population.table(_QUERIES, rng)
        if cheap is not None:
            table = _cheap(table, cheap, rng)
        settings = Settings(resamples=_RESAMPLES, seed=at, cheap=None if cheap is None else "cheap")
        entry = pools_content(way(table, labels, rng), settings, values="value")
        scorer = entry["scorers"]["score"]
        said.append(scorer["verdict"]["status"] == population.wrong)
        ends.append([scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")])
    value, low, high = np.array(ends, dtype=np.float64).T
    truth = population.captured
    return Outcome(
        wrong=float(np.mean(said)),
        covered=float(((low <= truth) & (truth <= high)).mean()),
        bias=float(value.mean() - truth),
        half_width=float(np.median((high - low) / 2)),
    )


def wrong_under_looks(population: Mixture, repetitions: int, looks: int = 10) -> float:
    """Share of tables that get the wrong verdict at some of so many looks, one batch each."""
    wrong = 0
    for at in range(repetitions):
        rng = np.random.default_rng([_SEED, 2, at])
        table = population.table(_QUERIES, rng)
        about = Contrasts.of(table)
        for look in range(1, looks + 1):
            labels = 300 + (2 * _LABELS - 300) * look // looks
            found = drawn_within(about, labels, Guess(), at, 0.5)
            rule = Rule(level=level_at(Rule.level, look, looks))
            settings = Settings(rule=rule, resamples=_RESAMPLES, seed=at)
            entry = pools_content(_asked(table, *found), settings, values="value")
            status = entry["scorers"]["score"]["verdict"]["status"]
            if status != "inconclusive":
                wrong += status == population.wrong
                break
    return wrong / repetitions


def half_width(pools: ScoredPools, cheap: str | None, seed: int, clusters: int) -> float:
    """Median over scorers of the half-width of the captured share at k_max."""
    settings = Settings(resamples=_RESAMPLES, seed=seed, cheap=cheap, pools_per_query=clusters)
    scorers = pools_content(pools, settings, values="value")["scorers"].values()
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


def savings(
    pools: ScoredPools,
    labels: list[int],
    cheap: str | None = None,
    *,
    seeds: int = 5,
    pools_per_query: int = 1,
) -> tuple[float, list[Saving]]:
    """The half-width with every label, and what each way takes; ``pools`` have every value."""
    ways: list[tuple[str, Way, str | None]] = [
        ("whole queries", whole_queries, None),
        ("at random", at_random, None),
        ("planned", planned, None),
    ]
    if cheap is not None:
        ways.append(("planned, cheap judge", planned, cheap))
    result = []
    for name, way, judge in ways:
        used, width = [], []
        for count in labels:
            found = []
            for seed in range(seeds):
                table = way(pools, count, np.random.default_rng([_SEED, seed]))
                judged = int((~np.isnan(table.values["value"])).sum())
                found.append((judged, half_width(table, judge, seed, pools_per_query)))
            used.append(float(np.mean([each[0] for each in found])))
            width.append(float(np.mean([each[1] for each in found])))
        result.append(Saving(name, used, width))
    return half_width(pools, None, 0, pools_per_query), result


def bench_savings(pools: ScoredPools) -> Iterator[Row]:
    """Rows for one table in which every value is there: labels for the same half-width.

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
    full, found = savings(pools, tried, "cheap", seeds=3)
    yield Row(pools.source, f"{pools.rows:,} candidates", f"half-width with every label {full:.3f}")
    for each in found:
        pairs = zip(each.labels, each.half_width, strict=True)
        shares = (f"{times:g}×: {each.needed(times * full):,.0f}" for times in (1.25, 1.5, 2, 3))
        yield Row(
            each.way,
            "labels for a half-width of " + ", ".join(shares),
            ", ".join(f"{labels:,.0f} → {width:.3f}" for labels, width in pairs),
        )


def bench_judging(repetitions: int = 200, table: str | None = None) -> Iterator[Row]:
    """Rows of the benchmark: every mixture, judged in every way; or what a table takes."""
    if table is not None:
        yield from bench_savings(ScoredPools.read(table))
        return
    yield Row(
        f"{repetitions:,} tables a cell of {_QUERIES} queries of {CANDIDATES}, {_LABELS} labels",
        "wrong verdicts / intervals that hold the truth, in percent / bias / half-width",
        f"seed {_SEED}, {_RESAMPLES} resamples",
    )
    for make in POPULATIONS:
        population = make()
        for name, way, cheap in WAYS:
            found = outcome(population, way, cheap, repetitions)
            yield Row(
                f"{population.name} (wrong: {population.wrong}), {name}",
                f"{100 * found.wrong:.1f} / {100 * found.covered:.1f} / {found.bias:+.3f} / "
                f"{found.half_width:.3f}",
                f"captured in truth {population.captured:.3f}",
            )
        yield Row(
            f"{population.name} (wrong: {population.wrong}), planned, ten looks",
            f"{100 * wrong_under_looks(population, repetitions):.1f} % wrong at some look",
            "spending as declared",
        )
