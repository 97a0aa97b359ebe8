"""Tables judged in part: how often verdicts and intervals err."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.audit.run import pools_content
from toptail.audit.settings import Rule, Settings
from toptail.judging.design import Assumptions, Contrasts, Design, Draw, drawn_within
from toptail.judging.plan import level_at
from toptail.judging.values import judged_pools
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats
from validation.judging_cases import CANDIDATES, POPULATIONS, Mixture
from validation.table import Row

SEED: Final = 18
_QUERIES = 200
_LABELS = 640
"""A fifth of the candidates."""
RESAMPLES: Final = 400


def _with(pools: ScoredPools, design: dict[str, Floats], judged: Any) -> ScoredPools:
    value = pools.values["value"]
    values = dict(pools.values) | {"value": np.where(judged, value, np.nan)}
    blank = {name: np.where(judged, column, np.nan) for name, column in design.items()}
    return replace(pools, values=values, design=blank)


def planned(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with the values that a plan asks for."""
    about = Contrasts.of(pools)
    return asked(pools, *drawn_within(about, labels, Assumptions(), int(rng.integers(1 << 31))))


def asked(pools: ScoredPools, plan: Design, drawn: Draw) -> ScoredPools:
    """The table with the values that were drawn."""
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
    low_above: float
    """Share of tables whose 95 % interval of the captured share lies above the truth."""
    high_below: float
    """Share of tables whose interval lies below the truth."""
    unknown: float
    """Share of tables in which an end of the interval is not known: it excludes nothing."""
    bias: float
    """Mean of the captured share less the truth."""
    half_width: float
    """Median half-width of the captured share; infinite where an end is not known."""

    @property
    def covered(self) -> float:
        """Share of tables whose interval holds the truth."""
        return 1.0 - self.low_above - self.high_below


def outcome(
    population: Mixture,
    way: Way,
    cheap: str | None,
    repetitions: int,
    labels: int = _LABELS,
    queries: int = _QUERIES,
) -> Outcome:
    """One way of judging, on many tables of one population."""
    said, ends = [], []
    for at in range(repetitions):
        rng = np.random.default_rng([SEED, at])
        table = population.table(queries, rng)
        if cheap is not None:
            table = _cheap(table, cheap, rng)
        judge = None if cheap is None else "cheap"
        judged = judged_pools(way(table, labels, rng), "value", cheap=judge, seed=at)
        entry = pools_content(judged, Settings(resamples=RESAMPLES, seed=at))
        scorer = entry["scorers"]["score"]
        said.append(scorer["verdict"]["status"] == population.wrong)
        ends.append([scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")])
    value, low, high = np.array(ends, dtype=np.float64).T
    unknown = np.isnan(low) | np.isnan(high)
    truth = population.captured
    return Outcome(
        wrong=float(np.mean(said)),
        low_above=float((low > truth).mean()),
        high_below=float((high < truth).mean()),
        unknown=float(unknown.mean()),
        bias=float(np.nanmean(value) - truth),
        half_width=float(np.median(np.where(unknown, np.inf, (high - low) / 2))),
    )


def wrong_under_looks(population: Mixture, repetitions: int, looks: int = 10) -> float:
    """Share of tables that get the wrong verdict at some of so many looks, one batch each."""
    wrong = 0
    for at in range(repetitions):
        rng = np.random.default_rng([SEED, 2, at])
        table = population.table(_QUERIES, rng)
        about = Contrasts.of(table)
        for look in range(1, looks + 1):
            labels = 300 + (2 * _LABELS - 300) * look // looks
            found = drawn_within(about, labels, Assumptions(), at, 0.5)
            rule = Rule(level=level_at(Rule.level, look, looks))
            settings = Settings(rule=rule, resamples=RESAMPLES, seed=at)
            entry = pools_content(judged_pools(asked(table, *found), "value", seed=at), settings)
            status = entry["scorers"]["score"]["verdict"]["status"]
            if status != "inconclusive":
                wrong += status == population.wrong
                break
    return wrong / repetitions


def bench_judging(repetitions: int = 200) -> Iterator[Row]:
    """Rows of the benchmark: every mixture, judged in every way."""
    yield Row(
        f"{repetitions:,} tables a cell of {_QUERIES} queries of {CANDIDATES}, {_LABELS} labels",
        "wrong verdicts / intervals that hold the truth, in percent / bias / half-width",
        f"seed {SEED}, {RESAMPLES} resamples",
    )
    for make in POPULATIONS:
        population = make()
        for name, way, cheap in WAYS:
            found = outcome(population, way, cheap, repetitions)
            yield Row(
                f"{population.name} (wrong: {population.wrong}), {name}",
                f"{100 * found.wrong:.1f}/{100 * found.covered:.1f}/{found.bias:+.3f}/"
                f"{found.half_width:.3f}",
                f"captured in truth {population.captured:.3f}",
            )
        yield Row(
            f"{population.name} (wrong: {population.wrong}), planned, ten looks",
            f"{100 * wrong_under_looks(population, repetitions):.1f} % wrong at some look",
            "spending as declared",
        )
