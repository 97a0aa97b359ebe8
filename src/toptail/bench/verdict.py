"""How often the verdict is wrong, and how often it decides, beside the rule before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from toptail.audit.settings import Rule
from toptail.audit.verdict import LEAST_CLUSTERS, Steps, status_of
from toptail.bench.table import Row
from toptail.bench.verdict_before import status_before
from toptail.bench.verdict_cases import CASES, Case, Clusters
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.ends import Shares, Unseen, extreme_weights, shares, unseen_cluster

QUERIES = (2, 3, 5, 10, 20, 50, 100, 400)
_TOGETHER = 100
"""Tables that share one set of weights."""
_SEED = 14


@dataclass(frozen=True)
class Counted:
    """One case at one number of clusters: how often each rule said the word in question."""

    clusters: int
    """Clusters of each table."""
    ours: float
    """Share of tables, by the rule."""
    before: float
    """Share of tables, by the rule before."""


def bench_verdict(repetitions: int = 200, resamples: int = 500) -> Iterator[Row]:
    """Rows of the benchmark: for every case, shares of verdicts in percent at every size."""
    rule = Rule()
    yield Row(
        f"{repetitions:,} tables a cell, {resamples} resamples, seed {_SEED}",
        "n = " + " / ".join(str(n) for n in QUERIES),
        f"a share of 5 % has a Monte Carlo error of {100 * _error(0.05, repetitions):.1f}",
    )
    for at, make in enumerate(CASES):
        case = make(np.random.default_rng([_SEED, at]))
        cells = cells_of(case, rule, repetitions, resamples, at)
        yield Row(
            _named(case),
            _percent([c.ours for c in cells]),
            "before: " + _percent([c.before for c in cells]),
        )


def cells_of(
    case: Case,
    rule: Rule,
    repetitions: int,
    resamples: int,
    seed: int,
    sizes: tuple[int, ...] = QUERIES,
) -> list[Counted]:
    """The shares of one case at every number of clusters."""
    counted = case.wrong
    if counted == "none":
        counted = "safe" if case.truth().min() > -rule.delta else "unsafe"
    cells = []
    for clusters in sizes:
        rng = np.random.default_rng([_SEED, seed, clusters])
        said = np.zeros(2)
        for start in range(0, repetitions, _TOGETHER):
            tables = min(_TOGETHER, repetitions - start)
            drawn = _draw(case, tables, clusters, rng)
            ours = _ours(case, drawn, resamples, rule, rng)
            before = _before(case, drawn, resamples, rule, rng)
            said += [ours.count(counted), before.count(counted)]
        cells.append(Counted(clusters, *(float(x) for x in said / repetitions)))
    return cells


def _draw(case: Case, tables: int, clusters: int, rng: np.random.Generator) -> Clusters:
    """Tables of clusters from the population: every array ``[tables, clusters, ...]``."""
    shape = tables, clusters
    bad = (rng.random(shape) < case.bad)[..., None]
    at: list[Ints] = [rng.integers(len(p.headroom), size=shape) for p in case.parts]

    def take(name: str) -> Floats:
        good, hurt = (getattr(p, name)[i] for p, i in zip(case.parts, at, strict=True))
        return np.asarray(np.where(bad if good.ndim == 3 else bad[..., 0], hurt, good))

    return Clusters(*(take(name) for name in ("change", "headroom", "least", "most", "queries")))


def _ours(
    case: Case, drawn: Clusters, resamples: int, rule: Rule, rng: np.random.Generator
) -> list[str]:
    found = _shares(case, drawn, resamples, rng)
    low, high = found.low(rule.tail), found.simultaneous_high(1 - rule.level, rule.tail)[0]
    enough = drawn.headroom.shape[1] >= (2 if case.width is not None else LEAST_CLUSTERS)
    usable = drawn.headroom.mean(axis=1) > 1e-12 * case.scale
    return [
        status_of(Steps(case.family.steps, *ends), rule, enough) if known else "inconclusive"
        for *ends, known in zip(found.value, low, high, usable, strict=True)
    ]


def _shares(case: Case, drawn: Clusters, resamples: int, rng: np.random.Generator) -> Shares:
    """The steps of every table with draws, as an audit makes them."""
    clusters = drawn.headroom.shape[1]
    headroom = drawn.headroom[..., None]
    weights = rng.standard_exponential((resamples, clusters + 1))
    weights *= clusters / weights[:, 1:].sum(axis=1, keepdims=True)
    sums = np.concatenate([drawn.change, headroom], axis=2)
    draws = np.swapaxes(np.tensordot(weights[:, 1:], sums, (1, 1)), 0, 1)  # tables, draws, steps
    draws = np.ascontiguousarray(np.swapaxes(draws, 1, 2))
    top = np.maximum(headroom, 0.0)
    if case.width is None:
        unseen = unseen_cluster([drawn.least, drawn.most], top)
    else:
        k = case.family.family
        steps = np.array([[k.index(size) for size in step] for step in case.family.steps])
        _, gained = extreme_weights(case.family.k_max, k, steps[:, 0], steps[:, 1])
        most = np.maximum(gained, 0.0).sum(axis=0) * case.width
        pools = unseen_cluster([drawn.queries[..., None]] * 2, top).most
        unseen = Unseen(-most * pools, most * pools, np.zeros((len(pools), 1)))
    return shares(drawn.change, headroom, draws[:, :-1], draws[:, -1:], weights[:, 0], unseen)


def _before(
    case: Case, drawn: Clusters, resamples: int, rule: Rule, rng: np.random.Generator
) -> list[str]:
    clusters = drawn.headroom.shape[1]
    times = rng.multinomial(clusters, np.full(clusters, 1 / clusters), resamples).astype(float)
    count = np.tensordot(times, drawn.queries, (1, 1)).T[:, None]  # tables, 1, draws
    draws = np.moveaxis(np.tensordot(times, drawn.change, (1, 1)), 0, 2) / count
    draws = np.ldexp(draws, case.power)
    queries = drawn.queries.sum(axis=1)
    change = np.ldexp(drawn.change.sum(axis=1) / queries[:, None], case.power)
    headroom = np.ldexp(drawn.headroom.sum(axis=1) / queries, case.power)
    found: list[str] = status_before(
        change, draws, headroom, clusters, float(np.ldexp(case.scale, case.power)), rule
    ).tolist()
    return found


def _named(case: Case) -> str:
    truth = case.truth()
    gain = truth[case.family.steps.index((1, case.family.k_max))]
    what = {"safe": "wrong safe", "unsafe": "wrong unsafe", "none": "decided"}[case.wrong]
    return f"{what}: {case.name} (worst step {truth.min():+.1%}, gain {gain:+.1%})"


def _percent(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _error(share: float, repetitions: int) -> float:
    """Standard error of a share of this many tables."""
    return float(np.sqrt(share * (1 - share) / repetitions))
