"""Honesty by simulation: how often the intervals of a choice hold the truth of what it deploys.

Tables are drawn from worlds in which the true value of any selector is known, by a large table of
its own. A choice is made on each, and its 95 % intervals of the deployed selector's value and of
its gain over plain best-of-K are compared with what that very selector is truly worth:

    python -m validation.choose_honesty --tables 400 --workers 16 --out FILE
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from scipy.special import ndtri, stdtr

from toptail.pools import ScoredPools
from toptail.select.base import Selector
from toptail.select.choose import compare
from toptail.select.crossfit import NOTHING
from toptail.select.inputs import ChoiceData, ChoiceSettings, choice_data
from toptail.select.measure import measure_all
from toptail.select.selectors import RandomPick
from toptail.stats.best_of_k import Floats
from validation.judging import planned
from validation.simulation import computed, flags, store

SIZE: Final = 16
"""Candidates of a query."""
CLUSTERS: Final = 20
"""Clusters of a table that has few."""
TRUTH: Final = 40_000
"""Queries of the table that knows the truth."""
RESAMPLES: Final = 400
_SEED: Final = 17
_TOGETHER: Final = 10
"""Tables that a process works on before it reports."""


def _normal(rng: np.random.Generator, n: int, size: int = SIZE) -> Floats:
    return rng.normal(size=(n, size))


def cursed(rng: np.random.Generator, n: int, *, truth: bool) -> ScoredPools:
    """A score that overrates candidates off the support, and a weaker one that does not."""
    quality, off = _normal(rng, n), rng.random((n, SIZE)) < 0.08
    scores = {
        "cursed": quality + _normal(rng, n) + np.where(off, 3.0, 0.0),
        "weak": 0.5 * quality + _normal(rng, n),
    }
    luck = 0.0 if truth else _normal(rng, n)
    return ScoredPools.from_arrays(scores, quality - off + luck, support=~off)


def heavy(rng: np.random.Generator, n: int, *, truth: bool) -> ScoredPools:
    """Five weak scores that know the quality; the value has Student's t2 luck beside it."""
    quality = _normal(rng, n)
    luck = 0.0 if truth else rng.standard_t(2, size=quality.shape)
    scores = {f"s{at}": 0.5 * quality + _normal(rng, n) for at in range(5)}
    return ScoredPools.from_arrays(scores, quality + luck)


def jackpots(slope: float, *, normal: bool = False) -> Draw:
    """Values of Student's t2, which five scores see with this slope, or made normal by rank."""

    def draw(rng: np.random.Generator, n: int, *, truth: bool) -> ScoredPools:
        del truth
        value = rng.standard_t(2, size=(n, SIZE))
        seen = ndtri(stdtr(2, value)) if normal else value
        scores = {f"s{at}": slope * seen + _normal(rng, n) for at in range(5)}
        return ScoredPools.from_arrays(scores, value)

    return draw


def clustered(rng: np.random.Generator, n: int, *, truth: bool) -> ScoredPools:
    """Twenty clusters; how good each of three scores is differs between them."""
    clusters = n // 5 if truth else CLUSTERS
    cluster = np.arange(n) * clusters // n
    slope = rng.normal(0.4, 0.6, (clusters, 3))[cluster]
    quality, shared = _normal(rng, n), rng.normal(0.0, 0.5, clusters)[cluster]
    scores = {f"s{at}": slope[:, at, None] * quality + _normal(rng, n) for at in range(3)}
    return ScoredPools.from_arrays(scores, quality + shared[:, None], cluster=cluster)


def equal(slope: float, scorers: int, size: int = SIZE) -> Draw:
    """Scores that are equally good; with a slope of 0 they know nothing."""

    def draw(rng: np.random.Generator, n: int, *, truth: bool) -> ScoredPools:
        value = _normal(rng, n, size)
        scores = {f"s{at}": slope * value + _normal(rng, n, size) for at in range(scorers)}
        return ScoredPools.from_arrays(scores, value * (0.0 if truth and not slope else 1.0))

    return draw


Draw = Callable[..., ScoredPools]
"""From a generator and a number of queries to a table; ``truth``: with values free of luck."""
_CLOSED: Final = ("rank", "trim", "poisson", "mean", "min", "pessimistic")


@dataclass(frozen=True)
class World:
    """Tables in which the value of every selector is known."""

    name: str
    """What its scores and values are, for tables."""
    draw: Draw
    """Makes a table."""
    queries: tuple[int, ...] = (40, 100, 200)
    """Sizes of its tables."""
    selectors: tuple[str, ...] = _CLOSED
    """What is tried beside plain best-of-K."""
    labels: float = 1.0
    """Share of the candidates that are judged, by a plan where it is below 1."""

    def table(self, queries: int, rng: np.random.Generator) -> ScoredPools:
        """One table."""
        whole = self.draw(rng, queries, truth=False)
        if self.labels == 1.0:
            return whole
        return planned(whole, round(self.labels * whole.rows), rng)


WORLDS: Final = (
    World("cursed score with support", cursed, selectors=(*_CLOSED, "filter")),
    World("heavy tails: five weak scores, quality and t2 luck", heavy),
    World("heavy tails: five weak scores of t2 values", jackpots(0.1)),
    World("heavy tails: five scores that find t2 jackpots", jackpots(0.3)),
    World("heavy tails: five scores of the ranks of t2 values", jackpots(0.4, normal=True)),
    World(f"few clusters: {CLUSTERS}", clustered),
    World("six scores that know nothing", equal(0.0, 6), (100,)),
    World(
        "the same, a fifth of the candidates judged by a plan", equal(0.0, 6), (200,), labels=0.2
    ),
    World("best of 2 by ten equally good scores", equal(0.8, 10, 2), (100,), ()),
)


@cache
def _large(world: World) -> tuple[ChoiceData, dict[Selector, float]]:
    """The table that knows the truth, and what is known by now."""
    whole = world.draw(np.random.default_rng([_SEED, 1]), TRUTH, truth=True)
    return choice_data(whole), {}


def true_value(world: World, selector: Selector) -> float:
    """What a selector is worth in a world."""
    offered, known = _large(world)
    if selector not in known:
        value = offered.judged.value
        if isinstance(selector, RandomPick):
            known[selector] = float(value.mean())
        else:
            tried = [RandomPick(), selector.with_k(1)]
            found = measure_all(offered, value, tried, [1, selector.k], seed=0, scale=1.0)
            known[selector] = float(found.value[:, 1].mean())
    return known[selector]


@dataclass(frozen=True)
class Found:
    """One table: estimate, ends and truth of the deployed selector's value and of its gain."""

    value: tuple[float, ...]
    gain: tuple[float, ...]
    naive: float
    """The deployed selector's mean on the queries that chose it, less what it is worth."""
    stable: float
    """In which share of the resamples the deployed selector was chosen."""
    family: str
    """What was deployed."""


def one_table(world: World, queries: int, seed: Sequence[int]) -> Found:
    """Draw a table, choose, and look up the truth."""
    table = world.table(queries, np.random.default_rng(seed))
    settings = ChoiceSettings(resamples=RESAMPLES, seed=seed[-1], repeats=1)
    trial = compare(choice_data(table), settings, list(world.selectors))
    both = ("choice", "best_of_k_max")
    found, _ = trial.valued({name: trial.rules[name] for name in both}, settings)
    deployed, plain = (trial.values.selectors[found.final[name]] for name in both)
    truth = true_value(world, deployed)
    value, gain = (found.lead("choice", other) for other in (NOTHING, both[1]))
    return Found(
        (*value.values(), truth),
        (*gain.values(), truth - true_value(world, plain)),
        float(found.mean[found.final["choice"]]) - truth,
        found.share("choice").get(found.final["choice"], 0.0),
        deployed.family,
    )


def counted(world: World, queries: int, tables: Sequence[Found]) -> dict[str, Any]:
    """One cell: how often both intervals hold the truth, and where they miss it."""
    often = Counter(each.family for each in tables).most_common(3)
    gain = np.array([each.gain for each in tables])
    other = gain[gain[:, 1] < gain[:, 2]]  # plain itself gains 0, and that is known
    return {
        "world": world.name,
        "queries": queries,
        "tables": len(tables),
        "value": _covered(np.array([each.value for each in tables])),
        "gain": _covered(gain),
        "gain_other": {"tables": len(other), **(_covered(other) if len(other) else {})},
        "naive_bias": float(np.mean([each.naive for each in tables])),
        "stable": float(np.mean([each.stable for each in tables])),
        "deployed": {name: times / len(tables) for name, times in often},
    }


def _covered(rows: Floats) -> dict[str, float]:
    value, low, high, truth = rows.T
    room = 1e-9 * (1.0 + np.abs(truth))
    below, above = truth < low - room, truth > high + room
    return {
        "coverage": float(1.0 - (below | above).mean()),
        "truth_below": float(below.mean()),
        "truth_above": float(above.mean()),
        "bias": float((value - truth).mean()),
        "width": float((high - low).mean()),
    }


def _some(work: tuple[int, World, int, int, int]) -> list[Found]:
    """Some tables of one cell: the world with its number, queries, first and last table."""
    number, world, queries, start, stop = work
    seeds = ([_SEED, 2, number, queries, at] for at in range(start, stop))
    return [one_table(world, queries, seed) for seed in seeds]


def cells(tables: int, workers: int = 1) -> Iterator[dict[str, Any]]:
    """Every cell, as it is done."""
    for number, world in enumerate(WORLDS):
        for queries in world.queries:
            starts = range(0, tables, _TOGETHER)
            work = [(number, world, queries, at, min(at + _TOGETHER, tables)) for at in starts]
            found = [each for part in computed(_some, work, workers) for each in part]
            yield counted(world, queries, found)


def line(cell: dict[str, Any]) -> str:
    """A cell as a row of the documentation's table."""

    def part(found: dict[str, Any]) -> str:
        below, above = (f"{100 * found[f'truth_{side}']:.1f}" for side in ("below", "above"))
        return f"{found['coverage']:.1%} ({below} / {above})"

    both = " | ".join(part(cell[name]) for name in ("value", "gain"))
    other = cell["gain_other"]
    alone = f"{other['coverage']:.1%} of {other['tables']}" if other["tables"] else "–"
    return f"| {cell['world']} | {cell['queries']} | {both} | {alone} | {cell['stable']:.0%} |"


def main(argv: Sequence[str] | None = None) -> None:
    """Store every cell, and write the rows of the documentation's table to the terminal."""
    given = flags(__doc__, tables=400).parse_args(argv)
    found = []
    for cell in cells(given.tables, given.workers):
        found.append(cell)
        sys.stderr.write(line(cell) + "\n")
    about = {"seed": _SEED, "resamples": RESAMPLES, "level": ChoiceSettings.level}
    content = about | {"truth_queries": TRUTH, "cells": found}
    store(given, "choose_honesty", "tables workers", content)


if __name__ == "__main__":
    main()
