"""Honesty by simulation: choices among selectors of which none is better than another.

Every selector's value is known here, and all are equal: what a choice reports must hold that
number as often as it says, and what naive choice reports must be too high.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from toptail.bench.judging import planned
from toptail.bench.table import Row
from toptail.pools import ScoredPools
from toptail.select.crossfit import Contest
from toptail.select.read import read_options
from toptail.select.trial import ChoiceSettings, trial_of

RESAMPLES: Final = 100
_SEED: Final = 17


@dataclass(frozen=True)
class World:
    """Tables in which every selector that is tried has the same value."""

    name: str
    """What it is like."""
    queries: int
    """Queries of a table."""
    slope: float
    """How much scores know of the value: 0 for none."""
    scorers: int
    """Scores that are equally good."""
    selectors: tuple[str, ...]
    """What is tried."""
    size: int = 16
    """Candidates of a query."""
    per_cluster: int = 1
    """Queries of a cluster, which share a part of their values."""
    labels: int | None = None
    """How many candidates are judged, by a plan; None: all."""

    def table(self, rng: np.random.Generator) -> ScoredPools:
        """One table."""
        whole = self._judged(rng)
        return whole if self.labels is None else planned(whole, self.labels, rng)

    def _judged(self, rng: np.random.Generator) -> ScoredPools:
        clusters = self.queries // self.per_cluster
        shared = np.repeat(rng.normal(0, 0.5, clusters), self.per_cluster)[:, None]
        noise = rng.normal(size=(self.queries, self.size))
        scores = {
            f"s{i}": self.slope * noise + rng.normal(size=noise.shape) for i in range(self.scorers)
        }
        cluster = np.repeat(np.arange(clusters), self.per_cluster)
        return ScoredPools.from_arrays(scores, noise + shared, cluster=cluster)

    def truth(self, draws: int = 400_000) -> float:
        """What every selector is worth: a random pick's value, or the best of K by one score."""
        if not self.slope:
            return 0.0
        rng = np.random.default_rng(_SEED)
        value = rng.normal(size=(draws, self.size))
        score = self.slope * value + rng.normal(size=value.shape)
        return float(np.take_along_axis(value, score.argmax(axis=1)[:, None], axis=1).mean())


_NOISE: Final = ("rank", "trim", "poisson", "mean", "min", "pessimistic")
WORLDS: Final = (
    World("scores without any knowledge, 100 queries", 100, 0.0, 3, _NOISE),
    World("the same, 400 queries in 80 clusters", 400, 0.0, 3, _NOISE, per_cluster=5),
    World(
        "the first with 200 queries, 640 of 3,200 candidates judged by a plan",
        *(200, 0.0, 3, _NOISE),
        labels=640,
    ),
    World(
        "the second, 1,280 of 6,400 candidates judged by a plan",
        *(400, 0.0, 3, _NOISE),
        per_cluster=5,
        labels=1280,
    ),
    World("the best of 2 by ten equally good scores, 100 queries", 100, 0.8, 10, (), size=2),
)


def bench_honesty(repetitions: int = 200) -> Iterator[Row]:
    """Coverage, and the optimism of naive choice, world by world."""
    for number, world in enumerate(WORLDS):
        found = np.array([one_table(world, [_SEED, number, at]) for at in range(repetitions)])
        truth = world.truth()
        held = (found[:, 1] <= truth) & (truth <= found[:, 2])
        naive = (found[:, 4] <= truth) & (truth <= found[:, 5])
        error = np.std(found[:, 0]) / np.sqrt(repetitions)
        yield Row(
            world.name,
            f"the 95 % interval holds the truth in {held.mean():.1%} of {repetitions} tables, "
            f"bias {found[:, 0].mean() - truth:+.4f} ± {error:.4f}",
            f"highest mean on the same queries: {found[:, 3].mean() - truth:+.4f} too high, its "
            f"plain interval holds the truth in {naive.mean():.1%}",
        )


def one_table(world: World, seed: list[int]) -> tuple[float, ...]:
    """Honest value with its ends, and the highest mean on the same queries with its plain ends."""
    rng = np.random.default_rng(seed)
    settings = ChoiceSettings(resamples=RESAMPLES, seed=seed[-1])
    offered = read_options(world.table(rng), {})
    trial = trial_of(offered, settings, list(world.selectors))
    _, means = trial.valued({"choice": trial.procedures["choice"]}, settings)
    honest = means.interval("choice")
    return (honest["value"], honest["low"], honest["high"], *_naive(trial.contest))


def _naive(contest: Contest) -> tuple[float, float, float]:
    """What one reports who values the highest mean on the queries that chose it."""
    count = contest.counts.sum()
    means = contest.sums.sum(axis=0) / count
    best = int(means.argmax())
    apart = contest.sums[:, best] - means[best] * contest.counts
    half = 1.96 * float(np.sqrt((apart**2).sum())) / count
    return float(means[best]), float(means[best] - half), float(means[best] + half)
